//! Options for the figures of a table.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use kontig_report::table::Figures;

/// The figures to print.
#[derive(Args)]
pub struct FiguresArgs {
    /// Print every figure, of every phase, and not only those that the conclusion is about
    #[arg(long)]
    all_figures: bool,
    /// Print the figures whose names have these words in them, of every phase: pswpout,p99
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "all_figures",
        value_parser = NonEmptyStringValueParser::new()
    )]
    figures: Vec<String>,
}

impl FiguresArgs {
    pub fn are_asked_for(&self) -> bool {
        self.all_figures || !self.figures.is_empty()
    }

    pub fn wanted(&self) -> Figures {
        match self.all_figures {
            true => Figures::All,
            false if self.figures.is_empty() => Figures::Matter,
            false => Figures::Named(self.figures.clone()),
        }
    }
}
