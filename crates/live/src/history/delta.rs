//! A sample as the difference to the one before it, from which both give it back byte for byte.
//!
//! The kernel's texts keep their form while their numbers change. So a line is the old one with
//! other numbers: a difference for each. Where that does not give the line, it is stored whole; the
//! same holds for a text that has another number of lines.

use super::bytes::{Bytes, put, put_difference, put_text};
use super::sample::{Sample, Stored};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file is the one before with other lines.
const LINES: u8 = 0;
/// A file's text stands here.
const TEXT: u8 = 1;
const NO_PERMISSION: u8 = 2;
const FAILED: u8 = 3;
/// A file is no longer there.
const GONE: u8 = 4;

/// The sample without another.
pub fn whole(sample: &Sample) -> Vec<u8> {
    difference(&BTreeMap::new(), sample)
}

/// The sample as the difference to the files before it.
pub fn difference(before: &BTreeMap<Arc<str>, Stored>, sample: &Sample) -> Vec<u8> {
    let mut out = Vec::new();
    for (nr, (path, old)) in (0..).zip(before) {
        match sample.files.get(path) {
            Some(new) if new == old => continue,
            Some(new) => {
                put(&mut out, nr + 1);
                put_file(&mut out, old.text(), new);
            }
            None => {
                put(&mut out, nr + 1);
                out.push(GONE);
            }
        }
    }
    for (path, new) in sample.files.iter().filter(|(path, _)| !before.contains_key(*path)) {
        put(&mut out, 0);
        put_text(&mut out, path);
        put_file(&mut out, None, new);
    }
    out
}

/// The files that a difference makes of those before; `None` if it is no difference to them.
pub fn apply(before: &BTreeMap<Arc<str>, Stored>, bytes: &[u8]) -> Option<BTreeMap<Arc<str>, Stored>> {
    let mut files = before.clone();
    let paths: Vec<&Arc<str>> = before.keys().collect();
    let mut bytes = Bytes(bytes);
    while !bytes.is_empty() {
        let nr = usize::try_from(bytes.number()?).ok()?;
        let path: Arc<str> = match nr.checked_sub(1) {
            Some(nr) => Arc::clone(paths.get(nr)?),
            None => bytes.text()?.into(),
        };
        let old = before.get(&path).and_then(Stored::text);
        match bytes.byte()? {
            LINES => files.insert(path, Stored::Text(lines_after(old?, &mut bytes)?.into())),
            TEXT => files.insert(path, Stored::Text(bytes.text()?.into())),
            NO_PERMISSION => files.insert(path, Stored::NoPermission),
            FAILED => files.insert(path, Stored::Failed(bytes.text()?.into())),
            GONE => files.remove(&path),
            _ => return None,
        };
    }
    Some(files)
}

fn put_file(out: &mut Vec<u8>, old: Option<&str>, new: &Stored) {
    match new {
        Stored::NoPermission => out.push(NO_PERMISSION),
        Stored::Failed(why) => {
            out.push(FAILED);
            put_text(out, why);
        }
        Stored::Text(new) => match old.and_then(|old| lines(old, new)) {
            Some(lines) => {
                out.push(LINES);
                out.extend(lines);
            }
            None => {
                out.push(TEXT);
                put_text(out, new);
            }
        },
    }
}

/// The line stands here.
const LINE: u8 = 0;
/// Other numbers, and as many spaces before each.
const SPACED: u8 = 1;
/// Other numbers, set to the right in columns of the same width.
const COLUMNS: u8 = 2;

/// The lines that changed; `None` if there are more or fewer lines than before.
fn lines(old: &str, new: &str) -> Option<Vec<u8>> {
    let (before, after): (Vec<&str>, Vec<&str>) = (split(old).collect(), split(new).collect());
    if before.len() != after.len() {
        return None;
    }
    let changed: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
    let mut out = Vec::new();
    put(&mut out, changed.len() as u64);
    let mut next = 0;
    for i in changed {
        put(&mut out, (i - next) as u64);
        next = i + 1;
        put_line(&mut out, before[i], after[i]);
    }
    Some(out)
}

fn lines_after(old: &str, bytes: &mut Bytes) -> Option<String> {
    let mut new = String::with_capacity(old.len() + 64);
    let mut before = split(old);
    for _ in 0..bytes.number()? {
        for _ in 0..bytes.number()? {
            new.push_str(before.next()?);
        }
        let line = before.next()?;
        match bytes.byte()? {
            LINE => new.push_str(bytes.text()?),
            form => new.push_str(&with_numbers(line, form, || bytes.difference())?),
        }
    }
    before.for_each(|line| new.push_str(line));
    Some(new)
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

fn put_line(out: &mut Vec<u8>, old: &str, new: &str) {
    for form in [SPACED, COLUMNS] {
        let Some(differences) = differences(old, new) else { break };
        let mut given = differences.iter().copied();
        if with_numbers(old, form, || given.next()).as_deref() == Some(new) {
            out.push(form);
            differences.iter().for_each(|d| put_difference(out, *d));
            return;
        }
    }
    out.push(LINE);
    put_text(out, new);
}

/// The difference of each number; `None` where the lines have not as many numbers.
fn differences(old: &str, new: &str) -> Option<Vec<i64>> {
    let (old, new): (Option<Vec<u64>>, Option<Vec<u64>>) = (numbers(old).collect(), numbers(new).collect());
    let (old, new) = (old?, new?);
    (old.len() == new.len()).then(|| new.iter().zip(&old).map(|(n, o)| n.wrapping_sub(*o) as i64).collect())
}

fn numbers(line: &str) -> impl Iterator<Item = Option<u64>> {
    line.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).map(|digits| digits.parse().ok())
}

/// The line with its numbers changed by the differences that `next` gives.
fn with_numbers(line: &str, form: u8, mut next: impl FnMut() -> Option<i64>) -> Option<String> {
    let mut new = String::with_capacity(line.len() + 8);
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (words, from) = rest.split_at(at);
        let (digits, after) = from.split_at(from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len()));
        let number = digits.parse::<u64>().ok()?.wrapping_add(next()? as u64);
        let spaces = words.len() - words.trim_end_matches(' ').len();
        match (form, words.ends_with('.')) {
            // A part of a number: as many places as before.
            (SPACED | COLUMNS, true) => new.push_str(&format!("{words}{number:0width$}", width = digits.len())),
            (SPACED, _) => new.push_str(&format!("{words}{number}")),
            (COLUMNS, _) => {
                new.push_str(&words[..words.len() - spaces]);
                new.push_str(&format!("{number:>width$}", width = spaces + digits.len()));
            }
            _ => return None,
        }
        rest = after;
    }
    new.push_str(rest);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(files: &[(&str, &str)]) -> Sample {
        let stored = |(path, text): &(&str, &str)| ((*path).into(), Stored::Text((*text).into()));
        Sample { unix_ms: 0, files: files.iter().map(stored).collect() }
    }

    fn comes_back(before: &Sample, after: &Sample) -> usize {
        let bytes = difference(&before.files, after);
        assert_eq!(apply(&before.files, &bytes).as_ref(), Some(&after.files));
        bytes.len()
    }

    #[test]
    fn a_number_that_changed_takes_a_few_bytes() {
        let before = sample(&[("proc/vmstat", "nr_free_pages 5000123\npgfree 77\n"), ("proc/uptime", "9.98 1.02\n")]);
        let after = sample(&[("proc/vmstat", "nr_free_pages 4999999\npgfree 77\n"), ("proc/uptime", "10.03 1.09\n")]);
        assert_eq!(comes_back(&before, &before), 0);
        let bytes = comes_back(&before, &after);
        assert!(bytes <= 18, "{bytes} bytes");
    }

    #[test]
    fn columns_keep_their_width_and_numbers_that_outgrow_them_come_back_too() {
        let line = |n: u64, m: u64| format!("Node 0, zone   Normal {n:>6} {m:>6} \n");
        for (n, m) in [(8, 1), (99_999, 100_000), (1_000_000, 0)] {
            let before = sample(&[("proc/buddyinfo", &line(7, 12))]);
            comes_back(&before, &sample(&[("proc/buddyinfo", &line(n, m))]));
        }
    }

    #[test]
    fn files_come_go_and_change_their_readers() {
        let before = sample(&[("a", "1\n"), ("b", "2\n"), ("c", "3\n")]);
        let mut after = sample(&[("a", "1\n2\n"), ("d", "x\n")]);
        after.files.insert("b".into(), Stored::NoPermission);
        after.files.insert("c".into(), Stored::Failed("Input/output error".into()));
        comes_back(&before, &after);
        comes_back(&after, &before);
        assert_eq!(apply(&BTreeMap::new(), &whole(&after)), Some(after.files));
    }

    proptest! {
        #[test]
        fn any_text_comes_back_after_any_other(old in "[ .:a0-9\n]{0,40}", new in "[ .:a0-9\n]{0,40}") {
            comes_back(&sample(&[("f", &old)]), &sample(&[("f", &new)]));
        }

        #[test]
        fn damage_never_ends_the_program(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let before = sample(&[("a", "1 2\n3\n"), ("b", "x 4\n")]);
            let _ = apply(&before.files, &bytes);
        }
    }
}
