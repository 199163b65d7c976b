//! The page for those who want to know how far to trust the model.

use super::answer::{about, conclusions};
use super::tables::{Tried, loops, missing, of_programs, other_sizes, skewed};
use kontig_bench::quiet::not_quiet;
use kontig_bench::translation::measured::{Measured, NEAR, holds};
use kontig_bench::translation::programs::held::{Held, TURNS, Verdict};
use kontig_terminal::wrap;

/// Columns of the page's source.
const PAGE_WIDTH: usize = 120;

pub(super) fn page(m: &Measured, held: &[Tried]) -> String {
    let paragraph = |text: &str| wrap("", text, 0, PAGE_WIDTH) + "\n";
    let item = |text: &str| wrap("- ", text, 2, PAGE_WIDTH);
    let mut text = String::from("# What huge pages gain: the model beside a real host\n\n");
    text += &paragraph(
        "Made by `kontig bench translation --programs --markdown FILE`. The model's constants come from the loops of \
         the first table. Of the programs it knows how often they access how much memory, on which pages that \
         lies, and how long they take on small pages.",
    );
    let said = conclusions(m).into_iter().chain([about(m)]).chain(not_quiet(m.others));
    text += &said.map(|said| paragraph(&said)).collect::<String>();
    text += "## Loops\n\n";
    let middle = m.middle_gain();
    text += &paragraph(&format!(
        "Times are ns an access. Independent accesses are measured, not modelled. To be told apart from no model at \
         all: of the {} chases and skewed loops, a gain of 0 % for all would be near enough in {}, one of {middle:.0} \
         %, the middle of them, in {}.",
        m.chases().count() + m.skewed.len(),
        m.that_hold_at(0.0),
        m.that_hold_at(middle)
    ));
    text += &loops(m).markdown();
    text += "\n## Skewed accesses\n\n";
    text += &paragraph(
        "By Zipf's law with theta = 0.99, each waiting for the one before; hot pages lie side by side or scattered. \
         The constants are not fitted to these.",
    );
    text += &skewed(m).markdown();
    if let Some(grid) = other_sizes(m) {
        text += "\n## Pages of other sizes\n\n";
        text += &paragraph(
            "Chases, on memory that was mapped anew and timed by turns with small pages of its own. The constants are \
             not fitted to these. Where small pages lie contiguous, as here if the gains are below 5 %, a model that \
             says 0 % holds as well.",
        );
        text += &grid.markdown();
    }
    if let Some(grid) = of_programs(held) {
        let count = |of: fn(&Held) -> bool| held.iter().filter(|(_, held)| held.as_ref().is_ok_and(of)).count();
        let near = count(|held| holds(held.predicted, held.measured()));
        let hold = count(|held| held.verdict() == Verdict::Holds);
        text += "\n## Programs\n\n";
        text += &paragraph(&format!(
            "{near} of {} predicted gains are near that of the least times: {NEAR}. Of {hold} of these the pairs of \
             runs differ by less than twice that; of the others, undecided, by more. A gain is of the least time of \
             {} runs on each kind of pages, by turns; its range is that of the pairs. Times are of the steady part \
             alone, without the first touch: CPU time, of the compiler user time.",
            held.len(),
            TURNS
        ));
        text += &(grid.markdown() + "\n");
        let known = held.iter().filter_map(|(name, held)| Some((name, held.as_ref().ok()?)));
        text += &known.map(|(name, held)| item(&format!("{name}: {}.", held.known))).collect::<String>();
    }
    missing(held).fold(text, |text, line| text + &item(&line))
}
