//! Profiles by name, by file, and by the kernel of a host.

use crate::builtin::{file_of, is_path, names};
use crate::error::ProfileError;
use crate::file::{Source, read, resolve};
use crate::kernel::profile_for;
use kontig_mm::Profile;
use std::sync::{LazyLock, OnceLock};

/// The profile of this name, if there is one.
pub fn find(name: &str) -> Option<Profile> {
    // A page of the reference asks for every profile hundreds of times: each file is read once.
    static READ: LazyLock<Vec<OnceLock<Profile>>> = LazyLock::new(|| names().map(|_| OnceLock::new()).collect());
    let at = names().position(|known| known == name)?;
    let source = || Source::built_in(file_of(name).expect("it has the name"));
    Some(READ[at].get_or_init(|| resolve(&source()).unwrap_or_else(|e| panic!("a built-in file: {e}"))).clone())
}

/// The profile of this name, for tests and examples.
///
/// # Panics
/// If there is none.
pub fn linux(name: &str) -> Profile {
    find(name).unwrap_or_else(|| panic!("no profile '{name}'"))
}

/// All profiles, oldest kernel first.
pub fn all() -> impl Iterator<Item = Profile> {
    names().map(linux)
}

/// A profile by name, or by file if the name is a path.
///
/// # Errors
/// If there is no such profile, or its file cannot be read or is wrong.
pub fn open(name: &str) -> Result<Profile, ProfileError> {
    if is_path(name) { read(name) } else { find(name).ok_or_else(|| ProfileError::unknown(name)) }
}

/// The profile for a kernel's release, such as `6.18.44-fc`: the newest released kernel that is not
/// newer. A kernel older than all gets the oldest. `None` if the release has no version.
pub fn of_kernel(release: &str) -> Option<Profile> {
    profile_for(release).map(linux)
}
