//! Files hold what runs have, byte for byte the same each time.

use kontig_lab::identity::Identity;
use kontig_results::{Ending, Endings, Figure, Histogram, Merge, Phase, Round, RunResult, Series};
use kontig_tables::{Facts, Files, Format, Rows, Sink, TABLES, Tables};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

fn facts() -> Facts {
    Facts {
        identity: Identity { run: "0123456789abcdef".into(), inputs: "fedcba9876543210".into() },
        experiment: "heap".into(),
        case: String::new(),
        variant: "6.1, \"patched\"".into(),
        machine: "tiny-64m".into(),
        memory_bytes: 1 << 26,
        nodes: 1,
        cpus: 2,
        profile: "6.1".into(),
        switches: vec!["one".into(), "two".into()],
        sysctls: vec![("thp.enabled".into(), "always".into()), ("vm.compaction_proactiveness".into(), "20".into())],
        parameters: vec![
            ("measure.holes".into(), "random".into()),
            ("measure.jobs".into(), 8.into()),
            ("measure.size".into(), "2 KiB".into()),
        ],
        rounds: 1,
        seed: u64::MAX,
        version: "0.1.0".into(),
    }
}

fn run() -> RunResult {
    let ending = Ending {
        task: String::new(),
        phase: "measure".into(),
        rule: "the first failed allocation".into(),
        reached: None,
        goal: "memory".into(),
        remedy: "none".into(),
    };
    RunResult {
        experiment: "heap".into(),
        case: String::new(),
        variant: "6.1, \"patched\"".into(),
        repetition: 0,
        seed: u64::MAX,
        random: true,
        without_effect: BTreeMap::from([("vm.compaction_proactiveness".into(), 20)]),
        figures: vec![
            Figure::new("elapsed", "s").lower().read(0.1),
            Figure::percentile("wait", "us", 99.0).read_or(None, "nothing\nwaited"),
            Figure::new("ratio", "").of_phase("total").merged(Merge::Sum).read(12.0),
        ],
        rounds: Vec::new(),
        endings: Endings(vec![ending]),
        vmstat: BTreeMap::from([("compact_stall".into(), 3), ("nr_free_pages".into(), 4096)]),
        work: BTreeMap::new(),
        histograms: vec![histogram(&[(1.0, 90), (2.5, 10)]), Histogram { name: "none".into(), ..histogram(&[]) }],
        series: vec![Series {
            name: "free memory".into(),
            unit: "GiB".into(),
            points: vec![(0, 1e-7), (10_000_000, 0.25)],
        }],
        phases: vec![Phase {
            name: "measure".into(),
            start_ns: 5,
            end_ns: 20_000_000,
            cpu: BTreeMap::new(),
            lock_wait_ns: 0,
            proactive_runs: 0,
        }],
        map: kontig_results::MemoryMap::default(),
        events: Vec::new(),
        event_counts: BTreeMap::new(),
    }
}

fn histogram(buckets: &[(f64, u64)]) -> Histogram {
    Histogram { name: "wait".into(), phase: "measure".into(), unit: "us".into(), buckets: buckets.to_vec() }
}

fn of_rounds() -> RunResult {
    let round = |seconds| Round {
        figures: vec![Figure::new("elapsed", "s").lower().read(seconds)],
        vmstat: BTreeMap::from([("compact_stall".into(), 1)]),
        histograms: vec![histogram(&[(seconds, 1)])],
    };
    RunResult { rounds: vec![round(3.0), round(4.0)], histograms: Vec::new(), figures: Vec::new(), ..run() }
}

fn filled<S: Sink>(sink: S, runs: &[RunResult]) -> S {
    let mut rows = Rows::new(sink);
    runs.iter().for_each(|run| rows.add(&facts(), run).expect("it takes them"));
    rows.finish().expect("it takes them").0
}

fn written(dir: &Path, format: Format, runs: &[RunResult]) -> BTreeMap<&'static str, Vec<u8>> {
    filled(Files::create(dir, format).expect("a new directory"), runs).finish().expect("written");
    let file = |name: &str| fs::read(dir.join(format!("{name}.{}", format.ending()))).expect("a file");
    assert_eq!(fs::read_dir(dir).expect("a directory").count(), TABLES.len());
    TABLES.iter().map(|table| (table.name, file(table.name))).collect()
}

fn csv(run: RunResult) -> BTreeMap<&'static str, String> {
    let tmp = tempfile::tempdir().expect("a folder");
    let files = written(&tmp.path().join("t"), Format::Csv, &[run]);
    files.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).expect("UTF-8"))).collect()
}

/// The lines after that of the names.
fn rows(text: &str) -> Vec<&str> {
    text.lines().skip(1).collect()
}

#[test]
fn a_csv_file_has_a_line_of_names_and_a_line_for_each_row() {
    let files = csv(run());
    assert_eq!(
        files["runs"],
        "run,experiment,case,variant,machine,memory_bytes,nodes,cpus,profile,switches,seed,rounds,random,simulated_ns,\
         ended,inputs,kontig\n\
         0123456789abcdef,heap,,\"6.1, \"\"patched\"\"\",tiny-64m,67108864,1,2,6.1,one two,18446744073709551615,1,true,\
         20000000,the first failed allocation,fedcba9876543210,0.1.0\n"
    );
    assert_eq!(
        rows(&files["settings"]),
        [
            "0123456789abcdef,sysctl,thp.enabled,always,,false",
            "0123456789abcdef,sysctl,vm.compaction_proactiveness,20,20.0,true",
            "0123456789abcdef,parameter,measure.holes,random,,",
            "0123456789abcdef,parameter,measure.jobs,8,8.0,",
            "0123456789abcdef,parameter,measure.size,2 KiB,2048.0,",
        ]
    );
    assert_eq!(
        files["figures"],
        "run,phase,figure,unit,value,missing,better,merge\n\
         0123456789abcdef,measure,elapsed,s,0.1,,lower,median\n\
         0123456789abcdef,measure,wait p99,us,,\"nothing\nwaited\",lower,pooled\n\
         0123456789abcdef,total,ratio,,12.0,,neither,sum\n"
    );
    assert_eq!(
        rows(&files["series"]),
        ["0123456789abcdef,free memory,GiB,0,1e-7", "0123456789abcdef,free memory,GiB,10000000,0.25"]
    );
    assert_eq!(rows(&files["counters"]), ["0123456789abcdef,,compact_stall,3", "0123456789abcdef,,nr_free_pages,4096"]);
    let percentiles = rows(&files["percentiles"]);
    assert_eq!(percentiles.len(), 11, "a distribution without samples has none");
    assert_eq!(percentiles[6], "0123456789abcdef,,measure,wait,90.0,us,1.0,100,29");
    assert_eq!(percentiles[8], "0123456789abcdef,,measure,wait,99.0,us,2.5,100,299");
}

#[test]
fn rounds_are_numbered_from_one_and_are_not_among_the_runs_figures() {
    let files = csv(of_rounds());
    assert_eq!(rows(&files["figures"]), [""; 0]);
    assert_eq!(
        rows(&files["rounds"]),
        [
            "0123456789abcdef,1,measure,elapsed,s,3.0,,lower,median",
            "0123456789abcdef,2,measure,elapsed,s,4.0,,lower,median"
        ]
    );
    assert!(rows(&files["percentiles"])[11].starts_with("0123456789abcdef,2,measure,wait,1.0,us,4.0,"));
    let counters = ["0123456789abcdef,1,compact_stall,1", "0123456789abcdef,2,compact_stall,1"];
    assert_eq!(rows(&files["counters"])[2..], counters);
}

#[test]
fn parquet_read_back_is_what_was_written() {
    let tmp = tempfile::tempdir().expect("a folder");
    for (at, runs) in [[run()], [of_rounds()]].iter().enumerate() {
        let dir = tmp.path().join(at.to_string());
        written(&dir, Format::Parquet, runs);
        let tables = filled(Tables::default(), runs);
        for (table, batches) in TABLES.iter().zip(&tables.batches) {
            let file = File::open(dir.join(format!("{}.parquet", table.name))).expect("a file");
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
            assert_eq!(**reader.schema(), table.arrow(), "{}", table.name);
            let read: Vec<_> = reader.build().expect("a reader").map(|batch| batch.expect("rows")).collect();
            assert_eq!(read, *batches, "{}", table.name);
        }
    }
}

#[test]
fn the_same_runs_give_the_same_bytes_from_the_memory_too() {
    let tmp = tempfile::tempdir().expect("a folder");
    let points = (0..100_000).map(|at| (at, at as f64 / 7.0)).collect();
    let long = RunResult { series: vec![Series { points, ..run().series[0].clone() }], ..run() };
    let runs = [long.clone(), run(), long];
    assert_eq!(filled(Tables::default(), &runs).batches.map(|of| of.len()), [1, 1, 1, 0, 1, 2, 1]);
    for format in [Format::Csv, Format::Parquet] {
        let dir = |name: &str| tmp.path().join(format!("{name}-{}", format.ending()));
        let first = written(&dir("first"), format, &runs);
        assert!(first == written(&dir("second"), format, &runs), "{format:?}");
        let tables = filled(Tables::default(), &runs);
        let mut files = Files::create(&dir("memory"), format).expect("a new directory");
        tables.pass_on(&mut files).expect("written");
        files.finish().expect("written");
        let name = format!("series.{}", format.ending());
        assert!(first["series"] == fs::read(dir("memory").join(name)).expect("a file"), "{format:?}");
    }
}

#[test]
fn files_that_are_not_finished_leave_nothing() {
    let tmp = tempfile::tempdir().expect("a folder");
    for format in [Format::Csv, Format::Parquet] {
        drop(filled(Files::create(&tmp.path().join("t"), format).expect("a new directory"), &[run()]));
        assert_eq!(fs::read_dir(tmp.path()).expect("a folder").count(), 0, "{format:?}");
    }
}
