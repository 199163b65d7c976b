//! A file that was asked for, and where in it something is wrong.
//!
//! What a complaint names is looked for in the text, so that it comes with the file and the line.

use crate::built_in::Form;
use kontig_error::Error;
use kontig_profiles::Complaint;
use kontig_workload::Wrong;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, Deserializer};

pub use crate::document::Source;

impl Source {
    /// Reads it as one TOML document.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.read_as()?.map_err(|Complaint { at, reason, .. }| self.malformed(at, reason))
    }

    /// The same. Of a number that its key does not take it is said which numbers are: those with
    /// which the file can be read and is valid.
    pub(crate) fn parse_valid<T: DeserializeOwned>(&self, is_valid: impl Fn(&T) -> bool) -> Result<T, Error> {
        self.read_as()?.map_err(|Complaint { at, reason, number }| {
            let taken = number.and_then(|wrong| {
                let takes = |number: u64| {
                    let mut text = self.text.clone();
                    text.replace_range(wrong.span.clone(), &number.to_string());
                    let with = Source { text, path: self.path.clone(), may_repeat: true, ..*self };
                    with.parse::<T>().is_ok_and(|value| is_valid(&value))
                };
                let (least, most) = range(takes, wrong.most)?;
                let to = most.map_or("on".into(), |most| format!("to {most}"));
                Some(format!("{}: expected a whole number from {least} {to}", wrong.said))
            });
            self.malformed(at, taken.unwrap_or(reason))
        })
    }

    /// Reads it; the inner error is about what it says.
    fn read_as<T: DeserializeOwned>(&self) -> Result<Result<T, Complaint>, Error> {
        if let Some(beyond) = Complaint::of_beyond(&self.text) {
            return Ok(Err(beyond));
        }
        match self.with_document(|document| T::deserialize(Deserializer::from(document)))? {
            Ok(value) => Ok(Ok(value)),
            Err(e) => self.with_document(|document| Err(Complaint::within(&self.text, Some(document.get_ref()), &e))),
        }
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
}

/// The most that is tried: what a file counts costs memory when it is checked.
const MOST_TRIED: u64 = 1 << 20;

/// The least and the most number that are taken, those in between among them; `most_of_type` if as
/// many are as were tried. `None` if none is.
fn range(takes: impl Fn(u64) -> bool, most_of_type: Option<u64>) -> Option<(u64, Option<u64>)> {
    let powers = (0..).map(|n| 1 << n).take_while(|n| *n <= MOST_TRIED);
    let mut taken = powers.chain([0]).find(|n| takes(*n))?;
    let least = if takes(0) { 0 } else { between(taken, 0, &takes) };
    while taken < MOST_TRIED {
        let next = (taken * 2).max(1);
        if !takes(next) {
            return Some((least, Some(between(taken, next, &takes))));
        }
        taken = next;
    }
    Some((least, most_of_type))
}

/// The last number from `is` towards `is_not` that is taken; the first is, the second is not.
fn between(mut is: u64, mut is_not: u64, takes: impl Fn(u64) -> bool) -> u64 {
    while is.abs_diff(is_not) > 1 {
        let middle = is.midpoint(is_not);
        *(if takes(middle) { &mut is } else { &mut is_not }) = middle;
    }
    is
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

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_workload::Workload;

    fn source(text: &str) -> Source {
        Source { path: "x.toml".into(), text: text.into(), form: Form::Workload, built_in: false, may_repeat: false }
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
    fn the_range_of_a_number_is_found_by_trying() {
        let of = |least: u64, most: u64| range(|n| (least..=most).contains(&n), Some(255));
        assert_eq!(of(1, 63), Some((1, Some(63))));
        assert_eq!(of(0, 0), Some((0, Some(0))));
        assert_eq!(of(100, 1000), Some((100, Some(1000))));
        assert_eq!(of(2, u64::MAX), Some((2, Some(255))));
        assert_eq!(range(|_| false, None), None);
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
