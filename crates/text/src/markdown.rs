//! Rows and heads of Markdown tables.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_which_columns_are_figures() {
        let head = head([("zone", Align::Left), ("free", Align::Right), ("", Align::Left)]);
        assert_eq!(
            head + &row(["DMA", " 1 GiB ", ""]),
            "| zone | free |  |\n| --- | ---: | --- |\n| DMA | 1 GiB |  |\n"
        );
    }
}
