//! `--trace FILE`: the tracepoints of a measurement as ftrace prints them, for `less`, for scripts
//! that read `trace_pipe`, and for Perfetto.
//!
//! Perfetto draws none of memory management's tracepoints. It draws marks that programs write into
//! the trace. So next to an event that begins or ends work stands a mark with the same task and
//! time: a slice for a compaction run, for direct reclaim, and for the time a daemon is awake;
//! counters for the positions of the two scanners. Lines have four flag letters, as kernels before
//! 5.16 print them, because Perfetto matches no line with five.
//!
//! A file named `*.dat` is written in trace-cmd's format instead, without marks.

mod dat;
mod format;

use kontig_error::Error;
use kontig_error::files::Pieces;
use kontig_mm::event::MigrateMode;
use kontig_mm::{Event, Memory, Order, Pfn};
use kontig_sim::Traced;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use dat::TraceDat;
use format::Format;

/// Text is written in pieces of this size, bytes.
const PIECE: usize = 1 << 20;

/// A line of the trace, without its event: task, CPU, flags, time.
pub(crate) struct Prefix<'a> {
    pub(crate) traced: &'a Traced,
    /// Seconds to add to the time.
    pub(crate) epoch: u64,
}

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traced { at_ns, cpu, by, .. } = self.traced;
        let (s, us) = (self.epoch + at_ns / 1_000_000_000, at_ns / 1000 % 1_000_000);
        write!(f, "{:>16}-{:<7} [{:03}] .... {s:>5}.{us:06}: ", by.comm, by.pid, cpu.index())
    }
}

/// A zone by its frames, to name it in marks.
#[derive(Clone)]
struct Zone {
    end: Pfn,
    name: String,
}

/// The open work of a task.
#[derive(Clone, Default)]
struct Work {
    /// The order of the request that compacts.
    order: Option<Order>,
    /// The number of its compaction and reclaim slices that have begun and not ended.
    open: u32,
    /// A daemon's slice of being awake has begun and not ended.
    awake: bool,
}

/// A trace that is being written.
#[derive(Clone)]
pub(crate) struct Ftrace {
    file: Arc<Pieces>,
    format: Format,
    text: String,
    /// In place of text, in a file for trace-cmd.
    dat: Option<TraceDat>,
    zones: Vec<Zone>,
    tasks: BTreeMap<u32, Work>,
    /// The first error of a write. Nothing is written after it.
    failed: Option<Error>,
}

impl Ftrace {
    /// Begins the file with its head.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(path: &Path, memory: &Memory) -> Result<Ftrace, Error> {
        let zone = |z: &kontig_mm::state::Zone| {
            let name = format!("node {} {}", z.node.index(), z.kind.name());
            Zone { end: z.end, name }
        };
        let mut zones: Vec<Zone> = memory.zones().iter().map(zone).collect();
        zones.sort_by_key(|zone| zone.end);
        let dat = path.extension().is_some_and(|extension| extension == "dat");
        let head = "# tracer: nop\n#\n\
                    #           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION\n\
                    #              | |         |   ||||      |         |\n";
        Ok(Ftrace {
            file: Arc::new(Pieces::create(path)?),
            format: Format::of(memory.profile()),
            text: if dat { String::new() } else { head.into() },
            dat: dat.then(|| TraceDat::new(memory.nr_cpus())),
            zones,
            tasks: BTreeMap::new(),
            failed: None,
        })
    }

    /// Writes events with their marks.
    pub(crate) fn note(&mut self, events: &[Traced]) {
        if let Some(dat) = &mut self.dat {
            for traced in events {
                if let Some(text) = self.format.text(&traced.event) {
                    dat.add(traced, &text);
                }
            }
            return;
        }
        for traced in events {
            // A slice includes the events that begin and end it.
            let ends = matches!(
                traced.event,
                Event::CompactionEnd { .. }
                    | Event::DirectReclaimEnd { .. }
                    | Event::NodeReclaimEnd { .. }
                    | Event::KswapdSleep { .. }
                    | Event::KcompactdSleep { .. }
            );
            if ends {
                self.marks(traced);
                self.event(traced);
            } else {
                self.event(traced);
                self.marks(traced);
            }
            if self.text.len() >= PIECE {
                self.flush();
            }
        }
    }

    fn event(&mut self, traced: &Traced) {
        if let Some(text) = self.format.text(&traced.event) {
            self.line(traced, format_args!("{}: {text}", traced.event.name()));
        }
    }

    fn line(&mut self, traced: &Traced, text: fmt::Arguments<'_>) {
        // Writing into memory cannot fail.
        let _ = writeln!(self.text, "{}{text}", Prefix { traced, epoch: 0 });
    }

    fn begin(&mut self, traced: &Traced, name: fmt::Arguments<'_>) {
        self.work(traced).open += 1;
        self.line(traced, format_args!("tracing_mark_write: B|{}|{name}", traced.by.tgid));
    }

    /// Ends the task's last slice, unless that began before the trace.
    fn end(&mut self, traced: &Traced) {
        let work = self.work(traced);
        if work.open > 0 {
            work.open -= 1;
            self.line(traced, format_args!("tracing_mark_write: E|{}", traced.by.tgid));
        }
    }

    /// A daemon wakes up. kswapd also does so for each further order, without sleeping between.
    fn wake(&mut self, traced: &Traced, order: Option<Order>) {
        self.sleep(traced);
        let tgid = traced.by.tgid;
        *self.work(traced) = Work { order, awake: true, open: 0 };
        match order {
            Some(order) => self.line(traced, format_args!("tracing_mark_write: B|{tgid}|awake, order {}", order.get())),
            None => self.line(traced, format_args!("tracing_mark_write: B|{tgid}|awake")),
        }
    }

    fn sleep(&mut self, traced: &Traced) {
        if std::mem::take(self.work(traced)).awake {
            self.line(traced, format_args!("tracing_mark_write: E|{}", traced.by.tgid));
        }
    }

    fn work(&mut self, traced: &Traced) -> &mut Work {
        self.tasks.entry(traced.by.pid).or_default()
    }

    fn counter(&mut self, traced: &Traced, name: &str, pfn: Pfn, zone: &str) {
        let (tgid, pfn) = (traced.by.tgid, pfn.get());
        self.line(traced, format_args!("tracing_mark_write: C|{tgid}|{name} {zone}|{pfn}"));
    }

    fn marks(&mut self, traced: &Traced) {
        match traced.event {
            Event::CompactionBegin { zone_start, migrate_pfn, free_pfn, mode, .. } => {
                let zone = self.zone(zone_start);
                let effort = match mode {
                    MigrateMode::Async => "async",
                    MigrateMode::SyncLight | MigrateMode::Sync => "sync",
                };
                match self.work(traced).order {
                    Some(order) => {
                        self.begin(traced, format_args!("compact {zone}, {effort}, order {}", order.get()));
                    }
                    None => self.begin(traced, format_args!("compact {zone}, {effort}")),
                }
                self.counter(traced, "migrate_pfn", migrate_pfn, &zone);
                self.counter(traced, "free_pfn", free_pfn, &zone);
            }
            Event::CompactionEnd { zone_start, migrate_pfn, free_pfn, .. } => {
                let zone = self.zone(zone_start);
                self.counter(traced, "migrate_pfn", migrate_pfn, &zone);
                self.counter(traced, "free_pfn", free_pfn, &zone);
                self.end(traced);
            }
            Event::IsolateMigratepages { start_pfn, end_pfn, .. } => {
                let zone = self.zone(start_pfn);
                self.counter(traced, "migrate_pfn", end_pfn, &zone);
            }
            Event::IsolateFreepages { start_pfn, .. } => {
                let zone = self.zone(start_pfn);
                self.counter(traced, "free_pfn", start_pfn, &zone);
            }
            Event::TryToCompactPages { order, .. } => self.work(traced).order = Some(order),
            Event::DirectReclaimBegin { order, .. } => {
                self.begin(traced, format_args!("direct reclaim, order {}", order.get()));
            }
            Event::NodeReclaimBegin { nid, order, .. } => {
                let (node, order) = (nid.index(), order.get());
                self.begin(traced, format_args!("reclaim on node {node}, order {order}"));
            }
            Event::DirectReclaimEnd { .. } | Event::NodeReclaimEnd { .. } => self.end(traced),
            Event::KswapdWake { order, .. } => self.wake(traced, Some(order)),
            Event::KcompactdWake { order, .. } => self.wake(traced, order),
            Event::KswapdSleep { .. } | Event::KcompactdSleep { .. } => self.sleep(traced),
            _ => {}
        }
    }

    /// The name of the zone with this frame.
    fn zone(&self, pfn: Pfn) -> String {
        let at = self.zones.partition_point(|zone| zone.end <= pfn);
        self.zones.get(at).map_or_else(String::new, |zone| zone.name.clone())
    }

    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(e) = self.file.write(self.text.as_bytes())
        {
            self.failed = Some(e);
        }
        self.text.clear();
    }

    /// Checks that all writes so far have succeeded.
    ///
    /// # Errors
    /// The first that has not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Writes the rest, and gives the file its name.
    ///
    /// # Errors
    /// As [`Ftrace::check`].
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.flush();
        if let Some(dat) = &self.dat
            && let Err(e) = self.file.write(&dat.bytes())
        {
            self.failed = Some(e);
        }
        self.check()?;
        self.file.finish()
    }
}
