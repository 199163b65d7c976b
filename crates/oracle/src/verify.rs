//! Verifies a folder: replays all of it that can be replayed, and reports the first difference.

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
    /// The engine did the same as the kernel.
    Equal(Compared),
    /// The engine did something else.
    Different(Box<Difference>),
    /// The recording holds nothing that can be replayed; the reason.
    NotReplayed(String),
}

/// A recorded kernel's patch level that is not the profile's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPatchLevel {
    /// Patch level of the recorded kernel.
    pub recorded: String,
    /// Name of the profile.
    pub profile: String,
    /// Patch level whose rules the profile states.
    pub stated: String,
}

impl fmt::Display for OtherPatchLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherPatchLevel { recorded, profile, stated } = self;
        write!(f, "recorded on {recorded}, and profile {profile} states the rules of {stated}")
    }
}

/// Compares the patch level of a recording with that of `profile`, by default its kernel's. `None`
/// if they are the same, or one of them states none.
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
/// If there is none, it is malformed, or its kernel has no profile.
pub fn verify(dir: &Path) -> Result<Verdict, BadRecording> {
    whole(&Recording::open(dir)?)
}

/// Verifies it by another kernel's profile, to see how far that kernel's rules carry.
///
/// # Errors
/// If there is no recording, or it is malformed.
pub fn verify_by(dir: &Path, profile: &Profile) -> Result<Verdict, BadRecording> {
    whole(&Recording::open_with(dir, Some(profile))?)
}

/// Verifies a recording none of whose files is damaged.
fn whole(rec: &Recording) -> Result<Verdict, BadRecording> {
    rec.check_files()?;
    verified(rec, Care::default())
}

/// Verifies with the given care.
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
