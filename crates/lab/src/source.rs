//! A file that was asked for, and where in it something is wrong.
//!
//! What a complaint names is looked for in the text, so that it comes with the file and the line; a
//! name nobody knows is answered with the nearest that is known there.

use crate::built_in::Form;
use kontig_error::Error;
use kontig_workload::Wrong;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, Deserializer};

pub use crate::document::Source;

impl Source {
    /// Reads it as one TOML document.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let read = self.with_document(|document| T::deserialize(Deserializer::from(document)))?;
        read.map_err(|e| self.unreadable_as_asked(&e))
    }

    /// Turns a reader's error into one line with the place in the file.
    pub(crate) fn unreadable_as_asked(&self, e: &toml::de::Error) -> Error {
        let from = e.span().map_or(0, |s| s.start.min(self.text.len()));
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        match Unknown::of(&message) {
            Some(unknown) => self.malformed(self.named_after(from, unknown.name), unknown.answer()),
            // A value is complained of where the table begins that it is in.
            None => {
                let named = message.split_once(" = ").map(|(name, _)| self.named_after(from, name));
                let message = in_words(&message, self.key_of(from)).unwrap_or(message);
                self.malformed(named.unwrap_or(from), message)
            }
        }
    }

    /// The key whose value begins here, if they stand in one line.
    fn key_of(&self, at: usize) -> Option<&str> {
        let line = &self.text[..at];
        let before = line[line.rfind('\n').map_or(0, |n| n + 1)..].trim_end().strip_suffix('=')?.trim_end();
        let of_a_key = |c: char| c.is_alphanumeric() || "_-.\"".contains(c);
        let key = &before[before.rfind(|c| !of_a_key(c)).map_or(0, |n| n + 1)..];
        Some(key.trim_matches('"')).filter(|key| !key.is_empty())
    }

    /// Something wrong in it, with the line.
    pub(crate) fn wrong(&self, wrong: Wrong) -> Error {
        self.malformed(self.offset(&wrong.way), wrong.reason)
    }

    /// Something wrong with what it names at the end of this way.
    pub(crate) fn wrong_name(&self, way: &[&str], error: Error) -> Error {
        self.wrong_name_at(self.offset(&way.iter().map(|step| step.to_string()).collect::<Vec<_>>()), error)
    }

    /// Where the way leads, as far as the document has it. The workload of a workload's own file is
    /// the file.
    fn offset(&self, way: &[String]) -> usize {
        let way = match way {
            [first, rest @ ..] if first == "workload" && self.form == Form::Workload => rest,
            way => way,
        };
        self.with_document(|document| offset(document.into_inner(), way)).unwrap_or(0)
    }

    /// The first place from `from` on where this word stands outside a comment; `from` itself if
    /// there is none.
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

/// A reader's complaint about a value, in the words of the file instead of Rust's types.
fn in_words(message: &str, key: Option<&str>) -> Option<String> {
    let complaint = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))?;
    let (found, expected) = complaint.rsplit_once(", expected ")?;
    let found = match found.split_once(' ') {
        Some(("integer" | "boolean", value)) => value.trim_matches('`').into(),
        Some(("floating", value)) => value.trim_start_matches("point ").trim_matches('`').into(),
        Some(("string", value)) => value.into(),
        _ if found == "sequence" => "[…]".to_string(),
        _ if found == "map" => "{…}".to_string(),
        _ => return None,
    };
    let expected = match expected {
        "usize" | "u64" => "a whole number from 0 on".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "i64" | "i32" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a string" => "a text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list in brackets".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other => other.to_string(),
    };
    let said = key.map_or(found.clone(), |key| format!("{key} = {found}"));
    Some(format!("{said}: expected {expected}"))
}

fn offset(document: DeTable<'_>, way: &[String]) -> usize {
    let (mut at, document) = (0, DeValue::Table(document));
    let mut here = &document;
    for step in way {
        let next = match here {
            DeValue::Table(table) => table.get_key_value(step.as_str()).map(|(key, value)| (key.span().start, value)),
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

/// A name the reader of a document does not know, taken from what it says of it.
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
        Source { path: "x.toml".into(), text: text.into(), form: Form::Workload, built_in: false }
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
    fn a_value_of_another_kind_is_said_with_its_key_and_without_rusts_types() {
        let said = |text: &str| source(text).parse::<Workload>().unwrap_err().to_string();
        let task = "[[phase]]\nname = 'measure'\nmeasured = 1\n";
        assert_eq!(said(task), "x.toml:3: measured = 1: expected true or false");
        assert_eq!(said("[[phase]]\nname = 3\n"), "x.toml:2: name = 3: expected a text in quotes");
        assert_eq!(said("phase = 'x'\n"), "x.toml:1: phase = \"x\": expected a list in brackets");
    }

    #[test]
    fn a_name_like_no_other_is_answered_with_all_there_are() {
        let said = source("[[phase]]\nqqqqqqqq = 1").parse::<Workload>().unwrap_err().to_string();
        assert_eq!(said, "x.toml:2: unknown key 'qqqqqqqq'; known: name, measured, seconds, stops, kills, task");
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
