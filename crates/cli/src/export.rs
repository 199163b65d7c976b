//! `kontig export`: stored results as flat tables, for other tools.

use clap::{ArgGroup, Args};
use kontig_error::files::check_distinct;
use kontig_error::{Error, Failed};
use kontig_tables::{Files, Format, Merged, Rows, TABLES};
use kontig_text::grouped;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const HELP: &str = "Examples:\n  \
    kontig run hugealloc --machine xeon-4g --profile 6.1,7.2 --repetitions 5 --out result\n  \
    kontig export result --parquet tables\n  \
    kontig export monday tuesday --csv tables\n\n\
    Tables: runs, settings, figures, rounds, percentiles, series, counters; each is a file, joined with the others by \
    its column 'run'. A run that several results have stands once. The same runs give the same bytes, in whatever \
    results they are stored. docs/experimenter/tables.md describes every column.";

/// Options of `kontig export`.
#[derive(Args)]
#[command(group(ArgGroup::new("formats").required(true).multiple(true).args(["csv", "parquet"])))]
pub struct ExportArgs {
    /// Result directories written by --out
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// Write the tables as CSV to this directory, which must not exist
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write the tables as Parquet to this directory, which must not exist
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

pub fn export(a: &ExportArgs) -> Result<(), Error> {
    let asked = [(Format::Csv, &a.csv), (Format::Parquet, &a.parquet)];
    check_distinct(&[("--csv", a.csv.as_deref()), ("--parquet", a.parquet.as_deref())])?;
    // An existing directory is refused before anything is read.
    let mut outputs = Vec::new();
    for (format, dir) in asked.into_iter().filter_map(|(format, dir)| Some((format, dir.as_ref()?))) {
        outputs.push((dir, Rows::new(Files::create(dir, format)?)));
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    kontig_terminal::interrupt::act(move || stop.store(true, Ordering::Relaxed));
    let merged = Merged::read(&a.results)?;
    for run in &merged.runs {
        if stopped.load(Ordering::Relaxed) {
            return Err(Failed::Interrupted { kept: "nothing was exported".into() }.into());
        }
        let results = run.read()?;
        outputs.iter_mut().try_for_each(|(_, rows)| rows.add(&run.facts, &results))?;
    }
    let runs = counted(merged.runs.len() as u64, "run");
    let mut text = match merged.shared {
        0 => format!("{runs}\n"),
        1 => format!("{runs}; 1 of them is in several results, and stands once\n"),
        shared => format!("{runs}; {} of them are in several results, and stand once\n", grouped(shared)),
    };
    if merged.missing > 0 {
        let planned = counted((merged.runs.len() + merged.missing) as u64, "run");
        text += &format!(
            "{} of {planned} are missing: name the other shards, or run the command again with --resume and without \
             --shard\n",
            grouped(merged.missing)
        );
    }
    for (dir, rows) in outputs {
        let (files, counts) = rows.finish()?;
        let format = files.finish()?;
        for (table, rows) in TABLES.iter().zip(counts) {
            let file = dir.join(format!("{}.{}", table.name, format.ending()));
            text += &format!("{}: {}\n", file.display(), counted(rows, "row"));
        }
    }
    kontig_terminal::print(&text)
}

fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}
