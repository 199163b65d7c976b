//! `--history`: a simulated machine, recorded as a host is.

use crate::common::{experiment, kontig, runs};
use kontig_live::history::{History, Item};
use serde_json::Value;
use std::path::Path;

fn json(dir: &Path, args: &[&str]) -> Value {
    let output = kontig(dir, args).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn a_history_of_each_run_changes_no_result_and_is_not_written_over() {
    let d = tempfile::tempdir().unwrap();
    experiment(d.path(), &[]);
    let recorded = runs(d.path(), &["--history", "h.history", "--out", "result"]);
    assert_eq!(recorded, runs(d.path(), &[]));
    for variant in ["vanilla", "patched__60"] {
        for repetition in 0..2 {
            let file = d.path().join(format!("h-small-{variant}-{repetition}.history"));
            assert!(file.exists(), "{}", file.display());
        }
    }
    let again = kontig(d.path(), &["reproduce", "./experiment.toml", "--history", "h.history"]).assert().code(2);
    let said = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
    assert!(said.contains("exists, and nothing is overwritten") && said.trim_end().lines().count() == 1, "{said}");
}

#[test]
fn a_simulated_day_is_replayed_and_reported_as_a_hosts() {
    let d = tempfile::tempdir().unwrap();
    let day = ["run", "watch", "--machine", "tiny-64m", "--profile", "6.1", "--with", "measure.seconds=86400"];
    let settings = ["--set", "vm.compaction_proactiveness=0", "--history", "day.history"];
    kontig(d.path(), &[&day[..], &settings].concat()).assert().success();
    let history = History::open(&d.path().join("day.history")).expect("a history");
    let samples = history.items().filter(|item| matches!(item, Item::Sample(_))).count();
    assert_eq!(samples, 8641, "every ten seconds, and one at the start");
    // The machine is fragmented and nobody compacts, so guard would have, once.
    let replayed = json(d.path(), &["guard", "replay", "day.history", "--keep", "5x2M", "--json"]);
    let node = &replayed["nodes"][0];
    assert_eq!((&replayed["unread"], &node["samples"]), (&Value::from(0), &Value::from(8641)));
    assert_eq!((node["kept"].as_u64(), node["kept_with_guard"].as_u64()), (Some(0), Some(8641)), "{node}");
    assert_eq!(node["runs"].as_array().map(Vec::len), Some(1), "{node}");
    let report = json(d.path(), &["history", "report", "day.history", "--json"]);
    assert_eq!((&report["samples"], &report["kernel"]), (&Value::from(8641), &Value::from("6.1")));
    assert_eq!(report["seconds"].as_f64(), Some(86400.0));
    assert_eq!(report["huge_page_bytes"].as_u64(), Some(2 << 20));
    assert!(report["at_hand"]["most"].as_u64().is_some_and(|most| most < 5), "{report}");
    assert!(report["kcompactd_cpu_share"].is_number(), "{report}");
}
