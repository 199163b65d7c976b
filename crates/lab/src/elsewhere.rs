//! The publication of a workload that runs under other kernels or settings than published.
//!
//! A what-if has no published column of its own. The remarks still say what was published of its
//! workload: from which kernel to which, how the headline rows changed, and what this model is
//! known to miss of it. A variant that makes the published step, with all of its switches and
//! sysctl values, is compared with it row by row; if its kernel differs, the remark says so. A
//! table's conclusion begins with that.

use crate::catalog;
use crate::experiment::{Experiment, Variant};
use crate::missed::Lack;
use crate::quantity::Quantity;
use crate::repetitions::{Repetitions, merged};
use crate::target::{Target, TargetRow, is_of_case};
use kontig_mm::sysctl::Sysctl;
use kontig_results::{Noise, Remark, RunResult, judge};

/// A published experiment with the same workload as another.
pub struct Elsewhere {
    id: String,
    case: String,
    variants: Vec<Variant>,
    target: Target,
    lacks: Vec<Lack>,
    /// Names of other experiments of the same workload.
    others: Vec<String>,
}

impl Elsewhere {
    /// The publication of this experiment's workload, if the experiment has no target.
    pub(crate) fn of(asked: &Experiment) -> Option<Elsewhere> {
        if asked.target.is_some() || asked.variant.iter().any(|v| !v.with.is_empty()) {
            return None;
        }
        let cases = |e: Experiment| match e.case.as_slice() {
            [] => vec![(String::new(), e)],
            cases => cases.iter().map(|case| (case.name.clone(), e.of_case(case))).collect(),
        };
        let same = |(_, e): &(String, Experiment)| e.target.is_some() && e.workload == asked.workload;
        let mut found: Vec<_> = catalog::experiments().ok()?.into_iter().flat_map(cases).filter(same).collect();
        // A changed experiment is compared with its own publication first.
        found.sort_by_key(|(_, e)| e.id != asked.id);
        let mut found = found.into_iter();
        let (case, first) = found.next()?;
        let target = catalog::target(first.target.as_deref()?).ok()?.0;
        let others = found.map(|(_, e)| e.id).collect();
        Some(Elsewhere { id: first.id, case, variants: first.variant, target, lacks: first.lack, others })
    }

    /// The remarks on these runs: what was published, what of it is missed, and how each variant
    /// compares.
    pub(crate) fn remarks(
        &self,
        variants: &[Variant],
        by_variant: &[Repetitions<'_>],
        runs: &[RunResult],
    ) -> Vec<Remark> {
        let of_all = |text: String| Remark { variant: None, text };
        let (Some(from), Some(to)) = (self.variants.first(), self.variants.last()) else { return Vec::new() };
        let of_case = || self.target.row.iter().filter(|row| is_of_case(&row.case, &self.case));
        // A publication of few figures has no headline rows.
        let any_headline = of_case().any(|row| row.headline);
        let rows: Vec<(&TargetRow, [f64; 2])> = of_case()
            .filter(|row| row.headline || !any_headline)
            .filter_map(|row| Some((row, [*row.values.first()?, *row.values.last()?])))
            .collect();
        let one_column = self.variants.len() == 1;
        let published = rows.iter().map(|(row, values)| match one_column {
            true => format!("{} {} {}", row.name, values[0], row.unit),
            false => format!("{} {}", row.name, change(*values)),
        });
        let published: Vec<String> = published.collect();
        let what = match one_column {
            true => format!("of {}", from.name),
            false => format!("from {} to {}", named(from, to), named(to, from)),
        };
        let mut text = format!("'kontig reproduce {}' compares this workload with what was published {what}", self.id);
        if !published.is_empty() {
            text += &format!(": {}", published.join(", "));
        }
        if !self.others.is_empty() {
            text += &format!(" (other published steps: {})", self.others.join(", "));
        }
        let mut remarks = vec![of_all(text)];
        for lack in self.lacks.iter().filter(|lack| is_of_case(&lack.case, &self.case)) {
            remarks.push(of_all(format!("known to be missed, {}: {}", lack.rows.join(", "), lack.why)));
        }
        for (i, _) in variants.iter().enumerate().skip(1).filter(|(_, v)| self.is_step(&variants[0], v)) {
            let held = rows.iter().filter_map(|(row, values)| {
                let quantity = Quantity::of_row(row, runs);
                let both = [merged(&quantity, &by_variant[0])?, merged(&quantity, &by_variant[i])?];
                let measured = both.map(|m| m.value);
                let samples = both.iter().filter_map(|m| m.samples).min().map(|n| format!(", {n} samples"));
                let noise = row.null_test.map_or(Noise::Unknown, Noise::Published);
                let step = judge::judge(1, 0, *values, Some(measured), noise);
                let moves = judge::changes(measured);
                let standing = match (step.direction_agrees, step.false_alarm) {
                    (Some(false), _) if moves => ", THE OTHER WAY",
                    (Some(false), _) => ", unchanged",
                    (None, Some(true)) => ", though it hardly moved there",
                    _ => "",
                };
                let samples = samples.unwrap_or_default();
                Some(format!("{} {} (here {}{samples}{standing})", row.name, change(*values), change(measured)))
            });
            let held: Vec<String> = held.collect();
            if !held.is_empty() {
                let kernel = match variants[i].profile == to.profile {
                    true => String::new(),
                    false => format!(" with {}, by the rules of {} here", to.profile, variants[i].profile),
                };
                let text = format!("published of this step{kernel}: {}", held.join("; "));
                remarks.push(Remark { variant: Some(i), text });
            }
        }
        remarks
    }

    /// Whether two variants differ as the published ones do: in all switches and sysctl values.
    fn is_step(&self, from: &Variant, to: &Variant) -> bool {
        let (Some(published_from), Some(published_to)) = (self.variants.first(), self.variants.last()) else {
            return false;
        };
        let gains =
            |a: &Variant, b: &Variant, switch: &String| b.switches.contains(switch) && !a.switches.contains(switch);
        let gained: Vec<&String> =
            published_to.switches.iter().filter(|s| gains(published_from, published_to, s)).collect();
        let values = [published_from, published_to, from, to].map(Variant::sysctls_by_full_name);
        let value = |i: usize, name: &String| values[i].get(name).cloned().or_else(|| default(name));
        let set: Vec<&String> = values[1].keys().filter(|name| value(0, name) != value(1, name)).collect();
        let is_set = |name: &&String| value(0, name) == value(2, name) && value(1, name) == value(3, name);
        let made = |s: &&String| gains(from, to, s);
        // Another kernel may already have what the switches add.
        let is_patched = match from.profile == published_from.profile {
            true => gained.iter().all(made),
            false => !set.is_empty() || gained.iter().any(made),
        };
        !(gained.is_empty() && set.is_empty()) && is_patched && set.iter().all(is_set)
    }
}

/// The value boot sets, if it is the same everywhere.
fn default(name: &str) -> Option<String> {
    let sysctl = Sysctl::find(name)?;
    sysctl.default_value().map(|value| sysctl.text_of(value))
}

/// A variant with its profile and its differences from another.
fn named(v: &Variant, other: &Variant) -> String {
    let mut what = vec![v.profile.clone()];
    what.extend(v.switches.iter().filter(|s| !other.switches.contains(s)).map(|s| format!("with {s}")));
    let others = other.sysctls_by_full_name();
    let own = v.sysctls_by_full_name().into_iter().filter(|(name, value)| others.get(name) != Some(value));
    what.extend(own.map(|(name, value)| format!("{name}={value}")));
    format!("{} ({})", v.name, what.join(", "))
}

/// The second figure over the first, or both if there is no ratio.
fn change([a, b]: [f64; 2]) -> String {
    match b / a {
        ratio if !ratio.is_finite() => format!("{a} to {b}"),
        0.0 => "to 0".into(),
        ratio if ratio < 0.01 => format!("×{ratio:.5}"),
        ratio => format!("×{ratio:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str) -> Option<Elsewhere> {
        let (mut e, _) = catalog::experiment("hugealloc-kbuild").unwrap_or_else(|e| panic!("{e}"));
        (e.target, e.caveat, e.lack) = (None, Vec::new(), Vec::new());
        e.workload = catalog::workload(name).unwrap_or_else(|e| panic!("{e}")).0.workload;
        Elsewhere::of(&e)
    }

    fn variant(text: &str) -> Variant {
        toml::from_str(&format!("name = 'v'\nprofile = '7.2'\n{text}")).expect("a variant")
    }

    #[test]
    fn a_workload_knows_what_was_published_of_it_and_a_published_experiment_needs_not() {
        let of = asked("kbuild+hugealloc").expect("it is hugealloc-kbuild's");
        let said = &of.remarks(&[variant("")], &[Vec::new()], &[])[0].text;
        let expected = "'kontig reproduce hugealloc-kbuild' compares this workload with what was published from \
                        vanilla (6.14) to defragmode-async-wmarks (6.15-posted, vm.defrag_mode=1): Hugealloc Time \
                        mean ×0.55, ";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.contains("other published steps: hugealloc-kbuild-async, "), "{said}");
        assert!(
            of.remarks(&[variant("")], &[Vec::new()], &[]).iter().any(|r| r.text.starts_with("known to be missed, "))
        );
        assert!(asked("hugealloc").is_none());
        let (published, _) = catalog::experiment("hugealloc-kbuild").unwrap_or_else(|e| panic!("{e}"));
        assert!(Elsewhere::of(&published).is_none(), "its own table says it");
    }

    #[test]
    fn a_variant_makes_the_published_step_by_the_same_sysctl_or_switch() {
        let of = asked("kbuild+hugealloc").expect("it is hugealloc-kbuild's");
        let set = |value: u32| variant(&format!("sysctls = {{ defrag_mode = {value} }}"));
        assert!(of.is_step(&set(0), &set(1)) && of.is_step(&variant(""), &set(1)), "0 is what boot sets");
        assert!(!of.is_step(&set(1), &set(0)) && !of.is_step(&set(1), &set(1)));
        assert!(!of.is_step(&variant(""), &variant("sysctls = { 'vm.swappiness' = 10 }")));
        let own = |id: &str| {
            let (e, _) = catalog::experiment(id).unwrap_or_else(|e| panic!("{e}"));
            Elsewhere::of(&Experiment { target: None, ..e }).expect("its own")
        };
        assert_eq!(own("hugealloc-kbuild-handoff").id, "hugealloc-kbuild-handoff", "of five with one workload");
        let of = own("hugepage-latency");
        assert!(of.is_step(&variant(""), &variant("switches = ['proactive-compaction']")));
    }

    #[test]
    fn of_one_published_column_its_figures_are_said() {
        let (e, _) = catalog::experiment("compact-32g").unwrap_or_else(|e| panic!("{e}"));
        let of = Elsewhere::of(&Experiment { target: None, ..e }).expect("its own");
        let said = of.remarks(&[variant("")], &[Vec::new()], &[]);
        let row = &of.target.row[0];
        let expected = format!("what was published of 5.6.0-rc3: {} {} {}", row.name, row.values[0], row.unit);
        assert!(said[0].text.contains(&expected), "{said:?}");
        let held = said.iter().filter(|remark| remark.variant.is_some()).count();
        assert_eq!(held, 0, "no step to hold a variant against: {said:?}");
    }

    #[test]
    fn changes_are_ratios_where_there_is_one() {
        let of = [[2.0, 1.0], [0.0, 3.0], [5.0, 0.0], [20_000.0, 4.0]].map(change);
        assert_eq!(of, ["×0.50", "0 to 3", "to 0", "×0.00020"]);
    }
}
