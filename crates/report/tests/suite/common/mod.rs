//! Invented experiments for tests and sample pages, in the shape of real results.

#![allow(dead_code)] // the example takes a part of it

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use kontig_results::PacePoint;
use kontig_results::*;
use std::collections::BTreeMap;
use std::io::Write;

/// Names of the two variants.
pub const VARIANTS: [&str; 2] = ["5.6.0-rc3", "5.6.0-rc3+proactiveness=20"];

/// A small generator of reproducible noise.
pub struct Noise(u64);

impl Noise {
    /// One that starts at `seed`.
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    /// The next number in 0..1.
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A row as `kontig-lab` would judge it.
pub fn row(name: &str, unit: &str, headline: bool, published: &[f64], measured: &[Option<f64>]) -> Row {
    let (name, unit) = (name.to_owned(), unit.to_owned());
    Row {
        name,
        unit,
        phase: MEASURE.into(),
        better: Better::Lower,
        merge: Merge::Median,
        headline,
        published: published.to_vec(),
        measured: measured.iter().map(|value| value.map(once)).collect(),
        pairs: vec![],
        steps: judge::steps(published, measured, judge::Noise::Unknown),
        caveat: None,
        lack: None,
        below: false,
        zero_is_none: false,
        part: None,
        statistics: vec![],
    }
}

/// A figure of one repetition.
pub fn once(value: f64) -> Measured {
    Measured { value, low: value, high: value, repetitions: 1, lacking: 0, samples: None, samples_needed: None }
}

/// A table with every verdict.
pub fn table() -> ExperimentResult {
    let latency = |p: u32, headline, published: [f64; 2], measured: [f64; 2]| {
        let merge = Merge::Percentile { of: "hugepage alloc latency".into(), p: f64::from(p) };
        Row { merge, ..row(&format!("hugepage alloc latency p{p}"), "us", headline, &published, &measured.map(Some)) }
    };
    let rows = vec![
        latency(5, false, [7894.0, 2.0], [6012.4, 2.1]),
        latency(25, false, [12561.0, 3.0], [11034.0, 3.02]),
        latency(50, true, [21229.0, 4.0], [19840.2, 3.7]),
        latency(75, false, [30147.0, 4.0], [28901.0, 24.5]),
        latency(95, true, [33799.0, 429.0], [36120.0, 2100.0]),
        row("2M hugepages allocated", "hugepages", true, &[383859.0, 384105.0], &[Some(383_011.5), Some(384_001.0)]),
        row("proactive compaction runs", "runs (20+)", false, &[0.0, 20.0], &[Some(0.0), Some(34.0)]),
        row("system", "s", false, &[1666.48, 194.58], &[Some(182.0), Some(1604.3)]),
        row("user", "s", false, &[17.39, 8.35], &[Some(17.2), Some(17.1)]),
        row("elapsed", "s", true, &[1657.89, 199.62], &[Some(1490.0), None]),
        row("pages migrated", "pages", false, &[], &[Some(0.0), Some(98_123_456.0)]),
    ];
    ExperimentResult {
        id: "hugepage-latency".into(),
        case: String::new(),
        machine: "xeon-1t".into(),
        target: "experiments/targets/hugepage-latency.toml".into(),
        repetitions: 1,
        rounds: 1,
        sweeps: vec![],
        variants: VARIANTS.map(String::from).to_vec(),
        score: Score::of(&rows, &[]),
        rows,
        ageing: vec![],
        elsewhere: vec![],
        remarks: vec![],
        endings: vec![],
    }
}

/// A table of five repetitions: few samples, a spread, work before the
/// measurement, and no pages obtained.
pub fn repeated() -> ExperimentResult {
    let of = |value, low, high| Some(Measured { low, high, repetitions: 5, ..once(value) });
    let pair = |lower, higher, overlap| vec![None, Some(Pairs { of: 5, lower, higher, overlap })];
    let base = |name: &str, unit: &str| row(name, unit, false, &[], &[]);
    let percentile = |p: f64, value, samples: u64, samples_needed| {
        let of = Some(Measured { samples: Some(samples), samples_needed, ..of(value, value * 0.9, value * 1.5)? });
        Some((format!("hugepage alloc latency p{p}"), Merge::Percentile { of: "hugepage alloc latency".into(), p }, of))
    };
    let mut rows = vec![];
    for (name, merge, measured) in
        [percentile(50.0, 113.9, 110, None), percentile(99.0, 217.3, 110, Some(299))].into_iter().flatten()
    {
        rows.push(Row { merge, measured: vec![measured, None], pairs: vec![None, None], ..base(&name, "us") });
    }
    let share = vec![of(60.84, 60.5, 61.0), of(0.0, 0.0, 0.0)];
    let higher = Better::Higher;
    rows.push(Row { better: higher, measured: share, pairs: pair(5, 0, false), ..base("share of free memory", "%") });
    let moves = vec![of(12.0, 9.0, 20.0), of(10.0, 8.0, 14.0)];
    rows.push(Row { measured: moves, pairs: pair(3, 2, true), ..base("elapsed per page", "us") });
    let cpu = [("settle", 0.0, 3.51), ("measure", 1.78, 0.09), ("total", 1.78, 3.6)];
    for (phase, a, b) in cpu {
        let measured = vec![of(a, a, a), of(b, b, b + 0.2)];
        let (phase, pairs) = (phase.into(), pair(u32::from(a > b) * 5, u32::from(b > a) * 5, false));
        rows.push(Row { phase, measured, pairs, ..base("kcompactd CPU time", "s") });
    }
    let remark = |variant, text: &str| Remark { variant, text: text.into() };
    ExperimentResult {
        id: "five".into(),
        case: String::new(),
        machine: "xeon-1t".into(),
        target: String::new(),
        repetitions: 5,
        rounds: 1,
        sweeps: vec![],
        variants: vec!["20".into(), "100".into()],
        rows,
        ageing: vec![],
        score: Score::default(),
        elsewhere: vec![],
        endings: vec![],
        remarks: vec![
            remark(Some(0), "ended at the first failed allocation, with 60.5 to 61.0 % of the free memory taken"),
            remark(Some(1), "nothing was obtained: no hugepage alloc latency"),
            remark(None, "to go on after a failure, until N come in a row: --with give_up_after=N"),
        ],
    }
}

/// A pace sweep: the baseline stalls at any pace, the patched kernel
/// only when pages are taken fast.
pub fn pace() -> Vec<PacePoint> {
    let mut points = vec![];
    for (patched, variant) in VARIANTS.iter().enumerate() {
        for pause_us in [0.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0] {
            let stall = if patched == 1 { 2500.0 / (1.0 + (pause_us / 60.0_f64).powi(3)) } else { 3000.0 };
            let latency = |p: f64| match p {
                p if patched == 1 && p < 95.0 => 2.0 + p / 40.0,
                p => 6.5 + stall * (p - 20.0) / 100.0 * if p > 99.0 { 2.0 } else { 1.0 },
            };
            let latency_us = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9].map(|p| (p, latency(p))).to_vec();
            let per_second = 1e6 / (pause_us + latency(50.0));
            points.push(PacePoint {
                variant: (*variant).into(),
                pause_us,
                per_second: Some(per_second),
                samples: 20_000,
                latency_us,
            });
        }
    }
    points
}

/// A run on a machine with these zones and `frames` moments of its map;
/// patched runs keep huge blocks free.
pub fn run(variant: usize, repetition: u32, zones: &[(&str, u32)], frames: usize) -> RunResult {
    let patched = variant == 1;
    let mut noise = Noise::new(17 + u64::from(repetition) * 31 + variant as u64);
    let length = if patched { 412.0 } else { 3650.0 } * (1.0 + 0.02 * noise.next());
    let ns = |share: f64| (share * length * 1e9) as u64;
    let phase = |name: &str, from: f64, to: f64| Phase {
        name: name.into(),
        start_ns: ns(from),
        end_ns: ns(to),
        cpu: BTreeMap::new(),
        lock_wait_ns: 0,
        proactive_runs: 0,
    };
    let phases = vec![phase("fill", 0.0, 0.22), phase("fragment", 0.22, 0.45), phase("allocate", 0.45, 1.0)];
    let map = MemoryMap {
        zones: zones.iter().map(|&(name, blocks)| MapZone { name: name.into(), blocks }).collect(),
        frames: (0..frames)
            .map(|i| frame(i as f64 / (frames - 1).max(1) as f64, patched, zones, &phases, ns))
            .collect(),
    };
    RunResult {
        experiment: "hugepage-latency".into(),
        case: String::new(),
        variant: VARIANTS[variant].into(),
        repetition,
        seed: 1,
        random: true,
        without_effect: BTreeMap::new(),
        figures: vec![],
        rounds: vec![],
        endings: Endings::default(),
        vmstat: BTreeMap::new(),
        work: BTreeMap::new(),
        histograms: vec![latency(patched, &mut noise)],
        series: series(patched, &mut noise, ns),
        phases,
        map,
        events: vec![],
        event_counts: BTreeMap::new(),
    }
}

fn latency(patched: bool, noise: &mut Noise) -> Histogram {
    let mut buckets = BTreeMap::new();
    for _ in 0..20_000 {
        let u = noise.next();
        let slow = 6000.0 + 30_000.0 * u.powf(0.8);
        let value = if patched && u < 0.96 { 2.0 + 3.0 * noise.next() } else { slow };
        *buckets.entry((value.ln() * 16.0).ceil() as i64).or_insert(0u64) += 1;
    }
    let buckets = buckets.into_iter().map(|(k, n)| ((k as f64 / 16.0).exp(), n)).collect();
    Histogram { name: "hugepage alloc latency".into(), phase: MEASURE.into(), unit: "us".into(), buckets }
}

fn series(patched: bool, noise: &mut Noise, ns: impl Fn(f64) -> u64) -> Vec<Series> {
    let mut made = vec![];
    let mut add = |name: &str, unit: &str, value: &mut dyn FnMut(f64) -> f64| {
        let points = (0..=3000).map(|i| (ns(f64::from(i) / 3000.0), value(f64::from(i) / 3000.0))).collect();
        made.push(Series { name: name.into(), unit: unit.into(), points });
    };
    let after = |s: f64, from: f64| ((s - from) / (1.0 - from)).max(0.0);
    add("fragmentation score", "", &mut |s| match s {
        s if s < 0.22 => 4.0 * s,
        s if s < 0.45 => (s - 0.22) * 380.0,
        s if patched => 87.0 - 70.0 * ((s - 0.45) * 9.0).min(1.0) + 3.0 * noise.next(),
        s => 87.0 - 40.0 * after(s, 0.45) + 2.0 * noise.next(),
    });
    add("free memory", "GiB", &mut |s| match s {
        s if s < 0.22 => 1000.0 - 4500.0 * s,
        s if s < 0.45 => 10.0 + (s - 0.22) * 3270.0,
        s => 762.0 - 750.0 * after(s, 0.45),
    });
    add("compact_stall", "", &mut |s| if patched { 41.0 * after(s, 0.9) } else { 383_000.0 * after(s, 0.45) });
    add("pages migrated", "pages", &mut |s| 98e6 * after(s, 0.45).powf(if patched { 0.4 } else { 1.0 }));
    add("kcompactd CPU", "%", &mut |s| if patched && s > 0.45 && s < 0.6 { 92.0 } else { 0.0 });
    add("oom_kill", "", &mut |_| 0.0);
    made
}

fn frame(share: f64, patched: bool, zones: &[(&str, u32)], phases: &[Phase], ns: impl Fn(f64) -> u64) -> MapFrame {
    let blocks: u32 = zones.iter().map(|zone| zone.1).sum();
    let mut noise = Noise::new(99);
    let done = ((share - 0.45) / 0.55).clamp(0.0, 1.0);
    let compacted = if patched { (done * 4.0).min(1.0) } else { done };
    let cells: Vec<u8> = (0..blocks)
        .map(|i| {
            let (at, n, kind) = (f64::from(i) / f64::from(blocks), noise.next(), noise.next());
            let pinned = kind < 0.03 + 0.05 * (at * 40.0).sin().max(0.0);
            let class = match share {
                _ if i < 2 || (i % 977 == 5 && blocks > 1000) => Cell::Reserved,
                s if s < 0.22 => {
                    if at < s / 0.22 {
                        Cell::Full
                    } else {
                        Cell::Free
                    }
                }
                s if s < 0.45 && at > (s - 0.22) / 0.23 => Cell::Full,
                _ if pinned => [Cell::Quarter, Cell::Half, Cell::ThreeQuarters, Cell::Full][(n * 4.0) as usize],
                _ if at < done * 0.72 => {
                    if n < 0.97 {
                        Cell::HugeUser
                    } else {
                        Cell::HugeKernel
                    }
                }
                _ if at < compacted * 0.74 => Cell::Free,
                _ if at > 1.0 - compacted * 0.26 => {
                    if n < 0.6 {
                        Cell::Full
                    } else {
                        Cell::Nearly
                    }
                }
                _ => [Cell::Quarter, Cell::Quarter, Cell::Quarter, Cell::Half][(n * 4.0) as usize],
            };
            let migratetype = if pinned {
                0
            } else if kind > 0.96 {
                2
            } else {
                1
            };
            class.byte(migratetype, pinned && matches!(class as u8, 3..=7))
        })
        .collect();
    let at_ns = ns(share);
    let phase = phases.iter().rev().find(|p| p.start_ns <= at_ns).map_or("", |p| &p.name);
    let used = |byte: &u8| [0, 512, 512, 128, 256, 384, 500, 512, 512][usize::from(byte >> 2 & 15)];
    MapFrame {
        at_ns,
        phase: phase.into(),
        free_pages: cells.iter().map(|c| 512 - used(c)).sum(),
        score: if share < 0.22 { 1.0 } else { 87.0 - 70.0 * compacted },
        cells: BASE64_STANDARD.encode(deflated(&cells)),
    }
}

fn deflated(cells: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(cells).and_then(|()| encoder.finish()).expect("memory takes all of it")
}

/// Two repetitions of both variants on a 64 MiB machine.
pub fn small() -> Vec<RunResult> {
    (0..4).map(|i| run(i % 2, i as u32 / 2, &[("node 0 DMA32", 32)], 12)).collect()
}

/// Both variants on a 1 TiB machine of two nodes.
pub fn large() -> Vec<RunResult> {
    let zones = [("node 0 DMA", 8), ("node 0 DMA32", 1528), ("node 0 Normal", 260_608), ("node 1 Normal", 262_144)];
    (0..2).map(|i| run(i, 0, &zones, 25)).collect()
}

/// An experiment of 15 rounds on one machine: one variant ages as published, the other does not.
/// Has a row of three steps, and rows that are scored separately.
pub fn ageing() -> ExperimentResult {
    let series = |variant, published: [f64; 6], measured: [f64; 6]| {
        let measured = measured.map(Some).to_vec();
        Ageing::new(("THP fault alloc".into(), "events".into()), variant, published.to_vec(), measured)
    };
    let caveat = |kind, reason: &str| Some(Caveat { kind, reason: reason.into() });
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    let rows = vec![
        row("Success", "%", true, &[27.5, 25.3, 45.5], &some(&[20.0, 20.0, 20.0])),
        row("Direct pages scanned", "events", true, &[21_892_772.0, 30.0, 0.0], &some(&[9_000.0, 8.0, 0.0])),
        row("Swap Outs", "events", false, &[0.0, 0.0, 0.0], &some(&[0.0, 0.0, 7.0])),
        Row {
            caveat: caveat(CaveatKind::FewSamples, "a single maximum"),
            ..row("Max", "ms", true, &[4.0, 2.0, 2.0], &some(&[1.0, 2.0, 2.0]))
        },
        Row {
            caveat: caveat(CaveatKind::Artefact, "the process is not waited for"),
            ..row("User", "s", true, &[67.5, 0.99, 0.99], &some(&[60.0, 59.0, 59.0]))
        },
    ];
    ExperimentResult {
        case: "box-2g".into(),
        rounds: 6,
        sweeps: vec![],
        variants: vec!["vanilla".into(), "async".into(), "async, wmarks".into()],
        score: Score::of(&rows, &[]),
        rows,
        ageing: [
            series(0, [61.0, 56.0, 57.0, 50.0, 34.0, 33.0], [60.0, 50.0, 50.0, 40.0, 30.0, 32.0]),
            series(2, [52.0, 60.0, 55.0, 54.0, 55.0, 56.0], [60.0, 50.0, 30.0, 20.0, 10.0, 10.0]),
        ]
        .into_iter()
        .flatten()
        .collect(),
        target: "t".into(),
        ..table()
    }
}
