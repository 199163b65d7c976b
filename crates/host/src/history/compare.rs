//! `kontig history compare`: what differs between two histories, or two periods of one.

use super::period::Part;
use crate::answer::document;
use clap::Args;
use kontig_error::Error;
use kontig_live::history::compare::{Comparison, Quartiles};
use kontig_terminal::Ending;
use kontig_terminal::Grid;
use kontig_terminal::wrap;

/// Options of `kontig history compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// A file of 'kontig history record', or a part of one
    #[arg(value_name = "A[@FROM..TO]")]
    a: String,
    /// Another, or another part of the same
    #[arg(value_name = "B[@FROM..TO]")]
    b: String,
    /// Print JSON (schema kontig.history-compare/1)
    #[arg(long)]
    json: bool,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig history compare monday.history tuesday.history\n  \
    kontig history compare host.history@-2day..-1day host.history@-1day..\n\n\
    Each period is cut into 12 parts. Two periods differ in a figure if of all pairs of a part of each nine in ten \
    differ the same way, and the medians are a tenth apart or more.\n\n\
    Exit codes: 0 done, whatever differs; 1 failed while running; 2 asked wrongly.";

/// Carries out `kontig history compare`.
pub fn compare(a: &CompareArgs) -> Result<Ending, Error> {
    let period = |part: &str| Part::parse(part)?.period();
    let comparison = Comparison::of(&period(&a.a)?, &period(&a.b)?);
    kontig_terminal::print(&if a.json { document(&comparison, false) } else { text(&comparison) })?;
    Ok(Ending::Done)
}

fn text(c: &Comparison) -> String {
    let mut grid = Grid::new(["median (middle half)", "A", "B", ""], &[0, 3]);
    for row in &c.figures {
        let shown = |q: &Quartiles| {
            let [lower, median, upper] = [q.lower, q.median, q.upper].map(|value| row.figure.shown(value));
            format!("{median} ({lower} to {upper})")
        };
        let differs = if row.differs { "differs" } else { "" };
        grid.row(vec![row.figure.title().into(), shown(&row.a), shown(&row.b), differs.into()]);
    }
    for not in &c.not_compared {
        let parts = |parts: usize| match parts {
            0 => "not told".to_string(),
            1 => "told in one part".into(),
            parts => format!("told in {parts} parts"),
        };
        grid.row(vec![not.figure.title().into(), parts(not.a_parts), parts(not.b_parts), "not compared".into()]);
    }
    let mut text = wrap("", &c.conclusion, 0, kontig_terminal::width());
    if !c.figures.is_empty() {
        text += &format!("\n{}", grid.text(0, kontig_terminal::columns()));
    }
    text
}
