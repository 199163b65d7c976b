//! Complaints of the reader of a TOML text, in the words of the file instead of Rust's types.
//!
//! What a complaint names is looked for in the text, so that it comes with its line; a name nobody
//! knows is answered with the nearest that is known there.

use crate::nearest::nearest;

/// A complaint about a text.
pub struct Complaint {
    /// Where in the text, in bytes.
    pub at: usize,
    /// The reason, without a line break.
    pub reason: String,
}

impl Complaint {
    /// The reader's error about this text.
    pub fn of(text: &str, e: &toml::de::Error) -> Complaint {
        let from = e.span().map_or(0, |span| span.start.min(text.len()));
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        if let Some(unknown) = Unknown::of(&message) {
            return Complaint { at: named_after(text, from, unknown.name), reason: unknown.answer() };
        }
        if message == "duplicate key" {
            let key = e.span().and_then(|span| text.get(span)).unwrap_or_default();
            return Complaint { at: from, reason: format!("{key} stands here twice: leave out one") };
        }
        if let ("wanted string or table", Some(Key::Value(key))) = (&*message, Key::of(text, from)) {
            return Complaint { at: from, reason: format!("{key}: expected a text in quotes") };
        }
        // A value is complained of where the table begins that it is in.
        let named = message.split_once(" = ").map(|(name, _)| named_after(text, from, name));
        // A value deep in a table in one line is complained of where that table begins.
        let begins = text.get(from..).unwrap_or_default();
        let is_table = begins.starts_with('{') && !message.starts_with("invalid type: map");
        let key = Key::of(text, from).filter(|_| !is_table);
        let reason = in_words(&message, key).unwrap_or_else(|| message.replace('`', "'"));
        Complaint { at: named.unwrap_or(from), reason }
    }
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

/// A complaint about a value; none if it is about something else.
fn in_words(message: &str, key: Option<Key<'_>>) -> Option<String> {
    let complaint = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))?;
    let (found, expected) = complaint.rsplit_once(", expected ")?;
    let found = match found.split_once(' ') {
        Some(("integer" | "boolean" | "floating", _)) => found.split('`').nth(1)?.into(),
        Some(("string", value)) => value.into(),
        _ if found == "sequence" => "[…]".to_string(),
        _ if found == "map" => "{…}".to_string(),
        _ => return None,
    };
    let is_list = expected == "a sequence";
    let expected = match expected {
        "usize" | "u64" => "a whole number from 0 on".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "i64" | "i32" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a string" | "variant identifier" => "a text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list in brackets".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged ") => "a table".into(),
        other => other.to_string(),
    };
    Some(match key {
        Some(Key::Table(name)) if is_list => format!("[{name}]: expected [[{name}]], one of a list"),
        Some(Key::Table(name)) => format!("[{name}]: expected {name} = …, {expected}"),
        Some(Key::Value(key)) => format!("{key} = {found}: expected {expected}"),
        Some(Key::Listed(key)) => format!("{found} in {key}: expected {expected}"),
        None => format!("{found}: expected {expected}"),
    })
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
        Fill { size: f64 },
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
            ("task = { kind = 'fill', size = true }", "1: true: expected a number"),
            ("task = 3", "1: task = 3: expected a table"),
            ("of = [\n[1, 2],\n]", "2: […]: expected a number"),
        ] {
            assert_eq!(said(text), says);
        }
    }
}
