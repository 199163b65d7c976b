//! `kontig compare`: stored results beside each other.

use crate::figures::FiguresArgs;
use clap::Args;
use kontig_error::files::{check_writable, write_file};
use kontig_error::{AskedWrongly, Error};
use kontig_lab::beside::{Stored, beside, read_all};
use kontig_lab::outcome::Outcome;
use kontig_report::html::{Page, PageExperiment};
use kontig_results::{COMPARE_SCHEMA, Comparison};
use std::io::IsTerminal;
use std::path::PathBuf;

pub const HELP: &str = "Examples:\n  \
    kontig run heap --profile 6.1 --out before && kontig run heap --profile 7.2 --out after\n  \
    kontig compare before after\n  \
    kontig compare monday tuesday wednesday --html week.html\n\n\
    Every experiment that two results share has a table; the first result's first variant is the baseline. Runs of \
    the same seed are paired, if two or more are in both. What else differs between the results, such as the machine \
    or the version of kontig, is said below the table.";

/// Options of `kontig compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// Result directories written by --out; the first holds the baseline
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// Print one JSON document (schema kontig.compare/4) instead of tables
    #[arg(long, conflicts_with_all = ["all_figures", "figures"])]
    json: bool,
    #[command(flatten)]
    figures: FiguresArgs,
    /// Also print statistics of every figure over repetitions and rounds
    #[arg(long, conflicts_with = "json")]
    statistics: bool,
    /// Write one self-contained HTML page: tables, curves, memory map
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn compare(a: &CompareArgs) -> Result<(), Error> {
    if a.results.len() < 2 {
        return Err(AskedWrongly::Value("compare: name two results or more".into()).into());
    }
    if let Some(file) = &a.html {
        check_writable(file)?;
    }
    let stored = read_all(&a.results)?;
    let (outcomes, notes) = beside(&stored)?;
    notes.iter().for_each(|note| kontig_terminal::say(note));
    if a.json {
        let experiments = outcomes.iter().map(|x| kontig_report::answer(&x.result)).collect();
        kontig_terminal::print_json(&Comparison {
            schema: COMPARE_SCHEMA.into(),
            results: stored.iter().map(Stored::compared).collect(),
            experiments,
        })?;
    } else {
        let (terminal, width) = (std::io::stdout().is_terminal(), kontig_terminal::columns());
        let figures = a.figures.wanted();
        for x in &outcomes {
            let mut text = kontig_report::table::render(&x.result, &figures, width, terminal);
            if a.statistics {
                text += &kontig_report::statistics::render(&x.result, width, terminal).unwrap_or_default();
            }
            kontig_terminal::print(&(text + "\n"))?;
        }
    }
    if let Some(file) = &a.html {
        let names: Vec<String> = a.results.iter().map(|dir| dir.display().to_string()).collect();
        let page = Page {
            title: "Kontig".into(),
            subtitle: format!("Stored results beside each other: {}", names.join(", ")),
            overview: None,
            experiments: outcomes.iter().map(on_page).collect(),
        };
        write_file(file, kontig_report::html::page(&page).as_bytes())?;
    }
    Ok(())
}

fn on_page(x: &Outcome) -> PageExperiment<'_> {
    PageExperiment {
        result: &x.result,
        runs: &x.runs,
        pace: &[],
        pace_machine: String::new(),
        summary: String::new(),
        notes: String::new(),
    }
}
