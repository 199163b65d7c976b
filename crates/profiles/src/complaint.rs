//! Complaints of the reader of a TOML text, in the words of the file instead of Rust's types.
//!
//! What a complaint names is looked for in the text, so that it comes with its line; a name nobody
//! knows is answered with the nearest that is known there.

use crate::nearest::nearest;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// A complaint about a text.
pub struct Complaint {
    /// Where in the text, in bytes.
    pub at: usize,
    /// The reason, without a line break.
    pub reason: String,
    /// The value in place of a whole number of some range, if that is the reason.
    pub number: Option<NoNumber>,
}

/// A value in place of a whole number.
pub struct NoNumber {
    /// Key and value: `jobs = -1`.
    pub said: String,
    /// Where the value stands.
    pub span: Range<usize>,
    /// The most that its type holds, if a smaller one than TOML's.
    pub most: Option<u64>,
}

impl Complaint {
    /// The reader's error about this text.
    pub fn of(text: &str, e: &toml::de::Error) -> Complaint {
        let document = DeTable::parse(text).ok();
        Complaint::within(text, document.as_ref().map(Spanned::get_ref), e)
    }

    /// The reader's error about a document that was made of this text.
    pub fn within(text: &str, document: Option<&DeTable<'_>>, e: &toml::de::Error) -> Complaint {
        let from = e.span().map_or(0, |span| span.start.min(text.len()));
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        let plain = |at: usize, reason: String| Complaint { at, reason, number: None };
        if let Some(unknown) = Unknown::of(&message) {
            return plain(named_after(text, from, unknown.name), unknown.answer());
        }
        if message == "duplicate key" {
            let key = e.span().and_then(|span| text.get(span)).unwrap_or_default();
            return plain(from, format!("{key} stands here twice: leave out one"));
        }
        if let ("wanted string or table", Some(Key::Value(key))) = (&*message, Key::of(text, from)) {
            return plain(from, format!("{key}: expected a text in quotes"));
        }
        let Some(value) = OfValue::of(&message) else {
            // A value is complained of where the table begins that it is in.
            let named = message.split_once(" = ").map(|(name, _)| named_after(text, from, name));
            return plain(named.unwrap_or(from), message.replace('`', "'"));
        };
        // A value deep in a table is complained of where that table begins.
        let is_there = |key: &Key<'_>| matches!(key, Key::Value(_) | Key::Listed(_)) && !value.is_in_table(text, from);
        let here = Key::of(text, from);
        let deep = || document.and_then(|document| value.below(document, from));
        if here.as_ref().is_none_or(|key| !is_there(key))
            && let Some((key, span)) = deep()
        {
            return value.complaint(Some(Key::Value(&key)), span);
        }
        value.complaint(here.filter(|_| !value.is_in_table(text, from)), e.span().unwrap_or(from..from))
    }

    /// The first whole number in a text that is larger or smaller than any that TOML has.
    pub fn of_beyond(text: &str) -> Option<Complaint> {
        let document = DeTable::parse(text).ok()?;
        let mut beyond = Vec::new();
        each_value(document.get_ref(), &mut |key, value| {
            if let DeValue::Integer(number) = value.get_ref()
                && decimal(number).parse::<i64>().is_err()
            {
                beyond.push((value.span(), format!("{key} = {}", decimal(number))));
            }
        });
        let (span, said) = beyond.into_iter().min_by_key(|(span, _)| span.start)?;
        let reason = format!("{said}: expected a whole number from {} to {}", i64::MIN, i64::MAX);
        Some(Complaint {
            at: span.start,
            reason,
            number: Some(NoNumber { said, span, most: i64::MAX.try_into().ok() }),
        })
    }
}

/// Calls `f` for each value in a table and below, with its key; for the entries of a list, with the
/// list's.
fn each_value<'d>(table: &'d DeTable<'_>, f: &mut impl FnMut(&'d str, &'d Spanned<DeValue<'d>>)) {
    fn of<'d>(key: &'d str, value: &'d Spanned<DeValue<'d>>, f: &mut impl FnMut(&'d str, &'d Spanned<DeValue<'d>>)) {
        f(key, value);
        match value.get_ref() {
            DeValue::Table(table) => each_value(table, f),
            DeValue::Array(list) => list.iter().for_each(|entry| of(key, entry, f)),
            _ => {}
        }
    }
    table.iter().for_each(|(key, value)| of(key.get_ref(), value, f));
}

/// A whole number in decimal digits.
fn decimal(number: &DeInteger<'_>) -> String {
    i128::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| number.to_string(), |n| n.to_string())
}

/// The first place from `from` on where this word stands outside a comment; `from` itself if there
/// is none.
fn named_after(text: &str, from: usize, word: &str) -> usize {
    let of_a_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let stands = |at: &usize| {
        let (before, after) = (&text[..*at], &text[*at + word.len()..]);
        let line = &before[before.rfind('\n').map_or(0, |n| n + 1)..];
        !line.contains('#') && !before.ends_with(of_a_word) && !after.starts_with(of_a_word)
    };
    text[from..].match_indices(word).map(|(at, _)| from + at).find(stands).unwrap_or(from)
}

/// The name of a value.
#[derive(Clone, Copy)]
enum Key<'a> {
    /// Of a value by itself: `key = VALUE`.
    Value(&'a str),
    /// `key = [ …, VALUE`.
    Listed(&'a str),
    /// Of a table with a head: `[key]`.
    Table(&'a str),
}

impl<'a> Key<'a> {
    /// Of the value that begins here, if the key stands in the same line.
    fn of(text: &'a str, at: usize) -> Option<Key<'a>> {
        let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
        // A list in a list begins a line, too.
        let bare = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || "_-.[\"".contains(c));
        let head = text[at..].strip_prefix('[').and_then(|table| table.split_once(']')).map(|(name, _)| name);
        if let Some(table) = head.filter(bare)
            && line == at
        {
            return Some(Key::Table(table.trim_start_matches('[')));
        }
        let last = |before: &'a str| {
            let before = before.trim_end().strip_suffix('=')?.trim_end();
            let of_a_key = |c: char| c.is_alphanumeric() || "_-.\"".contains(c);
            let key = before[before.rfind(|c| !of_a_key(c)).map_or(0, |n| n + 1)..].trim_matches('"');
            (!key.is_empty()).then_some(key)
        };
        let before = &text[line..at];
        let listed = || last(&before[..before.rfind('[')?]);
        last(before).map(Key::Value).or_else(|| listed().map(Key::Listed))
    }
}

/// A complaint about a value.
struct OfValue<'a> {
    found: String,
    expected: &'a str,
}

impl<'a> OfValue<'a> {
    /// None if it is about something else.
    fn of(message: &'a str) -> Option<OfValue<'a>> {
        let complaint = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))?;
        let (found, expected) = complaint.rsplit_once(", expected ")?;
        let found = match found.split_once(' ') {
            Some(("integer" | "boolean" | "floating", _)) => found.split('`').nth(1)?.into(),
            Some(("string", value)) => value.into(),
            _ if found == "sequence" => "[…]".to_string(),
            _ if found == "map" => "{…}".to_string(),
            _ => return None,
        };
        Some(OfValue { found, expected })
    }

    /// Whether what begins here is a table in one line that the value is in.
    fn is_in_table(&self, text: &str, from: usize) -> bool {
        text.get(from..).unwrap_or_default().starts_with('{') && self.found != "{…}"
    }

    /// The first value like this in the table that begins here, with its key and place.
    fn below(&self, document: &DeTable<'_>, from: usize) -> Option<(String, Range<usize>)> {
        let mut found: Vec<(String, Range<usize>)> = Vec::new();
        each_value(document, &mut |_, value| {
            if let (true, DeValue::Table(table)) = (value.span().start == from, value.get_ref()) {
                each_value(table, &mut |key, value| {
                    if self.is(value.get_ref()) {
                        found.push((key.into(), value.span()));
                    }
                });
            }
        });
        found.into_iter().min_by_key(|(_, span)| span.start)
    }

    fn is(&self, value: &DeValue<'_>) -> bool {
        match value {
            DeValue::Integer(number) => decimal(number) == self.found,
            DeValue::Float(number) => number.as_str() == self.found,
            DeValue::Boolean(is) => is.to_string() == self.found,
            DeValue::String(text) => format!("{text:?}") == self.found,
            _ => false,
        }
    }

    fn complaint(&self, key: Option<Key<'_>>, span: Range<usize>) -> Complaint {
        let OfValue { found, expected } = self;
        let is_list = *expected == "a sequence";
        let most = match *expected {
            "u32" => Some(u64::from(u32::MAX)),
            "u16" => Some(u64::from(u16::MAX)),
            "u8" => Some(u64::from(u8::MAX)),
            _ => None,
        };
        let expected = match (*expected, most) {
            (_, Some(most)) => format!("a whole number from 0 to {most}"),
            ("usize" | "u64", _) => "a whole number from 0 on".into(),
            ("i64" | "i32", _) => "a whole number".into(),
            ("f64" | "f32", _) => "a number".into(),
            ("a string" | "variant identifier", _) => "a text in quotes".into(),
            ("a boolean", _) => "true or false".into(),
            ("a sequence", _) => "a list in brackets".into(),
            ("a map", _) => "a table".into(),
            (other, _) if other.starts_with("struct ") || other.starts_with("internally tagged ") => "a table".into(),
            (other, _) => other.to_string(),
        };
        let is_number = most.is_some() || expected == "a whole number from 0 on";
        let (reason, number) = match key {
            Some(Key::Table(name)) if is_list => (format!("[{name}]: expected [[{name}]], one of a list"), None),
            Some(Key::Table(name)) => (format!("[{name}]: expected {name} = …, {expected}"), None),
            Some(Key::Value(key)) => {
                let said = format!("{key} = {found}");
                let reason = format!("{said}: expected {expected}");
                (reason, is_number.then(|| NoNumber { said, span: span.clone(), most }))
            }
            Some(Key::Listed(key)) => (format!("{found} in {key}: expected {expected}"), None),
            None => (format!("{found}: expected {expected}"), None),
        };
        Complaint { at: span.start, reason, number }
    }
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
        match nearest(name, known) {
            Some(nearest) => format!("unknown {what} '{name}': did you mean '{nearest}'?"),
            None if known.is_empty() => format!("unknown {what} '{name}': nothing is said here"),
            None => format!("unknown {what} '{name}'; known: {}", known.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is read for the complaints alone")]
    struct File {
        count: Option<u32>,
        of: Option<Vec<f64>>,
        name: Option<String>,
        kind: Option<Kind>,
        zone: Option<Vec<Inner>>,
        task: Option<Task>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "as above")]
    struct Inner {
        size: Option<f64>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Heap,
    }

    #[derive(Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[expect(dead_code, reason = "as above")]
    enum Task {
        Fill { size: f64, n: Option<Vec<u8>> },
    }

    #[test]
    fn a_number_that_toml_has_not_is_found_wherever_it_stands() {
        let said = |text: &str| Complaint::of_beyond(text).map(|complaint| (complaint.at, complaint.reason));
        assert_eq!(said("a = 9223372036854775807\nb = [-1, { c = 0x10 }]"), None);
        let range = "expected a whole number from -9223372036854775808 to 9223372036854775807";
        let deep = "a = 1\nb = [1, { c = 9223372036854775808 }]";
        assert_eq!(said(deep), Some((20, format!("c = 9223372036854775808: {range}"))));
    }

    #[test]
    fn a_value_of_another_type_is_named_with_what_is_wanted() {
        let said = |text: &str| {
            let complaint =
                toml::from_str::<File>(text).map(drop).map_err(|e| Complaint::of(text, &e)).expect_err("refused");
            let line = text[..complaint.at].matches('\n').count() + 1;
            format!("{line}: {}", complaint.reason)
        };
        for (text, says) in [
            ("\ncount = 'two'", "2: count = \"two\": expected a whole number from 0 to 4294967295"),
            ("count = -1", "1: count = -1: expected a whole number from 0 to 4294967295"),
            ("of = [1.5, 'a']", "1: \"a\" in of: expected a number"),
            ("of = 3", "1: of = 3: expected a list in brackets"),
            ("name = 3", "1: name = 3: expected a text in quotes"),
            ("kind = 3", "1: kind: expected a text in quotes"),
            ("kind = 'haep'", "1: unknown value 'haep': did you mean 'heap'?"),
            ("name = 'x'\n[zone]\nsize = 1", "2: [zone]: expected [[zone]], one of a list"),
            ("[name]\nsize = 1", "1: [name]: expected name = …, a text in quotes"),
            ("[[zone]]\nsize = true", "2: size = true: expected a number"),
            ("count = 1\ncount = 2", "2: count stands here twice: leave out one"),
            ("cuont = 1", "1: unknown key 'cuont': did you mean 'count'?"),
            ("task = { kind = 'fill', size = true }", "1: size = true: expected a number"),
            ("\n[task]\nkind = 'fill'\nsize = true", "4: size = true: expected a number"),
            ("task = { kind = 'fill', size = 1, n = [-1] }", "1: n = -1: expected a whole number from 0 to 255"),
            ("task = 3", "1: task = 3: expected a table"),
            ("of = [\n[1, 2],\n]", "2: […]: expected a number"),
        ] {
            assert_eq!(said(text), says);
        }
    }
}
