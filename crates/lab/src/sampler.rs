//! Samples a running machine: values over time, pictures of its pageblocks, the trace.
//!
//! A phase's length is not known beforehand. When a series grows too long, every other value of the
//! phase is dropped and the interval doubles, so that any phase ends with a few hundred points.
//! Pictures are taken at even steps of progress, because each costs a walk over all frames, and
//! only in runs whose pictures will be looked at. Nothing else in a result depends on them.

use crate::event_log::EventLog;
use crate::fragmenting::Fragmenting;
use crate::ftrace::Ftrace;
use crate::history::History;
use crate::mmtests::Monitors;
use crate::observe::{cells, gib, machine_score, node_runs};
use base64::Engine;
use kontig_error::Error;
use kontig_mm::Daemon;
use kontig_mm::Event;
use kontig_mm::VmEvent;
use kontig_mm::rules::ProactiveScore;
use kontig_results::{Figure, MapFrame, MapZone, MemoryMap, Merge, Reading, Series};
use kontig_sim::{Machine, Traced};
use std::io::Write;

/// Virtual time between two samples at the start of a phase; it doubles as the phase gets longer.
const FIRST_INTERVAL_NS: u64 = 10_000_000;
/// A phase's part of a series is halved at this many points.
const MAX_POINTS: usize = 600;
/// Pictures of a measured phase.
const PICTURES: f64 = 20.0;

const SERIES: [(&str, &str); 7] = [
    ("fragmentation score", "0-100, highest node"),
    ("free huge pages", "huge pages"),
    ("free memory", "GiB"),
    ("pages migrated", "pages"),
    ("proactive compaction runs", "runs"),
    ("kcompactd CPU time", "s"),
    ("kswapd CPU time", "s"),
];

/// The samples of a run so far.
#[derive(Clone)]
pub(crate) struct Sampler {
    interval_ns: u64,
    next_ns: u64,
    series: [Vec<(u64, f64)>; SERIES.len()],
    /// The number of values from earlier phases.
    settled: usize,
    /// `None` in a run without pictures.
    map: Option<MemoryMap>,
    next_picture: f64,
    events: EventLog,
    fragmenting: Fragmenting,
    /// In a run that writes a trace.
    trace: Option<Ftrace>,
    /// In a run that writes a history.
    history: Option<History>,
    /// MMTests' monitors, in a run that writes its layout.
    monitors: Option<Monitors>,
    /// The measurement has begun: `score` and `proactive` cover it.
    measuring: bool,
    score: (f64, f64),
    /// For each node, the first and the last proactive run of the measurement. The kcompactds of
    /// different nodes know nothing of each other.
    proactive: Vec<Option<(Seen, Seen)>>,
    /// The kernel has no proactive compaction.
    never_proactive: bool,
    last_runs: Vec<u64>,
}

/// A number of proactive runs, and when the sampler first saw it.
#[derive(Clone, Copy)]
struct Seen {
    at_ns: u64,
    runs: u64,
}

impl Sampler {
    /// `pictures` says whether the run takes pictures.
    pub(crate) fn new(pictures: bool) -> Sampler {
        Sampler {
            interval_ns: FIRST_INTERVAL_NS,
            next_ns: 0,
            series: Default::default(),
            settled: 0,
            map: pictures.then(MemoryMap::default),
            next_picture: 0.0,
            events: EventLog::new(),
            fragmenting: Fragmenting::default(),
            trace: None,
            history: None,
            monitors: None,
            measuring: false,
            score: (f64::MAX, f64::MIN),
            proactive: Vec::new(),
            never_proactive: false,
            last_runs: Vec::new(),
        }
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.measuring
    }

    pub(crate) fn measured_from(&mut self, m: &Machine) {
        self.measuring = true;
        self.never_proactive = m.memory().profile().proactive.score == ProactiveScore::Off;
        self.last_runs = node_runs(m).collect();
        self.proactive = vec![None; self.last_runs.len()];
        self.score = (machine_score(m), machine_score(m));
    }

    /// Begins a phase, with a short interval again, since the phase may be short.
    pub(crate) fn phase_begins(&mut self, m: &Machine, phase: &str, measured: bool) {
        self.picture(m, phase);
        self.next_picture = if measured { 1.0 / PICTURES } else { f64::MAX };
        self.settled = self.series[0].len();
        self.interval_ns = FIRST_INTERVAL_NS;
        self.sample(m);
        self.next_ns = m.now() + self.interval_ns;
    }

    pub(crate) fn last_look(&mut self, m: &mut Machine, phase: &str) {
        self.sample(m);
        self.picture(m, phase);
        self.events(m, u64::MAX);
    }

    pub(crate) fn look(&mut self, m: &mut Machine, phase: &str, progress: f64) {
        let now = m.now();
        self.events(m, now);
        if let Some(monitors) = &mut self.monitors {
            monitors.look(m);
        }
        if m.now() >= self.next_ns {
            self.sample(m);
            self.next_ns = m.now() + self.interval_ns;
        }
        if progress >= self.next_picture && progress < 1.0 {
            self.picture(m, phase);
            self.next_picture = ((progress * PICTURES).floor() + 1.0) / PICTURES;
        }
    }

    /// Turns the monitors on.
    pub(crate) fn monitors(&mut self) -> &mut Monitors {
        self.monitors.get_or_insert_default()
    }

    /// Writes all events from now on to a trace.
    pub(crate) fn trace_to(&mut self, trace: Ftrace) {
        self.trace = Some(trace);
    }

    /// The trace, in a run that writes one.
    pub(crate) fn trace(&mut self) -> Option<&mut Ftrace> {
        self.trace.as_mut()
    }

    /// Records the machine's files from now on.
    pub(crate) fn record_to(&mut self, history: History) {
        self.history = Some(history);
    }

    /// The history, in a run that writes one.
    pub(crate) fn history(&mut self) -> Option<&mut History> {
        self.history.as_mut()
    }

    /// # Errors
    /// If the trace or the history could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.trace.as_ref().map_or(Ok(()), Ftrace::check)?;
        self.history.as_ref().map_or(Ok(()), History::check)
    }

    /// Takes the events up to that time.
    fn events(&mut self, m: &mut Machine, until: u64) {
        let mut events = m.take_events(until);
        if let Some(trace) = &mut self.trace {
            trace.note(&events);
            // A trace has more than a result.
            events.retain(|Traced { event, .. }| !event.is_compaction_detail() && !event.is_of_huge_memory());
        }
        self.fragmenting.note(m.memory(), events.iter().map(|traced| &traced.event));
        if let Some(monitors) = &mut self.monitors {
            monitors.note(&events);
        }
        // They are counted already, and would crowd out all others.
        events.retain(|traced| !matches!(traced.event, Event::PageAllocExtfrag { .. }));
        self.events.add(events.into_iter().map(|traced| (traced.at_ns, traced.event)));
    }

    pub(crate) fn fragmenting(&self) -> &Fragmenting {
        &self.fragmenting
    }

    fn sample(&mut self, m: &Machine) {
        let mem = m.memory();
        let score = machine_score(m);
        let huge: u64 = mem.zones().iter().map(|z| z.contig_info(kontig_mm::types::PAGEBLOCK_ORDER).suitable).sum();
        let values = [
            score,
            huge as f64,
            gib(mem.nr_free_pages()),
            mem.vmstat().get(VmEvent::PgmigrateSuccess) as f64,
            node_runs(m).sum::<u64>() as f64,
            m.daemon_ns(Daemon::Kcompactd) as f64 / 1e9,
            m.daemon_ns(Daemon::Kswapd) as f64 / 1e9,
        ];
        for (s, v) in self.series.iter_mut().zip(values) {
            // Two samples at one moment are the same.
            if s.last().is_none_or(|last| last.0 < m.now()) {
                s.push((m.now(), v));
            }
        }
        if self.measuring {
            self.score = (self.score.0.min(score), self.score.1.max(score));
            for ((runs, last), seen_of) in node_runs(m).zip(&mut self.last_runs).zip(&mut self.proactive) {
                if runs > *last {
                    let seen = Seen { at_ns: m.now(), runs };
                    *seen_of = Some((seen_of.map_or(seen, |(first, _)| first), seen));
                    *last = runs;
                }
            }
        }
        let settled = self.settled;
        if self.series[0].len() - settled >= MAX_POINTS {
            for s in &mut self.series {
                let mut i = 0;
                s.retain(|_| {
                    i += 1;
                    i <= settled || (i - settled) % 2 == 1
                });
            }
            self.interval_ns *= 2;
        }
    }

    /// Takes a picture of all pageblocks, if the run takes pictures.
    fn picture(&mut self, m: &Machine, phase: &str) {
        let Some(map) = &mut self.map else { return };
        let mem = m.memory();
        if map.zones.is_empty() {
            map.zones = mem
                .zones()
                .iter()
                .map(|z| MapZone {
                    name: format!("node {} {}", z.node.index(), z.kind.name()),
                    blocks: (z.spanned() / 512) as u32,
                })
                .collect();
        }
        let cells = cells(mem);
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        // Writing into memory cannot fail.
        let packed = deflate.write_all(&cells).and_then(|()| deflate.finish()).unwrap_or_default();
        map.frames.push(MapFrame {
            at_ns: m.now(),
            phase: phase.into(),
            free_pages: mem.nr_free_pages(),
            score: machine_score(m),
            cells: base64::engine::general_purpose::STANDARD.encode(packed),
        });
    }

    /// Figures from the samples: the score's extremes, and the time between proactive runs.
    pub(crate) fn figures(&self) -> Vec<Reading> {
        let score = |name: &'static str, merge, value: f64| {
            Figure::new(name, "0-100, highest node").lower().merged(merge).read(value)
        };
        let (ns, gaps) =
            self.proactive.iter().flatten().fold((0, 0), |(ns, gaps), (first, last)| {
                (ns + last.at_ns - first.at_ns, gaps + last.runs - first.runs)
            });
        let between = (gaps > 0).then(|| ns as f64 / 1e9 / gaps as f64);
        let between = Figure::new("time between proactive runs", "s")
            .read_or(between, "fewer than two proactive runs of a node began in the measured phase");
        let scores = [
            score("lowest fragmentation score", Merge::Min, self.score.0),
            score("highest fragmentation score", Merge::Max, self.score.1),
        ];
        scores.into_iter().chain((!self.never_proactive).then_some(between)).collect()
    }

    pub(crate) fn finish(self) -> (Vec<Series>, MemoryMap, EventLog) {
        let series = SERIES.iter().zip(self.series).map(|((name, unit), points)| Series {
            name: (*name).into(),
            unit: (*unit).into(),
            points,
        });
        (series.collect(), self.map.unwrap_or_default(), self.events)
    }
}
