//! The effect of a setting, as a table: a pattern's recordings without and with it, beside the
//! lab's runs of both.

use super::Group;
use super::words::figure;
use kontig_oracle::guest::change::{Change, Pair, changes};
use kontig_oracle::guest::compare::Spread;
use kontig_text::markdown::{self, Align};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::fmt::Write;

/// With five equal runs of either kind, chance alone leaves all of one kind on one side for 1
/// figure in 126.
const SEEDS_THAT_SHOW: usize = 5;

/// Two groups that differ by a setting alone: the one without it is first.
pub(super) struct Setting<'a> {
    without: &'a Group,
    with: &'a Group,
}

/// Every setting that was recorded beside the same pattern without it.
pub(super) fn settings(groups: &[Group]) -> Vec<Setting<'_>> {
    let has_setting = |group: &&Group| !group.sysctls.is_empty();
    let same = |a: &Group, b: &Group| (&a.pattern, &a.series) == (&b.pattern, &b.series);
    let of = |with| {
        let without = groups.iter().find(|group| same(group, with) && group.sysctls.is_empty())?;
        Some(Setting { without, with })
    };
    groups.iter().filter(has_setting).filter_map(of).collect()
}

impl Setting<'_> {
    pub(super) fn is_of_builds(&self) -> bool {
        self.with.is_build()
    }

    fn changes(&self) -> Vec<Change> {
        let ((kernel, lab), (kernel_with, lab_with)) = (self.without.runs(), self.with.runs());
        changes([&kernel, &kernel_with], [&lab, &lab_with])
    }

    fn name(&self) -> String {
        let all: Vec<String> = self.with.sysctls.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        all.join(", ")
    }

    fn seeds(&self) -> [usize; 2] {
        [self.without.guests.len(), self.with.guests.len()]
    }

    pub(super) fn markdown(&self) -> String {
        let (name, [without, with]) = (self.name(), self.seeds());
        let (pattern, version) = (&self.with.pattern, &self.with.guests[0].version);
        let mut out = format!("## What {name} changes: {pattern}, Linux {version}\n\n");
        let _ = write!(
            out,
            "{without} runs without it and {with} with it, a seed each, on the kernel and in the lab (machine `{}`, \
             profile {}). A change is one that no two runs contradict{}; *none*: runs with it and without overlap. \
             *within*: the lab's runs overlap with the kernel's, without the setting and with it.\n\n",
            self.with.machine(),
            self.with.series,
            self.by_chance(),
        );
        let (kernel, lab) = (format!("kernel, {name}"), format!("laboratory, {name}"));
        let [figures, words] = [Align::Right, Align::Left].map(|align| move |name| (name, align));
        let columns = ["kernel", &kernel, "laboratory", &lab].map(figures);
        let last = ["kernel changes", "laboratory changes", "within"].map(words);
        out += &markdown::head([("figure", Align::Left)].into_iter().chain(columns).chain(last));
        for change in self.changes() {
            out += &markdown::row([change.figure.to_string()].into_iter().chain(cells(&change)));
        }
        out.push('\n');
        let opposite = self.changes().into_iter().filter(Change::is_opposite).map(|change| change.figure);
        let opposite: Vec<&str> = opposite.collect();
        if !opposite.is_empty() {
            let _ = writeln!(out, "**The lab changes the opposite way:** {}.\n", opposite.join("; "));
        }
        out
    }

    /// A warning where so few runs differ by chance alone: of three and three equal ones 1 figure
    /// in 10 does.
    fn by_chance(&self) -> &'static str {
        if self.seeds().iter().any(|seeds| *seeds < SEEDS_THAT_SHOW) {
            ", which with so few runs is often chance"
        } else {
            ""
        }
    }

    pub(super) fn table(&self) -> String {
        let (name, [without, with]) = (self.name(), self.seeds());
        let mut out =
            format!("{}: what {name} changes; seeds: {without} without it, {with} with it", self.with.pattern);
        out += self.by_chance();
        out.push('\n');
        let heads = ["kernel", "kernel, set", "laboratory", "laboratory, set", "kernel", "laboratory", "within"];
        let line = |figure: &str, [a, b, c, d, e, f, g]: [&str; 7]| {
            format!("{figure:<48} {a:>24} {b:>24} {c:>24} {d:>24}  {e:<10} {f:<10} {g}").trim_end().to_string() + "\n"
        };
        out += &line("figure", heads);
        for change in self.changes() {
            let cells = cells(&change);
            out += &line(change.figure, cells.each_ref().map(String::as_str));
        }
        out.push('\n');
        out
    }

    pub(super) fn as_json(&self) -> Value {
        let spread = |s: Spread| json!({ "mean": s.mean, "least": s.least, "most": s.most });
        let pair =
            |p: Pair| json!({ "without": spread(p.without), "with": spread(p.with), "change": word(p.change()) });
        let change = |c: Change| {
            let (kernel, lab) = (pair(c.kernel), c.lab.map(pair));
            json!({ "figure": c.figure, "kernel": kernel, "laboratory": lab, "within": c.within() })
        };
        json!({
            "pattern": self.with.pattern,
            "profile": self.with.series,
            "setting": self.with.sysctls,
            "figures": self.changes().into_iter().map(change).collect::<Vec<_>>(),
        })
    }
}

/// The cells of a line after the figure's name.
fn cells(change: &Change) -> [String; 7] {
    let lab = |of: fn(Pair) -> String| change.lab.map_or("–".into(), of);
    let within = change.within().map_or("–", |within| match within {
        [true, true] => "both",
        [true, false] => "without",
        [false, true] => "with",
        [false, false] => "neither",
    });
    [
        figure(change.kernel.without),
        figure(change.kernel.with),
        lab(|pair| figure(pair.without)),
        lab(|pair| figure(pair.with)),
        word(change.kernel.change()).into(),
        lab(|pair| word(pair.change()).into()),
        within.into(),
    ]
}

fn word(change: Ordering) -> &'static str {
    match change {
        Ordering::Less => "less",
        Ordering::Equal => "none",
        Ordering::Greater => "more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(least: f64, most: f64) -> Spread {
        Spread { mean: (least + most) / 2.0, least, most }
    }

    #[test]
    fn a_line_says_what_changes_on_both_sides_and_where_they_overlap() {
        let kernel = Pair { without: spread(90.0, 110.0), with: spread(20.0, 40.0) };
        let lab = Pair { without: spread(120.0, 130.0), with: spread(30.0, 125.5) };
        let line = cells(&Change { figure: "stalls", kernel, lab: Some(lab) });
        let shown = ["100 [90..110]", "30 [20..40]", "125 [120..130]", "77.8 [30..125.5]", "less", "none", "with"];
        assert_eq!(line, shown);
    }

    #[test]
    fn a_change_is_opposite_only_if_both_sides_change() {
        let [low, middle, high] = [spread(1.0, 2.0), spread(1.5, 9.0), spread(8.0, 9.0)];
        let (rises, falls) = (Pair { without: low, with: high }, Pair { without: high, with: low });
        let none = Pair { without: low, with: middle };
        let is_opposite = |kernel, lab| Change { figure: "stalls", kernel, lab: Some(lab) }.is_opposite();
        assert!(is_opposite(rises, falls) && is_opposite(falls, rises));
        assert!(!is_opposite(rises, rises) && !is_opposite(rises, none) && !is_opposite(none, falls));
    }

    #[test]
    fn a_laboratory_that_was_not_asked_has_no_figures() {
        let same = Pair { without: spread(5.0, 5.0), with: spread(5.0, 5.0) };
        let line = cells(&Change { figure: "stalls", kernel: same, lab: None });
        assert_eq!(line, ["5", "5", "–", "–", "none", "–", "–"]);
    }
}
