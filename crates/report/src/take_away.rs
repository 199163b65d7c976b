//! A table's figures as CSV, a row for each figure and variant.

use crate::{bounds, shown, standing};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kontig_results::{Better, ExperimentResult, Row};

const HEAD: [&str; 14] = [
    "experiment",
    "case",
    "machine",
    "phase",
    "figure",
    "unit",
    "better",
    "variant",
    "value",
    "low",
    "high",
    "seeds",
    "samples",
    "published",
];

/// The file that a page hands over.
pub(crate) struct File {
    pub(crate) name: String,
    /// Whether it has every figure, and not only those that the conclusion is about.
    pub(crate) is_whole: bool,
    /// Rows below the head.
    pub(crate) rows: usize,
    /// An address that holds the whole text.
    pub(crate) address: String,
}

/// Every figure; where those are too many for a page, the ones that the conclusion is about. None
/// if those are too many as well.
pub(crate) fn file(e: &ExperimentResult) -> Option<File> {
    let name = format!("{}.csv", standing::title(e)).replace(|c: char| c.is_whitespace() || "/\\:".contains(c), "-");
    let all: Vec<&Row> = e.rows.iter().collect();
    let (text, rows) = [all, shown::that_matter(e)]
        .into_iter()
        .map(|rows| (text(e, &rows), rows))
        .find(|(text, _)| text.len() <= bounds::FILE)?;
    let address = format!("data:text/csv;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text));
    Some(File { name, is_whole: rows.len() == e.rows.len(), rows: rows.len() * e.variants.len(), address })
}

/// The rows in the table's order, with a head.
fn text(e: &ExperimentResult, rows: &[&Row]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(HEAD);
    for row in rows {
        let better = match row.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "",
        };
        for (i, variant) in e.variants.iter().enumerate() {
            let m = row.measured.get(i).copied().flatten();
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let figures = [
                number(m.map(|m| m.value)),
                number(m.map(|m| m.low)),
                number(m.map(|m| m.high)),
                count(m.map(|m| u64::from(m.repetitions))),
                count(m.and_then(|m| m.samples)),
                number(row.published.get(i).copied()),
            ];
            let of = [&*e.id, &*e.case, &*e.machine, &*row.phase, &*row.name, &*row.unit, better, variant.as_str()];
            let _ = writer.write_record(of.into_iter().chain(figures.iter().map(String::as_str)));
        }
    }
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::{result, row};

    #[test]
    fn each_figure_of_each_variant_is_a_row() {
        let mut lacking = row("p99, \"all\"", Better::Lower, &[1.5, 2.0]);
        lacking.measured[1] = None;
        let e = result(&["a", "b+x=1"], vec![lacking, row("pages", Better::Neither, &[3.0, 4.0])]);
        let text = String::from_utf8(text(&e, &e.rows.iter().collect::<Vec<_>>())).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 2);
        assert_eq!(lines[0], HEAD.join(","));
        assert_eq!(lines[1], "e,,m,measure,\"p99, \"\"all\"\"\",us,lower,a,1.5,1.5,1.5,1,,");
        assert_eq!(lines[2], "e,,m,measure,\"p99, \"\"all\"\"\",us,lower,b+x=1,,,,,,");
        assert_eq!(lines[4], "e,,m,measure,pages,us,,b+x=1,4,4,4,1,,");
        let file = file(&e).expect("it is small");
        let (_, encoded) = file.address.split_once("base64,").expect("an address with the text");
        assert_eq!(BASE64_STANDARD.decode(encoded).expect("base64"), text.as_bytes());
        assert_eq!((file.name.as_str(), file.rows, file.is_whole), ("e.csv", 4, true));
    }

    #[test]
    fn too_many_figures_for_a_page_become_those_that_matter() {
        let of = |variants: usize, seen: usize| {
            let values = vec![1.5; variants];
            let seen = (0..seen).map(|i| row(&format!("seen {i}"), Better::Neither, &values));
            let rows = seen.chain([row("p99", Better::Lower, &values)]).collect();
            let names: Vec<String> = (0..variants).map(|i| format!("variant {i}")).collect();
            file(&result(&names.iter().map(String::as_str).collect::<Vec<_>>(), rows))
        };
        assert!(of(5, 200).is_some_and(|file| file.is_whole));
        let some = of(500, 200).expect("those that matter fit");
        assert_eq!((some.is_whole, some.rows), (false, 500));
        assert!(of(20_000, 0).is_none());
    }
}
