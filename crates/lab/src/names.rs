//! Answers to unknown names: the nearest known one.

use kontig_error::{AskedWrongly, Error};
use kontig_mm::sysctl::Sysctl;

/// The error for an unknown name, with the nearest known one.
pub fn unknown<'a>(what: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = kontig_profiles::nearest(name, &known);
    AskedWrongly::Unknown { what, name: name.into(), nearest, known: known.join(", ") }.into()
}

/// The answer to an unknown name: the nearest, or all if none is near.
pub(crate) fn did_you_mean(what: &str, name: &str, known: &[&str]) -> String {
    nearest(what, name, known).unwrap_or_else(|| {
        let mut all = known.to_vec();
        all.dedup();
        format!("unknown {what} '{name}'; known: {}", all.join(", "))
    })
}

/// The answer to an unknown name if one is near.
pub(crate) fn nearest(what: &str, name: &str, known: &[&str]) -> Option<String> {
    let nearest = kontig_profiles::nearest(name, known)?;
    Some(format!("unknown {what} '{name}': did you mean '{nearest}'?"))
}

/// A sysctl's name without its folder, by which two spellings of one are the same.
pub(crate) fn short_sysctl(name: &str) -> &str {
    Sysctl::find(name).map_or(name, |sysctl| sysctl.short_name())
}
