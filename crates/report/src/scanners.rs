//! Compaction in a trace: the runs, and a picture of both scanners over time.
//!
//! A trace may come from Kontig or from a real host, in the format of any kernel since 3.14. A run
//! lasts from `mm_compaction_begin` to the next `mm_compaction_end` of the same task.

use kontig_procfs::{BadText, Lost, TraceLine, lost_events};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The ends of runs since 4.0, as kernels print them; `partial` until 4.7.
const STATUSES: [&str; 10] = [
    "deferred",
    "skipped",
    "continue",
    "partial",
    "success",
    "partial_skipped",
    "complete",
    "no_suitable_page",
    "not_suitable_zone",
    "contended",
];

/// A run of compaction over one zone.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The name of the task that compacts.
    pub comm: String,
    /// First and last frame number of the zone.
    pub zone: (u64, u64),
    pub begin_us: u64,
    pub end_us: u64,
    /// `sync` or `async`; kernels before 4.0 do not say.
    pub mode: Option<String>,
    /// The kernel's word or number for the end.
    pub status: String,
    /// Positions of the migration scanner and the free scanner as time passes, from the run's
    /// begin, µs.
    pub positions: Vec<(u64, [u64; 2])>,
    /// Pages that the migration scanner and the free scanner looked at, if the trace has their
    /// events.
    pub scanned: [u64; 2],
    /// Pages that the migration scanner took.
    pub taken: u64,
}

impl Run {
    /// Whether it ended without scanning a page or moving a scanner.
    pub fn did_nothing(&self) -> bool {
        self.scanned == [0, 0] && self.stands()
    }

    /// Whether no scanner is known to have moved.
    fn stands(&self) -> bool {
        self.positions.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Whether it took pages, looked at none to move them to, and still did not end as complete:
    /// its scanners have met and it has not noticed. Kernels before 3.14 do not reset the scanners
    /// then, so the runs after it begin where it did.
    pub fn missed_meeting(&self) -> bool {
        self.taken > 0 && self.scanned[1] == 0 && matches!(self.status.as_str(), "2" | "partial")
    }

    /// Whether it left a block of the order wanted. `None` if the status is a number, where 2 is a
    /// run with a block and one that gave up, or no word of a kernel's.
    pub fn succeeded(&self) -> Option<bool> {
        STATUSES.contains(&self.status.as_str()).then_some(matches!(self.status.as_str(), "success" | "partial"))
    }

    /// Fields with a value that no kernel prints, or without one.
    pub fn unknown(&self) -> Vec<(&'static str, &str)> {
        let is_number = !self.status.is_empty() && self.status.bytes().all(|b| b.is_ascii_digit());
        let mut unknown = Vec::new();
        if !is_number && !STATUSES.contains(&self.status.as_str()) {
            unknown.push(("status", self.status.as_str()));
        }
        unknown
            .extend(self.mode.as_deref().filter(|mode| !["sync", "async"].contains(mode)).map(|mode| ("mode", mode)));
        unknown
    }
}

/// The runs of a trace that is read line by line.
#[derive(Default)]
pub struct Reader {
    file: String,
    line: usize,
    open: BTreeMap<u32, Run>,
    /// The time of each task's last event, µs.
    last_us: BTreeMap<u32, u64>,
    /// Those that have ended, by their ends.
    pub ended: Vec<Run>,
    /// The number of runs whose begin or end the trace lacks though it goes on after them.
    pub cut: usize,
    /// Events that the tracer says it has lost; at least one where it does not know how many.
    pub lost_events: u64,
}

impl Reader {
    /// Reads a trace of this name, for messages.
    pub fn new(file: &str) -> Reader {
        Reader { file: file.into(), ..Reader::default() }
    }

    /// The number of runs that have not ended.
    pub fn unended(&self) -> usize {
        self.open.len()
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// If it belongs to no trace.
    pub fn read(&mut self, line: &str) -> Result<(), BadText> {
        self.line += 1;
        self.lost_events += match lost_events(line) {
            Some(Lost::Events(events)) => events,
            Some(Lost::Unsaid) => 1,
            None => 0,
        };
        let Some(line) = TraceLine::parse(&self.file, self.line, line)? else { return Ok(()) };
        let before = self.last_us.insert(line.pid, line.at_us).filter(|before| *before > line.at_us);
        if before.is_some() {
            return Err(BadText {
                file: self.file.clone(),
                line: self.line,
                reason: format!("is earlier than the line before of task {}: sort the trace by time", line.pid),
            });
        }
        match line.event {
            "mm_compaction_begin" => {
                let run = begun(&line).ok_or_else(|| BadText {
                    file: self.file.clone(),
                    line: self.line,
                    reason: "mm_compaction_begin lacks a position".into(),
                })?;
                self.cut += usize::from(self.open.insert(line.pid, run).is_some());
            }
            "mm_compaction_isolate_migratepages" | "mm_compaction_isolate_freepages" => {
                if let Some(run) = self.open.get_mut(&line.pid) {
                    run.scan(&line);
                }
            }
            "mm_compaction_end" => match self.open.remove(&line.pid) {
                // The end of another run, whose begin is lost as this run's end is.
                Some(run) if run.is_of_another_zone_than(&line) => self.cut += 2,
                Some(mut run) => {
                    run.end(&line);
                    self.ended.push(run);
                }
                None => self.cut += 1,
            },
            _ => {}
        }
        Ok(())
    }
}

/// The run that a line begins.
fn begun(line: &TraceLine<'_>) -> Option<Run> {
    let either = |names: [&str; 2]| names.iter().find_map(|name| line.number(name));
    let position = [either(["migrate_pfn", "migrate_start"])?, either(["free_pfn", "free_start"])?];
    Some(Run {
        comm: line.comm.into(),
        zone: (line.number("zone_start")?, line.number("zone_end")?),
        begin_us: line.at_us,
        end_us: line.at_us,
        mode: line.field("mode").map(Into::into),
        status: String::new(),
        positions: vec![(0, position)],
        scanned: [0, 0],
        taken: 0,
    })
}

impl Run {
    fn last(&self) -> [u64; 2] {
        self.positions.last().map_or([0, 0], |(_, last)| *last)
    }

    /// Whether a line names another zone; since 4.0 ends name theirs.
    fn is_of_another_zone_than(&self, line: &TraceLine<'_>) -> bool {
        line.number("zone_start").is_some_and(|start| start != self.zone.0)
    }

    fn scan(&mut self, line: &TraceLine<'_>) {
        let migrates = line.event.ends_with("_migratepages");
        self.scanned[usize::from(!migrates)] += line.number("nr_scanned").unwrap_or(0);
        if migrates {
            self.taken += line.number("nr_taken").unwrap_or(0);
        }
        let Some((from, to)) = range(line.text) else { return };
        let [migrate, free] = self.last();
        let position = if migrates { [to, free] } else { [migrate, from] };
        self.positions.push((line.at_us.saturating_sub(self.begin_us), position));
    }

    fn end(&mut self, line: &TraceLine<'_>) {
        self.end_us = line.at_us.max(self.begin_us);
        self.status = line.field("status").unwrap_or_default().into();
        let [migrate, free] = self.last();
        let position = [line.number("migrate_pfn").unwrap_or(migrate), line.number("free_pfn").unwrap_or(free)];
        self.positions.push((self.end_us - self.begin_us, position));
    }
}

/// The frames of `range=(FROM ~ TO)`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (from, rest) = text.strip_prefix("range=(")?.split_once(" ~ ")?;
    let (to, _) = rest.split_once(')')?;
    let hex = |n: &str| u64::from_str_radix(n.strip_prefix("0x")?, 16).ok();
    Some((hex(from)?, hex(to)?))
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 74.0;
const TOP: f64 = 58.0;
const PANEL: f64 = 190.0;
const GAP: f64 = 48.0;
/// Zones drawn, a panel each; a reader cannot compare more.
const MOST_ZONES: usize = 4;

/// A picture of both scanners over time, a panel for each of the zones that were compacted longest.
/// Lines are the scanners' ways within a run, dots their positions where the trace has no more, red
/// dots those of a run that missed the meeting; ticks below mark runs that did nothing.
pub fn picture(runs: &[Run]) -> String {
    let mut zones: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for run in runs {
        *zones.entry(run.zone).or_default() += 1 + run.end_us - run.begin_us;
    }
    let mut longest: Vec<((u64, u64), u64)> = zones.into_iter().collect();
    longest.sort_by_key(|(zone, us)| (std::cmp::Reverse(*us), *zone));
    longest.truncate(MOST_ZONES);
    let mut zones: Vec<(u64, u64)> = longest.into_iter().map(|(zone, _)| zone).collect();
    zones.sort_unstable();
    let begin = runs.iter().map(|run| run.begin_us).min().unwrap_or(0);
    let length = (runs.iter().map(|run| run.end_us).max().unwrap_or(0) - begin).max(1) as f64;
    let height = TOP + zones.len() as f64 * (PANEL + GAP) + 6.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Compaction's scanners over time\"><style>\
         text{{font:12px system-ui,sans-serif;fill:#1c2126}}.t{{font-size:15px;font-weight:600}}\
         .c{{fill:#5b6269}}\
         .bg{{fill:#fbfaf7}}.f{{fill:none;stroke:#d5d8da}}path{{fill:none;stroke-width:1;stroke-opacity:.6}}\
         .md,.rd,.s{{stroke-linecap:round;stroke-width:4;stroke-opacity:1}}.md{{stroke:#1f77b4}}\
         .rd{{stroke:#c9820d}}.s{{stroke:#b3261e}}\
         .m{{stroke:#1f77b4}}\
         .r{{stroke:#c9820d}}.n{{stroke:#b3261e;stroke-opacity:1}}.km{{fill:#1f77b4}}\
         .kr{{fill:#c9820d}}.kn{{fill:#b3261e}}\
         @media(prefers-color-scheme:dark){{.bg{{fill:#15181c}}text{{fill:#e7e5df}}.c{{fill:#a3a8ad}}\
         .f{{stroke:#3a4046}}\
         .m{{stroke:#4aa3df}}.r{{stroke:#dfa72f}}.n{{stroke:#ff8a80}}.km{{fill:#4aa3df}}.kr{{fill:#dfa72f}}\
         .kn{{fill:#ff8a80}}.md{{stroke:#4aa3df}}.rd{{stroke:#dfa72f}}.s{{stroke:#ff8a80}}}}</style>\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\" rx=\"10\"/>\
         <text class=\"t\" x=\"20\" y=\"26\">Compaction's scanners over time</text>"
    );
    let tick = |x: f64| format!("<path class=\"n\" d=\"M{} 36v8\"/>", x + 8.0);
    let dot = |x: f64| format!("<path class=\"s\" d=\"M{} 40h0\"/>", x + 8.0);
    let bar = |x: f64, class| format!("<rect class=\"{class}\" x=\"{x}\" y=\"36\" width=\"14\" height=\"8\"/>");
    let keys = [
        (20.0, bar(20.0, "km"), "migration scanner"),
        (160.0, bar(160.0, "kr"), "free scanner"),
        (270.0, tick(270.0), "run that did nothing"),
        (425.0, dot(425.0), "run whose scanners met unnoticed"),
    ];
    for (x, key, what) in keys {
        let _ = write!(out, "{key}<text class=\"c\" x=\"{}\" y=\"44\">{what}</text>", x + 20.0);
    }
    let width = WIDTH - LEFT - 20.0;
    for (i, zone) in zones.iter().enumerate() {
        let top = TOP + i as f64 * (PANEL + GAP);
        let _ = write!(
            out,
            "<rect class=\"f\" x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{PANEL}\"/>\
             <text class=\"c\" x=\"{LEFT}\" y=\"{y}\">{:.3} s</text>\
             <text class=\"c\" x=\"{}\" y=\"{y}\" text-anchor=\"middle\">zone with frames {:#x}–{:#x}</text>\
             <text class=\"c\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{:.3} s</text>",
            begin as f64 / 1e6,
            LEFT + width / 2.0,
            zone.0,
            zone.1,
            LEFT + width,
            begin as f64 / 1e6 + length / 1e6,
            y = top + PANEL + 24.0
        );
        panel(&mut out, top, *zone, runs, &|at_us| LEFT + (at_us - begin) as f64 / length * width);
    }
    out + "</svg>\n"
}

fn panel(out: &mut String, top: f64, zone: (u64, u64), runs: &[Run], x_of: &dyn Fn(u64) -> f64) {
    let (start, end) = zone;
    let y_of = |pfn: u64| top + PANEL - pfn.saturating_sub(start) as f64 / (end - start).max(1) as f64 * PANEL;
    let mut paths = [String::new(), String::new()];
    let mut dots = [String::new(), String::new()];
    let (mut nothing, mut unnoticed) = (String::new(), String::new());
    // What is drawn already: a picture has no more pixels, however many runs there are.
    let mut drawn = BTreeSet::new();
    for run in runs.iter().filter(|run| run.zone == zone) {
        if run.did_nothing() {
            let x = x_of(run.begin_us);
            if drawn.insert((2, x as i64, 0, 0)) {
                let _ = write!(nothing, "M{x:.1} {:.1}v8", top + PANEL + 2.0);
            }
            continue;
        }
        for (i, path) in paths.iter_mut().enumerate() {
            if run.missed_meeting() || run.stands() {
                let (x, y) = (x_of(run.begin_us), y_of(run.positions[0].1[i]));
                let dot = if run.missed_meeting() { &mut unnoticed } else { &mut dots[i] };
                if drawn.insert((3 + i, x as i64, y as i64, 0)) {
                    let _ = write!(dot, "M{x:.1} {y:.1}h0");
                }
            }
            for pair in run.positions.windows(2) {
                let [(from_us, from), (to_us, to)] = [pair[0], pair[1]];
                let (x1, y1) = (x_of(run.begin_us + from_us), y_of(from[i]));
                let (x2, y2) = (x_of(run.begin_us + to_us), y_of(to[i]));
                if drawn.insert((i, (2.0 * x1) as i64, y1 as i64, y2 as i64)) {
                    let _ = write!(path, "M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
                }
            }
        }
    }
    let at = |pfn: u64| match pfn as f64 / 256.0 {
        mib if end < 1 << 18 => format!("{mib:.0} MiB"),
        mib => format!("{:.1} GiB", mib / 1024.0),
    };
    let _ = write!(
        out,
        "<path class=\"m\" d=\"{}\"/><path class=\"r\" d=\"{}\"/><path class=\"n\" d=\"{nothing}\"/>\
         <path class=\"md\" d=\"{}\"/><path class=\"rd\" d=\"{}\"/><path class=\"s\" d=\"{unnoticed}\"/>\
         <text class=\"c\" x=\"{x}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <text class=\"c\" x=\"{x}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        paths[0],
        paths[1],
        dots[0],
        dots[1],
        top + 10.0,
        at(end),
        top + PANEL,
        at(start),
        x = LEFT - 6.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(file: &str, text: &str) -> Result<(Vec<Run>, usize), BadText> {
        let mut reader = Reader::new(file);
        text.lines().try_for_each(|line| reader.read(line))?;
        let unended = reader.unended();
        Ok((reader.ended, unended))
    }

    const TRACE: &str = "# tracer: nop
     cc1-7 [000] .... 1.000000: mm_compaction_begin: zone_start=0x1000 migrate_pfn=0x1000 free_pfn=0x3000 \
zone_end=0x4000, mode=sync
     cc1-7 [000] .... 1.000010: mm_compaction_isolate_migratepages: range=(0x1000 ~ 0x1200) nr_scanned=512 nr_taken=32
     kcompactd0-3 [001] .... 1.000011: mm_compaction_begin: zone_start=0x1000 migrate_pfn=0x2000 free_pfn=0x2000 \
zone_end=0x4000, mode=async
     kcompactd0-3 [001] .... 1.000012: mm_compaction_end: zone_start=0x1000 migrate_pfn=0x2000 free_pfn=0x2000 \
zone_end=0x4000, mode=async status=partial_skipped
     cc1-7 [000] .... 1.000030: mm_compaction_end: zone_start=0x1000 migrate_pfn=0x1200 free_pfn=0x2e00 \
zone_end=0x4000, mode=sync status=success
     cc1-7 [000] .... 2.000000: mm_compaction_begin: zone_start=0x1000 migrate_pfn=0x1000 free_pfn=0x3000 \
zone_end=0x4000, mode=sync
";

    #[test]
    fn runs_are_paired_by_task() {
        let (runs, open) = runs("trace", TRACE).expect("a trace");
        assert_eq!((runs.len(), open), (2, 1));
        assert_eq!(
            (runs[0].comm.as_str(), runs[0].did_nothing(), runs[0].succeeded()),
            ("kcompactd0", true, Some(false))
        );
        assert_eq!((runs[1].begin_us, runs[1].end_us, runs[1].scanned), (1_000_000, 1_000_030, [512, 0]));
        assert_eq!(runs[1].positions, [(0, [0x1000, 0x3000]), (10, [0x1200, 0x3000]), (30, [0x1200, 0x2e00])]);
        assert!(runs[1].succeeded() == Some(true) && !runs[1].did_nothing() && !runs[1].missed_meeting());
    }

    #[test]
    fn runs_without_their_begin_or_end_are_counted_and_so_are_lost_events() {
        let begin = TRACE.lines().nth(1).expect("a begin");
        let end = TRACE.lines().nth(5).expect("an end");
        let text = format!("{end}\n{}\nCPU:1 [LOST 5 EVENTS]\n", begin.replace("1.000000", "2.000000"));
        let mut reader = Reader::new("trace");
        text.lines().try_for_each(|line| reader.read(line)).expect("a trace");
        assert_eq!((reader.cut, reader.unended(), reader.lost_events), (1, 1, 5), "its begin is lost");
        reader.read(&begin.replace("1.000000", "3.000000")).expect("the next begins");
        assert_eq!((reader.cut, reader.unended()), (2, 1), "the end of the one before is lost");
        let elsewhere = end.replace("1.000030", "4.000000").replace("zone_start=0x1000", "zone_start=0x0");
        reader.read(&elsewhere).expect("the end of another run");
        assert_eq!((reader.cut, reader.unended(), reader.ended.len()), (4, 0, 0));
    }

    #[test]
    fn a_trace_out_of_order_is_refused() {
        let mut lines: Vec<&str> = TRACE.lines().skip(1).collect();
        lines.swap(0, 1);
        let refused = runs("trace", &lines.join("\n")).expect_err("shuffled");
        assert_eq!(
            (refused.line, refused.reason.as_str()),
            (2, "is earlier than the line before of task 7: sort the trace by time")
        );
    }

    #[test]
    fn the_format_of_3_14_has_positions_at_the_begin_alone() {
        let old = "a-1 [000] .... 1.000000: mm_compaction_begin: zone_start=4096 migrate_start=4096 free_start=8192 \
                   zone_end=16384\na-1 [000] .... 1.000002: mm_compaction_end: status=2\n";
        let (runs, _) = runs("trace", old).expect("a trace");
        assert_eq!((runs[0].zone, runs[0].status.as_str(), runs[0].did_nothing()), ((4096, 16384), "2", true));
        assert_eq!(runs[0].succeeded(), None, "status 2 is a run that gave up, too");
    }

    #[test]
    fn a_value_that_no_kernel_prints_is_told_from_those_that_one_does() {
        let of = |from: &str, to: &str| runs("trace", &TRACE.replace(from, to)).expect("a trace").0.remove(1);
        assert_eq!((of("", "").succeeded(), of("", "").unknown()), (Some(true), vec![]));
        let worse = of("status=success", "status=succes");
        assert_eq!((worse.succeeded(), worse.unknown()), (None, vec![("status", "succes")]));
        let without = of(" status=success", "");
        assert_eq!((without.succeeded(), without.unknown()), (None, vec![("status", "")]));
        assert_eq!(of("mode=sync", "mode=lazy").unknown(), [("mode", "lazy")]);
        assert_eq!(of("status=success", "status=2").unknown(), [], "a kernel before 4.0");
    }

    #[test]
    fn the_calls_that_perf_prints_below_an_event_are_passed_over() {
        let stack = "\n\tffffffff8129e5c1 compact_zone+0x121 ([kernel.kallsyms])\n\t    7f2a5c5a1b10 \
                     __libc_start_call_main+0x80 (/usr/lib/x86_64-linux-gnu/libc.so.6)\n";
        let perf: String = (TRACE.lines().skip(1))
            .map(|line| {
                line.replace("-", "  ").replace(" ....", "").replace("mm_", "compaction:mm_") + "\n" + stack + "\n"
            })
            .collect();
        assert_eq!(runs("trace", &perf), runs("trace", TRACE));
    }

    #[test]
    fn a_run_that_took_pages_and_looked_for_no_room_has_missed_the_meeting_unless_it_is_complete() {
        let run = |free: &str, status: &str| {
            let text = format!(
                "a-1 [000] .... 1.000000: mm_compaction_begin: zone_start=4096 migrate_start=5000 free_start=8192 \
                 zone_end=16384\n\
                 a-1 [000] .... 1.000001: mm_compaction_isolate_migratepages: nr_scanned=200 nr_taken=32\n{free}\
                 a-1 [000] .... 1.000002: mm_compaction_end: status={status}\n"
            );
            runs("trace", &text).expect("a trace").0.remove(0)
        };
        let missed = run("", "2");
        assert_eq!((missed.missed_meeting(), missed.did_nothing()), (true, false));
        assert!(!run("", "3").missed_meeting(), "complete");
        let free = "a-1 [000] .... 1.000001: mm_compaction_isolate_freepages: nr_scanned=1 nr_taken=0\n";
        assert!(!run(free, "2").missed_meeting());
        let svg = picture(&[missed, run(free, "2")]);
        assert_eq!(svg.matches("h0").count(), 3, "its two positions, and the key; the other run lies below them");
    }

    #[test]
    fn a_begin_without_positions_is_refused_with_its_line() {
        let refused = runs("trace", "\na-1 [000] 1.0: mm_compaction_begin: zone_start=1").expect_err("no positions");
        assert_eq!(refused.to_string(), "trace: line 2: mm_compaction_begin lacks a position");
    }

    #[test]
    fn a_picture_has_a_panel_for_each_zone_and_a_tick_for_a_run_that_did_nothing() {
        let (runs, _) = runs("trace", TRACE).expect("a trace");
        let svg = picture(&runs);
        assert_eq!(svg.matches("class=\"f\"").count(), 1);
        assert!(svg.contains("class=\"n\" d=\"M"));
        assert!(picture(&[]).ends_with("</svg>\n"), "without runs it is empty");
    }
}
