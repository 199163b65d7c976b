//! A real kernel, recorded twice: the two recordings are the same, byte for byte, and the engine agrees with them.
//!
//! Booting one needs packages that not every machine has; where they are missing, the test says so and passes.

use kontig_oracle::{Verdict, verify};
use kontig_recorder::experiment::{Asked, Plan};
use kontig_recorder::kernel::{Kernel, Series};
use kontig_recorder::{Control, doctor, record};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("a recording");
    let one = |e: std::io::Result<std::fs::DirEntry>| {
        let e = e.expect("an entry");
        (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).expect("a file"))
    };
    entries.map(one).collect()
}

#[test]
fn two_boots_give_the_same_bytes() {
    let series = Series::V6_1;
    let diagnosis = doctor::examine(series, None);
    if !diagnosis.is_healthy() {
        let missing: Vec<&str> = diagnosis.findings.iter().filter(|f| !f.fine).map(|f| f.what.as_str()).collect();
        eprintln!("skipped, missing: {}; 'kontig oracle doctor' shows how to install it", missing.join(", "));
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let kernel = Kernel::find(series, None).expect("a kernel");
    let asked = Asked { experiment: "mixed".into(), seed: 7, ops: Some(20_000), ..Asked::default() };
    let plan = Plan::new(&asked, series).expect("an experiment");
    let stop = AtomicBool::new(false);
    let both = ["first", "second"].map(|name| {
        let out = dir.path().join(name);
        record(&plan, &kernel, &out, &Control { stop: &stop, progress: &|_| {} }).expect("a recording");
        out
    });

    let [first, second] = both.each_ref().map(|d| contents(d));
    assert!(first.keys().eq(second.keys()), "{:?} and {:?}", first.keys(), second.keys());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs between two boots");
    }
    let verdict = verify(&both[0]).expect("a recording that can be replayed");
    assert!(matches!(&verdict, Verdict::Equal(c) if c.operations == 20_000), "{verdict:?}");
}
