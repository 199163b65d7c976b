//! An experiment's table for a terminal.
//!
//! Variants are lettered so that the figures stand close together; a line above says which letter is which. Nothing
//! a name contains can move the cursor: control characters are dropped.

use crate::number;
use crate::verdict::{self, Verdict};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, presets,
};
use kontig_lab::result::{ExperimentResult, Row, Score};

/// The table of `e`, with a line for each variant above, the score and the notes below, ending in a newline.
///
/// `width` is the terminal's in columns: where the table is wider, unit and verdict move under the row's name, which
/// wraps; figures never do. Without a width, lines are as long as they need. `colour` turns on ANSI colours. A `*`
/// marks headline rows. Rows for which nothing was published come last, under a heading, if there are others.
pub fn render(e: &ExperimentResult, width: Option<usize>, colour: bool) -> String {
    let held = e.rows.iter().any(|row| !row.published.is_empty());
    let mut out = format!("{} on {}\n", plain(&e.id), plain(&e.machine));
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
    out.extend(e.notes.iter().map(|note| format!("note: {}\n", plain(note))));
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

/// The widest form that fits: one line a row, or else unit and verdict under the row's name.
fn rows(e: &ExperimentResult, held: bool, width: Option<usize>, colour: bool) -> String {
    let wide = build(e, held, true, None, colour);
    match width {
        // The first line is the upper rule: nothing but the table's width in characters.
        Some(width) if wide.lines().next().is_some_and(|rule| rule.chars().count() > width) => {
            build(e, held, false, Some(width), colour)
        }
        _ => wide,
    }
}

fn build(e: &ExperimentResult, held: bool, wide: bool, width: Option<usize>, colour: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    if wide {
        table.style_mut().row_separator = LineStyle::none();
    }
    if colour {
        table.enforce_styling()
    } else {
        table.force_no_tty()
    };
    let mut header = vec!["row".to_owned()];
    if wide {
        header.push("unit".into());
    }
    let first_figure = header.len();
    for group in if held { &["published", "measured"][..] } else { &["measured"] } {
        // Short of room, the group is named over its first column only.
        let over = |i: usize| if wide || i == 0 { *group } else { "" };
        header.extend((0..e.variants.len()).map(|i| format!("{}\n{}", over(i), letter(i))));
        if e.variants.len() > 1 {
            header.push(format!("{}\nchange", over(1)));
        }
    }
    let figures = first_figure..header.len();
    if held && wide {
        header.push("verdict".into());
    }
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    let (published, others): (Vec<_>, Vec<_>) = e.rows.iter().partition(|row| !row.published.is_empty());
    for row in published {
        table.add_row(cells(row, e.variants.len(), held, wide));
    }
    if held && !others.is_empty() {
        // An empty line is all the rule there is between the two kinds of row.
        let heading = if wide { "\nNot published" } else { "Not published" };
        table.add_row([Cell::new(heading).add_attribute(Attribute::Dim)]);
    }
    for row in others {
        table.add_row(cells(row, e.variants.len(), held, wide));
    }
    for column in figures {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
            if !wide {
                column.set_padding((1, 0));
            }
        }
    }
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table.trim_fmt()
}

fn cells(row: &Row, variants: usize, held: bool, wide: bool) -> Vec<Cell> {
    let verdict = Verdict::of(row);
    let mut name = plain(&row.name);
    if row.headline {
        name.push_str(" *");
    }
    if !wide {
        name = format!("{name}, {}", plain(&row.unit));
        if verdict != Verdict::NotHeld {
            name = format!("{name}\n→ {}", verdict.text());
        }
    }
    let mut name = Cell::new(name);
    if row.headline {
        name = name.add_attribute(Attribute::Bold);
    }
    let mut cells = if wide { vec![name, Cell::new(plain(&row.unit))] } else { vec![coloured(name, verdict)] };
    if held {
        figures(&mut cells, variants, |i| row.published.get(i).map(|&value| number::exact(value)));
        push_change(&mut cells, variants, verdict::published_change(row));
    }
    figures(&mut cells, variants, |i| row.measured.get(i).copied().flatten().map(number::rounded));
    push_change(&mut cells, variants, verdict::measured_change(row));
    if held && wide {
        cells.push(coloured(Cell::new(verdict.text()), verdict));
    }
    cells
}

fn coloured(cell: Cell, verdict: Verdict) -> Cell {
    match verdict {
        _ if verdict.missed() => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Verdict::Agrees => cell.fg(Color::Green),
        Verdict::AgreesOff(_) => cell.fg(Color::Yellow),
        _ => cell,
    }
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
pub(crate) fn letter(variant: usize) -> String {
    match u8::try_from(variant) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => (variant + 1).to_string(),
    }
}

/// Text without the characters that control a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
