//! `kontig bench`: how fast Kontig is on this machine, and what that means to a user.

mod translation;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use kontig_bench::measure::Samples;
use kontig_bench::quiet::{Watch, not_quiet};
use kontig_bench::rows::{self, Listener};
use kontig_bench::table::figure;
use kontig_bench::{Kontig, Options, Row, meaning};
use kontig_error::{AskedWrongly, Error};
use kontig_terminal::{width, wrap};
use serde_json::{Value, json};
use std::time::Duration;
use translation::TranslationArgs;

pub const HELP: &str = "Examples:\n  \
    kontig bench                    all rows, in less than a minute\n  \
    kontig bench 13 F               how long a what-if takes: random pages, and preparing an experiment\n  \
    kontig bench --json > a.json    to compare with another machine\n  \
    kontig bench translation        what huge pages gain on this host\n\n\
    The yardsticks of a row are limits of this machine, measured by turns with the row in the same process. Times \
    depend on the machine and its load, the ratios hardly do, so compare ratios between machines. Below 1 is faster \
    than the yardstick. An update in the cache is the least for what finds its data there, a line in order what \
    memory's bandwidth allows for a cache line. Of random updates, the first waits for the one before, the \
    independent one does not, and the prefetched one is the least that memory allows. 'cargo bench -p kontig-bench' \
    in Kontig's sources measures other allocators as well. Figures are medians; the range covers all repetitions.";

/// Options of `kontig bench`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Measure only these rows, by number; 8 includes 8a to 8d
    #[arg(value_name = "ROW", allow_negative_numbers = true)]
    rows: Vec<String>,
    /// Use machines sixteen times as large, and medians of seven: takes
    /// five minutes and 8 GiB of memory
    #[arg(long)]
    pub full: bool,
    /// Print one JSON document (schema kontig.bench/2) instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Measure what huge pages gain on this host
    Translation(TranslationArgs),
}

pub fn bench(args: &BenchArgs) -> Result<(), Error> {
    if let Some(What::Translation(args)) = &args.what {
        return translation::translation(args);
    }
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
    let mut told = Told { bar, rows: Vec::new() };
    let watch = Watch::start();
    rows::each::<Kontig>(&options, None, &[], &mut told);
    told.bar.finish_and_clear();
    let others = watch.others();
    let rows: Vec<Row> = told.rows.into_iter().filter(|row| options.wants(&[row.number], "")).collect();
    let noise = not_quiet(others).map_or(String::new(), |text| "\n".to_owned() + &wrap("", &text, 0, width()));
    kontig_terminal::print(&if args.json { document(&options, &rows, others) } else { table(&options, &rows) + &noise })
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
}

impl Listener for Told {
    fn begins(&mut self, what: &str) {
        self.bar.set_message(what.to_string());
    }
    fn rows(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }
    // Rivals that were not given matter to the project's targets, not to the user.
    fn without(&mut self, _: Vec<&'static str>, _: &'static str) {}
}

/// The CPU's name, if the host reports one.
fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_string())
}

const INDENT: usize = 7;

fn table(o: &Options, rows: &[Row]) -> String {
    let cpu = cpu().unwrap_or_else(|| "an unnamed CPU".into());
    let head = format!("kontig {} on {cpu}; medians of {}.", env!("CARGO_PKG_VERSION"), o.repetitions());
    rows.iter().fold(wrap("", &head, 0, width()), |text, row| text + "\n" + &lines(row))
}

/// A row: what was measured, the figure, its yardsticks, and the meaning.
fn lines(row: &Row) -> String {
    let mut figures = figure(row.unit, row.ours.median());
    if row.ours.count() > 1 {
        figures += &format!(" ({} to {})", figure(row.unit, row.ours.min()), figure(row.unit, row.ours.max()));
    }
    for (name, yardstick) in &row.yardsticks {
        let ratio = two_digits(row.ratio(yardstick));
        figures += &format!("; {name} {}: ratio {ratio}", figure(row.unit, yardstick.median()));
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
        "schema": "kontig.bench/2",
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
        "yardsticks": row.yardsticks.iter().map(|(name, s)| {
            json!({ "name": name, "figure": samples(s), "ratio": row.ratio(s) })
        }).collect::<Vec<_>>(),
    })
}

fn samples(s: &Samples) -> Value {
    json!({ "median": s.median(), "min": s.min(), "max": s.max(), "samples": s.count() })
}
