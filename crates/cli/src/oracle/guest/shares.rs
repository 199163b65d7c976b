//! How many of a pattern's counters are inside, by what they count, with totals for each kernel.

use kontig_oracle::guest::compare::Class::{Compaction, Levels, OtherEvents, Refaults, Stalls};
use kontig_oracle::guest::compare::{Class, GIVEN_BY_OTHERS, Row, Tally, Verdict};
use kontig_oracle::patterns::NAMED;
use kontig_text::markdown::{self, Align};
use serde_json::{Value, json};
use std::fmt::Write;

/// A column: its name, its key in JSON, its classes, and the share that the project is after, in
/// percent.
struct Column {
    name: &'static str,
    key: &'static str,
    classes: &'static [Class],
    aim: Option<u32>,
}

const COLUMNS: [Column; 5] = [
    Column { name: "events", key: "events", classes: &[Compaction, Stalls, Refaults, OtherEvents], aim: Some(80) },
    Column { name: "compaction", key: "compaction", classes: &[Compaction], aim: Some(60) },
    Column { name: "stalls", key: "stalls", classes: &[Stalls], aim: None },
    Column { name: "refaults", key: "refaults", classes: &[Refaults], aim: None },
    Column { name: "levels", key: "levels", classes: &[Levels], aim: None },
];

/// The meaning of the table, for the page.
const MEANING: &str = "*inside*: the lab's mean is within 15 % of the kernel's mean, or lies between the kernel's \
    lowest and highest run (its mean: single runs of the lab may lie beyond) and is not zero. More runs are further \
    apart, so lines with 2 or 3 seeds are judged more strictly than those with 5. A cell has the counters inside, of \
    those judged. Shown and not judged is what counts twice, says nothing, or has no data: counters that follow from \
    others (*repeats*: those by zone, a counter that in every run of both sides is within 5 % of one above it, and \
    those listed below); counters with a mean below 10 on both sides, and levels that are inside and were at first \
    within 15 % of the kernel's mean (*hardly moves*); counters whose kernel runs are further apart than their mean, \
    since nearly any figure lies between them (*varies*), unless the lab has none; counters that are zero in every \
    run, and times of daemons that a recording lacks, which have no row; those that the lab lacks (`–`); the length of \
    phases. Compaction, stalls (`allocstall*`, `compact_stall`) and refaults (`workingset_*`) are parts of the events. \
    The totals leave out costs and swap-costs, which are there for the lab's costs. Two costs of reclaim are from \
    mixed on 6.1, which counts. They have in brackets the share if those that vary were judged, too.";

/// The rows of a pattern on a kernel with its settings.
pub(super) struct Judged {
    pub(super) pattern: String,
    pub(super) kernel: String,
    pub(super) seeds: usize,
    pub(super) rows: Vec<Row>,
}

pub(super) fn markdown(all: &[Judged]) -> String {
    let mut out = String::from("## How many counters are inside\n\n");
    let columns = COLUMNS.iter().map(|column| (column.name, Align::Right));
    let left = ["pattern", "Linux", "seeds"].map(|name| (name, Align::Left));
    out += &markdown::head(left.into_iter().chain(columns).chain([("not counted in the lab", Align::Right)]));
    for Judged { pattern, kernel, seeds, rows } in all {
        let cells = [pattern.clone(), kernel.clone(), seeds.to_string()];
        out += &line_of(cells, rows, |tally| format!("{} of {}", tally.inside, tally.judged));
    }
    let loaded: Vec<_> = all.iter().filter(|of| !gives_costs(&of.pattern)).collect();
    let mut kernels: Vec<String> = loaded.iter().map(|of| of.kernel.clone()).collect();
    kernels.sort();
    kernels.dedup();
    let in_percent = |tally: Tally| {
        let (all, judged) = (tally.percent_with_varying(), tally.percent());
        format!("{} of {}: {judged:.0} % ({all:.0} %)", tally.inside, tally.judged)
    };
    for name in kernels {
        let of: Vec<&Row> = loaded.iter().filter(|of| of.kernel == name).flat_map(|of| &of.rows).collect();
        out += &line_of(["**all**".into(), name, String::new()], of, in_percent);
    }
    let aims = COLUMNS.iter().map(|column| column.aim.map_or(String::new(), |aim| format!("{aim} %")));
    let aim = ["**aim**", "", ""].map(String::from).into_iter();
    out += &markdown::row(aim.chain(aims).chain([String::new()]));
    let _ = write!(out, "\n{MEANING}\n\n");
    let given = GIVEN_BY_OTHERS.map(|(counter, by)| format!("`{counter}` from `{}`", by.join("`, `")));
    let _ = write!(out, "Counters that follow from others: {}.\n\n", given.join("; "));
    out
}

/// A line of text: every column with a judged counter.
pub(super) fn line(rows: &[Row]) -> String {
    let column = |column: &Column| {
        let tally = Tally::of(rows, column.classes);
        (tally.judged > 0).then(|| format!("{}: {} of {} inside", column.name, tally.inside, tally.judged))
    };
    let columns: Vec<String> = COLUMNS.iter().filter_map(column).collect();
    format!("{}; {} not counted in the laboratory", columns.join(", "), missing(rows))
}

/// By the columns' keys.
pub(super) fn as_json(rows: &[Row]) -> Value {
    let column = |column: &Column| {
        let tally = Tally::of(rows, column.classes);
        let value = json!({
            "judged": tally.judged,
            "inside": tally.inside,
            "varying": tally.varying,
            "varying_inside": tally.varying_inside,
        });
        (column.key.to_string(), value)
    };
    Value::Object(COLUMNS.iter().map(column).collect())
}

/// A line of the table: these cells, then a cell for each column.
fn line_of<'a>(
    cells: [String; 3],
    rows: impl IntoIterator<Item = &'a Row> + Clone,
    words: impl Fn(Tally) -> String,
) -> String {
    let tally = |column: &Column| match Tally::of(rows.clone(), column.classes) {
        Tally { judged: 0, varying: 0, .. } => "–".into(),
        tally => words(tally),
    };
    let tallies: Vec<String> = COLUMNS.iter().map(tally).collect();
    markdown::row(cells.into_iter().chain(tallies).chain([missing(rows).to_string()]))
}

fn missing<'a>(rows: impl IntoIterator<Item = &'a Row>) -> usize {
    rows.into_iter().filter(|row| row.verdict() == Verdict::Missing).count()
}

fn gives_costs(pattern: &str) -> bool {
    NAMED.iter().any(|named| named.name == pattern && named.gives_costs)
}
