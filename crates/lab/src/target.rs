//! Targets: published figures as data, each with its definition and its caveats.
//!
//! A row takes a figure or distribution of the runs, or a formula over counters; a statistic
//! reduces the values of all repetitions and rounds to one. Caveats come from the publication
//! alone.

use crate::formula::Formula;
use crate::names::did_you_mean;
use kontig_results::{Better, CaveatKind};
use kontig_workload::Wrong;
use serde::{Deserialize, Serialize};

/// The figures of one publication.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name it is asked for by.
    pub id: String,
    /// The columns, baseline first.
    pub variants: Vec<String>,
    /// How many rounds on one machine the series are of.
    pub rounds: Option<u32>,
    /// Where ours do a part of the published work.
    #[serde(default)]
    pub part: Option<Part>,
    /// Rows that are scored apart.
    #[serde(default)]
    pub caveat: Vec<CaveatOf>,
    pub row: Vec<TargetRow>,
    /// Figures that were published round by round.
    #[serde(default)]
    pub series: Vec<PublishedSeries>,
    /// Counts of one column alone.
    #[serde(default)]
    pub shares: Vec<PublishedShares>,
    /// The watermarks of the machine's zones, where they were published.
    #[serde(default)]
    pub watermarks: Vec<PublishedWatermarks>,
}

/// How large a part of the published work ours do: levels are held against that part of the
/// published ones, changes are not affected.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The row whose baseline, here over published, is the part.
    pub by: String,
    /// Rows that do not count work, such as the mean time of an operation.
    pub not: Vec<String>,
}

/// One row of a published table.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TargetRow {
    /// The experiment's case it is of; of an experiment without cases, none.
    pub case: Option<String>,
    pub name: String,
    pub unit: String,
    /// Whether the publication is known for this figure.
    #[serde(default)]
    pub headline: bool,
    /// The published figures are upper bounds.
    #[serde(default)]
    pub below: bool,
    /// A published 0 stands for a figure that nothing was counted for, such as the mean of no
    /// fault.
    #[serde(default)]
    pub zero_is_none: bool,
    /// The figure or distribution of the runs, if its name differs.
    pub of: Option<String>,
    /// The phase, if it is not the whole measurement.
    pub phase: Option<String>,
    /// The statistic: `min`, `max`, `mean`, `median`, `stddev`, or a percentile such as `p99`.
    pub stat: Option<String>,
    /// A formula over counters, instead of a figure (see [`crate::formula`]).
    pub formula: Option<String>,
    /// The better direction, if the figure itself does not say it.
    pub better: Option<Better>,
    /// The published null test: the same kernel measured twice.
    pub null_test: Option<[f64; 2]>,
    /// One figure a column.
    pub values: Vec<f64>,
}

/// Rows that are scored apart, and why.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CaveatOf {
    pub kind: CaveatKind,
    /// The evidence in the publication.
    pub reason: String,
    /// The experiment's case they are of, if not of all.
    pub case: Option<String>,
    /// The rows by name; all if left out.
    pub rows: Option<Vec<String>>,
}

/// A row's figure of one column, round by round.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PublishedSeries {
    /// The experiment's case it is of; of an experiment without cases, none.
    pub case: Option<String>,
    pub row: String,
    pub variant: String,
    /// One figure a round.
    pub values: Vec<f64>,
}

/// Counts of several events, of one column alone and over a time of its own. Shown beside ours as
/// shares, and not judged.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PublishedShares {
    /// The events and the way they were counted.
    pub what: String,
    pub variant: String,
    /// The figures of the runs that count the same.
    pub figures: Vec<String>,
    /// How often, one a figure.
    pub values: Vec<f64>,
}

/// A zone's pages and watermarks, as `/proc/zoneinfo` has them.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PublishedWatermarks {
    /// The zone, such as `DMA32`.
    pub zone: String,
    pub managed: u64,
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stat {
    Min,
    Max,
    Mean,
    Median,
    Stddev,
    Percentile(f64),
}

impl Stat {
    const NAMED: [(&str, Stat); 5] = [
        ("min", Stat::Min),
        ("max", Stat::Max),
        ("mean", Stat::Mean),
        ("median", Stat::Median),
        ("stddev", Stat::Stddev),
    ];

    fn parse(text: &str) -> Result<Stat, String> {
        let percentile = || text.strip_prefix('p')?.parse().ok().filter(|p| (0.0..=100.0).contains(p));
        let named = Stat::NAMED.iter().find(|(name, _)| *name == text).map(|(_, stat)| *stat);
        named.or_else(|| percentile().map(Stat::Percentile)).ok_or_else(|| {
            let mut known: Vec<&str> = Stat::NAMED.iter().map(|(name, _)| *name).collect();
            known.push("p99");
            did_you_mean("statistic", text, &known)
        })
    }
}

impl TargetRow {
    /// Its statistic, if it names one.
    pub(crate) fn stat(&self) -> Result<Option<Stat>, String> {
        self.stat.as_deref().map(Stat::parse).transpose()
    }

    /// Its formula, if it is made of one.
    pub(crate) fn formula(&self) -> Result<Option<Formula>, String> {
        self.formula.as_deref().map(Formula::parse).transpose()
    }
}

/// Whether an entry of one case, or of all cases, applies to this one. An experiment without cases
/// has an empty name.
pub(crate) fn is_of_case(of: &Option<String>, case: &str) -> bool {
    of.as_deref().is_none_or(|of| of == case)
}

impl CaveatOf {
    /// Whether it applies to this row.
    pub(crate) fn names(&self, case: &str, row: &str) -> bool {
        is_of_case(&self.case, case) && self.rows.as_ref().is_none_or(|rows| rows.iter().any(|name| name == row))
    }

    /// Checks that the rows and the case it names exist.
    pub(crate) fn check(&self, rows: &[&TargetRow]) -> Result<(), Wrong> {
        if let Some(case) = &self.case
            && !rows.iter().any(|row| row.case.as_ref() == Some(case))
        {
            let known: Vec<&str> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
            return Err(Wrong::at(&["case"], did_you_mean("case", case, &known)));
        }
        let of_case: Vec<&str> = rows
            .iter()
            .filter(|row| self.case.is_none() || row.case == self.case)
            .map(|row| row.name.as_str())
            .collect();
        match self.rows.iter().flatten().find(|name| !of_case.contains(&name.as_str())) {
            Some(name) => Err(Wrong::at(&["rows"], did_you_mean("row", name, &of_case))),
            None => Ok(()),
        }
    }
}

impl Target {
    /// Checks that its parts are valid and fit together.
    ///
    /// # Errors
    /// The part that does not, with its place.
    pub fn validate(&self) -> Result<(), Wrong> {
        for (i, row) in self.row.iter().enumerate() {
            self.validate_row(i, row).map_err(|wrong| wrong.below(&["row", &i.to_string()]))?;
        }
        let rows: Vec<&TargetRow> = self.row.iter().collect();
        for (i, caveat) in self.caveat.iter().enumerate() {
            let below = |wrong: Wrong| wrong.below(&["caveat", &i.to_string()]);
            caveat.check(&rows).map_err(below)?;
            let twice = |row: &&TargetRow| {
                let of = |caveat: &CaveatOf| caveat.names(row.case.as_deref().unwrap_or_default(), &row.name);
                of(caveat) && self.caveat[..i].iter().any(of)
            };
            if let Some(row) = self.row.iter().find(twice) {
                return Err(below(Wrong::at(&["rows"], format!("row '{}' has a caveat already", row.name))));
            }
        }
        if let Some(part) = &self.part {
            let known: Vec<&str> = self.row.iter().map(|row| row.name.as_str()).collect();
            if let Some(name) = std::iter::once(&part.by).chain(&part.not).find(|name| !known.contains(&name.as_str()))
            {
                let key = if *name == part.by { "by" } else { "not" };
                return Err(Wrong::at(&["part", key], did_you_mean("row", name, &known)));
            }
        }
        for (i, shares) in self.shares.iter().enumerate() {
            let wrong = |key: &str, reason: String| Err(Wrong::at(&["shares", &i.to_string(), key], reason));
            if !self.variants.contains(&shares.variant) {
                let known: Vec<&str> = self.variants.iter().map(String::as_str).collect();
                return wrong("variant", did_you_mean("variant", &shares.variant, &known));
            }
            let (n, figures) = (shares.values.len(), shares.figures.len());
            if n != figures || n == 0 {
                return wrong("values", format!("{n} values for {figures} figures"));
            }
            if let Some(v) = shares.values.iter().find(|v| !v.is_finite() || **v < 0.0) {
                return wrong("values", format!("the value {v} is no count"));
            }
        }
        for (i, series) in self.series.iter().enumerate() {
            self.validate_series(i, series).map_err(|wrong| wrong.below(&["series", &i.to_string()]))?;
        }
        Ok(())
    }

    fn validate_row(&self, i: usize, row: &TargetRow) -> Result<(), Wrong> {
        let (n, variants) = (row.values.len(), self.variants.len());
        let wrong = |key: &str, reason: String| Err(Wrong::at(&[key], reason));
        if n != variants {
            return wrong("values", format!("row '{}' has {n} values for {variants} variants", row.name));
        }
        if let Some(v) = row.values.iter().find(|v| !v.is_finite()) {
            return wrong("values", format!("row '{}' has the value {v}", row.name));
        }
        if self.row[..i].iter().any(|other| (&other.case, &other.name) == (&row.case, &row.name)) {
            return wrong("name", format!("two rows are called '{}'", row.name));
        }
        if row.formula.is_some() && row.of.is_some() {
            return wrong("of", format!("row '{}' is of a figure and has a formula: leave out one", row.name));
        }
        if row.zero_is_none && !row.values.contains(&0.0) {
            return wrong("zero_is_none", format!("row '{}' has no 0 among its values", row.name));
        }
        row.stat().map_err(|reason| Wrong::at(&["stat"], reason))?;
        row.formula().map_err(|reason| Wrong::at(&["formula"], reason))?;
        Ok(())
    }

    fn validate_series(&self, i: usize, series: &PublishedSeries) -> Result<(), Wrong> {
        let wrong = |key: &str, reason: String| Err(Wrong::at(&[key], reason));
        let of_case = || self.row.iter().filter(|row| row.case == series.case).map(|row| row.name.as_str());
        if !of_case().any(|row| row == series.row) {
            return wrong("row", did_you_mean("row", &series.row, &of_case().collect::<Vec<_>>()));
        }
        if !self.variants.contains(&series.variant) {
            let known: Vec<&str> = self.variants.iter().map(String::as_str).collect();
            return wrong("variant", did_you_mean("variant", &series.variant, &known));
        }
        let same = |o: &PublishedSeries| (&o.case, &o.row, &o.variant) == (&series.case, &series.row, &series.variant);
        if self.series[..i].iter().any(same) {
            return wrong("row", format!("'{}' of '{}' has a series already", series.row, series.variant));
        }
        if let Some(v) = series.values.iter().find(|v| !v.is_finite()) {
            return wrong("values", format!("the series '{}' has the value {v}", series.row));
        }
        match (self.rounds, series.values.len()) {
            (None, _) => wrong("values", "a target with a [[series]] says of how many rounds: rounds = 15".into()),
            (Some(rounds), n) if rounds as usize != n || n < 2 => wrong(
                "values",
                format!("the series '{}' of '{}' has {n} values for {rounds} rounds", series.row, series.variant),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in::Form;
    use crate::source::Source;

    const TEXT: &str = "id = 't'\nvariants = ['a', 'b']\nrounds = 3\n\
        [[caveat]]\nkind = 'artefact'\nreason = 'r'\nrows = ['x']\n\
        [[row]]\nname = 'x'\nunit = 's'\nformula = 'compact_stall'\nstat = 'mean'\nvalues = [1, 2]\n\
        [[row]]\nname = 'y'\nunit = 's'\nvalues = [1, 2]\n\
        [[series]]\nrow = 'x'\nvariant = 'b'\nvalues = [1, 2, 3]\n";

    /// The error in the text after one replacement.
    fn said(from: &str, to: &str) -> String {
        let source = Source {
            path: "t.toml".into(),
            text: TEXT.replacen(from, to, 1),
            form: Form::Target,
            built_in: false,
            may_repeat: false,
        };
        let checked = source.parse().and_then(|t: Target| t.validate().map_err(|wrong| source.wrong(wrong)));
        checked.map_or_else(|e| e.to_string(), |()| "nothing".into())
    }

    #[test]
    fn a_bad_target_is_refused_with_its_line() {
        assert_eq!(said("", ""), "nothing");
        let cases = [
            ("'artefact'", "'artifact'", "t.toml:5: unknown value 'artifact': did you mean 'artefact'?"),
            ("rows = ['x']", "rows = ['xx']", "t.toml:7: unknown row 'xx': did you mean 'x'?"),
            ("rows = ['x']", "case = 'c'", "t.toml:7: unknown case 'c'; known: "),
            (
                "'compact_stall'",
                "'compact_stal'",
                "t.toml:11: unknown counter 'compact_stal': did you mean 'compact_stall'?",
            ),
            ("'mean'", "'meen'", "t.toml:12: unknown statistic 'meen': did you mean 'mean'?"),
            ("'mean'", "'p101'", "t.toml:12: unknown statistic 'p101'; known: min, max, mean, median, stddev, p99"),
            ("name = 'y'", "name = 'x'", "t.toml:15: two rows are called 'x'"),
            ("[1, 2]", "[1]", "t.toml:13: row 'x' has 1 values for 2 variants"),
            ("row = 'x'", "row = 'xx'", "t.toml:19: unknown row 'xx': did you mean 'x'?"),
            ("variant = 'b'", "variant = 'bb'", "t.toml:20: unknown variant 'bb': did you mean 'b'?"),
            (
                "values = [1, 2, 3]\n",
                "values = [1, 2, 3]\n[[shares]]\nwhat = 'w'\nvariant = 'b'\nfigures = ['f']\nvalues = [1, 2]\n",
                "t.toml:26: 2 values for 1 figures",
            ),
            ("[1, 2, 3]\n", "[1, 2, 3]\n[part]\nby = 'x'\nnot = ['z']\n", "t.toml:24: unknown row 'z'; known: x, y"),
            ("[1, 2, 3]", "[1, 2]", "t.toml:21: the series 'x' of 'b' has 2 values for 3 rounds"),
            ("rounds = 3\n", "\n", "t.toml:21: a target with a [[series]] says of how many rounds: rounds = 15"),
            (
                "formula = ",
                "of = 'y'\nformula = ",
                "t.toml:11: row 'x' is of a figure and has a formula: leave out one",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(said(from, to), expected);
        }
    }
}
