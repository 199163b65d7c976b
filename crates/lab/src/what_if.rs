//! Changed experiments: one under another machine, profile, switches or settings than published.
//!
//! Settings of the experiment that do not fit the new kernel are left out with a note; those that
//! the user asked for are refused. Variants are then named after their profile, switches and the
//! settings that differ from boot's. Variants that have become equal run once. Of the workload, a
//! driver's `give_up_after` and the fragmenter's holes can be changed.

use crate::error::{AskedWrongly, LabError};
use crate::experiment::{Case, Experiment, Variant};
use crate::page::PageText;
use crate::profiles;
use crate::sysctls;
use kontig_mm::Profile;
use kontig_mm::sysctl::Sysctl;
use kontig_profiles::Fit;
use kontig_workload::Workload;
use kontig_workload::fragmenter::Holes;

/// The changes to an experiment.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// A machine by name or file.
    pub machine: Option<String>,
    /// Kernel generations by name or file: every variant runs on each.
    pub profiles: Vec<String>,
    /// Names of patches on top.
    pub switches: Vec<String>,
    /// Sysctls with their values: every variant runs with each.
    pub settings: Vec<(String, Vec<String>)>,
    /// Failures in a row after which a driver gives up.
    pub give_up_after: Option<u32>,
    /// The pages of a section that the fragmenter frees.
    pub holes: Option<Holes>,
    /// The file of a snapshot that the machine starts from, in place of the fragmenter.
    pub snapshot: Option<String>,
}

impl Changes {
    /// Changes of the workload, a line each; the variants' names do not show them.
    pub fn of_the_workload(&self) -> Vec<String> {
        let holes = self.holes.map(|holes| format!("memory is fragmented with holes = \"{}\"", holes.name()));
        let tries = self.give_up_after.map(|n| format!("the driver gives up after {n} failures in a row"));
        holes.into_iter().chain(tries).collect()
    }
}

/// The changed experiment, and notes about it.
///
/// # Errors
/// If a change does not exist, does not fit, or is requested twice.
pub fn what_if(mut e: Experiment, changes: &Changes) -> Result<(Experiment, Vec<String>), LabError> {
    let settings = settings(&changes.settings)?;
    let mut notes = Vec::new();
    if let Some(machine) = &changes.machine {
        e.machine.clone_from(machine);
        e.case.iter_mut().for_each(|case| case.machine = None);
    }
    e.variant = on_profiles(&e.variant, changes, &mut notes)?;
    for (sysctl, values) in &settings {
        e.variant = with_setting(&e.variant, sysctl, values, &mut notes)?;
        for case in &mut e.case {
            case.sysctls.retain(|name, _| Sysctl::find(name).is_none_or(|s| s.name != sysctl.name));
        }
    }
    let kernel_changed = !changes.profiles.is_empty() || !changes.switches.is_empty() || !settings.is_empty();
    if kernel_changed {
        let swept: Vec<&Sysctl> =
            settings.iter().filter(|(_, values)| values.len() > 1).map(|(sysctl, _)| *sysctl).collect();
        rename_and_drop_same(&mut e, &swept, &mut notes)?;
    }
    let workload_changed = change_workload(&mut e, changes)?;
    if let Some(file) = &changes.snapshot {
        e.workload.begin_with_snapshot(file);
        e.case.iter_mut().filter_map(|case| case.workload.as_mut()).for_each(|w| w.begin_with_snapshot(file));
    }
    if workload_changed || kernel_changed || changes.machine.is_some() || changes.snapshot.is_some() {
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
    Ok((e, notes))
}

/// The variants on each requested profile, or on their own, with the requested switches.
fn on_profiles(variants: &[Variant], changes: &Changes, notes: &mut Vec<String>) -> Result<Vec<Variant>, LabError> {
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
    notes: &mut Vec<String>,
) -> Result<Vec<Variant>, LabError> {
    let profiles = variants.iter().map(|v| profiles::with_switches(&v.profile, &v.switches));
    let profiles = profiles.collect::<Result<Vec<Profile>, _>>()?;
    let some = profiles.iter().any(|p| sysctl.exists(p));
    let mut all = Vec::new();
    for (v, p) in variants.iter().zip(&profiles) {
        if some && !sysctl.exists(p) {
            let (name, to) = (sysctl.name, &v.profile);
            let values = values.join(",");
            note(notes, format!("{name}={values} is not set for profile {to}, which does not have it"));
            all.push(v.clone());
            continue;
        }
        for value in values {
            sysctls::check(v, p, sysctl.name, value)?;
            let mut v = v.clone();
            // The experiment may have set it under the short name.
            v.sysctls.retain(|name, _| Sysctl::find(name).is_none_or(|s| s.name != sysctl.name));
            v.sysctls.insert(sysctl.name.into(), toml::Value::String(value.clone()));
            all.push(v);
        }
    }
    if let [value] = values
        && is_default(sysctl, value)
    {
        note(notes, format!("{}={value} is what boot sets anyway", sysctl.name));
    }
    Ok(all)
}

/// Of cases that have become equal, keeps the first.
fn drop_same_cases(e: &mut Experiment, notes: &mut Vec<String>) {
    let mut kept: Vec<Case> = Vec::new();
    for case in std::mem::take(&mut e.case) {
        let same = |other: &&Case| Case { name: other.name.clone(), ..case.clone() } == **other;
        match kept.iter().find(same) {
            Some(first) => {
                note(notes, format!("cases '{}' and '{}' are the same now, and run once", first.name, case.name))
            }
            None => kept.push(case),
        }
    }
    e.case = kept;
}

/// Changes the workload. Returns whether anything changed.
fn change_workload(e: &mut Experiment, changes: &Changes) -> Result<bool, LabError> {
    let id = e.id.clone();
    let lacks = |option: &str, what: &str| AskedWrongly::Value(format!("{option}: '{id}' {what}"));
    let mut workloads: Vec<&mut Workload> =
        std::iter::once(&mut e.workload).chain(e.case.iter_mut().filter_map(|case| case.workload.as_mut())).collect();
    // Change all of them, not only the first that can be changed.
    let mut any = |change: &dyn Fn(&mut Workload) -> bool| {
        workloads.iter_mut().filter_map(|w| change(w).then_some(())).count() > 0
    };
    if changes.give_up_after.is_some_and(|n| !any(&|w| w.set_give_up_after(n))) {
        return Err(lacks("--give-up-after", "has no driver that allocates huge pages until it gives up").into());
    }
    if changes.holes.is_some_and(|holes| !any(&|w| w.set_holes(holes))) {
        return Err(lacks("--holes", "has no process that fragments memory").into());
    }
    Ok(changes.give_up_after.is_some() || changes.holes.is_some())
}

fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}

/// The settings by sysctl. Each sysctl and each of its values may appear once.
fn settings(asked: &[(String, Vec<String>)]) -> Result<Vec<(&'static Sysctl, Vec<String>)>, LabError> {
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
fn leave_out_what_does_not_fit(v: &mut Variant, old: &Variant, notes: &mut Vec<String>) -> Result<(), LabError> {
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
        note(notes, format!("switch {s} of '{}' is left out: profile {} {has}", old.name, own.name));
    }
    v.switches = fitting;
    let profile = profiles::with_switches(&v.profile, &v.switches)?;
    for (name, value) in old.sysctl_texts() {
        if !sysctls::setting(&name)?.exists(&profile) {
            let reason = format!("{name}={value} of '{}' is left out: profile {} does not have it", old.name, own.name);
            note(notes, reason);
            v.sysctls.remove(&name);
        }
    }
    Ok(())
}

fn is_default(sysctl: &Sysctl, value: &str) -> bool {
    sysctl.default_value().is_some_and(|d| value.trim() == sysctl.text_of(d))
}

/// Names the variants after their contents. Of equal ones, keeps the first.
fn rename_and_drop_same(e: &mut Experiment, swept: &[&Sysctl], notes: &mut Vec<String>) -> Result<(), LabError> {
    let mut kept: Vec<(Variant, String)> = Vec::new();
    for v in std::mem::take(&mut e.variant) {
        let name = described(&v, &profiles::with_switches(&v.profile, &v.switches)?, swept)?;
        match kept.iter().find(|(k, _)| k.name == name && k.profile == v.profile) {
            Some((_, first)) => {
                note(notes, format!("'{first}' and '{}' are both {name} now, which is run once", v.name));
            }
            None => kept.push((Variant { name, ..v.clone() }, v.name)),
        }
    }
    e.variant = kept.into_iter().map(|(v, _)| v).collect();
    Ok(())
}

/// A variant's name from its contents: `7.2`, `5.6+proactive-compaction+proactiveness=80`. A
/// setting with several values shows each, the default too.
fn described(v: &Variant, p: &Profile, swept: &[&Sysctl]) -> Result<String, LabError> {
    let mut name = p.name.clone();
    for s in &v.switches {
        name += &format!("+{s}");
    }
    for (sysctl, value) in v.sysctl_texts() {
        let sysctl = sysctls::setting(&sysctl)?;
        if !is_default(sysctl, &value) || swept.iter().any(|swept| swept.name == sysctl.name) {
            let short = sysctl.short_name();
            name += &format!("+{}={value}", short.strip_prefix("compaction_").unwrap_or(short));
        }
    }
    Ok(name)
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
        let (e, notes) = what_if(e, &changes).unwrap_or_else(|e| panic!("{e}"));
        (e.variant.into_iter().map(|v| v.name).collect(), notes)
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
            what_if(catalog::experiment("compact-32g").unwrap().0, &changes).unwrap_err().to_string()
        };
        assert!(refused("6.1", &["proactive-compaction"], &[]).contains("does not fit profile '6.1'"));
        assert!(refused("6.1", &[], &[("defrag_mode", "1")]).contains("--profile 6.15-posted, 6.15, "));
        let twice = refused("6.1", &[], &[("extfrag_threshold", "1"), ("vm.extfrag_threshold", "2")]);
        assert_eq!(twice, "vm.extfrag_threshold is set twice, to '1' and to '2'");
        let settings = vec![("vm.swappiness".into(), vec!["1".into(), "1".into()])];
        let twice = what_if(catalog::experiment("stutter").unwrap().0, &Changes { settings, ..Changes::default() });
        assert_eq!(twice.unwrap_err().to_string(), "vm.swappiness is given the value 1 twice");
    }

    #[test]
    fn a_setting_takes_the_place_of_the_experiments_own_under_either_name() {
        let mut e = catalog::experiment("backoff").unwrap().0;
        let own = e.variant[0].sysctls.remove("vm.compaction_proactiveness").unwrap();
        e.variant[0].sysctls.insert("compaction_proactiveness".into(), own);
        let settings = vec![("vm.compaction_proactiveness".into(), vec!["60".into()])];
        let (e, _) = what_if(e, &Changes { settings, ..Changes::default() }).unwrap();
        assert_eq!(e.variant[0].sysctl_texts(), [("vm.compaction_proactiveness".into(), "60".into())]);
        assert_eq!(e.variant[0].name, "5.6+proactive-compaction+proactiveness=60");
    }

    #[test]
    fn every_experiment_can_be_asked_about_under_another_setting() {
        for e in crate::catalog::experiments().expect("they can be read") {
            let id = e.id.clone();
            let changes = Changes { profiles: vec!["6.1".into()], ..Changes::default() };
            let (e, _) = what_if(e, &changes).unwrap_or_else(|e| panic!("{id}: {e}"));
            Resolved::all(&e, None).unwrap_or_else(|e| panic!("{id}: {e}"));
        }
    }

    #[test]
    fn another_machine_alone_leaves_the_published_names_but_not_the_published_figures() {
        let e = catalog::experiment("hugepage-latency").unwrap().0;
        let changes = Changes { machine: Some("tiny-64m".into()), ..Changes::default() };
        let (changed, notes) = what_if(e.clone(), &changes).unwrap();
        let names = |e: &Experiment| e.variant.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&changed), notes.len()), (names(&e), 0));
        assert_eq!((changed.machine.as_str(), changed.target), ("tiny-64m", None));
    }
}
