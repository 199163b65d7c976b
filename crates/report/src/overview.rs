//! Several experiments on one page: how far the model can be trusted, series by series, and where
//! it is most wrong.
//!
//! Every score stands beside the score of a model in which nothing ever changes. A baseline's level
//! is judged apart from its changes: a model whose baseline is off by three predicts little.

use crate::standing;
use crate::terminal::{arranged, empty, keeps_words, none, plain, wrapped};
use crate::verdict::{self, Standing};
use comfy_table::{Cell, CellAlignment};
use kontig_results::{Counts, ExperimentResult, JudgedStep, Row, Score, Tally};

/// An experiment, or a case of it, with the name of the series it belongs to.
#[derive(Clone, Copy)]
pub struct Listed<'a> {
    pub series: &'a str,
    pub result: &'a ExperimentResult,
}

/// The most missed rows that are shown.
const WORST: usize = 20;

/// The overview's text, in no form yet.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The tables that lack runs; empty if none does.
    pub(crate) unfinished: String,
    pub(crate) conclusion: String,
    /// A row for each series, and for each of its experiments.
    pub(crate) rows: Vec<[String; 8]>,
    pub(crate) missed: Option<Missed>,
}

/// The rows that are missed most, headline rows first.
#[derive(Clone, Debug)]
pub(crate) struct Missed {
    pub(crate) head: String,
    pub(crate) rows: Vec<[String; 4]>,
    /// Notes below the table, as several rows may share a reason.
    pub(crate) reasons: Vec<String>,
}

pub(crate) const HEAD: [&str; 8] =
    ["", "direction", "to zero", "false alarms", "headline", "if nothing changed", "ageing", "baseline"];
pub(crate) const MISSED_HEAD: [&str; 4] = ["missed", "published", "measured", "reason"];
pub(crate) const EXPLAINED: &str = "\
direction: rows published to change by a tenth or more that change the published way; by chance half of those that \
move would; a row with several steps counts once for each; to zero: rows that vanish as published; false alarms: \
rows published to change by less that change by more; headline: within 2× of the published change, of one below a \
tenth less than a tenth here, and how many would be if nothing changed; rows whose published change is within their \
series' own noise are in no score; ageing: figures that rise or fall from round to round as published; baseline: \
levels within 2× of the published ones, and the factor that the median row is off by, which is no evidence where an \
experiment's assumptions say that its load was chosen by it. Where ours do a part of the published work, such as \
half a build, levels are held against that part. Bounds such as 'below 1 s' are missed or kept, and in no score";

impl Overview {
    /// `unfinished` names the tables that lack runs.
    pub fn new(listed: &[Listed<'_>], unfinished: &[String]) -> Overview {
        let mut total = Score::default();
        listed.iter().for_each(|one| total.add(&one.result.score));
        let (done, all) = (listed.len(), listed.len() + unfinished.len());
        let missing = plain(&unfinished.join(", "));
        let unfinished = match done == all {
            true => String::new(),
            false => format!("{done} of {all} tables; not finished: {missing}"),
        };
        let mut rows = Vec::new();
        let mut series: Vec<&str> = listed.iter().map(|one| one.series).collect();
        series.dedup();
        for name in series {
            let of_series: Vec<&ExperimentResult> =
                listed.iter().filter(|one| one.series == name).map(|one| one.result).collect();
            let mut sum = Score::default();
            of_series.iter().for_each(|result| sum.add(&result.score));
            let all = of_series.iter().flat_map(|result| levels(result)).collect();
            rows.push(cells(&plain(name), &sum, all));
            if of_series.len() > 1 {
                for result in of_series {
                    let name = format!("  {}", plain(&standing::title(result)));
                    rows.push(cells(&name, &result.score, levels(result)));
                }
            }
        }
        Overview { unfinished, conclusion: conclusion(&total), rows, missed: Missed::of(listed) }
    }

    /// For a terminal of `width` columns.
    pub fn text(&self, width: Option<usize>, colour: bool) -> String {
        let mut out = String::new();
        if !self.unfinished.is_empty() {
            out += &wrapped(&self.unfinished, width);
            out += "\n";
        }
        out += &wrapped(&self.conclusion, width);
        out += "\n";
        let mut table = empty(true, colour);
        table.set_header(HEAD);
        self.rows.iter().for_each(|row| _ = table.add_row(row.iter().map(Cell::new)));
        let table = arranged(numbers_right(table, 1..HEAD.len()), width);
        let names = self.rows.iter().map(|row| row[0].as_str()).chain(HEAD);
        out += &match keeps_words(&table, width, names) {
            true => table + "\n",
            false => self.rows.iter().map(|row| listed(&HEAD, row, width)).collect(),
        };
        out += &wrapped(EXPLAINED, width);
        let Some(missed) = &self.missed else { return out };
        let mut table = empty(true, colour);
        table.set_header(MISSED_HEAD);
        missed.rows.iter().for_each(|row| _ = table.add_row(row.iter().map(Cell::new)));
        let table = arranged(numbers_right(table, 1..3), width);
        let names = missed.rows.iter().map(|row| row[0].as_str()).chain(MISSED_HEAD);
        let table = match keeps_words(&table, width, names) {
            true => table + "\n",
            false => missed.rows.iter().map(|row| listed(&MISSED_HEAD, row, width)).collect(),
        };
        out += &format!("\n{}{table}", wrapped(&missed.head, width));
        missed.reasons.iter().for_each(|reason| out += &wrapped(reason, width));
        out
    }
}

/// A row with its cells below its name, each with its head, for a terminal that is too narrow for a
/// table.
fn listed(head: &[&str], row: &[String], width: Option<usize>) -> String {
    let indent = row[0].len() - row[0].trim_start().len();
    let cells = head.iter().zip(row).skip(1).filter(|(_, cell)| **cell != none());
    let cells: Vec<String> = cells.map(|(head, cell)| format!("{head} {cell}")).collect();
    wrapped(&row[0], width) + &wrapped(&format!("{:1$}{2}", "", indent + 2, cells.join("; ")), width)
}

fn numbers_right(mut table: comfy_table::Table, columns: std::ops::Range<usize>) -> comfy_table::Table {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn conclusion(score: &Score) -> String {
    let Counts { direction, to_zero, false_alarms, headline_within_2x: headline, .. } = score.measured;
    let percent = |n: u32, of: u32| kontig_text::percent(f64::from(n) / f64::from(of.max(1)));
    let chance = match score.beyond_chance {
        Tally { of: 0, .. } => String::new(),
        Tally { agree, of } => {
            format!(
                " Of {of} that change so from the first column to another and whose runs vary, {agree} differ by more \
                 than chance."
            )
        }
    };
    format!(
        "{} of {} rows change the published way ({}), and {} of {} vanish as published.{chance} {} of {} headline rows \
         change by the published size within 2× ({}; {} would if nothing ever changed). Of {} rows that should not \
         move, {} do ({}).",
        direction.agree,
        direction.of,
        percent(direction.agree, direction.of),
        to_zero.agree,
        to_zero.of,
        headline.agree,
        headline.of,
        percent(headline.agree, headline.of),
        score.nothing_changes.headline_within_2x.agree,
        false_alarms.of,
        false_alarms.moved,
        percent(false_alarms.moved, false_alarms.of)
    )
}

/// The factors by which the baseline's levels are off, for rows with a level above 0 on either
/// side.
fn levels(result: &ExperimentResult) -> Vec<f64> {
    let factor = |row: &Row| {
        let (published, measured) = (*row.published.first()?, row.measured.first().copied().flatten()?.value);
        let measured = measured / row.part.unwrap_or(1.0);
        // One that is 0 on one side alone is off by more than any factor.
        let factor = (measured / published).max(published / measured);
        (row.caveat.is_none() && !row.below && published + measured > 0.0).then_some(factor)
    };
    result.rows.iter().filter_map(factor).collect()
}

fn cells(name: &str, score: &Score, mut levels: Vec<f64>) -> [String; 8] {
    let Counts { direction, to_zero, false_alarms, headline_within_2x: headline, ageing } = score.measured;
    let of = |n: u32, of: u32| if of == 0 { none() } else { format!("{n}/{of}") };
    levels.sort_by(f64::total_cmp);
    let middle = levels.get(levels.len().saturating_sub(1) / 2).zip(levels.get(levels.len() / 2));
    let baseline = match middle {
        None => none(),
        Some((lower, upper)) => {
            let near = levels.iter().filter(|factor| **factor <= 2.0).count();
            let middle = (lower + upper) / 2.0;
            let middle = if middle.is_finite() { format!("{middle:.1}") } else { "∞".into() };
            format!("{near}/{} ×{middle}", levels.len())
        }
    };
    [
        name.into(),
        of(direction.agree, direction.of),
        of(to_zero.agree, to_zero.of),
        of(false_alarms.moved, false_alarms.of),
        of(headline.agree, headline.of),
        of(score.nothing_changes.headline_within_2x.agree, headline.of),
        of(ageing.agree, ageing.of),
        baseline,
    ]
}

/// A missed row, its step that is off most, and by how much.
struct Miss<'a> {
    experiment: String,
    row: &'a Row,
    step: &'a JudgedStep,
    /// The natural logarithm of the factor; infinite where one change is to or from nothing.
    off: f64,
}

impl<'a> Miss<'a> {
    fn of(result: &ExperimentResult, row: &'a Row) -> Option<Miss<'a>> {
        let off = |step: &JudgedStep| step.ratio_off.map_or(f64::INFINITY, f64::ln);
        let missed = row.steps.iter().filter(|step| step.missed(row.headline));
        let step = missed.max_by(|a, b| off(a).total_cmp(&off(b)))?;
        Some(Miss { experiment: plain(&standing::title(result)), row, step, off: off(step) })
    }

    /// `experiment: row *`, with the step where the row has several.
    fn name(&self, result: &ExperimentResult) -> String {
        let star = if self.row.headline { " *" } else { "" };
        let step = match self.row.steps.len() {
            1 => String::new(),
            _ => format!(", to {}", plain(&result.variants[self.step.variant])),
        };
        format!("{}: {}{step}{star}", self.experiment, plain(&standing::name(self.row)))
    }
}

impl Missed {
    fn of(listed: &[Listed<'_>]) -> Option<Missed> {
        let mut missed: Vec<(&ExperimentResult, Miss<'_>)> = Vec::new();
        // A bound that is not kept has no step to rank.
        let mut all = 0;
        for Listed { result, .. } in listed {
            let rows: Vec<&Row> = result.rows.iter().filter(|row| verdict::standing(row) == Standing::Missed).collect();
            all += rows.len();
            missed.extend(rows.into_iter().filter_map(|row| Some((*result, Miss::of(result, row)?))));
        }
        if all == 0 {
            return None;
        }
        missed.sort_by(|(_, a), (_, b)| {
            b.row.headline.cmp(&a.row.headline).then(b.off.total_cmp(&a.off)).then(a.row.name.cmp(&b.row.name))
        });
        let mut known: Vec<&str> = Vec::new();
        let mut rows = Vec::new();
        for (result, miss) in missed.iter().take(WORST) {
            let change = |change: Option<f64>| change.map_or_else(none, |change| format!("×{}", short(change)));
            let reason = match &miss.row.lack {
                None => "no cause shown".to_owned(),
                Some(reason) => {
                    let number = known.iter().position(|known| known == reason).unwrap_or_else(|| {
                        known.push(reason);
                        known.len() - 1
                    });
                    format!("({})", number + 1)
                }
            };
            rows.push([
                miss.name(result),
                change(verdict::published_step(miss.row, miss.step)),
                change(verdict::measured_step(miss.row, miss.step)),
                reason,
            ]);
        }
        let shown = missed.len().min(WORST);
        let cut = if known.iter().all(|reason| answer(reason) == *reason) { "" } else { CUT };
        let head = format!("{all} rows are missed; the {shown} that are off most, headline rows (*) first{cut}:");
        let reasons = known.iter().zip(1..).map(|(reason, n)| format!("({n}) {}", plain(answer(reason)))).collect();
        Some(Missed { head, rows, reasons })
    }
}

/// Said where reasons are cut.
const CUT: &str = ". Of a reason these are the first two sentences; the remarks of its table have it whole";

/// The first two sentences of a reason: the cause, or that none was shown, and what shows it best.
fn answer(reason: &str) -> &str {
    &reason[..reason.match_indices(". ").nth(1).map_or(reason.len(), |(at, _)| at)]
}

fn short(change: f64) -> String {
    if change >= 0.1 { format!("{change:.2}") } else { format!("{change:.2e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, MEASURE, Measured, Merge, Noise, judge};

    fn row(name: &str, published: [f64; 2], measured: [f64; 2], headline: bool) -> Row {
        let once = |value| Measured {
            value,
            low: value,
            high: value,
            repetitions: 1,
            lacking: 0,
            samples: None,
            samples_needed: None,
        };
        Row {
            name: name.into(),
            unit: "events".into(),
            phase: MEASURE.into(),
            better: Better::Lower,
            merge: Merge::Median,
            headline,
            published: published.into(),
            below: false,
            zero_is_none: false,
            part: None,
            measured: measured.map(|value| Some(once(value))).into(),
            pairs: vec![],
            steps: judge::steps(&published, &measured.map(Some), Noise::Unknown),
            caveat: None,
            lack: None,
            statistics: vec![],
        }
    }

    fn result(id: &str, rows: Vec<Row>) -> ExperimentResult {
        ExperimentResult {
            id: id.into(),
            case: String::new(),
            machine: "m".into(),
            target: "t".into(),
            repetitions: 1,
            rounds: 1,
            sweeps: vec![],
            variants: vec!["a".into(), "b".into()],
            score: Score::of(&rows, &[]),
            rows,
            ageing: vec![],
            elsewhere: vec![],
            remarks: vec![],
            endings: vec![],
        }
    }

    #[test]
    fn a_level_is_held_against_the_part_of_the_published_work_that_was_done() {
        let whole = row("stalls", [100.0, 10.0], [50.0, 5.0], false);
        let half = Row { part: Some(0.5), ..whole.clone() };
        assert_eq!(levels(&result("e", vec![whole, half])), [2.0, 1.0]);
    }

    #[test]
    fn of_a_series_of_patches_the_missed_step_is_shown() {
        let (published, measured) = ([100.0, 50.0, 25.0], [100.0, 200.0, 100.0]);
        let mut series = row("scans", [100.0, 50.0], [100.0, 200.0], true);
        series.published = published.into();
        series.measured.push(series.measured[0]);
        series.steps = judge::steps(&published, &measured.map(Some), Noise::Unknown);
        let mut result = result("x", vec![series]);
        result.variants.push("c".into());
        let text = Overview::new(&[Listed { series: "Seed 1", result: &result }], &[]).text(None, false);
        let line = text.lines().find(|line| line.trim_start().starts_with("x: ")).expect("a miss");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["x:", "scans,", "to", "b", "*", "×0.50", "×2.00", "no", "cause", "shown"]);
    }

    #[test]
    fn on_a_narrow_terminal_names_stay_whole_and_nothing_is_wider() {
        let name = "Seed 001: mm: page_alloc: defrag_mode kswapd/kcompactd watermarks";
        let rows = || vec![row("compact_migrate_scanned, direct", [100.0, 50.0], [100.0, 200.0], true)];
        let results = ["hugealloc-kbuild-vanillafix", "hugealloc-kbuild-handoff"].map(|id| result(id, rows()));
        let listed = results.each_ref().map(|result| Listed { series: name, result });
        for width in [40, 60, 80, 100] {
            let text = Overview::new(&listed, &[]).text(Some(width), false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            for word in
                ["hugealloc-kbuild-vanillafix", "compact_migrate_scanned,", "kswapd/kcompactd", "no cause shown"]
            {
                assert!(text.contains(word), "{width}, {word}: {text}");
            }
        }
        let text = Overview::new(&listed, &[]).text(Some(40), false);
        let lines = "\n  hugealloc-kbuild-vanillafix\n    direction 0/1; headline 0/1; if\n      nothing changed 0/1; \
                     baseline 1/1\n      ×1.0\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn scores_add_up_by_series_and_the_worst_miss_comes_first_with_its_reason() {
        let right = result("x", vec![row("stalls", [100.0, 10.0], [150.0, 15.0], true)]);
        let scans = Row {
            lack: Some("kswapd sleeps. Awake (a trial), 3.5 scans. Asleep on another node, 4.".into()),
            ..row("scans", [100.0, 50.0], [400.0, 800.0], true)
        };
        let wrong = result("y", vec![scans, row("faults", [10.0, 5.0], [10.0, 9.9], false)]);
        let listed = [Listed { series: "Seed 1", result: &right }, Listed { series: "Seed 1", result: &wrong }];
        assert!(
            Overview::new(&listed, &["z".into()])
                .text(None, false)
                .starts_with("2 of 3 tables; not finished: z\n\n1 of 3 rows"),
            "a part is not taken for the whole"
        );
        let text = Overview::new(&listed, &[]).text(None, false);
        assert!(text.starts_with("1 of 3 rows change the published way (33 %)"), "{text}");
        let line =
            |begin: &str| text.lines().find(|line| line.trim_start().starts_with(begin)).expect("a line").to_owned();
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(line("Seed 1")), ["Seed", "1", "1/3", "–", "–", "1/2", "0/2", "–", "2/3", "×1.5"]);
        let first = words(line("y: "));
        assert_eq!(first, ["y:", "scans", "*", "×0.50", "×2.00", "(1)"]);
        assert!(line("y: faults").ends_with("no cause shown"));
        assert!(text.ends_with("\n(1) kswapd sleeps. Awake (a trial), 3.5 scans\n"), "{text}");
        assert!(text.contains("first two sentences"), "{text}");
    }
}
