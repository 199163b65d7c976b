//! The profile files that come with Kontig.

macro_rules! data {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

/// The files, oldest kernel first; each is called after the name inside it.
const FILES: &[(&str, &str)] = data![
    "profiles/linux-3.13.toml",
    "profiles/linux-4.4.toml",
    "profiles/linux-4.4-kcompactd.toml",
    "profiles/linux-4.6.toml",
    "profiles/linux-4.20-rc3.toml",
    "profiles/linux-5.0.toml",
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

fn name_of(path: &'static str) -> &'static str {
    path.trim_start_matches("profiles/linux-").trim_end_matches(".toml")
}

/// The names of all profiles, oldest kernel first.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| name_of(path))
}

/// A profile's file: its path and its text.
pub(crate) fn file_of(name: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(path, _)| name_of(path) == name).copied()
}

/// The text of a built-in profile's file, as it is written.
pub fn text(name: &str) -> Option<&'static str> {
    file_of(name).map(|(_, text)| text)
}

/// Whether a text is that of a built-in file, whatever its file is called.
pub(crate) fn is_built_in(text: &str) -> bool {
    FILES.iter().any(|(_, built_in)| *built_in == text)
}

/// Whether a name is meant as a path, or as standard input.
pub fn is_path(name: &str) -> bool {
    name == "-" || name.ends_with(".toml") || name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::Profile;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_is_built_in_under_the_name_inside_it() {
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
        for (name, profile) in names().zip(crate::all()) {
            assert_eq!(profile.name, name);
        }
    }

    #[test]
    fn the_profiles_that_are_called_recorded_are_those_with_recordings() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../oracle/golden");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("a name in UTF-8")
        };
        let names: Vec<String> = std::fs::read_dir(folder).expect("the recordings").map(name).collect();
        let of = |is: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
            let each = names.iter().filter_map(|name| name.split_once('-'));
            each.filter(|(_, what)| is(what)).map(|(series, _)| series.into()).collect()
        };
        let called = |is: fn(&Profile) -> bool| -> BTreeSet<String> {
            crate::all().filter(is).map(|profile| profile.name).collect()
        };
        assert_eq!(called(|profile| profile.recorded), of(&|_| true));
        assert_eq!(called(|profile| profile.reclaim_recorded), of(&|what| what.contains("lru")));
    }
}
