//! `kontig trace`: what compaction did in a trace, of a run or of a real host.

use clap::Args;
use kontig_error::files::{check_not_read, check_writable, write_file};
use kontig_error::{AskedWrongly, Error};
use kontig_report::scanners::{self, Reader, Run};
use kontig_terminal::Grid;
use kontig_terminal::print;
use kontig_terminal::{columns, width, wrap};
use kontig_text::{grouped, percent};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// Examples, below the options.
pub const HELP: &str = "Examples:\n  \
    kontig run hugealloc --machine guest-2g --trace t.txt && kontig trace t.txt --svg scanners.svg\n  \
    kontig trace /sys/kernel/tracing/trace            of this host, with compaction's events on\n\n\
    A run that did nothing began with its scanners met, or the zone not worth compacting. One that\n\
    missed the meeting took pages, looked for no room, and yet ended as partial, not complete: the\n\
    fault of kernels before 3.14.";

/// The mode of a run whose kernel does not tell it.
const UNTOLD: &str = "–";

/// Bytes of a line, at most.
const LONGEST: u64 = 64 << 10;

/// Options of `kontig trace`.
#[derive(Args)]
pub struct TraceArgs {
    /// Text that ftrace or --trace has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a picture of both scanners over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Count from this second of the trace on; of a run that began before, the time since then
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    from: Option<u64>,
    /// Count up to this second of the trace; of a run that ended later, the time until then
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    to: Option<u64>,
    /// Print one JSON document (schema kontig.trace/1) instead of the table
    #[arg(long)]
    json: bool,
}

/// Seconds of a trace, in microseconds.
fn seconds(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e12).contains(&s) => Ok((s * 1e6).round() as u64),
        _ => Err("seconds as the trace prints them, from 0 on".into()),
    }
}

/// The first and the last microsecond that count.
type Window = (u64, u64);

/// Runs that the trace does not have whole.
struct Incomplete {
    unended: usize,
    cut: usize,
    lost_events: u64,
}

/// The runs of one kind of task over one zone in one mode.
#[derive(Default, serde::Serialize)]
struct Kind {
    runs: u64,
    us: u64,
    longest_us: u64,
    did_nothing: u64,
    missed_meeting: u64,
    /// `None` if the kernel does not tell.
    succeeded: Option<u64>,
}

impl Kind {
    fn add(&mut self, run: &Run, (from, to): Window) {
        let us = run.end_us.min(to).saturating_sub(run.begin_us.max(from));
        self.runs += 1;
        self.us += us;
        self.longest_us = self.longest_us.max(us);
        self.did_nothing += u64::from(run.did_nothing());
        self.missed_meeting += u64::from(run.missed_meeting());
        if let Some(succeeded) = run.succeeded() {
            *self.succeeded.get_or_insert_default() += u64::from(succeeded);
        }
    }
}

pub fn trace(a: &TraceArgs) -> Result<(), Error> {
    if let (Some(from), Some(to)) = (a.from, a.to)
        && from > to
    {
        return Err(AskedWrongly::Value("--from is after --to".into()).into());
    }
    let file = a.file.display().to_string();
    let unreadable = |reason: String| Error::from(AskedWrongly::Unreadable { path: file.clone(), reason });
    if let Some(svg) = &a.svg {
        check_not_read(&[("--svg", Some(svg.as_path()))], &[&file])?;
        check_writable(svg)?;
    }
    let mut input = BufReader::new(File::open(&a.file).map_err(|e| unreadable(e.to_string()))?);
    let mut reader = Reader::new(&file);
    let mut line = Vec::new();
    if input.fill_buf().map_err(|e| unreadable(e.to_string()))?.starts_with(b"\x17\x08\x44tracing") {
        let reason = format!("it is trace-cmd's own format: make text of it with 'trace-cmd report -i {file} > t.txt'");
        return Err(unreadable(reason));
    }
    while input.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(|e| unreadable(e.to_string()))? > 0 {
        if line.len() as u64 == LONGEST {
            return Err(unreadable("a line of more than 64 KiB is no line of a trace".into()));
        }
        reader
            .read(String::from_utf8_lossy(&line).trim_end())
            .map_err(|e| Error::from(AskedWrongly::Malformed { path: e.file, line: e.line, reason: e.reason }))?;
        line.clear();
    }
    let incomplete = Incomplete { unended: reader.unended(), cut: reader.cut, lost_events: reader.lost_events };
    let mut runs = reader.ended;
    let window = (a.from.unwrap_or(0), a.to.unwrap_or(u64::MAX));
    runs.retain(|run| run.end_us >= window.0 && run.begin_us <= window.1);
    if runs.is_empty() && (a.from.is_some() || a.to.is_some()) {
        return Err(AskedWrongly::Value(format!("{file} has no run of compaction between --from and --to")).into());
    }
    if runs.is_empty() && incomplete.unended + incomplete.cut > 0 {
        return Err(unreadable("no run of compaction begins and ends in it".into()));
    }
    if runs.is_empty() {
        return Err(AskedWrongly::Value(format!(
            "{file} has no run of compaction: none was needed, or its events were off, which on a host 'echo 1 > \
             /sys/kernel/tracing/events/compaction/enable' turns on"
        ))
        .into());
    }
    if let Some(svg) = &a.svg {
        write_file(svg, scanners::picture(&runs).as_bytes())?;
    }
    let mut all = Kind::default();
    let mut kinds: BTreeMap<(&str, (u64, u64), &str), Kind> = BTreeMap::new();
    let mut unknown = Unknown::new();
    for run in &runs {
        run.unknown().into_iter().for_each(|value| *unknown.entry(value).or_default() += 1);
        all.add(run, window);
        let mode = run.mode.as_deref().unwrap_or(UNTOLD);
        kinds.entry((&run.comm, run.zone, mode)).or_default().add(run, window);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(name, kind)| (std::cmp::Reverse(kind.us), *name));
    if a.json {
        let rows = kinds.iter().map(|((task, zone, mode), kind)| {
            let mode = (*mode != UNTOLD).then_some(mode);
            serde_json::json!({ "task": task, "zone_start": zone.0, "zone_end": zone.1, "mode": mode, "counts": kind })
        });
        let document = serde_json::json!({
            "schema": "kontig.trace/1", "all": all, "kinds": rows.collect::<Vec<_>>(),
            "unended": incomplete.unended, "cut": incomplete.cut, "lost_events": incomplete.lost_events,
            "unknown": unknown.iter().map(|((field, value), runs)| {
                serde_json::json!({ "field": field, "value": value, "runs": runs })
            }).collect::<Vec<_>>()
        });
        return print(&format!("{document:#}\n"));
    }
    print(&(summary(&runs, &all, &kinds, (&incomplete, window)) + &said(&unknown)))
}

/// Fields with values that no kernel prints, and in how many runs.
type Unknown<'a> = BTreeMap<(&'static str, &'a str), u64>;

/// A line on each value that no kernel prints.
fn said(unknown: &Unknown<'_>) -> String {
    let line = |((field, value), runs): (&(&'static str, &str), &u64)| {
        let what = match *value {
            "" => format!("without a {field}"),
            value => format!("with the unknown {field} '{}'", value.escape_debug()),
        };
        let whose = if *field == "status" { ": nothing says whether a block was left" } else { "" };
        wrap("", &format!("{} {what}{whose}", counted(*runs)), 0, width())
    };
    unknown.iter().map(line).collect()
}

type Rows<'a> = [((&'a str, (u64, u64), &'a str), Kind)];

fn summary(runs: &[Run], all: &Kind, kinds: &Rows<'_>, (incomplete, window): (&Incomplete, Window)) -> String {
    let begin = runs.iter().map(|run| run.begin_us).min().unwrap_or(0).max(window.0);
    let end = runs.iter().map(|run| run.end_us).max().unwrap_or(0).min(window.1);
    let share = |part: u64, of: u64| percent(part as f64 / of.max(1) as f64);
    let mut by_task: BTreeMap<&str, u64> = BTreeMap::new();
    for ((task, ..), kind) in kinds {
        *by_task.entry(task).or_default() += kind.us;
    }
    let (most, us) = by_task.into_iter().max_by_key(|(_, us)| *us).unwrap_or_default();
    let conclusion = format!(
        "Compaction took {} ms in {} within {:.3} s; {} of it was {}'s. Of the runs, {}{} did nothing, and {} \
         missed that their scanners met.",
        milliseconds(all.us),
        counted(all.runs),
        (end - begin) as f64 / 1e6,
        share(us, all.us),
        most.escape_debug(),
        all.succeeded.map_or(String::new(), |n| format!("{} left a block, ", share(n, all.runs))),
        share(all.did_nothing, all.runs),
        share(all.missed_meeting, all.runs)
    );
    let mut text = wrap("", &conclusion, 0, width()) + "\n";
    let head = ["task", "zone, frames", "mode", "runs", "ms", "longest, ms", "left a block", "did nothing", "missed"];
    let mut grid = Grid::new(head, &[0, 1, 2]);
    for ((task, zone, mode), kind) in kinds {
        grid.row(vec![
            task.escape_debug().to_string(),
            format!("{:#x}–{:#x}", zone.0, zone.1),
            (*mode).into(),
            grouped(kind.runs),
            milliseconds(kind.us),
            milliseconds(kind.longest_us),
            kind.succeeded.map_or_else(|| "–".into(), grouped),
            grouped(kind.did_nothing),
            grouped(kind.missed_meeting),
        ]);
    }
    text += &grid.text(0, columns());
    if incomplete.unended > 0 {
        text += &format!("left out, as they had not ended: {}\n", counted(incomplete.unended as u64));
    }
    if incomplete.cut > 0 {
        text += &format!("left out, as the trace lacks their begin or end: {}\n", counted(incomplete.cut as u64));
    }
    if incomplete.lost_events > 0 {
        text += &wrap("", &lost(incomplete.lost_events), 0, width());
    }
    text
}

fn lost(events: u64) -> String {
    format!(
        "the tracer lost events, {} or more in the whole trace, so counts may be too low: a larger buffer_size_kb \
         keeps them",
        grouped(events)
    )
}

fn counted(runs: u64) -> String {
    if runs == 1 { "1 run".into() } else { format!("{} runs", grouped(runs)) }
}

fn milliseconds(us: u64) -> String {
    format!("{:.3}", us as f64 / 1e3)
}
