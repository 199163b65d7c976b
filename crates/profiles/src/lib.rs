//! The kernel generations that come with Kontig, read from the files under `profiles/`.
//!
//! Those files are the only copy of what a generation does. A file says which profile it starts from (`base = "6.1"`)
//! and the rules that differ, in a table for each mechanism; one without a base says every rule. A user's own file is
//! read the same way ([`read`]). Rules, their values and what is said of them are the engine's ([`kontig_mm::rules`]).

mod error;
mod file;
mod kernel;
mod nearest;
mod switch;

pub use error::ProfileError;
pub use file::{check, read, read_text};
pub use kernel::{is_of_kernel, is_run_with_lru_gen, lru_gen_not_modelled, lru_gen_of_distributions, of_kernel};
pub use nearest::nearest;
pub use switch::{Fit, Switch, switches, to_throw_before};

use file::Source;
use kontig_mm::Profile;

macro_rules! data {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

/// The files, oldest kernel first; each is called after the name inside it.
const FILES: &[(&str, &str)] = data![
    "profiles/linux-4.4-kcompactd.toml",
    "profiles/linux-4.6.toml",
    "profiles/linux-4.20-rc3.toml",
    "profiles/linux-5.6.toml",
    "profiles/linux-5.9.toml",
    "profiles/linux-5.10.toml",
    "profiles/linux-6.1.toml",
    "profiles/linux-6.12.toml",
    "profiles/linux-6.14.toml",
    "profiles/linux-6.15-posted.toml",
    "profiles/linux-6.15.toml",
    "profiles/linux-7.2.toml",
    "profiles/linux-7.3.toml",
];

/// What a built-in file's profile is called.
fn name_of(path: &'static str) -> &'static str {
    path.trim_start_matches("profiles/linux-").trim_end_matches(".toml")
}

/// The names of all profiles, oldest kernel first.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| name_of(path))
}

/// The built-in file of a profile.
fn source(name: &str) -> Option<Source> {
    let (path, text) = FILES.iter().find(|(path, _)| name_of(path) == name)?;
    Some(Source { path: (*path).into(), text: (*text).into(), built_in: true })
}

/// The profile of this name, if there is one.
pub fn find(name: &str) -> Option<Profile> {
    source(name).map(|s| file::resolve(&s).unwrap_or_else(|e| panic!("a file that comes along: {e}")))
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

/// A profile by name, or by file where the name is a path.
///
/// # Errors
/// If there is no such profile, or its file cannot be read or is wrong.
pub fn open(name: &str) -> Result<Profile, ProfileError> {
    if is_path(name) { read(name) } else { find(name).ok_or_else(|| ProfileError::unknown(name)) }
}

/// Whether a name is meant as a path.
pub fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_comes_along_under_the_name_inside_it() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
        let files = std::fs::read_dir(folder).expect("the folder of profiles");
        let mut there: Vec<String> = files
            .map(|f| f.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
            .filter_map(|f| Some(f.strip_prefix("linux-")?.strip_suffix(".toml")?.to_string()))
            .collect();
        there.sort();
        let mut known: Vec<&str> = names().collect();
        known.sort_unstable();
        assert_eq!(there, known);
        for (name, profile) in names().zip(all()) {
            assert_eq!(profile.name, name);
        }
    }

    #[test]
    fn a_file_says_nothing_that_its_base_says_already() {
        let table = |name: &str| toml::Table::try_from(linux(name)).expect("a profile is a table");
        for name in names() {
            let (base, own) = file::own_rules(&source(name).expect("it comes along"));
            let Some(base) = base else { continue };
            let (before, now) = (table(&base), table(name));
            for (mechanism, rule) in own {
                assert_ne!(before[&mechanism][&rule], now[&mechanism][&rule], "{name}: {mechanism}.{rule}");
            }
        }
    }
}
