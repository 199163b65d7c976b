//! The figures of a real build as a table, on a page and as JSON.

use super::words::{figure, marked};
use kontig_oracle::guest::compare::{Spread, Verdict};
use kontig_oracle::guest::sampled::Row;
use kontig_text::markdown::{self, Align};
use serde_json::{Value, json};

/// The meaning of the rows, for the page.
pub(super) const MEANING: &str = "A real program takes the place of steps: `make -j6` builds 24 files of Debian's 6.1 \
    (compiler, objtool, fixdep, then the linker four times) on 620 MiB, 260 of which a file in memory holds, with \
    512 MiB of swap and huge pages for everybody. All guests build the same sources with the same compiler, whatever \
    their kernel; another seed begins with another file, on both sides. In the lab workload `kbuild-guest` does what \
    was measured of these programs, on the zones that the kernel had when the build began. *inside* is within 25 % of \
    the kernel's mean. Stalls come in bursts when compilers double a table of 4 MiB, on the kernel as in the lab, and \
    how many is chance: a run with two seeds says little of them. Memory is looked at every 250 ms; free huge pages \
    are those of zone DMA32, in blocks of order 9 and more.";

pub(super) fn markdown(rows: &[Row]) -> String {
    let figures = ["kernel", "laboratory", "ratio"].map(|name| (name, Align::Right));
    let mut out = markdown::head([("figure", Align::Left)].into_iter().chain(figures).chain([("", Align::Left)]));
    for row in rows {
        let (lab, ratio) = (row.lab.map_or("–".into(), figure), ratio(row, "–"));
        let verdict = marked(row.verdict());
        out += &markdown::row([row.figure, &figure(row.kernel), &lab, &ratio, verdict]);
    }
    out.push('\n');
    out
}

pub(super) fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<34} {:>28} {:>28} {:>7}\n", "figure", "kernel", "laboratory", "ratio");
    for row in rows {
        let (lab, ratio) = (row.lab.map_or("-".into(), figure), ratio(row, "-"));
        let verdict = row.verdict().word();
        let line = format!("{:<34} {:>28} {lab:>28} {ratio:>7}  {verdict}", row.figure, figure(row.kernel));
        out += line.trim_end();
        out.push('\n');
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    match (count(Verdict::Inside), count(Verdict::Outside)) {
        (0, 0) => out + "\n",
        (inside, outside) => out + &format!("{inside} inside 25 %, {outside} outside\n\n"),
    }
}

pub(super) fn as_json(rows: &[Row]) -> Vec<Value> {
    let spread = |s: Spread| json!({ "mean": s.mean, "least": s.least, "most": s.most });
    let row = |row: &Row| {
        json!({
            "figure": row.figure,
            "kernel": spread(row.kernel),
            "laboratory": row.lab.map(spread),
            "ratio": row.ratio(),
            "verdict": row.verdict().key(),
        })
    };
    rows.iter().map(row).collect()
}

fn ratio(row: &Row, none: &str) -> String {
    row.ratio().map_or(none.into(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_it_is_within_a_quarter() {
        let spread = |least, most| Spread { mean: (least + most) / 2.0, least, most };
        let rows = [
            Row { figure: "of them failed, %", kernel: spread(15.0, 18.7), lab: Some(spread(13.0, 13.0)) },
            Row { figure: "stalls in direct reclaim", kernel: spread(0.0, 0.0), lab: Some(spread(8.0, 14.0)) },
        ];
        let text = table(&rows);
        assert!(text.contains("16.9 [15..18.7]") && text.contains(" 0.77  inside\n"), "{text}");
        assert!(text.contains("11 [8..14]       -  outside\n1 inside 25 %, 1 outside"), "{text}");
        assert!(markdown(&rows).contains("| 0 | 11 [8..14] | – | **outside** |"), "{}", markdown(&rows));
        assert_eq!(as_json(&rows)[0]["verdict"], "inside");
    }
}
