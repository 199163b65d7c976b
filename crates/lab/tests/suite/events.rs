//! The events of a run: their times, and that none is lost silently.

use kontig_lab::catalog;
use kontig_lab::experiment::Experiment;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_results::RunResult;
use kontig_text::grouped;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Takes huge pages on 64 MiB again and again, until one fails.
const EXPERIMENT: &str = r#"id = "small"
summary = "Huge pages on 64 MiB"
assumptions = "None."
machine = "tiny-64m"

[workload]
prepare = { kind = "fragment", holes = "random", freed_per_section = 384 }
settle_s = 1
measure = { kind = "hugealloc", gfp = "GFP_KERNEL", pause_us = PAUSE, give_up_after = TRIES }

[[variant]]
name = "v"
profile = "5.6"
switches = ["proactive-compaction"]
"#;

fn runs(pause_us: u32, tries: u32, threads: usize) -> (Vec<String>, Vec<RunResult>) {
    let text = EXPERIMENT.replace("PAUSE", &pause_us.to_string()).replace("TRIES", &tries.to_string());
    let experiment: Experiment = toml::from_str(&text).unwrap();
    assert!(catalog::machine(&experiment.machine).is_ok());
    let session = Session::new(vec![Resolved::new(experiment, None).unwrap()], 1, &Views::default()).unwrap();
    let runs = Mutex::new(Vec::new());
    let (mut outcomes, error) = session.run(threads, &|run| {
        runs.lock().unwrap().push(run.clone());
        Ok(())
    });
    assert_eq!(error, None);
    // Its workload gives up, and is at its end all the same.
    assert!(session.jobs().iter().all(|job| job.control.permille.load(Ordering::Relaxed) == 1000));
    let remarks = outcomes.pop().unwrap().result.remarks.into_iter().map(|r| r.text);
    (remarks.filter(|text| text.contains("not kept")).collect(), runs.into_inner().unwrap())
}

#[test]
fn events_are_stamped_when_they_happen_and_not_when_the_host_looks() {
    let (notes, runs) = runs(100, 40, 1);
    let run = &runs[0];
    let happened: u64 = run.event_counts.values().map(|c| c.happened).sum();
    assert_eq!(happened, run.events.len() as u64);
    assert_eq!(notes, [""; 0], "all were kept");
    assert!(run.events.is_sorted_by_key(|e| e.at_ns));
    let measure = run.phases.last().unwrap();
    assert!(run.events[0].at_ns >= measure.start_ns);

    // Requests and kcompactd compact the one zone, each in its own mode.
    let mut open: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut lengths = Vec::new();
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    for e in &run.events {
        let mode = || e.event[e.event.find("mode=").unwrap()..].split(' ').next().unwrap().to_string();
        if e.event.starts_with("mm_compaction_begin: ") {
            open.entry(mode()).or_default().push(e.at_ns);
        } else if e.event.starts_with("mm_compaction_end: ") {
            lengths.push(e.at_ns - open.get_mut(&mode()).unwrap().pop().expect("it began"));
            // Runs of one mode follow each other here. Dating them by when the host looks would end
            // several at once.
            assert!(ended.insert(mode(), e.at_ns) < Some(e.at_ns), "two runs end at {}", e.at_ns);
        }
    }
    assert!(lengths.len() >= 10, "{} runs", lengths.len());
    assert!(lengths.iter().all(|ns| *ns > 0), "an end comes after what was done: {lengths:?}");
}

#[test]
fn every_event_is_counted_by_kind_as_vmstat_counts_it() {
    let (_, runs) = runs(0, 40, 1);
    let run = &runs[0];
    let happened = |name: &str| run.event_counts.get(name).map_or(0, |c| c.happened);
    assert_eq!(happened("mm_vmscan_kswapd_wake"), run.vmstat["pageoutrun"]);
    assert_eq!(happened("mm_compaction_kcompactd_wake"), run.vmstat["compact_daemon_wake"]);
    let mut kept: BTreeMap<&str, u64> = BTreeMap::new();
    for e in &run.events {
        *kept.entry(e.event.split(':').next().unwrap()).or_default() += 1;
    }
    for (name, count) in &run.event_counts {
        assert_eq!(count.happened - count.dropped, kept.get(name.as_str()).copied().unwrap_or(0), "{name}");
    }
}

#[test]
fn events_of_a_long_run_are_kept_from_both_ends_and_the_rest_is_said() {
    let (notes, runs) = runs(0, 6000, 1);
    let run = &runs[0];
    let (happened, dropped) = run.event_counts.values().fold((0, 0), |(h, d), c| (h + c.happened, d + c.dropped));
    assert_eq!(run.events.len(), 20_000, "{:?}", run.event_counts);
    assert_eq!(dropped, happened - 20_000);
    assert!(dropped > 0);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with(&format!(
            "{} of {} events are counted by kind, but not kept",
            grouped(dropped),
            grouped(happened)
        )),
        "{notes:?}"
    );
    let end = run.phases.last().unwrap().end_ns;
    assert!(end - run.events.last().unwrap().at_ns < 100_000_000, "the last ones are there");
}
