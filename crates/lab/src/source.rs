//! A requested file, and the place of an error in it.
//!
//! An error's subject is searched for in the text, so that the message has the file and the line.
//! An unknown name is answered with the nearest one known there.

use crate::error::{AskedWrongly, LabError};
use kontig_workload::Wrong;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// A text and its origin.
#[derive(Debug)]
pub struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Whether it is built in.
    pub(crate) built_in: bool,
}

impl Source {
    pub(crate) fn read(path: &str) -> Result<Source, LabError> {
        let text = kontig_profiles::read_text(path)?;
        Ok(Source { path: path.into(), text, built_in: false })
    }

    /// Parses it as one TOML document.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, LabError> {
        toml::from_str(&self.text).map_err(|e| self.unreadable_as_asked(&e))
    }

    /// The error that keeps the text, or the value made of it, from being valid.
    pub(crate) fn unreadable_as_asked(&self, e: &toml::de::Error) -> LabError {
        let from = e.span().map_or(0, |s| s.start.min(self.text.len()));
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        match Unknown::of(&message) {
            Some(unknown) => self.malformed(self.named_after(from, unknown.name), unknown.answer()),
            // An error about a value points to the start of its table.
            None => {
                let named = message.split_once(" = ").map(|(name, _)| self.named_after(from, name));
                self.malformed(named.unwrap_or(from), message)
            }
        }
    }

    /// An error in the text, with the line.
    pub(crate) fn wrong(&self, wrong: Wrong) -> LabError {
        self.malformed(self.offset(&wrong.way), wrong.reason)
    }

    /// An error in what the text names at the end of this path of keys.
    pub(crate) fn wrong_name(&self, way: &[&str], error: LabError) -> LabError {
        match error {
            // An error of another file names that file itself.
            LabError::Asked(AskedWrongly::Malformed { .. } | AskedWrongly::Contradictory { .. }) => error,
            error => self.wrong(Wrong::at(way, error.to_string())),
        }
    }

    /// A path written in it, relative to its own folder.
    pub(crate) fn beside(&self, path: &str) -> String {
        let folder = Path::new(&self.path).parent().unwrap_or(Path::new(""));
        folder.join(path).components().collect::<PathBuf>().to_string_lossy().into_owned()
    }

    fn malformed(&self, at: usize, reason: String) -> LabError {
        let line = self.text[..at].matches('\n').count() + 1;
        AskedWrongly::Malformed { path: self.path.clone(), line, reason }.into()
    }

    /// The place that the keys lead to, as far as the document has them.
    fn offset(&self, way: &[String]) -> usize {
        let Ok(document) = DeTable::parse(&self.text) else { return 0 };
        let (mut at, document) = (0, DeValue::Table(document.into_inner()));
        let mut here = &document;
        for step in way {
            let next = match here {
                DeValue::Table(table) => table
                    .iter()
                    .find(|(key, _)| key.get_ref() == step.as_str())
                    .map(|(key, value)| (key.span().start, value)),
                DeValue::Array(array) => {
                    step.parse().ok().and_then(|i: usize| array.get(i)).map(|value| (value.span().start, value))
                }
                _ => None,
            };
            let Some((start, value)) = next else { break };
            (at, here) = (start, value.get_ref());
        }
        at
    }

    /// The first place from `from` on with this word outside a comment; `from` itself if there is
    /// none.
    fn named_after(&self, from: usize, word: &str) -> usize {
        let of_a_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let stands = |at: &usize| {
            let (before, after) = (&self.text[..*at], &self.text[*at + word.len()..]);
            let line = &before[before.rfind('\n').map_or(0, |n| n + 1)..];
            !line.contains('#') && !before.ends_with(of_a_word) && !after.starts_with(of_a_word)
        };
        self.text[from..].match_indices(word).map(|(at, _)| from + at).find(stands).unwrap_or(from)
    }
}

/// An unknown name, taken from the parser's message.
struct Unknown<'a> {
    what: &'static str,
    name: &'a str,
    known: Vec<&'a str>,
}

impl<'a> Unknown<'a> {
    /// The names are in backquotes, the unknown one first.
    fn of(message: &'a str) -> Option<Unknown<'a>> {
        let said = [("unknown field `", "key"), ("unknown variant `", "value")];
        let (what, rest) = said.iter().find_map(|(begin, what)| Some((*what, message.strip_prefix(begin)?)))?;
        let (name, rest) = rest.split_once('`')?;
        Some(Unknown { what, name, known: rest.split('`').skip(1).step_by(2).collect() })
    }

    fn answer(&self) -> String {
        let Unknown { what, name, known } = self;
        match kontig_profiles::nearest(name, known) {
            Some(nearest) => format!("unknown {what} '{name}': did you mean '{nearest}'?"),
            None if known.is_empty() => format!("unknown {what} '{name}': nothing is said here"),
            None => format!("unknown {what} '{name}'; known: {}", known.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_workload::Workload;

    fn source(text: &str) -> Source {
        Source { path: "x.toml".into(), text: text.into(), built_in: false }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_its_own_line() {
        let said = |text: &str| source(text).parse::<Workload>().unwrap_err().to_string();
        let phase = "[[phase]]\nname = 'measure'\nmeasured = true\n";
        assert_eq!(said(&format!("{phase}secnds = 3")), "x.toml:4: unknown key 'secnds': did you mean 'seconds'?");
        let task = format!("{phase}[[phase.task]]\n");
        let key = said(&format!("{task}cpu = [0]\nrun = {{ kind = 'compact' }}"));
        assert_eq!(key, "x.toml:5: unknown key 'cpu': did you mean 'cpus'?");
        let run = format!("{task}[phase.task.run]\n# sise\n");
        let key = said(&format!("{run}kind = 'heap'\nsise = '1 GiB'"));
        assert_eq!(key, "x.toml:8: unknown key 'sise': did you mean 'size'?");
        let kind = said(&format!("{run}size = '1 GiB'\nkind = 'haep'"));
        assert_eq!(kind, "x.toml:8: unknown value 'haep': did you mean 'heap'?");
    }

    #[test]
    fn a_name_like_no_other_is_answered_with_all_there_are() {
        let said = source("[[phase]]\nqqqqqqqq = 1").parse::<Workload>().unwrap_err().to_string();
        assert_eq!(said, "x.toml:2: unknown key 'qqqqqqqq'; known: name, measured, seconds, task");
    }

    #[test]
    fn a_way_leads_to_its_line_as_far_as_the_text_goes() {
        let source = source("a = 1\n[[b]]\n[[b]]\nc = { d = 3,\ne = 4 }\n");
        let line = |way: &[&str]| source.wrong(Wrong::at(way, "wrong")).to_string();
        assert_eq!(line(&["b", "1", "c"]), "x.toml:4: wrong");
        assert_eq!(line(&["b", "1", "f"]), "x.toml:3: wrong");
        assert_eq!(line(&["g"]), "x.toml:1: wrong");
    }

    #[test]
    fn a_path_starts_from_the_folder_of_the_file_it_is_in() {
        let in_folder = Source { path: "./mine/x.toml".into(), ..source("") };
        assert_eq!(in_folder.beside("../p.toml"), "./mine/../p.toml");
        assert_eq!(in_folder.beside("./p.toml"), "./mine/p.toml");
        assert_eq!(source("").beside("/p.toml"), "/p.toml");
    }
}
