//! An experiment's table for a terminal.
//!
//! Variants have letters to keep columns narrow; the lines above name them. Control characters in
//! names are dropped, so that none can move the cursor.

use crate::ageing;
use crate::conclusion::{self, Called};
use crate::number;
use crate::shown;
use crate::standing::{self, Count, Layout};
use crate::terminal::{arranged, empty, fits, keeps_words, letter, none, plain, stacked, wrapped};
use crate::transposed;
use crate::verdict::{self, Standing, measured};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, Table};
use kontig_results::{Counts, ExperimentResult, Remark, Row, Score};
use std::ops::Range;

/// The figures of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Published ones; without any, those that the conclusion is about, or all of a single variant
    /// that are not by phase.
    Matter,
    All,
    /// Those whose names, with their phases, have one of these texts in them, in any case.
    Named(Vec<String>),
}

impl Figures {
    fn name(wanted: &str, row: &Row) -> bool {
        standing::name(row).to_lowercase().contains(&wanted.to_lowercase())
    }
}

/// The table of `e`, with a line for each variant and the conclusion above, and remarks below.
///
/// `width` is the terminal's, in columns: in a wider table, unit, range and verdict move under the
/// row's name or figure; where that breaks a name within a word, each row is a list. Figures never
/// wrap. Without a width, lines are as long as they need.
/// `colour` turns on ANSI colours. A `*` marks headline rows. With [`Figures::All`], rows without
/// published figures follow in a second table, and figures by phase in a third.
pub fn render(e: &ExperimentResult, figures: &Figures, width: Option<usize>, colour: bool) -> String {
    let held = e.rows.iter().any(|row| !row.published.is_empty());
    let layout = Layout::of(e);
    let mut out = format!("{} on {}\n", plain(&standing::title(e)), plain(&e.machine));
    for (i, variant) in e.variants.iter().enumerate() {
        let role = if i == 0 && e.variants.len() > 1 { "  (baseline)" } else { "" };
        out.push_str(&format!("  {} = {}{role}\n", letter(i), plain(variant)));
    }
    if held {
        out.push_str(&wrapped(&score(&e.score), width));
        let is_missed = |row: &&Row| verdict::standing(row) == Standing::Missed;
        let missed: Vec<_> = e.rows.iter().filter(is_missed).map(|r| plain(&standing::name(r))).collect();
        if !missed.is_empty() {
            let count = if missed.len() == 1 { "1 row missed".into() } else { format!("{} rows missed", missed.len()) };
            out.push_str(&wrapped(&format!("{count}: {}", missed.join("; ")), width));
        }
    }
    conclusion::lines(e, Called::ByLetter).iter().for_each(|line| out.push_str(&wrapped(line, width)));
    if let Some(how) = standing::how_merged_with_ranges(e) {
        out.push_str(&wrapped(&how, width));
    }
    let paint = Paint { e, colour };
    let (published, others): (Vec<&Row>, Vec<&Row>) = layout.single.iter().partition(|row| !row.published.is_empty());
    let others = match figures {
        Figures::All => others,
        Figures::Named(names) => {
            let is_named = |row: &&Row| row.published.is_empty() && names.iter().any(|name| Figures::name(name, row));
            e.rows.iter().filter(is_named).collect()
        }
        Figures::Matter if held => Vec::new(),
        Figures::Matter if e.variants.len() == 1 => others,
        Figures::Matter => shown::that_matter(e).into_iter().filter(|row| !shown::is_nothing(row)).collect(),
    };
    if held {
        out.push_str(&paint.fitted(&published, true, width));
        out.push('\n');
        out.push_str(&wrapped(&nothing_changes(&e.score), width));
        if let Some(explained) = standing::counts_explained(&e.score) {
            out.push_str(&wrapped(&explained, width));
        }
        for line in standing::apart(e) {
            out.push_str(&wrapped(&plain(&line), width));
        }
    }
    if !others.is_empty() {
        out.push_str(if held { "\nnot published\n" } else { "" });
        let side_by_side = |form| fits(&paint.rows(&others, false, form, None), width);
        match width.filter(|_| e.variants.len() > SIDE_BY_SIDE && !SINGLE_LINES.into_iter().any(side_by_side)) {
            Some(width) => {
                out.push_str(&transposed::render(e, &others, width, colour));
                out.push_str("\nchanges do not fit here: --html and --json have them");
            }
            None => out.push_str(&paint.fitted(&others, false, width)),
        }
        out.push('\n');
    }
    if !held && e.elsewhere.is_empty() {
        out.push_str(&wrapped("nothing was published to hold these rows against", width));
    }
    out.push_str(&remarks(&standing::of_no_step(e), width));
    if let Some(mark) = standing::mark_explained(e) {
        out.push_str(&wrapped(&mark, width));
    }
    if !e.ageing.is_empty() {
        out.push_str("\nround by round\n");
        out.push_str(&ageing::render(e, width, colour));
    }
    if *figures == Figures::All && !layout.by_phase.is_empty() {
        out.push('\n');
        out.push_str(&wrapped(&format!("by phase of the run; {}", standing::phase_of_singles(&layout)), width));
        out.push_str(&fitted(width, |form, width| paint.phases(&layout, form, width)));
        out.push('\n');
        if let Some(nothing) = layout.nothing() {
            out.push_str(&wrapped(&plain(&nothing), width));
        }
    }
    out.push_str(&remarks(&e.remarks, width));
    let hidden = e.rows.len() - published.len() - others.len();
    match figures {
        Figures::Matter if hidden > 0 => {
            out.push_str(&wrapped(&format!("--all-figures prints {hidden} more, --html and --json have them"), width));
        }
        Figures::Named(names) => {
            let unknown = names.iter().filter(|name| !e.rows.iter().any(|row| Figures::name(name, row)));
            for name in unknown {
                out.push_str(&wrapped(
                    &format!("no figure has '{}' in its name: --all-figures has all", plain(name)),
                    width,
                ));
            }
        }
        Figures::Matter | Figures::All => {}
    }
    out
}

/// Remarks, each with the letters of its variants.
fn remarks(all: &[Remark], width: Option<usize>) -> String {
    let line = |(variants, text): (Vec<usize>, &str)| {
        let letters: Vec<String> = variants.iter().map(|&v| letter(v)).collect();
        let whose = if letters.is_empty() { String::new() } else { format!("{}: ", letters.join(", ")) };
        wrapped(&format!("{whose}{}", plain(text)), width)
    };
    standing::remarks(all).into_iter().map(line).collect()
}

/// The score as one line: `direction 11/11 rows agree, 9 of them by more than chance; false alarms
/// 0/2; headline 3/4 within 2×`. Counts without rows are left out.
pub fn score(score: &Score) -> String {
    let chance = standing::beyond_chance(score.beyond_chance).map(|words| format!(", {words}")).unwrap_or_default();
    in_words(&score.measured, &chance)
}

/// The score of the same rows if every variant equalled the baseline, as one line.
pub fn nothing_changes(score: &Score) -> String {
    format!("if nothing changed: {}", in_words(&score.nothing_changes, ""))
}

fn in_words(counts: &Counts, chance: &str) -> String {
    let word = |(count, n, of): (Count, u32, u32)| match count {
        Count::Direction => format!("direction {n}/{of} rows agree{chance}"),
        Count::ToZero => format!("to zero {n}/{of}"),
        Count::FalseAlarms => format!("false alarms {n}/{of}"),
        Count::Headline => format!("headline {n}/{of} within 2×"),
        Count::Ageing => format!("ageing {n}/{of}"),
    };
    standing::counts(counts).into_iter().map(word).collect::<Vec<_>>().join("; ")
}

/// The combined score of an experiment's cases; none for a single case.
pub fn together(cases: &[&ExperimentResult]) -> Option<String> {
    let [first, _, ..] = cases else { return None };
    let mut sum = Score::default();
    cases.iter().for_each(|e| sum.add(&e.score));
    let all = format!("{}, {} cases together", plain(&first.id), cases.len());
    Some(format!("{all}: {}\n{all}, {}\n", score(&sum), nothing_changes(&sum)))
}

/// The layouts of a table, by width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Every item has a column.
    Wide,
    /// The unit behind the row's name.
    Close,
    /// Also range, pairs and verdict below the name or the figure.
    Stacked,
}

/// The forms with a line a row, widest first.
const SINGLE_LINES: [Form; 2] = [Form::Wide, Form::Close];
/// As many variants are columns of a table in any form; of more, each is a line where they do not
/// fit.
const SIDE_BY_SIDE: usize = 3;

/// The widest form that fits.
fn fitted(width: Option<usize>, build: impl Fn(Form, Option<usize>) -> String) -> String {
    let side_by_side = SINGLE_LINES.into_iter().map(|form| build(form, None)).find(|table| fits(table, width));
    side_by_side.unwrap_or_else(|| build(Form::Stacked, width))
}

struct Paint<'a> {
    e: &'a ExperimentResult,
    colour: bool,
}

impl Paint<'_> {
    /// Whether any row of a variant has a range.
    fn varies(&self, rows: &[&Row], variant: usize) -> bool {
        rows.iter().any(|row| measured(row, variant).is_some_and(|m| standing::range(row, m).is_some()))
    }

    /// The table of single figures in the widest form that fits, or a list.
    fn fitted(&self, rows: &[&Row], held: bool, width: Option<usize>) -> String {
        let table = fitted(width, |form, width| self.rows(rows, held, form, width));
        let names: Vec<String> = rows.iter().map(|row| plain(&standing::name(row))).collect();
        match keeps_words(&table, width, names.iter().map(String::as_str)) {
            true => table,
            false => self.list(rows, held, width).trim_end().to_owned(),
        }
    }

    /// Each row with its figures below its name, for a terminal that is too narrow for a table.
    fn list(&self, rows: &[&Row], held: bool, width: Option<usize>) -> String {
        let variants = self.e.variants.len();
        let of = |name: &str, figures: Vec<String>, change: &dyn Fn(usize) -> Option<f64>| {
            let changes = changes(variants, held).filter_map(|to| {
                let which = if variants > 2 { format!(" to {}", letter(to)) } else { String::new() };
                Some(format!("{}{which}", number::factor(change(to)?)))
            });
            let figures = figures.into_iter().enumerate().map(|(i, figure)| format!("{} {figure}", letter(i)));
            wrapped(&format!("  {name}: {}", figures.chain(changes).collect::<Vec<_>>().join(", ")), width)
        };
        let mut out = String::new();
        for row in rows {
            let star = if row.headline { " *" } else { "" };
            out += &wrapped(&format!("{}{star}, {}", plain(&standing::name(row)), plain(&row.unit)), width);
            if held {
                let exact = |i: usize| row.published.get(i).map_or_else(none, |&value| number::exact(value));
                out += &of("published", (0..variants).map(exact).collect(), &|_| verdict::published_change(row));
            }
            let figure = |i: usize| {
                let Some(m) = measured(row, i) else { return none() };
                let range = standing::range(row, m).map_or_else(String::new, |range| format!(" ({range})"));
                standing::figure(m) + &range
            };
            out += &of("measured", (0..variants).map(figure).collect(), &|to| verdict::change_to(row, to));
            for i in 1..variants {
                if let Some(standing) = standing::against_baseline(row, i) {
                    out += &wrapped(&format!("  {} against A, by seed: {standing}", letter(i)), width);
                }
            }
            let verdict = verdict::text(row);
            if held && verdict != none() {
                out += &wrapped(&format!("  → {verdict}"), width);
            }
        }
        out
    }

    /// The table of single figures, with or without published ones.
    fn rows(&self, rows: &[&Row], held: bool, form: Form, width: Option<usize>) -> String {
        let wide = form != Form::Stacked;
        let (e, variants) = (self.e, self.e.variants.len());
        let mut table = empty(wide, self.colour);
        let mut header = vec!["row".to_owned()];
        if form == Form::Wide {
            header.push("unit".into());
        }
        let first_figure = header.len();
        let mut left = vec![];
        for group in if held { &["published", "measured"][..] } else { &["measured"] } {
            for i in 0..variants {
                // A narrow table names the group over its first column only.
                header.push(format!("{}\n{}", if wide || i == 0 { *group } else { "" }, letter(i)));
                if wide && *group == "measured" && self.varies(rows, i) {
                    left.push(header.len());
                    header.push(format!("range\n{}", letter(i)));
                }
            }
            for to in changes(variants, held) {
                let over = if wide { *group } else { "" };
                // With more than two variants, name the one that is compared.
                let which = if variants > 2 { format!(" to {}", letter(to)) } else { String::new() };
                header.push(format!("{over}\nchange{which}"));
            }
        }
        let figures = first_figure..header.len();
        if wide && standing::has_pairs(e) {
            header.extend((1..variants).map(|i| format!("{} against\nA, by seed", letter(i))));
        }
        if held && wide {
            header.push("verdict".into());
        }
        table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
        for row in rows {
            table.add_row(self.cells(row, rows, held, form));
        }
        set_figures(&mut table, figures.filter(|i| !left.contains(i)), wide);
        arranged(table, width)
    }

    fn cells(&self, row: &Row, rows: &[&Row], held: bool, form: Form) -> Vec<Cell> {
        let wide = form != Form::Stacked;
        let variants = self.e.variants.len();
        let verdict = verdict::text(row);
        let mut name = plain(&standing::name(row));
        if row.headline {
            name.push_str(" *");
        }
        if form != Form::Wide {
            name = format!("{name}, {}", plain(&row.unit));
        }
        if !wide {
            for i in 1..variants {
                if let Some(standing) = standing::against_baseline(row, i) {
                    name = format!("{name}\n{} {standing}", letter(i));
                }
            }
            if verdict != none() {
                name = format!("{name}\n→ {verdict}");
            }
        }
        let mut name = Cell::new(name);
        if row.headline {
            name = name.add_attribute(Attribute::Bold);
        }
        let mut cells = match form {
            Form::Wide => vec![name, Cell::new(plain(&row.unit))],
            Form::Close => vec![name],
            Form::Stacked => vec![coloured(name, row)],
        };
        if held {
            let exact = |i: usize| row.published.get(i).map_or_else(none, |&value| number::exact(value));
            cells.extend((0..variants).map(|i| Cell::new(exact(i))));
            cells.extend(changes(variants, held).map(|_| change_cell(verdict::published_change(row))));
        }
        for i in 0..variants {
            let m = measured(row, i);
            let figure = m.map_or_else(none, standing::figure);
            let range = m.and_then(|m| standing::range(row, m)).unwrap_or_default();
            if !wide {
                cells.push(Cell::new(if range.is_empty() { figure } else { stacked(&figure, &range) }));
                continue;
            }
            cells.push(Cell::new(figure));
            if self.varies(rows, i) {
                cells.push(Cell::new(range).add_attribute(Attribute::Dim));
            }
        }
        cells.extend(changes(variants, held).map(|to| change_cell(verdict::change_to(row, to))));
        if wide && standing::has_pairs(self.e) {
            cells.extend((1..variants).map(|i| Cell::new(standing::against_baseline(row, i).unwrap_or_else(none))));
        }
        if held && wide {
            cells.push(coloured(Cell::new(verdict), row));
        }
        cells
    }

    /// The table of figures by phase: a line per variant, a column per phase.
    fn phases(&self, layout: &Layout<'_>, form: Form, width: Option<usize>) -> String {
        let wide = form != Form::Stacked;
        let variants = self.e.variants.len();
        let (changes, paired) = (variants > 1, standing::has_pairs(self.e));
        let mut table = empty(true, self.colour);
        let last = layout.phases.last().map_or_else(String::new, |phase| plain(phase));
        let mut header = vec!["figure".to_owned()];
        if variants > 1 {
            header.push(String::new());
        }
        let first_figure = header.len();
        header.extend(layout.phases.iter().map(|phase| plain(phase)));
        if changes && wide {
            header.push(format!("change\nof {last}"));
        }
        let figures = first_figure..header.len();
        if paired && wide {
            header.push(format!("{last} against\nA, by seed"));
        }
        table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
        for rows in &layout.by_phase {
            let Some(any) = rows.iter().flatten().next() else { continue };
            for i in 0..variants {
                let name = if i == 0 { format!("{}, {}", plain(&any.name), plain(&any.unit)) } else { String::new() };
                let mut cells = vec![Cell::new(name)];
                if variants > 1 {
                    cells.push(Cell::new(letter(i)));
                }
                cells.extend(rows.iter().map(|row| {
                    let Some((row, m)) = row.and_then(|row| Some((row, measured(row, i)?))) else {
                        return Cell::new(none());
                    };
                    match standing::range(row, m) {
                        Some(range) if wide => Cell::new(format!("{} ({range})", standing::figure(m))),
                        Some(range) => Cell::new(stacked(&standing::figure(m), &range)),
                        None => Cell::new(standing::figure(m)),
                    }
                }));
                let last = rows.last().copied().flatten();
                if changes && wide {
                    let change = last.filter(|_| i > 0).and_then(|row| verdict::change_to(row, i));
                    cells.push(Cell::new(change.map_or_else(String::new, number::factor)));
                }
                if paired && wide {
                    let standing = last.and_then(|row| standing::against_baseline(row, i));
                    cells.push(Cell::new(standing.unwrap_or_default()));
                }
                table.add_row(cells);
            }
        }
        set_figures(&mut table, figures, wide);
        arranged(table, width)
    }
}

/// Aligns figures to the right, and keeps them on one line.
fn set_figures(table: &mut Table, columns: impl Iterator<Item = usize>, wide: bool) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
            if !wide {
                column.set_padding((1, 0));
            }
        }
    }
}

fn coloured(cell: Cell, row: &Row) -> Cell {
    match verdict::standing(row) {
        Standing::Missed => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Standing::Agrees => cell.fg(Color::Green),
        Standing::Loose => cell.fg(Color::Yellow),
        Standing::None => cell,
    }
}

/// The variants whose change from the first has a column: the last, as in publications. Without
/// published columns there is room for each of up to three.
fn changes(variants: usize, held: bool) -> Range<usize> {
    let first = if held || variants > 4 { variants - 1 } else { 1 };
    first.max(1)..variants
}

fn change_cell(change: Option<f64>) -> Cell {
    Cell::new(change.map_or_else(none, number::factor))
}
