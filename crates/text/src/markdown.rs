//! Rows and heads of Markdown tables, and paragraphs in lines that fit.

/// Columns of a line, tables excepted.
const WIDTH: usize = 120;
/// Stands for a space that no line breaks at.
const KEPT: char = '\u{e000}';
/// Words that begin a list or a heading where they begin a line.
const MARKS: [&str; 4] = ["-", "*", "+", "#"];

/// Where the cells of a column stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// For columns of words.
    Left,
    /// For columns of figures.
    Right,
}

/// A line with a cell for each column.
pub fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let line = |text: String, cell: S| text + " " + cell.as_ref().trim() + " |";
    cells.into_iter().fold("|".to_string(), line) + "\n"
}

/// The two lines a table begins with.
pub fn head<S: AsRef<str>>(columns: impl IntoIterator<Item = (S, Align)>) -> String {
    let (names, aligned): (Vec<S>, Vec<Align>) = columns.into_iter().unzip();
    let rule = |align| if align == Align::Right { "---:" } else { "---" };
    row(names) + &row(aligned.into_iter().map(rule))
}

/// Breaks the lines of paragraphs and list items that are too long. Tables, headings and blocks of
/// code stay as they are.
pub fn wrapped(page: &str) -> String {
    let mut code = false;
    page.lines()
        .map(|line| {
            let fence = line.starts_with("```");
            code ^= fence;
            if code || fence || line.starts_with(['|', '#']) { format!("{line}\n") } else { fitted(line) }
        })
        .collect()
}

fn fitted(line: &str) -> String {
    let item = line.starts_with("- ") || line.starts_with("* ");
    let (head, text) = line.split_at(if item { 2 } else { 0 });
    let joined =
        MARKS.iter().fold(text.to_string(), |text, mark| text.replace(&format!(" {mark} "), &format!("{KEPT}{mark} ")));
    crate::wrap(head, &joined, head.len(), WIDTH).replace(KEPT, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_fit_and_all_else_stays() {
        let words = "word ".repeat(30);
        let (long, code) = (words.trim_end(), format!("```\n{words}\n```\n"));
        let (line, rest) = ("word ".repeat(24), "word ".repeat(6));
        let (line, rest) = (line.trim_end(), rest.trim_end());
        assert_eq!(wrapped(&format!("{long}\n\n- {long}\n")), {
            let item = "word ".repeat(23);
            format!("{line}\n{rest}\n\n- {}\n  word {rest}\n", item.trim_end())
        });
        for kept in [format!("| {long} |\n"), format!("# {long}\n"), code, "a line\n\nanother\n".to_string()] {
            assert_eq!(wrapped(&kept), kept);
        }
        assert_eq!(wrapped(&wrapped(long)), wrapped(long), "it is done once");
    }

    #[test]
    fn no_line_begins_as_a_list_that_did_not() {
        let words = "word ".repeat(24);
        let text = format!("{} - and so on", words.trim_end());
        assert_eq!(wrapped(&text), format!("{}\nword - and so on\n", "word ".repeat(23).trim_end()));
    }

    #[test]
    fn a_table_says_which_columns_are_figures() {
        let head = head([("zone", Align::Left), ("free", Align::Right), ("", Align::Left)]);
        assert_eq!(
            head + &row(["DMA", " 1 GiB ", ""]),
            "| zone | free |  |\n| --- | ---: | --- |\n| DMA | 1 GiB |  |\n"
        );
    }
}
