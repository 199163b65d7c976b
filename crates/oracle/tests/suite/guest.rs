//! The project's recordings of patterns: each is whole, and of the steps that its pattern has now.

use kontig_oracle::guest::{EXTFRAG, Guest};
use kontig_oracle::patterns::NAMED;
use kontig_program::act::phases;
use std::path::Path;

#[test]
fn every_recording_of_a_pattern_can_be_read_and_its_counters_only_grow() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/guest/recorded");
    let entries = std::fs::read_dir(folder).expect("recordings");
    let folders: Vec<_> = entries.map(|e| e.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    assert!(!folders.is_empty());
    for dir in folders {
        let guest = Guest::open(&dir).unwrap_or_else(|e| panic!("{e}"));
        let pattern = NAMED.iter().find(|pattern| pattern.name == guest.pattern).expect("a pattern");
        let acts = pattern.acts(guest.seed);
        assert!(guest.states.iter().map(|state| state.phase.as_str()).eq(phases(&acts)), "{}", dir.display());
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
