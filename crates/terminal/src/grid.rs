//! A small table that fits: columns side by side where there is room, else a block of lines for
//! each row.

use crate::wrap::wrap;
use comfy_table::{CellAlignment, Table, presets};
use kontig_text::markdown::{self, Align};

/// A table. The first column names the row.
pub struct Grid {
    head: Vec<String>,
    /// Columns of texts; others are figures, and stand to the right.
    texts: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// An empty table; `texts` are the columns that hold no figures.
    pub fn new<'a>(head: impl IntoIterator<Item = &'a str>, texts: &[usize]) -> Grid {
        Grid { head: head.into_iter().map(str::to_string).collect(), texts: texts.to_vec(), rows: vec![] }
    }

    /// Adds a row of cells.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table with `indent` blanks before each line; `width` is `None` where lines may have any
    /// length.
    pub fn text(&self, indent: usize, width: Option<usize>) -> String {
        let beside = self.beside(indent);
        let fits = |width: &usize| beside.lines().all(|line| line.chars().count() <= *width);
        match width.filter(|width| !fits(width)) {
            Some(width) => self.stacked(indent, width),
            None => beside,
        }
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let align = |column| if self.texts.contains(&column) { Align::Left } else { Align::Right };
        let head = markdown::head(self.head.iter().enumerate().map(|(column, name)| (name, align(column))));
        self.rows.iter().fold(head, |text, row| text + &markdown::row(row))
    }

    fn beside(&self, indent: usize) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).force_no_tty();
        if self.head.iter().any(|name| !name.is_empty()) {
            table.set_header(&self.head);
        }
        table.add_rows(&self.rows);
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if at == 0 { indent as u16 } else { 2 }, 0));
            if !self.texts.contains(&at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt() + "\n"
    }

    /// A row's name on a line, then a line for each of its cells, under their headings' names.
    fn stacked(&self, indent: usize, width: usize) -> String {
        let names = self.head.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            text += &wrap(&" ".repeat(indent), &row[0], indent, width);
            for (name, cell) in self.head.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
                text += &wrap(&format!("{}{name:<names$}  ", " ".repeat(indent + 2)), cell, indent + names + 4, width);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Grid;

    #[test]
    fn tables_that_do_not_fit_side_by_side_are_stacked() {
        let mut grid = Grid::new(["zone", "free", "score"], &[0]);
        grid.row(vec!["DMA".into(), "1 GiB".into(), "".into()]);
        grid.row(vec!["Normal".into(), "12 GiB".into(), "7".into()]);
        let beside = "zone      free  score\nDMA      1 GiB\nNormal  12 GiB      7\n";
        assert_eq!((grid.text(0, None).as_str(), grid.text(0, Some(21)).as_str()), (beside, beside));
        let stacked = " DMA\n   free   1 GiB\n Normal\n   free   12 GiB\n   score  7\n";
        assert_eq!(grid.text(1, Some(21)), stacked);
        grid.row(vec!["HighMem".into(), "none at all".into()]);
        assert!(grid.markdown().starts_with("| zone | free | score |\n| --- | ---: | ---: |\n| DMA | 1 GiB |  |\n"));
        assert!(grid.text(1, Some(18)).ends_with(" HighMem\n   free   none at\n          all\n"), "nothing is wider");
    }
}
