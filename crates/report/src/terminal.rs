//! Parts of every table for a terminal.

use comfy_table::{ContentArrangement, LineStyle, Table, presets};
use kontig_text::wrap;

/// A line wrapped to the terminal; the lines after the first are indented by two more.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let indent = text.len() - text.trim_start().len();
    wrap("", text, indent + 2, width.unwrap_or(usize::MAX))
}

pub(crate) fn empty(wide: bool, colour: bool) -> Table {
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
    table
}

pub(crate) fn arranged(mut table: Table, width: Option<usize>) -> String {
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

/// Whether a table is no wider than the terminal. Its first line is the upper rule, as wide as the
/// table.
pub(crate) fn fits(table: &str, width: Option<usize>) -> bool {
    width.is_none_or(|width| table.lines().next().is_none_or(|rule| rule.chars().count() <= width))
}

/// Whether a table fits and breaks none of these texts within a word.
pub(crate) fn keeps_words<'a>(table: &str, width: Option<usize>, texts: impl IntoIterator<Item = &'a str>) -> bool {
    let mut words = texts.into_iter().flat_map(str::split_whitespace);
    width.is_none() || (fits(table, width) && words.all(|word| table.contains(word)))
}

/// Marks a missing figure, which is not 0.
pub(crate) fn none() -> String {
    "–".into()
}

/// A, B, … Z, then numbers.
pub(crate) fn letter(variant: usize) -> String {
    match u8::try_from(variant) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => (variant + 1).to_string(),
    }
}

/// Drops characters that control a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A figure with its range below, for a narrow column. A long range breaks after the dash.
pub(crate) fn stacked(figure: &str, range: &str) -> String {
    if range.chars().count() <= 11 {
        format!("{figure}\n{range}")
    } else {
        format!("{figure}\n{}", range.replace('–', "–\n"))
    }
}
