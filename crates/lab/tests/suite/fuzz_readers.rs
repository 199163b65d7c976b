//! Reading any file gives a value or one line that says what is wrong, and never panics.
//!
//! Valid files are damaged in typical ways: lines lost or doubled, numbers out of range, words of
//! the format in the wrong place, bytes that are no text. Anything still accepted must also survive
//! planning.

use kontig_error::{Error, Failed};
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::store::{RunFile, StoredResult};
use kontig_lab::{catalog, profiles};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::path::PathBuf;

const MACHINE: &str = include_str!("../../../../machines/tiny-64m.toml");
const MACHINE_WITH_COSTS: &str = include_str!("../../../../machines/xeon-1t.toml");
const MACHINE_WITH_BASE: &str = "name = \"mine\"\nsummary = \"s\"\nbase = \"xeon-1t\"\n\
    nodes = 1\ncpus = 2\nnotes = \"n\"\n\
    [[zone]]\nnode = 0\nkind = \"Normal\"\nend = \"5 GiB\"\nreserved = \"1 MiB\"\nsource = \"s\"\n\
    [costs]\nbase = \"guest-512m\"\nsyscall = { ns = 7, source = \"s\" }\n";
const WORKLOADS: [&str; 2] = [
    include_str!("../../../../workloads/kbuild+highalloc.toml"),
    "summary = \"s\"\nbase = \"fio+huge-faults\"\n[[phase]]\nname = \"write\"\n[[phase.task]]\nname = \"writer\"\n\
     each = { first_file = [1, 2] }\nrun = { files = 3 }\n",
];
const TARGETS: [&str; 2] = [
    include_str!("../../../../experiments/targets/hugealloc-kbuild.toml"),
    "id = \"mine\"\nbase = \"hugealloc-kbuild\"\nvariants = [\"vanilla\", \"defragmode-async\"]\n",
];
const PROFILE: &str = include_str!("../../../../profiles/linux-6.1.toml");
const TARGET: &str = include_str!("../../../../experiments/targets/hugepage-latency.toml");
const EXPERIMENTS: [&str; 3] = [
    include_str!("../../../../experiments/hugepage-latency.toml"),
    include_str!("../../../../experiments/java-heap.toml"),
    include_str!("../../../../experiments/backoff.toml"),
];

/// Texts that a reader may mistake for something valid.
const WORDS: &[&str] = &[
    "-1",
    "0",
    "1",
    "3",
    "513",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e300",
    "-0.0",
    "inf",
    "nan",
    "true",
    "\"\"",
    "\"a\\nb\"",
    "\"..\"",
    "\"../x\"",
    "\"15 TiB\"",
    "\"16 TiB\"",
    "\"1e30 TiB\"",
    "\"-1 MiB\"",
    "\"Movable\"",
    "\"tiny-64m\"",
    "\"tiny-65m\"",
    "[]",
    "{}",
    "[[variant]]",
    "[[zone]]",
    "[pace]",
    "null",
    "\n",
    "=",
    "\"",
    "'",
    "#",
    "\u{2028}",
    "\u{1b}[31m",
    "ü",
    "\0",
];

/// One damage; positions are fractions of the text's length.
#[derive(Clone, Debug)]
enum Damage {
    Cut(u16),
    Drop {
        at: u16,
        bytes: usize,
    },
    Insert {
        at: u16,
        word: &'static str,
    },
    Flip {
        at: u16,
        byte: u8,
    },
    DropLine(u16),
    DoubleLine(u16),
    MoveLine(u16, u16),
    /// The text right of a `=` or `:`.
    Value {
        at: u16,
        word: &'static str,
    },
    /// A number anywhere in the text.
    Number {
        at: u16,
        word: &'static str,
    },
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<u16>;
    let word = || select(WORDS);
    prop_oneof![
        1 => at().prop_map(Damage::Cut),
        2 => (at(), 1..12usize).prop_map(|(at, bytes)| Damage::Drop { at, bytes }),
        2 => (at(), word()).prop_map(|(at, word)| Damage::Insert { at, word }),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip { at, byte }),
        2 => at().prop_map(Damage::DropLine),
        2 => at().prop_map(Damage::DoubleLine),
        1 => (at(), at()).prop_map(|(a, b)| Damage::MoveLine(a, b)),
        8 => (at(), word()).prop_map(|(at, word)| Damage::Value { at, word }),
        8 => (at(), word()).prop_map(|(at, word)| Damage::Number { at, word }),
    ]
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    prop::collection::vec(damage(), 1..4)
}

fn place(at: u16, len: usize) -> usize {
    usize::from(at) * len / 65_536
}

/// The first run of characters from `at` on (or from the start) that satisfy `is`.
fn stretch(text: &[u8], at: u16, is: impl Fn(u8) -> bool) -> Option<std::ops::Range<usize>> {
    let from = place(at, text.len());
    let start = (from..text.len()).chain(0..from).find(|&i| is(text[i]))?;
    Some(start..(start..text.len()).find(|&i| !is(text[i])).unwrap_or(text.len()))
}

fn apply(text: &mut Vec<u8>, damage: &Damage) {
    let len = text.len();
    let lines = |text: &[u8]| text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    match *damage {
        _ if len == 0 => {}
        Damage::Cut(at) => text.truncate(place(at, len)),
        Damage::Drop { at, bytes } => drop(text.drain(place(at, len)..(place(at, len) + bytes).min(len))),
        Damage::Insert { at, word } => drop(text.splice(place(at, len)..place(at, len), word.bytes())),
        Damage::Flip { at, byte } => text[place(at, len)] = byte,
        Damage::DropLine(at) => {
            let mut l = lines(text);
            l.remove(place(at, l.len()));
            *text = l.concat();
        }
        Damage::DoubleLine(at) => {
            let mut l = lines(text);
            let i = place(at, l.len());
            l.insert(i, l[i].clone());
            *text = l.concat();
        }
        Damage::MoveLine(a, b) => {
            let mut l = lines(text);
            let line = l.remove(place(a, l.len()));
            l.insert(place(b, l.len() + 1), line);
            *text = l.concat();
        }
        Damage::Value { at, word } => {
            if let Some(sign) = stretch(text, at, |b| b == b'=' || b == b':') {
                let end = (sign.end..len).find(|&i| b",\n}".contains(&text[i])).unwrap_or(len);
                text.splice(sign.end..end, word.bytes());
            }
        }
        Damage::Number { at, word } => {
            if let Some(number) = stretch(text, at, |b| b.is_ascii_digit() || b == b'.') {
                text.splice(number, word.bytes());
            }
        }
    }
}

fn damaged(text: &str, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    damages.iter().for_each(|d| apply(&mut bytes, d));
    bytes
}

/// A file that only this test uses.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let thread = std::thread::current();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", thread.name().unwrap_or("main")));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The value, or `None` after checking that the error is one line.
fn one_line<T>(result: Result<T, Error>) -> Result<Option<T>, TestCaseError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => {
            let text = e.to_string();
            prop_assert_eq!(text.lines().count(), 1, "{:?}", &text);
            prop_assert!(!text.chars().any(char::is_control), "{:?}", &text);
            Ok(None)
        }
    }
}

/// Plans an accepted experiment, if the host is large enough.
fn plan(inputs: Vec<Resolved>) -> Result<(), TestCaseError> {
    const SMALL: u64 = 160 << 20;
    for r in &inputs {
        for m in [Some(&r.machine), r.pace_machine.as_ref()].into_iter().flatten() {
            // A small zone may lie behind terabytes of nothing.
            let end = m.spec().unwrap().zones.iter().map(|z| z.end).max().unwrap_or(0);
            if m.host_bytes().unwrap() > SMALL || end > 1 << 20 || m.cpus > 64 || r.experiment.repetitions > 50 {
                return Ok(());
            }
        }
    }
    one_line(Session::new(inputs, u64::MAX, &Views::default())).map(|_| ())
}

fn experiment(text: &str) -> Result<Resolved, Error> {
    let path = file("valid-experiment.toml", text.as_bytes());
    catalog::experiment(path.to_str().unwrap()).and_then(|(e, source)| Resolved::new(e, Some(&source)))
}

/// The same under another name: built-in names are refused.
fn mine(text: &str) -> String {
    text.replacen("id = \"", "id = \"my-", 1).replacen("name = \"tiny-64m\"", "name = \"mine\"", 1)
}

/// A small experiment with every part that one can have.
fn small() -> String {
    mine(EXPERIMENTS[0]).replace("xeon-1t", "tiny-64m").replace("xeon-64g", "tiny-64m")
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn a_machine_file(
        which in select(vec![mine(MACHINE), mine(MACHINE_WITH_COSTS), MACHINE_WITH_BASE.to_owned()]),
        d in damages(),
    ) {
        let path = file("machine.toml", &damaged(&which, &d));
        if one_line(catalog::machine(path.to_str().unwrap()))?.is_some() {
            let text = small().replace("\"tiny-64m\"", &format!("{:?}", path.to_str().unwrap()));
            if let Some(r) = one_line(experiment(&text))? {
                plan(vec![r])?;
            }
        }
    }

    #[test]
    fn a_profile(d in damages()) {
        let mine = PROFILE.replacen("name = \"6.1\"", "name = \"mine\"", 1).replacen("recorded = true\n", "", 1);
        let path = file("profile.toml", &damaged(&mine, &d));
        one_line(profiles::with_switches(path.to_str().unwrap(), &["proactive-compaction".into()]))?;
        if let Some(profile) = one_line(profiles::named(path.to_str().unwrap()))? {
            let mut r = Resolved { pace_machine: None, ..small_resolved() };
            r.experiment.pace = None;
            r.profiles[1] = profile;
            plan(vec![r])?;
        }
    }

    #[test]
    fn an_experiment(which in select(vec![small(), mine(EXPERIMENTS[1]), mine(EXPERIMENTS[2])]), d in damages()) {
        let path = file("experiment.toml", &damaged(&which, &d));
        if let Some((e, _)) = one_line(catalog::experiment(path.to_str().unwrap()))?
            && let Some(r) = one_line(Resolved::new(e, None))?
        {
            plan(vec![r])?;
        }
    }

    #[test]
    fn a_target(d in damages()) {
        let path = file("target.toml", &damaged(TARGET, &d));
        if let Some((t, _)) = one_line(catalog::target(path.to_str().unwrap()))? {
            let mut e = small_resolved().experiment;
            e.target = Some(path.to_str().unwrap().into());
            let figures = t.variants.len();
            prop_assert!(t.row.iter().all(|r| r.values.len() == figures && r.values.iter().all(|v| v.is_finite())));
            one_line(Resolved::new(e, None))?;
        }
    }

    #[test]
    fn a_workload(which in select(WORKLOADS.to_vec()), d in damages()) {
        let path = file("workload.toml", &damaged(which, &d));
        one_line(catalog::workload(path.to_str().unwrap()))?;
    }

    #[test]
    fn a_target_with_columns(which in select(TARGETS.to_vec()), d in damages()) {
        let path = file("columns.toml", &damaged(which, &d));
        one_line(catalog::target(path.to_str().unwrap()))?;
    }

    #[test]
    fn a_result(d in damages()) {
        let path = file("result.json", &damaged(&result_text(), &d));
        match StoredResult::read(&path) {
            Err(Error::Failed(Failed::Result { .. })) | Ok(_) => {}
            Err(e) => prop_assert!(false, "a damaged result is no wrong question: {e:?}"),
        }
        if let Some(stored) = one_line(StoredResult::read(&path))? {
            plan(stored.inputs)?;
        }
    }

    /// Even a result with correct hashes but impossible inputs causes no panic.
    #[test]
    fn a_forged_result(d in damages()) {
        let inputs = serde_json::to_string_pretty(&[small_resolved()]).unwrap();
        let Ok(inputs) = serde_json::from_slice::<Vec<Resolved>>(&damaged(&inputs, &d)) else { return Ok(()) };
        let Some(forged) = one_line(StoredResult::new(&1.into(), &inputs, &[], BTreeMap::new()))? else { return Ok(()) };
        let path = file("forged.json", &serde_json::to_vec(&forged).unwrap());
        if let Some(stored) = one_line(StoredResult::read(&path))? {
            plan(stored.inputs)?;
        }
    }

    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let path = file("noise.toml", &bytes);
        let name = path.to_str().unwrap();
        one_line(catalog::machine(name))?;
        one_line(profiles::named(name))?;
        one_line(catalog::experiment(name))?;
        one_line(catalog::workload(name))?;
        one_line(catalog::target(name))?;
        one_line(StoredResult::read(&path))?;
    }

    #[test]
    fn names(name in "\\PC{0,12}|[a-z0-9.\n\t-]{0,12}") {
        one_line(catalog::machine(&name))?;
        one_line(profiles::with_switches("5.6", std::slice::from_ref(&name)))?;
        one_line(catalog::experiment(&name))?;
        one_line(catalog::target(&name))?;
    }
}

fn small_resolved() -> Resolved {
    static SMALL: std::sync::OnceLock<Resolved> = std::sync::OnceLock::new();
    SMALL.get_or_init(|| experiment(&small()).unwrap()).clone()
}

fn result_text() -> String {
    let runs = BTreeMap::from([("runs/x".into(), RunFile { bytes: 1, sha256: "0".into() })]);
    let stored = StoredResult::new(&7.into(), &[small_resolved()], &[], runs);
    serde_json::to_string_pretty(&stored.unwrap()).unwrap()
}

#[test]
fn the_files_that_are_damaged_here_are_whole() {
    assert!(Session::new(vec![small_resolved()], 1, &Views::default()).is_ok());
    assert!(StoredResult::read(&file("whole.json", result_text().as_bytes())).is_ok());
    for text in EXPERIMENTS {
        assert!(experiment(text).is_ok());
    }
}
