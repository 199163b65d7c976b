//! Changed experiments: one under other machines, profiles, switches, settings or parameters of its
//! workload than published.
//!
//! Settings of the experiment that do not fit the new kernel are left out with a note; those that
//! the user asked for are refused. Variants are then named after their profile, switches, the
//! settings that differ from boot's, and what else has several values. Variants that have become
//! equal run once.

mod names;
mod notes;
mod parameters;

use crate::experiment::{Case, Experiment, Variant};
use crate::page::PageText;
use crate::{profiles, sysctls};
use kontig_error::{AskedWrongly, Error};
use kontig_mm::sysctl::Sysctl;
use kontig_profiles::Fit;
use names::rename_and_drop_same;
use notes::Notes;
use parameters::{parameters_of, set_parameters};

/// The changes to an experiment.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Machines by name or file: every variant runs on each.
    pub machines: Vec<String>,
    /// Kernel generations by name or file: every variant runs on each.
    pub profiles: Vec<String>,
    /// Names of patches on top.
    pub switches: Vec<String>,
    /// Sysctls with their values: every variant runs with each.
    pub settings: Vec<(String, Vec<String>)>,
    /// Parameters of the workload with their values: every variant runs with each.
    pub parameters: Vec<(String, Vec<String>)>,
    /// The file of a snapshot that the machine starts from, in place of the fragmenter.
    pub snapshot: Option<String>,
}

/// An experiment with changes.
pub struct WhatIf {
    pub experiment: Experiment,
    /// Remarks on changes that were left out or have no effect.
    pub notes: Vec<String>,
    /// Changes of the workload, a line each, that the variants' names do not show.
    pub of_the_workload: Vec<String>,
}

/// The changed experiment.
///
/// # Errors
/// If a change does not exist, does not fit, or is requested twice.
pub fn what_if(mut e: Experiment, changes: &Changes) -> Result<WhatIf, Error> {
    let settings = settings(&changes.settings)?;
    let mut notes = Notes::default();
    if let Some(file) = &changes.snapshot {
        e.workload.begin_with_snapshot(file);
        e.case.iter_mut().filter_map(|case| case.workload.as_mut()).for_each(|w| w.begin_with_snapshot(file));
    }
    let asked = parameters_of(&e, changes.machines.first(), changes.snapshot.is_some(), &changes.parameters)?;
    on_machines(&mut e, &changes.machines)?;
    e.variant = on_profiles(&e.variant, changes, &mut notes)?;
    for (sysctl, values) in &settings {
        e.variant = with_setting(&e.variant, sysctl, values, &mut notes)?;
        for case in &mut e.case {
            case.sysctls.retain(|name, _| Sysctl::full_name(name) != sysctl.name);
        }
    }
    let of_the_workload = set_parameters(&mut e, &asked)?;
    let kernel_changed = !changes.profiles.is_empty() || !changes.switches.is_empty() || !settings.is_empty();
    let of_all = |path: &String| asked.iter().any(|of| of.path == *path && of.values.len() == 1);
    let is_own = |v: &Variant| v.machine.is_some() || !v.with.keys().all(of_all);
    if kernel_changed || e.variant.iter().any(is_own) {
        let swept: Vec<&Sysctl> =
            settings.iter().filter(|(_, values)| values.len() > 1).map(|(sysctl, _)| *sysctl).collect();
        rename_and_drop_same(&mut e, &swept, &asked, &mut notes)?;
    }
    if kernel_changed || !asked.is_empty() || !changes.machines.is_empty() || changes.snapshot.is_some() {
        // A changed experiment is no longer the published one.
        let targets = e.case.iter_mut().filter_map(|case| case.target.take()).count();
        let than = if e.target.take().is_some() || targets > 0 { "published" } else { "its own" };
        e.caveat.clear();
        e.lack.clear();
        e.summary = format!("What if: {} under other settings than {than}", e.id);
        e.assumptions.clear();
        e.page = e.page.map(PageText::without_readings);
    }
    drop_same_cases(&mut e, &mut notes);
    // A sweep adds many runs on a machine of its own: it belongs to the published table only.
    e.pace = None;
    e.validate().map_err(|wrong| AskedWrongly::Contradictory { path: e.id.clone(), reason: wrong.reason })?;
    Ok(WhatIf { experiment: e, notes: notes.0, of_the_workload })
}

/// Puts the experiment on these machines: on one, or every variant on each of several.
fn on_machines(e: &mut Experiment, machines: &[String]) -> Result<(), Error> {
    let Some(first) = machines.first() else { return Ok(()) };
    if machines.len() > 1 && machines.iter().any(String::is_empty) {
        let list = machines.join(",");
        return Err(AskedWrongly::Value(format!("--machine {list}: a name is empty: there is a comma too many")).into());
    }
    if let Some((_, twice)) = machines.iter().enumerate().find(|(i, name)| machines[..*i].contains(name)) {
        return Err(AskedWrongly::Value(format!("machine {twice} is named twice")).into());
    }
    e.machine.clone_from(first);
    e.case.iter_mut().for_each(|case| case.machine = None);
    if machines.len() > 1 {
        let on = |name: &String| {
            let on = |v: &Variant| Variant { machine: Some(name.clone()), ..v.clone() };
            e.variant.iter().map(on).collect::<Vec<_>>()
        };
        e.variant = machines.iter().flat_map(on).collect();
    }
    Ok(())
}

/// The variants on each requested profile, or on their own, with the requested switches.
fn on_profiles(variants: &[Variant], changes: &Changes, notes: &mut Notes) -> Result<Vec<Variant>, Error> {
    let mut all = Vec::new();
    if changes.profiles.is_empty() {
        all.extend_from_slice(variants);
    }
    for profile in &changes.profiles {
        for old in variants {
            let mut v = Variant { profile: profile.clone(), ..old.clone() };
            leave_out_what_does_not_fit(&mut v, old, notes)?;
            all.push(v);
        }
    }
    for v in &mut all {
        for s in &changes.switches {
            if !v.switches.contains(s) {
                v.switches.push(s.clone());
            }
        }
        profiles::with_switches(&v.profile, &v.switches)?;
    }
    Ok(all)
}

/// The variants with a sysctl set to each of these values; those whose profile lacks it stay
/// unchanged.
fn with_setting(
    variants: &[Variant],
    sysctl: &Sysctl,
    values: &[String],
    notes: &mut Notes,
) -> Result<Vec<Variant>, Error> {
    let profiles = profiles::of_each(variants.iter().map(Variant::kernel))?;
    let some = profiles.iter().any(|p| sysctl.exists(p));
    let mut all = Vec::new();
    for (v, p) in variants.iter().zip(&profiles) {
        if some && !sysctl.exists(p) {
            let (name, to) = (sysctl.name, &v.profile);
            let values = values.join(",");
            notes.add(format!("{name}={values} is not set for profile {to}, which does not have it"));
            all.push(v.clone());
            continue;
        }
        for value in values {
            sysctls::check(v, p, sysctl.name, value)?;
            let mut v = v.clone();
            // The experiment may have set it under the short name.
            v.sysctls.retain(|name, _| Sysctl::full_name(name) != sysctl.name);
            v.sysctls.insert(sysctl.name.into(), toml::Value::String(value.clone()));
            all.push(v);
        }
    }
    if let [value] = values
        && sysctls::is_default(sysctl, value)
    {
        notes.add(format!("{}={value} is what boot sets anyway", sysctl.name));
    }
    Ok(all)
}

/// Of cases that have become equal, keeps the first.
fn drop_same_cases(e: &mut Experiment, notes: &mut Notes) {
    let mut kept: Vec<Case> = Vec::new();
    for case in std::mem::take(&mut e.case) {
        let same = |other: &&Case| Case { name: other.name.clone(), ..case.clone() } == **other;
        match kept.iter().find(same) {
            Some(first) => {
                notes.add(format!("cases '{}' and '{}' are the same now, and run once", first.name, case.name))
            }
            None => kept.push(case),
        }
    }
    e.case = kept;
}

/// The settings by sysctl. Each sysctl and each of its values may appear once.
fn settings(asked: &[(String, Vec<String>)]) -> Result<Vec<(&'static Sysctl, Vec<String>)>, Error> {
    let mut settings: Vec<(&Sysctl, Vec<String>)> = Vec::new();
    for (name, values) in asked {
        let sysctl = sysctls::setting(name)?;
        let values: Vec<String> = values.iter().map(|value| value.trim().to_owned()).collect();
        if let Some((_, before)) = settings.iter().find(|(s, _)| s.name == sysctl.name) {
            let (name, before, after) = (sysctl.name, before.join(","), values.join(","));
            return Err(AskedWrongly::Value(format!("{name} is set twice, to '{before}' and to '{after}'")).into());
        }
        if let Some((_, twice)) = values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
            return Err(AskedWrongly::Value(format!("{} is given the value {twice} twice", sysctl.name)).into());
        }
        settings.push((sysctl, values));
    }
    Ok(settings)
}

/// Drops the experiment's switches and settings that the variant's new profile does not take.
fn leave_out_what_does_not_fit(v: &mut Variant, old: &Variant, notes: &mut Notes) -> Result<(), Error> {
    let own = profiles::named(&v.profile)?;
    let mut fitting = Vec::new();
    for s in &old.switches {
        let has = match profiles::switch(s)?.fit(&own) {
            Fit::Fits => {
                fitting.push(s.clone());
                continue;
            }
            Fit::Already => "has it already",
            Fit::Otherwise => "has its own form of it",
        };
        notes.add(format!("switch {s} of '{}' is left out: profile {} {has}", old.name, own.name));
    }
    v.switches = fitting;
    let profile = profiles::with_switches(&v.profile, &v.switches)?;
    for (name, value) in old.sysctl_texts() {
        if !sysctls::setting(&name)?.exists(&profile) {
            let reason = format!("{name}={value} of '{}' is left out: profile {} does not have it", old.name, own.name);
            notes.add(reason);
            v.sysctls.remove(&name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::resolved::Resolved;

    fn asked(name: &str, profile: &str, switches: &[&str], settings: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let e = catalog::experiment(name).unwrap().0;
        let changes = Changes {
            profiles: profile.split(',').filter(|name| !name.is_empty()).map(String::from).collect(),
            switches: switches.iter().map(|s| (*s).into()).collect(),
            settings: settings.iter().map(|(n, v)| ((*n).into(), v.split(',').map(String::from).collect())).collect(),
            ..Changes::default()
        };
        let found = what_if(e, &changes).unwrap_or_else(|e| panic!("{e}"));
        (found.experiment.variant.into_iter().map(|v| v.name).collect(), found.notes)
    }

    #[test]
    fn a_profile_that_has_a_switch_already_leaves_it_out_and_says_so() {
        let (names, notes) = asked("hugepage-latency", "7.2", &[], &[]);
        assert_eq!(names, ["7.2"]);
        assert_eq!(
            notes,
            [
                "switch proactive-compaction of '5.6.0-rc3+proactiveness=20' is left out: profile 7.2 has its own form \
                 of it",
                "'5.6.0-rc3' and '5.6.0-rc3+proactiveness=20' are both 7.2 now, which is run once",
            ]
        );
        let (names, notes) = asked("hugepage-latency", "5.9", &[], &[]);
        assert_eq!((names[0].as_str(), names.len()), ("5.9", 1));
        assert!(notes[0].ends_with("profile 5.9 has it already"), "{notes:?}");
        assert_eq!(asked("backoff", "6.1", &[], &[]).0, ["6.1+proactiveness=40"]);
    }

    #[test]
    fn variants_are_called_after_what_they_are() {
        assert_eq!(asked("hugepage-latency", "", &[], &[]).0, ["5.6.0-rc3", "5.6.0-rc3+proactiveness=20"]);
        assert_eq!(asked("hugepage-latency", "5.6", &[], &[]).0, ["5.6", "5.6+proactive-compaction"]);
        let (names, notes) = asked("hugepage-latency", "", &[], &[("compaction_proactiveness", "80")]);
        assert_eq!(names, ["5.6", "5.6+proactive-compaction+proactiveness=80"]);
        assert_eq!(notes, ["vm.compaction_proactiveness=80 is not set for profile 5.6, which does not have it"]);
        let (names, notes) =
            asked("hugepage-latency", "7.2", &[], &[("vm.defrag_mode", "1"), ("extfrag_threshold", "500")]);
        assert_eq!(names, ["7.2+defrag_mode=1"]);
        assert_eq!(notes[1], "vm.extfrag_threshold=500 is what boot sets anyway");
        assert_eq!(asked("compact-32g", "", &["proactive-compaction"], &[]).0, ["5.6+proactive-compaction"]);
    }

    #[test]
    fn several_profiles_and_values_are_all_their_combinations_that_there_are() {
        let (names, notes) = asked("compact-32g", "6.12,7.2", &[], &[("vm.defrag_mode", "0,1")]);
        assert_eq!(names, ["6.12", "7.2+defrag_mode=0", "7.2+defrag_mode=1"]);
        assert!(notes.contains(&"vm.defrag_mode=0,1 is not set for profile 6.12, which does not have it".into()));
        let (names, _) = asked("compact-32g", "6.1", &[], &[("vm.swappiness", "10,100"), ("extfrag_threshold", "400")]);
        assert_eq!(names, ["6.1+extfrag_threshold=400+swappiness=10", "6.1+extfrag_threshold=400+swappiness=100"]);
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let refused = |profile: &str, switches: &[&str], settings: &[(&str, &str)]| {
            let changes = Changes {
                profiles: vec![profile.into()],
                switches: switches.iter().map(|s| (*s).into()).collect(),
                settings: settings.iter().map(|(n, v)| ((*n).into(), vec![(*v).into()])).collect(),
                ..Changes::default()
            };
            what_if(catalog::experiment("compact-32g").unwrap().0, &changes).err().expect("refused").to_string()
        };
        assert!(refused("6.1", &["proactive-compaction"], &[]).contains("does not fit profile '6.1'"));
        assert!(refused("6.1", &[], &[("defrag_mode", "1")]).contains("Kontig has it since 6.15-posted"));
        let twice = refused("6.1", &[], &[("extfrag_threshold", "1"), ("vm.extfrag_threshold", "2")]);
        assert_eq!(twice, "vm.extfrag_threshold is set twice, to '1' and to '2'");
        let settings = vec![("vm.swappiness".into(), vec!["1".into(), "1".into()])];
        let twice = what_if(catalog::experiment("stutter").unwrap().0, &Changes { settings, ..Changes::default() });
        assert_eq!(twice.err().expect("refused").to_string(), "vm.swappiness is given the value 1 twice");
    }

    fn with(id: &str, parameters: &[(&str, &[&str])], machines: &[&str]) -> Result<WhatIf, String> {
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let changes = Changes {
            machines: owned(machines),
            parameters: parameters.iter().map(|(name, values)| ((*name).into(), owned(values))).collect(),
            ..Changes::default()
        };
        what_if(catalog::to_run(id).unwrap().0, &changes).map_err(|e| e.to_string())
    }

    fn names(found: &WhatIf) -> Vec<&str> {
        found.experiment.variant.iter().map(|v| v.name.as_str()).collect()
    }

    #[test]
    fn one_value_of_a_parameter_changes_the_workload_and_several_make_variants() {
        let one = with("heap", &[("size", &["2GiB"])], &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&one), ["6.1"]);
        assert_eq!(one.of_the_workload, ["measure.size = 2GiB; the workload's own is 1 GiB"]);
        let several = with("heap", &[("size", &["1GiB", "2 GiB"]), ("holes", &["last", "random"])], &[]);
        let several = several.unwrap_or_else(|e| panic!("{e}"));
        let expected = [
            "6.1+size=1GiB+holes=last",
            "6.1+size=1GiB+holes=random",
            "6.1+size=2GiB+holes=last",
            "6.1+size=2GiB+holes=random",
        ];
        assert_eq!(names(&several).len(), 4);
        assert!(names(&several).iter().all(|name| {
            let mut parts: Vec<&str> = name.split('+').collect();
            parts.sort_unstable();
            expected.iter().any(|of| {
                let mut of: Vec<&str> = of.split('+').collect();
                of.sort_unstable();
                of == parts
            })
        }));
        let resolved = Resolved::all(&several.experiment, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(resolved[0].variants().len(), 4);
        assert!(several.of_the_workload.is_empty());
    }

    #[test]
    fn parameters_that_depend_on_each_other_are_asked_for_together() {
        let both = [("eden", &["600MiB"][..]), ("java.size", &["2GiB", "3GiB"])];
        let both = with("java", &both, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&both), ["6.1+java.size=2GiB", "6.1+java.size=3GiB"]);
    }

    #[test]
    fn a_parameter_that_there_is_not_or_a_value_that_it_does_not_take_is_refused() {
        let said = |name: &str, values: &[&str]| with("heap", &[(name, values)], &[]).err().expect("refused");
        assert!(said("sise", &["1"]).starts_with("--with sise: unknown parameter 'sise': did you mean 'size'?"));
        let far = said("size", &["1GiB", "1TiB"]);
        assert!(far.starts_with("--with size: ") && far.contains("; it takes 2 MiB to 31.5 GiB"), "{far}");
        assert_eq!(said("size", &["1GiB", "1GiB"]), "--with size: the value 1GiB is given twice");
        let twice = with("heap", &[("size", &["1GiB"]), ("measure.size", &["2GiB"])], &[]).err().expect("refused");
        assert_eq!(twice, "--with measure.size: measure.size is set twice");
    }

    #[test]
    fn several_machines_make_variants_that_bear_their_names() {
        let two = with("hugealloc", &[], &["tiny-64m", "box-2g"]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(names(&two), ["6.1 on tiny-64m", "6.1 on box-2g"]);
        let resolved = Resolved::all(&two.experiment, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(resolved[0].machine_names(), "tiny-64m and box-2g");
        let plans = resolved[0].plans(&1.into(), &crate::plan::Views::default()).unwrap_or_else(|e| panic!("{e}"));
        let machines: Vec<&str> = plans.iter().map(|plan| plan[0].machine.name.as_str()).collect();
        assert_eq!(machines, ["tiny-64m", "box-2g"]);
        let twice = with("hugealloc", &[], &["box-2g", "box-2g"]).err().expect("refused");
        assert_eq!(twice, "machine box-2g is named twice");
    }

    #[test]
    fn a_setting_takes_the_place_of_the_experiments_own_under_either_name() {
        let mut e = catalog::experiment("backoff").unwrap().0;
        let own = e.variant[0].sysctls.remove("vm.compaction_proactiveness").unwrap();
        e.variant[0].sysctls.insert("compaction_proactiveness".into(), own);
        let settings = vec![("vm.compaction_proactiveness".into(), vec!["60".into()])];
        let e = what_if(e, &Changes { settings, ..Changes::default() }).unwrap_or_else(|e| panic!("{e}")).experiment;
        assert_eq!(e.variant[0].sysctl_texts(), [("vm.compaction_proactiveness".into(), "60".into())]);
        assert_eq!(e.variant[0].name, "5.6+proactive-compaction+proactiveness=60");
    }

    #[test]
    fn every_experiment_can_be_asked_about_under_another_setting() {
        for e in crate::catalog::experiments().expect("they can be read") {
            let id = e.id.clone();
            let changes = Changes { profiles: vec!["6.1".into()], ..Changes::default() };
            let e = what_if(e, &changes).unwrap_or_else(|e| panic!("{id}: {e}")).experiment;
            Resolved::all(&e, None).unwrap_or_else(|e| panic!("{id}: {e}"));
        }
    }

    #[test]
    fn another_machine_alone_leaves_the_published_names_but_not_the_published_figures() {
        let e = catalog::experiment("hugepage-latency").unwrap().0;
        let changes = Changes { machines: vec!["tiny-64m".into()], ..Changes::default() };
        let WhatIf { experiment: changed, notes, .. } = what_if(e.clone(), &changes).unwrap_or_else(|e| panic!("{e}"));
        let names = |e: &Experiment| e.variant.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&changed), notes.len()), (names(&e), 0));
        assert_eq!((changed.machine.as_str(), changed.target), ("tiny-64m", None));
    }
}
