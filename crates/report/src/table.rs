//! An experiment's table for a terminal.
//!
//! Variants are lettered so that the figures stand close together; a line above says which letter is which. Nothing
//! a name contains can move the cursor: control characters are dropped.

use crate::number;
use crate::verdict::{self, Verdict};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use kontig_lab::result::{ExperimentResult, Row, Score};

/// The table of `e`, with a line for each variant above and the score below, ending in a newline.
///
/// `width` is the terminal's in columns (rows wrap to fit; without one, lines are as long as they need); `colour`
/// turns on ANSI colours, for terminals only.
pub fn render(e: &ExperimentResult, width: Option<usize>, colour: bool) -> String {
    let held = e.rows.iter().any(|row| !row.published.is_empty());
    let mut out = format!("{}\n", plain(&e.id));
    for (i, variant) in e.variants.iter().enumerate() {
        let role = if i == 0 && e.variants.len() > 1 { "  (baseline)" } else { "" };
        out.push_str(&format!("  {} = {}{role}\n", letter(i), plain(variant)));
    }
    out.push_str(&rows(e, held, width, colour));
    out.push('\n');
    if held {
        out.push_str(&format!("{}\n", score(&e.score)));
        let missed: Vec<_> = e.rows.iter().filter(|row| Verdict::of(row).missed()).map(|r| plain(&r.name)).collect();
        if !missed.is_empty() {
            let count = if missed.len() == 1 { "1 row missed".into() } else { format!("{} rows missed", missed.len()) };
            out.push_str(&format!("{count}: {}\n", missed.join("; ")));
        }
    } else {
        out.push_str("nothing was published to hold these rows against\n");
    }
    out
}

/// The score as one line: `direction 11/11 rows agree; headline 3/4 within 2×`.
pub fn score(score: &Score) -> String {
    let (direction, headline) = (score.direction, score.headline_within_2x);
    format!(
        "direction {}/{} rows agree; headline {}/{} within 2×",
        direction.agree, direction.of, headline.agree, headline.of
    )
}

fn rows(e: &ExperimentResult, held: bool, width: Option<usize>, colour: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    if colour { table.enforce_styling() } else { table.force_no_tty() };
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    let change = e.variants.len() > 1;
    let mut header = vec!["row".to_owned(), "unit".to_owned()];
    let groups: &[&str] = if held { &["published", "measured"] } else { &["measured"] };
    for group in groups {
        header.extend((0..e.variants.len()).map(|i| format!("{group}\n{}", letter(i))));
        if change {
            header.push(format!("{group}\nchange"));
        }
    }
    if held {
        header.push("verdict".into());
    }
    let figures = 2..header.len() - usize::from(held);
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    for row in &e.rows {
        table.add_row(cells(row, e.variants.len(), held));
    }
    for column in figures {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn cells(row: &Row, variants: usize, held: bool) -> Vec<Cell> {
    let verdict = Verdict::of(row);
    let name = Cell::new(if row.headline { format!("{} *", plain(&row.name)) } else { plain(&row.name) });
    let mut cells = vec![if row.headline { name.add_attribute(Attribute::Bold) } else { name }];
    cells.push(Cell::new(plain(&row.unit)));
    if held {
        figures(&mut cells, variants, |i| row.published.get(i).map(|&value| number::exact(value)));
        push_change(&mut cells, variants, verdict::published_change(row));
    }
    figures(&mut cells, variants, |i| row.measured.get(i).copied().flatten().map(number::rounded));
    push_change(&mut cells, variants, verdict::measured_change(row));
    if held {
        let cell = Cell::new(verdict.text());
        cells.push(match verdict {
            _ if verdict.missed() => cell.fg(Color::Red).add_attribute(Attribute::Bold),
            Verdict::Agrees => cell.fg(Color::Green),
            Verdict::AgreesOff(_) => cell.fg(Color::Yellow),
            _ => cell,
        });
    }
    cells
}

fn figures(cells: &mut Vec<Cell>, variants: usize, figure: impl Fn(usize) -> Option<String>) {
    cells.extend((0..variants).map(|i| Cell::new(figure(i).unwrap_or_else(|| "–".into()))));
}

fn push_change(cells: &mut Vec<Cell>, variants: usize, change: Option<f64>) {
    if variants > 1 {
        cells.push(Cell::new(change.map_or_else(|| "–".into(), number::factor)));
    }
}

/// A, B, … Z, then numbers.
fn letter(variant: usize) -> String {
    match u8::try_from(variant) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => (variant + 1).to_string(),
    }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
