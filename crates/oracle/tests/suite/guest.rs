//! The project's recordings of patterns: each is whole, and of the steps that its pattern has now.

use kontig_oracle::build;
use kontig_oracle::guest::{EXTFRAG, Guest, Pattern};
use kontig_program::act::phases;
use lzma_rust2::XzReader;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The phases of a pattern.
fn phases_of(guest: &Guest) -> Vec<&'static str> {
    match Pattern::find(&guest.pattern).expect("a pattern") {
        Pattern::Steps(pattern) => phases(&pattern.acts(guest.seed)).collect(),
        Pattern::Build => build::PHASES.to_vec(),
    }
}

#[test]
fn every_recording_of_a_pattern_can_be_read_and_its_counters_only_grow() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/guest/recorded");
    let entries = std::fs::read_dir(folder).expect("recordings");
    let folders: Vec<_> = entries.map(|e| e.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    assert!(!folders.is_empty());
    for dir in folders {
        let guest = Guest::open(&dir).unwrap_or_else(|e| panic!("{e}"));
        let phases = phases_of(&guest);
        assert!(guest.states.iter().map(|state| state.phase.as_str()).eq(phases), "{}", dir.display());
        for name in ["pgscan_kswapd", "pgsteal_direct", "pgalloc_dma32", "pswpout", EXTFRAG[0]] {
            let counts: Vec<u64> = guest.states.iter().filter_map(|state| state.counters.get(name)).collect();
            assert_eq!(counts.len(), guest.states.len(), "{}: {name}", dir.display());
            assert!(counts.is_sorted(), "{}: {name}: {counts:?}", dir.display());
        }
        let managed: u64 = guest.zones.iter().map(|zone| zone.spec.managed).sum();
        let taken: u64 = guest.zones.iter().map(|zone| zone.taken).sum();
        assert!(taken > 0 && taken < managed / 4, "{}: {taken} of {managed} pages are the kernel's own", dir.display());
    }
}

const BUILD: &str = "6.1-guest-build-seed1";

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/guest/recorded").join(name)
}

#[test]
fn a_build_has_samples_from_its_beginning_to_its_end_and_says_what_was_built() {
    let guest = Guest::open(&recorded(BUILD)).expect("a recording");
    let (first, last) = (&guest.samples[0], guest.samples.last().expect("samples"));
    let took_ns = guest.states[1].took_ns;
    // The first sample is taken when the program begins, the last one in the last quarter second.
    let period = build::SAMPLE_MS * 1_000_000;
    assert!(first.ns < period && last.ns <= took_ns && last.ns + 2 * period > took_ns, "{} {took_ns}", last.ns);
    for counter in ["thp_fault_alloc", "pswpout", "pgscan_kswapd"] {
        let [at_end, sampled] = [&guest.states[1].counters, &last.counters].map(|of| of.get(counter).expect("counted"));
        assert!(sampled <= at_end && sampled > at_end / 2, "{counter}: {sampled} of {at_end}");
    }
    let built = guest.built.expect("it is said");
    assert!(built.sources.starts_with("6.1.") && built.compiler.starts_with("12."), "{built:?}");
}

#[test]
fn a_damaged_build_is_refused_in_a_line_that_names_the_file() {
    let unpacked = |file: &str| {
        let packed = std::fs::read(recorded(BUILD).join(format!("{file}.xz"))).expect("there");
        let mut text = String::new();
        XzReader::new(packed.as_slice(), true).read_to_string(&mut text).expect("xz");
        text
    };
    let about = std::fs::read_to_string(recorded(BUILD).join("recording.toml")).expect("there");
    let files =
        [("recording.toml", about), ("samples.txt", unpacked("samples.txt")), ("states.txt", unpacked("states.txt"))];
    let refused = |damaged: &str, change: &dyn Fn(&str) -> Option<String>, says: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        for (file, text) in &files {
            let text = if *file == damaged { change(text) } else { Some(text.clone()) };
            text.into_iter().for_each(|text| std::fs::write(dir.path().join(file), text).expect("written"));
        }
        let line = Guest::open(dir.path()).expect_err("refused").to_string();
        assert!(line.contains(says) && line.contains(damaged) && !line.contains('\n'), "{line}");
    };
    refused("samples.txt", &|_| None, "is missing");
    refused("samples.txt", &|_| Some("ns free_huge_DMA\n".into()), "has no sample");
    let cut = |text: &str| Some(text[..text.len() - 9].to_string());
    refused("samples.txt", &cut, "numbers, one for each column");
    refused("states.txt", &|text| Some(text.replace("== end clock", "== other clock")), "has no '== end clock'");
    refused("recording.toml", &|text| Some(text.replace("guest-build", "guest-brew")), "is no pattern's recording");
}
