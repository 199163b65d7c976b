//! `kontig history report`: a history summed up, on the terminal and as a page.

use super::period::Part;
use crate::answer::{document, fitted};
use clap::Args;
use kontig_error::Error;
use kontig_error::files::{check_writable, write_file};
use kontig_live::history::at::clock;
use kontig_live::history::changes::Change;
use kontig_live::history::period::Summary;
use kontig_live::history::{Period, page::page, words};
use kontig_terminal::Ending;
use kontig_terminal::Grid;
use kontig_terminal::wrap;
use kontig_text::{grouped, time};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `kontig history report`.
#[derive(Args)]
pub struct ReportArgs {
    /// A file of 'kontig history record', or a part of one: FILE@FROM..TO, with moments as for
    /// 'show --at'; either may be left out
    #[arg(value_name = "FILE[@FROM..TO]")]
    part: String,
    /// Write one self-contained HTML page with time lines
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,
    /// Print JSON (schema kontig.history-report/1)
    #[arg(long)]
    json: bool,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig history report host.history\n  \
    kontig history report host.history@-1day.. --html yesterday.html\n  \
    kontig history report 'host.history@2026-11-26 00:00..2026-11-26 06:00' --json\n\n\
    Exit codes: 0 done; 1 failed while running; 2 asked wrongly.";

/// Name and version of the schema.
const SCHEMA: &str = "kontig.history-report/1";

/// The report as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    summary: &'a Summary,
    changes: &'a [Change],
}

/// Carries out `kontig history report`.
pub fn report(a: &ReportArgs) -> Result<Ending, Error> {
    a.html.as_deref().map_or(Ok(()), check_writable)?;
    let part = Part::parse(&a.part)?;
    let period = part.period()?;
    let summary = period.summary();
    if let Some(path) = &a.html {
        let name = part.file.file_name().map_or_else(|| a.part.clone(), |name| name.to_string_lossy().into_owned());
        write_file(path, page(&name, &period).as_bytes())?;
    }
    let text = match a.json {
        true => document(&Document { schema: SCHEMA, summary: &summary, changes: &period.changes }, false),
        false => text(&period, &summary),
    };
    kontig_terminal::print(&text)?;
    Ok(Ending::Done)
}

/// Changes and groups that the terminal shows; the page shows more, JSON all.
const CHANGES: usize = 20;
const GROUPS: usize = 8;

fn text(period: &Period, summary: &Summary) -> String {
    let width = kontig_terminal::columns();
    let line = |line: &String| wrap("", line, 0, kontig_terminal::width());
    let mut text: String = words::conclusion(summary).iter().map(line).collect();
    text += &format!("\n{}", line(&words::heading(summary)));
    let paid = words::paid(summary);
    let mut grid = Grid::new(["who paid", "what", "how much"], &[0, 1]);
    for (who, what, much) in &paid {
        grid.row(vec![who.clone(), (*what).into(), much.clone()]);
    }
    if !paid.is_empty() {
        text += &format!("\n{}", grid.text(0, width));
    }
    if !summary.groups.is_empty() {
        let mut grid = Grid::new(["control group", "waited for memory", "at its limit", "slowed", "killed"], &[0]);
        for group in summary.groups.iter().take(GROUPS) {
            let counts = [group.at_limit, group.slowed, group.killed].map(grouped);
            grid.row([group.path.clone(), time(group.waited_s)].into_iter().chain(counts).collect());
        }
        text += &format!("\n{}", grid.text(0, width));
    }
    let lines: Vec<String> = period.changes.iter().map(|c| format!("  {}  {}", clock(c.unix_ms), c.words())).collect();
    text += &match lines.is_empty() {
        true => format!("\n{}\n", words::no_change(summary)),
        false => "\nWhat changed (UTC)\n".to_string(),
    };
    text += &fitted(&lines.iter().take(CHANGES).map(|line| format!("{line}\n")).collect::<String>());
    if lines.len() > CHANGES {
        text += &format!("  and {} more (--json has all)\n", grouped(lines.len() - CHANGES));
    }
    text
}
