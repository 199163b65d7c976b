//! All experiments as a page of Markdown: the overview, then every published row beside the
//! measured one, so that a change of the model shows as a difference of the page.

use crate::markdown::escaped;
use crate::overview::{EXPLAINED, HEAD, Listed, MISSED_HEAD, Overview};
use crate::terminal::none;
use crate::{number, standing, verdict};
use kontig_results::{ExperimentResult, Row};
use kontig_text::markdown::{self, Align};
use std::iter::once;

/// The page of an overview and its experiments. `seeds` is said as in [`kontig_results::Seeds`].
pub fn page(overview: &Overview, listed: &[Listed<'_>], seeds: &str) -> String {
    let mut parts = vec![
        "# Published tables, run again".to_owned(),
        format!("Made by `kontig reproduce --all --markdown FILE`, {seeds}. All figures are measured or published."),
    ];
    parts.extend(Some(escaped(&overview.unfinished)).filter(|said| !said.is_empty()));
    parts.push(escaped(&overview.conclusion));
    parts.push(table(&HEAD, &overview.rows, |i| if i == 0 { Align::Left } else { Align::Right }));
    parts.push(capitalised(EXPLAINED));
    if let Some(missed) = &overview.missed {
        parts.push("## Missed most".into());
        parts.push(escaped(&missed.head));
        parts.push(table(&MISSED_HEAD, &missed.rows, |i| if matches!(i, 1 | 2) { Align::Right } else { Align::Left }));
        parts.extend(missed.reasons.iter().map(|reason| escaped(reason)));
    }
    for Listed { result, .. } in listed {
        parts.push(format!("## {}", escaped(&standing::title(result))));
        parts.push(rows(result));
        parts.push(capitalised(&format!("a star marks headline rows. {}", ranges(result))));
        parts.extend(remarks(result));
    }
    markdown::wrapped(parts.join("\n\n").trim_end())
}

fn table<const N: usize>(head: &[&str; N], rows: &[[String; N]], align: impl Fn(usize) -> Align) -> String {
    let mut out = markdown::head(head.iter().enumerate().map(|(i, name)| (name.to_string(), align(i))));
    rows.iter().for_each(|row| out += &markdown::row(row.iter().map(|cell| escaped(cell))));
    out.trim_end().to_owned()
}

/// The published rows: each variant's published figure, each measured one, and the verdict.
fn rows(e: &ExperimentResult) -> String {
    let of = |what: &str| {
        let heads: Vec<_> = e.variants.iter().map(|v| (format!("{what} {}", escaped(v)), Align::Right)).collect();
        heads.into_iter()
    };
    let name = once((String::new(), Align::Left));
    let verdict = once(("verdict".to_owned(), Align::Left));
    let mut out = markdown::head(name.chain(of("published")).chain(of("measured")).chain(verdict));
    for row in e.rows.iter().filter(|row| !row.published.is_empty()) {
        let published = |i: usize| row.published.get(i).map_or_else(none, |value| number::exact(*value));
        let measured = |i: usize| verdict::measured(row, i).map_or_else(none, standing::figure);
        let all = 0..e.variants.len();
        let cells = once(name_of(row)).chain(all.clone().map(published)).chain(all.map(measured));
        out += &markdown::row(cells.chain(once(escaped(&verdict::text(row)))));
    }
    out.trim_end().to_owned()
}

fn name_of(row: &Row) -> String {
    let star = if row.headline { " \\*" } else { "" };
    format!("{}{star}, {}", escaped(&standing::name(row)), escaped(&row.unit))
}

fn ranges(e: &ExperimentResult) -> String {
    standing::how_merged(e).map_or_else(|| "One run a variant.".to_owned(), |how| capitalised(&how) + ".")
}

/// The remarks that stand below the table in a terminal, among them why rows are missed.
fn remarks(e: &ExperimentResult) -> Option<String> {
    let line = |(variants, text): (Vec<usize>, &str)| {
        let names: Vec<String> = variants.iter().map(|&v| escaped(&e.variants[v])).collect();
        let whose = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
        format!("- {whose}{}", escaped(text))
    };
    let lines: Vec<String> = standing::remarks(&e.remarks).into_iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{result, row};
    use kontig_results::{Better, Noise, Remark, Score, judge};

    #[test]
    fn every_published_row_is_there_with_its_verdict_and_its_reason() {
        let of = |name: &str, published: [f64; 2], measured: [f64; 2]| Row {
            published: published.into(),
            steps: judge::steps(&published, &measured.map(Some), Noise::Unknown),
            ..row(name, Better::Lower, &measured)
        };
        let stalls = Row { headline: true, ..of("stalls", [100.0, 10.0], [150.0, 15.0]) };
        let scans = of("scans|s", [100.0, 50.0], [400.0, 800.0]);
        let faults = of("faults", [10.0, 5.0], [10.0, 9.9]);
        let own = row("elapsed", Better::Lower, &[1.0, 1.0]);
        let rows = vec![stalls, scans, faults, own];
        let mut e = ExperimentResult { score: Score::of(&rows, &[]), repetitions: 1, ..result(&["a", "b"], rows) };
        let remark = |variant, text: &str| Remark { variant, text: text.into() };
        e.remarks = vec![remark(None, "missed, scans|s: kswapd sleeps"), remark(Some(1), "ended early")];
        let listed = [Listed { series: "Seed 1", result: &e }];
        let page = page(&Overview::new(&listed, &["x".into()]), &listed, "seed 1");
        for line in [
            "# Published tables, run again",
            "1 of 2 tables; not finished: x",
            "| Seed 1 | 1/3 | – | – | 1/1 | 0/1 | – | 2/3 ×1.5 |",
            "## e",
            "|  | published a | published b | measured a | measured b | verdict |",
            "| stalls \\*, us | 100 | 10 | 150 | 15 | agrees |",
            "| scans\\|s, us | 100 | 50 | 400 | 800 | MISSED: opposite |",
            "- missed, scans\\|s: kswapd sleeps",
            "- b: ended early",
        ] {
            assert!(page.lines().any(|l| l == line), "no line '{line}' in\n{page}");
        }
        assert!(!page.contains("elapsed"), "nothing was published of it");
    }
}
