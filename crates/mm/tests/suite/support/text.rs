//! Damage to a snapshot's text, as from a careless edit or a torn download.

use proptest::prelude::*;
use proptest::sample::select;

/// One edit; positions are taken modulo the number of choices.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Replaces a word by another.
    Word(usize, String),
    /// Drops a line, doubles one, or swaps two.
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    /// Replaces or drops a byte.
    Byte(usize, u8),
    Lose(usize),
    /// Cuts the text off; with `true`, appends a proper last line.
    Cut(usize, bool),
}

const WORDS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "9",
    "a",
    "b",
    "10",
    "200",
    "400",
    "1ff",
    "512",
    "1024",
    "-1",
    "-512",
    "255",
    "256",
    "fffffe00",
    "ffffffff",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "x",
    "PL",
    "FL",
    "END",
    "diff",
];

pub fn edit() -> impl Strategy<Value = Edit> {
    let at = || any::<u16>().prop_map(usize::from);
    prop_oneof![
        8 => (at(), select(WORDS)).prop_map(|(i, w)| Edit::Word(i, w.to_string())),
        1 => at().prop_map(Edit::Drop),
        1 => at().prop_map(Edit::Double),
        1 => (at(), at()).prop_map(|(a, b)| Edit::Swap(a, b)),
        3 => (at(), b' '..b'~').prop_map(|(i, b)| Edit::Byte(i, b)),
        1 => at().prop_map(Edit::Lose),
        1 => (at(), any::<bool>()).prop_map(|(i, end)| Edit::Cut(i, end)),
    ]
}

/// The text after these edits.
pub fn mutate(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_string();
    for e in edits {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        if lines.is_empty() {
            break;
        }
        let n = lines.len();
        match e {
            Edit::Word(i, word) => {
                let mut words: Vec<&str> = lines[i % n].split(' ').collect();
                let k = i / n % words.len();
                words[k] = word;
                lines[i % n] = words.join(" ");
            }
            Edit::Drop(i) => drop(lines.remove(i % n)),
            Edit::Double(i) => lines.insert(i % n, lines[i % n].clone()),
            Edit::Swap(a, b) => lines.swap(a % n, b % n),
            Edit::Byte(i, b) => {
                let at = i % text.len();
                text.replace_range(at..=at, &char::from(*b).to_string());
                continue;
            }
            Edit::Lose(i) => {
                let at = i % text.len();
                text.replace_range(at..=at, "");
                continue;
            }
            Edit::Cut(i, end) => {
                text.truncate(i % text.len());
                if *end {
                    text.push_str("\nEND\n");
                }
                continue;
            }
        }
        text = lines.join("\n");
    }
    text
}
