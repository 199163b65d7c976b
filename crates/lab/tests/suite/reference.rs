//! `docs/experimenter/workloads.md` describes every kind of workload and every key, and its
//! examples run. What there is to describe is asked of the readers: each names what it knows when
//! it meets something else.

use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::{catalog, sysctls};
use kontig_workload::{Kind, WorkloadFile};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PAGE: &str = include_str!("../../../../docs/experimenter/workloads.md");

/// The sections about a kind, by its name.
fn sections() -> BTreeMap<&'static str, &'static str> {
    let section = |rest: &'static str| {
        let (name, text) = rest.split_once("`\n").expect("a kind is the heading");
        (name, text.split("\n## ").next().expect("some text"))
    };
    PAGE.split("\n### `").skip(1).map(section).collect()
}

/// The tables of a text: by their first column's heading the rows, each with its cells.
fn tables(text: &'static str) -> BTreeMap<&'static str, Vec<Vec<&'static str>>> {
    let mut tables: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    let (mut of, mut before) = ("", "");
    for line in text.lines() {
        let is_row = line.starts_with('|');
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match is_row {
            true if !before.starts_with('|') => of = cells[0],
            true if !line.starts_with("|--") => tables.entry(of).or_default().push(cells),
            _ => {}
        }
        before = line;
    }
    tables
}

/// The keys that a table describes.
fn described(rows: Option<&Vec<Vec<&'static str>>>) -> BTreeSet<String> {
    let keys: Vec<String> = rows.into_iter().flatten().map(|cells| cells[0].trim_matches('`').to_owned()).collect();
    let all: BTreeSet<String> = keys.iter().cloned().collect();
    assert_eq!(all.len(), keys.len(), "a key is described twice: {keys:?}");
    all
}

/// The names that the reader of a `T` expects in place of `?`.
fn known<T: DeserializeOwned>(text: &str) -> BTreeSet<String> {
    let Err(e) = toml::from_str::<T>(text) else { return BTreeSet::new() };
    let Some(("unknown field" | "unknown variant", expected)) = e.message().split_once(" `?`, ") else {
        return BTreeSet::new();
    };
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A table of keys: the kind whose section has it, what its first column is called, and a file of
/// that kind in which the one unknown key stands for `KEY`.
const TABLES: [(&str, &str, &str); 6] = [
    ("steps", "key of a file", "kind = 'steps'\nsteps = []\nfiles = [{ KEY }]"),
    ("steps", "key of a step", "kind = 'steps'\nsteps = [{ KEY }]"),
    ("steps", "step", "kind = 'steps'\nsteps = [{ do = '?' }]"),
    ("trace", "key of a process", "kind = 'trace'\nflags = []\nprocess = [{ KEY }]"),
    ("occupancy", "key of a share", "kind = 'occupancy'\nmovable = [{ KEY }]"),
    ("occupancy", "key of unmovable", "kind = 'occupancy'\nmovable = []\nunmovable = { KEY }"),
];

/// Checks that a table has the keys that its reader knows, and with each the values that can be
/// named.
fn check<T: DeserializeOwned>(what: &str, rows: Option<&Vec<Vec<&'static str>>>, file: &str, more: &[&str]) {
    let mut keys = known::<T>(&file.replace("KEY", "'?' = 1"));
    keys.extend(more.iter().map(|key| (*key).to_owned()));
    assert_eq!(described(rows), keys, "{what}");
    for cells in rows.into_iter().flatten().filter(|_| file.contains("KEY")) {
        let key = cells[0].trim_matches('`');
        let values = known::<T>(&file.replace("KEY", &format!("{key} = '?'")));
        // The steps have a table of their own.
        let missing = values.iter().find(|name| key != "do" && !cells[1].contains(*name));
        assert_eq!(missing, None, "{what}: {key}");
    }
}

#[test]
fn every_kind_and_every_key_is_described_and_no_other() {
    let sections = sections();
    let kinds = known::<Kind>("kind = '?'");
    assert!(kinds.len() > 20, "{kinds:?}");
    assert_eq!(sections.keys().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), kinds);
    for (kind, text) in &sections {
        check::<Kind>(kind, tables(text).get("key"), &format!("kind = '{kind}'\nKEY"), &[]);
    }
    for (kind, of, file) in TABLES {
        check::<Kind>(&format!("{kind}, {of}"), tables(sections[kind]).get(of), file, &[]);
    }
    let of_file = tables(PAGE.split("\n### ").next().expect("the file comes first"));
    // The lab reads these two before it hands the rest over.
    check::<WorkloadFile>("the file", of_file.get("key of the file"), "KEY", &["base"]);
    check::<WorkloadFile>("a phase", of_file.get("key of a phase"), "[[phase]]\nKEY", &[]);
    check::<WorkloadFile>("a group", of_file.get("key of a group"), "[[group]]\nKEY", &[]);
    check::<WorkloadFile>("a task", of_file.get("key of a task"), "[[phase]]\n[[phase.task]]\nKEY", &["each"]);
}

/// The examples of a text, whole files.
fn examples(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("a block ends"))
}

/// The table with this kind in a document.
fn of_kind<'a>(value: &'a toml::Value, kind: &str) -> Option<&'a toml::Table> {
    match value {
        toml::Value::Table(table) if table.get("kind").and_then(|value| value.as_str()) == Some(kind) => Some(table),
        toml::Value::Table(table) => table.values().find_map(|value| of_kind(value, kind)),
        toml::Value::Array(all) => all.iter().find_map(|value| of_kind(value, kind)),
        _ => None,
    }
}

#[test]
fn every_kind_has_an_example_and_its_keys_the_defaults_stated() {
    for (kind, text) in sections() {
        let documents: Vec<toml::Value> = examples(text).map(|text| toml::from_str(text).expect("TOML")).collect();
        let example = documents.iter().find_map(|document| of_kind(document, kind));
        let example = example.unwrap_or_else(|| panic!("{kind} has no example"));
        let read = |table: &toml::Table| toml::Value::Table(table.clone()).try_into::<Kind>();
        for cells in tables(text).get("key").into_iter().flatten() {
            let (key, default) = (cells[0].trim_matches('`'), cells[2]);
            let mut without = example.clone();
            without.remove(key);
            let is_needed = read(&without).is_err();
            assert_eq!(default == "needed", is_needed, "{kind}: {key}");
            if default.starts_with('`') {
                let value: toml::Table = format!("value = {}", default.trim_matches('`')).parse().expect("a value");
                let mut with = without.clone();
                with.insert(key.into(), value["value"].clone());
                assert_eq!(read(&without), read(&with), "{kind}: {key} = {default}");
            } else {
                assert!(["needed", "none"].contains(&default), "{kind}: {key}: {default}");
            }
        }
    }
}

/// A host of 64 MiB, for the examples that begin with one.
const SNAPSHOT: &str = concat!(
    r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"cpus":2,"#,
    r#""pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":16384,"present":16384,"#,
    r#""managed":16384,"marks":[60,75,90,105],"boost":0,"protection":[0,0],"cached":0,"#,
    r#""free":[0,0,0,0,0,0,0,0,0,0,0],"blocks":null}]}"#,
    "\n0 M a100 F412 *32\n",
);
const BUDDYINFO: &str = "\
Node 0, zone      DMA      1      0      1      2      1      1      0      0      1      1      2 
Node 0, zone    DMA32    651    212     91     31     90     41     17      9      5      3      2 
";
const PAGETYPEINFO: &str = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 
Node    0, zone      DMA, type    Unmovable      1      0      1      2      1      1      0      0      1      0      0 
Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      2 
Node    0, zone      DMA, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 
Node    0, zone    DMA32, type    Unmovable     51     12     11     17     10      1      7      2      1      0      0 
Node    0, zone    DMA32, type      Movable    600    200     80     14     80     40     10      7      4      3      2 
Node    0, zone    DMA32, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 

Number of blocks type     Unmovable      Movable  Reclaimable 
Node 0, zone      DMA            3            5            0 
Node 0, zone    DMA32            9           47            4 
";

#[test]
fn every_example_runs_to_its_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("it is written");
    write("host.snap", SNAPSHOT);
    write("buddyinfo.txt", BUDDYINFO);
    write("pagetypeinfo.txt", PAGETYPEINFO);
    for text in examples(PAGE) {
        write("example.toml", text);
        let path = dir.path().join("example.toml");
        let run = || {
            let (mut experiment, source, own) = catalog::to_run(path.to_str().expect("UTF-8"))?;
            sysctls::set_own(&mut experiment.variant, &own)?;
            let session = Session::new(Resolved::all(&experiment, Some(&source))?, 1, &Views::default())?;
            let (outcomes, error) = session.run(1, &|_| Ok(()));
            error.map_or(Ok(outcomes), Err)
        };
        let outcomes = run().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let [outcome] = outcomes.as_slice() else { panic!("{} outcomes\n{text}", outcomes.len()) };
        assert!(!outcome.result.rows.is_empty() && !outcome.runs.is_empty(), "{text}");
    }
}
