//! A folder verified: everything in it that can be replayed is, and the first difference is reported.

use crate::difference::Difference;
use crate::error::BadRecording;
use crate::recording::Recording;
use crate::replay::{Care, Compared, replay};
use kontig_mm::Profile;
use std::fmt;
use std::path::Path;

/// The result of verifying a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine did everything the kernel did.
    Equal(Compared),
    /// It did not.
    Different(Box<Difference>),
    /// The recording holds nothing the engine can carry out, and why.
    NotReplayed(String),
}

/// The patch level of a recorded kernel, where it is not the profile's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPatchLevel {
    /// The recorded kernel's.
    pub recorded: String,
    /// The profile, and the patch level whose rules it states.
    pub profile: String,
    /// That patch level.
    pub stated: String,
}

impl fmt::Display for OtherPatchLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherPatchLevel { recorded, profile, stated } = self;
        write!(f, "recorded on {recorded}, and profile {profile} states the rules of {stated}")
    }
}

/// Whether the recording in a folder is of another patch level than the profile it is verified by: that of its kernel,
/// or `profile`. `None` where they are the same, or one of them does not say.
///
/// # Errors
/// As [`verify`].
pub fn other_patch_level(dir: &Path, profile: Option<&Profile>) -> Result<Option<OtherPatchLevel>, BadRecording> {
    let rec = Recording::open_with(dir, profile)?;
    let (recorded, profile) = (rec.about.version, rec.profile);
    Ok(profile.version.filter(|stated| *stated != recorded && !recorded.is_empty()).map(|stated| OtherPatchLevel {
        recorded,
        profile: profile.name,
        stated,
    }))
}

/// Verifies the recording in a folder.
///
/// # Errors
/// If there is none, it is malformed, or it is of a kernel there is no profile for.
pub fn verify(dir: &Path) -> Result<Verdict, BadRecording> {
    verify_with(dir, Care::default())
}

/// Verifies it by this profile, whatever kernel it is of: how far the rules of one kernel carry with another.
///
/// # Errors
/// If there is no recording, or it is malformed.
pub fn verify_by(dir: &Path, profile: &Profile) -> Result<Verdict, BadRecording> {
    verified(&Recording::open_with(dir, Some(profile))?, Care::default())
}

/// The same, as carefully as wanted.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(dir: &Path, care: Care) -> Result<Verdict, BadRecording> {
    verified(&Recording::open(dir)?, care)
}

fn verified(rec: &Recording, care: Care) -> Result<Verdict, BadRecording> {
    let parts = rec.parts()?;
    if parts.is_empty() {
        return Ok(Verdict::NotReplayed("it holds neither a trace nor a compaction of the whole node".into()));
    }
    let mut all = Compared::default();
    for part in parts {
        match replay(rec, part, care)? {
            Ok(compared) => all.add(compared),
            Err(difference) => return Ok(Verdict::Different(difference)),
        }
    }
    Ok(Verdict::Equal(all))
}
