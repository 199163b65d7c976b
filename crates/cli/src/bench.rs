//! `kontig bench`: how fast Kontig is on this machine, and what that means to a user.

use crate::wrap::{width, wrap};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_bench::measure::Samples;
use kontig_bench::quiet::{Watch, not_quiet};
use kontig_bench::rows::{self, Listener};
use kontig_bench::table::figure;
use kontig_bench::{Kontig, Options, Row, meaning};
use kontig_lab::{AskedWrongly, LabError};
use serde_json::{Value, json};
use std::time::Duration;

pub const HELP: &str = "Examples:\n  \
    kontig bench                    all rows, in less than a minute\n  \
    kontig bench 13 F               how long a what-if takes: random pages, and preparing an experiment\n  \
    kontig bench --json > a.json    to compare with another machine\n\n\
    The yardstick of a row is a limit of this machine, measured by turns with the row in the same process. Times \
    depend on the machine and its load, the ratio hardly does, so compare ratios between machines. Below 1 is \
    faster than the yardstick. The yardstick of rows 1 to 8 and 10 is another allocator, which only \
    'cargo bench -p kontig-bench' in Kontig's sources measures. Figures are medians; the range covers all repetitions.";

/// Options of `kontig bench`.
#[derive(Args)]
pub struct BenchArgs {
    /// Measure only these rows, by number; 8 includes 8a to 8d
    #[arg(value_name = "ROW", allow_negative_numbers = true)]
    rows: Vec<String>,
    /// Use machines sixteen times as large, and medians of seven: takes
    /// five minutes and 8 GiB of memory
    #[arg(long)]
    pub full: bool,
    /// Print one JSON document (schema kontig.bench/1) instead of the table
    #[arg(long)]
    json: bool,
}

pub fn bench(args: &BenchArgs) -> Result<(), LabError> {
    let options = Options { quick: !args.full, filter: args.rows.clone(), ..Options::default() };
    if let Some(unknown) = args.rows.iter().find(|row| !is_known(row)) {
        let known: Vec<&str> = meaning::MEANINGS.iter().map(|(number, _)| *number).collect();
        let reason = format!("there is no row '{unknown}'; there are {}", known.join(", "));
        return Err(AskedWrongly::Value(reason).into());
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed:>4}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut told = Told { bar, rows: Vec::new(), without_peer: Vec::new() };
    let watch = Watch::start();
    rows::each::<Kontig>(&options, None, &[], &mut told);
    told.bar.finish_and_clear();
    let others = watch.others();
    let rows: Vec<Row> = told.rows.into_iter().filter(|row| options.wants(&[row.number], "")).collect();
    let without: Vec<&str> = told.without_peer.into_iter().filter(|number| options.wants(&[number], "")).collect();
    let noise = not_quiet(others).map_or(String::new(), |text| "\n".to_owned() + &wrap("", &text, 0, width()));
    crate::print(&if args.json { document(&options, &rows, others) } else { table(&options, &rows, &without) + &noise })
}

/// Whether a row has this number, or these digits.
fn is_known(asked: &str) -> bool {
    let options = Options { filter: vec![asked.to_string()], ..Options::default() };
    // Every row's text contains the empty one.
    !asked.is_empty() && meaning::MEANINGS.iter().any(|(number, _)| options.wants(&[number], ""))
}

/// Shows the row being measured on a terminal, and collects the rows.
struct Told {
    bar: ProgressBar,
    rows: Vec<Row>,
    without_peer: Vec<&'static str>,
}

impl Listener for Told {
    fn begins(&mut self, what: &str) {
        self.bar.set_message(what.to_string());
    }
    fn rows(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }
    // Rivals that were not given matter to the project's targets, not to the user.
    fn without(&mut self, numbers: Vec<&'static str>, peer: &'static str) {
        if peer == rows::PEER {
            self.without_peer = numbers;
        }
    }
}

/// The CPU's name, if the host reports one.
fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_string())
}

const INDENT: usize = 7;

fn table(o: &Options, rows: &[Row], without: &[&str]) -> String {
    let cpu = cpu().unwrap_or_else(|| "an unnamed CPU".into());
    let head = format!("kontig {} on {cpu}; medians of {}.", env!("CARGO_PKG_VERSION"), o.repetitions());
    let text = rows.iter().fold(wrap("", &head, 0, width()), |text, row| text + "\n" + &lines(row));
    if without.is_empty() {
        return text;
    }
    let rows = if let [row] = without { format!("Row {row} has") } else { format!("Rows {} have", without.join(", ")) };
    let why = "no yardstick here: 'cargo bench -p kontig-bench' in Kontig's sources measures another allocator \
               (buddy_system_allocator) by turns with the engine.";
    text + "\n" + &wrap("", &format!("{rows} {why}"), 0, width())
}

/// A row: what was measured, the figure, its yardstick, and the meaning.
fn lines(row: &Row) -> String {
    let mut figures = figure(row.unit, row.ours.median());
    if row.ours.count() > 1 {
        figures += &format!(" ({} to {})", figure(row.unit, row.ours.min()), figure(row.unit, row.ours.max()));
    }
    if let (Some((name, peer)), Some(ratio)) = (&row.peer, row.ratio()) {
        figures += &format!("; {name} {}: ratio {}", figure(row.unit, peer.median()), two_digits(ratio));
    }
    let indented = |text: &str| wrap(&" ".repeat(INDENT), text, INDENT, width());
    let head = format!("{:<INDENT$}", row.number);
    wrap(&head, &row.what, INDENT, width())
        + &indented(&figures)
        + &indented(meaning::of(row.number).unwrap_or_default())
}

fn two_digits(ratio: f64) -> String {
    if ratio < 0.095 {
        format!("{ratio:.3}")
    } else if ratio < 9.95 {
        format!("{ratio:.2}")
    } else {
        format!("{ratio:.0}")
    }
}

fn document(o: &Options, rows: &[Row], others: Option<f64>) -> String {
    let doc = json!({
        "schema": "kontig.bench/1",
        "version": env!("CARGO_PKG_VERSION"),
        "cpu": cpu(),
        "full": !o.quick,
        "cpus_of_others": others,
        "rows": rows.iter().map(as_json).collect::<Vec<_>>(),
    });
    format!("{doc:#}\n")
}

fn as_json(row: &Row) -> Value {
    json!({
        "row": row.number,
        "what": row.what,
        "means": meaning::of(row.number),
        "unit": row.unit.name(),
        "ours": samples(&row.ours),
        "yardstick": row.peer.as_ref().map(|(name, s)| json!({ "name": name, "figure": samples(s) })),
        "ratio": row.ratio(),
    })
}

fn samples(s: &Samples) -> Value {
    json!({ "median": s.median(), "min": s.min(), "max": s.max(), "samples": s.count() })
}
