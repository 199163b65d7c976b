//! An experiment as a page of Markdown: questions, each with the tables of the rows that answer it.
//!
//! Every figure has its range over rounds and repetitions beside it. After the questions, the page
//! lists the rows in which a variant differs from the first by more than these ranges. The
//! interpretation is the experiment's own text.

use crate::standing;
use crate::terminal::none;
use crate::{number, verdict};
use kontig_results::{ExperimentResult, MEASURE, Row, TOTAL};
use kontig_text::markdown::{self, Align};
use std::fmt::Write;
use std::iter::once;

/// Contents of a page.
#[derive(Clone, Debug, Default)]
pub struct MarkdownPage<'a> {
    pub title: &'a str,
    pub about: &'a str,
    /// The command that makes the page.
    pub command: String,
    pub assumptions: &'a str,
    /// The machines of the cases, with descriptions.
    pub machines: Vec<(String, String)>,
    /// The variants, with descriptions; the first is the baseline.
    pub variants: Vec<(String, String)>,
    pub questions: Vec<MarkdownQuestion<'a>>,
    pub depends_on: &'a [String],
    pub not_modelled: &'a [String],
    /// One for each case.
    pub results: Vec<&'a ExperimentResult>,
}

/// A question of a page.
#[derive(Clone, Debug)]
pub struct MarkdownQuestion<'a> {
    pub ask: &'a str,
    /// Names of the rows that answer it.
    pub rows: &'a [String],
    /// Interpretation of the rows; may be empty.
    pub reading: &'a str,
}

pub fn page(page: &MarkdownPage<'_>) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    line(&format!("# {}\n", escaped(page.title)));
    line(&format!("{}\n", escaped(page.about)));
    line(&format!(
        "`{}` makes this page. Its tables are measured; the sentences about them are written by hand.\n",
        page.command
    ));
    line("## What was run\n");
    for (name, what) in &page.variants {
        line(&format!("- **{}**: {}", escaped(name), escaped(what)));
    }
    line("");
    for (name, what) in &page.machines {
        line(&format!("- **{}**: {}", escaped(name), escaped(what)));
    }
    line(&format!("\n{}\n", escaped(page.assumptions)));
    if let Some(how) = page.results.first().and_then(|e| standing::how_merged_with_ranges(e)) {
        line(&format!("{}.\n", escaped(&how)));
    }
    for question in &page.questions {
        line(&format!("## {}\n", escaped(question.ask)));
        if !question.reading.is_empty() {
            line(&format!("{}\n", escaped(question.reading)));
        }
        for e in &page.results {
            line(&format!("{}:\n", escaped(case(e))));
            line(&table(e, question.rows));
        }
    }
    if let Some(first) = page.variants.first() {
        line(&format!("## What differs from {} by more than the ranges\n", escaped(&first.0)));
        line("Rows whose two ranges do not overlap; in all other rows they do.\n");
        for e in &page.results {
            for text in beyond_ranges(e, &page.questions) {
                line(&format!("- {text}"));
            }
        }
        line("");
    }
    for (heading, items) in [("What it depends on", page.depends_on), ("What is not modelled", page.not_modelled)] {
        if !items.is_empty() {
            line(&format!("## {heading}\n"));
            items.iter().for_each(|item| line(&format!("- {}", escaped(item))));
            line("");
        }
    }
    markdown::wrapped(out.trim_end())
}

fn case(e: &ExperimentResult) -> &str {
    if e.case.is_empty() { &e.machine } else { &e.case }
}

/// The row of this name: the measured phase's if there are several, and the whole run's where
/// phases have names of their own.
fn row<'a>(e: &'a ExperimentResult, name: &str) -> Option<&'a Row> {
    let named = || e.rows.iter().filter(|row| row.name == name);
    let of_phase = |phase: &str| named().find(|row| row.phase == phase);
    of_phase(MEASURE).or_else(|| of_phase(TOTAL)).or_else(|| named().next())
}

/// Names of rows that are in none of the tables.
pub fn unknown_rows<'a>(page: &MarkdownPage<'a>) -> Vec<&'a str> {
    let names = page.questions.iter().flat_map(|question| question.rows.iter().map(String::as_str));
    names.filter(|name| page.results.iter().all(|e| row(e, name).is_none())).collect()
}

fn table(e: &ExperimentResult, rows: &[String]) -> String {
    let variants = e.variants.iter().map(|variant| (escaped(variant), Align::Right));
    let mut out = markdown::head(once((String::new(), Align::Left)).chain(variants));
    for name in rows {
        let found = row(e, name);
        let title = found.map_or_else(|| escaped(name), |row| format!("{}, {}", escaped(name), escaped(&row.unit)));
        let cell = |i: usize| {
            let Some((row, m)) = found.and_then(|row| Some((row, row.measured.get(i)?.as_ref()?))) else {
                return none();
            };
            let range = standing::range(row, m).map_or_else(String::new, |range| format!(" ({range})"));
            format!("{}{range}", standing::figure(m))
        };
        out += &markdown::row(once(title).chain((0..e.variants.len()).map(cell)));
    }
    out
}

/// For each variant but the first, the rows whose range does not overlap the first's.
fn beyond_ranges(e: &ExperimentResult, questions: &[MarkdownQuestion<'_>]) -> Vec<String> {
    let mut names: Vec<&String> = Vec::new();
    for name in questions.iter().flat_map(|question| question.rows) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let apart_of = |(i, variant): (usize, &String)| {
        let differs = |name: &&String| {
            let row = row(e, name)?;
            let (first, this) = (row.measured.first()?.as_ref()?, row.measured.get(i)?.as_ref()?);
            let apart = this.high < first.low || this.low > first.high;
            let change = verdict::change_to(row, i).map_or_else(
                || format!("{} → {}", number::rounded(first.value), number::rounded(this.value)),
                number::factor,
            );
            apart.then(|| format!("{} {change}", escaped(name)))
        };
        let all: Vec<String> = names.iter().filter_map(differs).collect();
        let all = if all.is_empty() { "nothing".into() } else { all.join("; ") };
        format!("{}, {}: {all}", escaped(case(e)), escaped(variant))
    };
    e.variants.iter().enumerate().skip(1).map(apart_of).collect()
}

/// Escapes text for a table cell in Markdown: no cell ends, no tag begins, no line breaks.
pub(crate) fn escaped(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_results::{Better, Measured, Merge, Score};

    fn measured(value: f64, low: f64, high: f64) -> Option<Measured> {
        Some(Measured { value, low, high, repetitions: 3, lacking: 0, samples: None, samples_needed: None })
    }

    fn result() -> ExperimentResult {
        let row = |phase: &str, measured: Vec<Option<Measured>>| Row {
            name: "stalls".into(),
            unit: "a|b".into(),
            phase: phase.into(),
            better: Better::Lower,
            merge: Merge::Median,
            headline: false,
            published: Vec::new(),
            measured,
            pairs: Vec::new(),
            steps: Vec::new(),
            caveat: None,
            lack: None,
            below: false,
            zero_is_none: false,
            part: None,
            statistics: Vec::new(),
        };
        let of_measure = vec![measured(10.0, 8.0, 12.0), measured(5.0, 4.0, 8.0), measured(20.0, 13.0, 30.0), None];
        ExperimentResult {
            id: "e".into(),
            case: "small".into(),
            machine: "m".into(),
            target: String::new(),
            repetitions: 1,
            rounds: 3,
            sweeps: vec![],
            variants: ["a", "b", "c", "d"].map(String::from).to_vec(),
            rows: vec![row("total", vec![measured(1.0, 1.0, 1.0); 4]), row(MEASURE, of_measure)],
            ageing: Vec::new(),
            score: Score::default(),
            elsewhere: vec![],
            remarks: Vec::new(),
            endings: Vec::new(),
        }
    }

    fn of<'a>(result: &'a ExperimentResult, rows: &'a [String]) -> MarkdownPage<'a> {
        MarkdownPage {
            title: "T",
            variants: vec![("a".into(), "the first".into())],
            questions: vec![MarkdownQuestion { ask: "Who waits?", rows, reading: "As we read it." }],
            results: vec![result],
            ..MarkdownPage::default()
        }
    }

    #[test]
    fn a_question_has_its_rows_of_the_measured_phase_with_their_ranges() {
        let (result, rows) = (result(), ["stalls".to_owned()]);
        let text = page(&of(&result, &rows));
        let expected = "## Who waits?\n\nAs we read it.\n\nsmall:\n\n|  | a | b | c | d |\n| --- | ---: | ---: | \
            ---: | ---: |\n\
                        | stalls, a\\|b | 10 (8–12) | 5 (4–8) | 20 (13–30) | – |\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_row_of_phases_with_names_of_their_own_is_the_whole_runs() {
        let (mut result, rows) = (result(), ["stalls".to_owned()]);
        result.rows[1].phase = "run".into();
        result.rows.rotate_left(1);
        let text = page(&of(&result, &rows));
        assert!(text.contains("| stalls, a\\|b | 1 | 1 | 1 | 1 |\n"), "{text}");
    }

    #[test]
    fn only_what_lies_outside_of_the_first_variants_range_is_called_different() {
        let (result, rows) = (result(), ["stalls".to_owned()]);
        let text = page(&of(&result, &rows));
        let said: Vec<&str> = text.lines().filter(|line| line.starts_with("- small")).collect();
        assert_eq!(said, ["- small, b: nothing", "- small, c: stalls ×2.00", "- small, d: nothing"]);
    }

    #[test]
    fn a_row_that_no_table_has_is_named() {
        let (result, rows) = (result(), ["stalls".to_owned(), "stalled".to_owned()]);
        assert_eq!(unknown_rows(&of(&result, &rows)), ["stalled"]);
    }
}
