//! Sysctls of an experiment: what is wrong with a setting, and what would help.
//!
//! The engine knows the sysctls, their values and effects ([`kontig_mm::sysctl`]). Which profiles
//! and switches have one is found by asking each.

use crate::experiment::Variant;
use crate::{names, profiles};
use kontig_error::{AskedWrongly, Error};
use kontig_mm::Profile;
use kontig_mm::sysctl::{SYSCTLS, Sysctl, SysctlError};
use kontig_profiles::Switch;

/// The sysctl of this name, with or without `vm.`, if it can be set for a run.
///
/// # Errors
/// If there is none, or if writing it only triggers something.
pub fn setting(name: &str) -> Result<&'static Sysctl, Error> {
    let Some(sysctl) = Sysctl::find(name) else {
        return Err(names::unknown("sysctl", name, SYSCTLS.iter().map(|s| s.name)));
    };
    if !sysctl.is_setting() {
        let reason = format!("{name} starts a compaction and is no setting: run the workload 'compact'");
        return Err(AskedWrongly::Value(reason).into());
    }
    Ok(sysctl)
}

/// Checks that a variant can have this setting; `profile` is the variant's, switches thrown.
///
/// # Errors
/// If there is no such sysctl, or the profile lacks it or rejects the value.
pub fn check(variant: &Variant, profile: &Profile, name: &str, value: &str) -> Result<(), Error> {
    let sysctl = setting(name)?;
    match sysctl.parse(profile, value) {
        Ok(_) => Ok(()),
        Err(e @ (SysctlError::Absent { .. } | SysctlError::NotModelled { .. })) => {
            Err(AskedWrongly::Value(format!("{e}; {}", remedy(sysctl, variant))).into())
        }
        Err(e) => Err(AskedWrongly::Value(e.to_string()).into()),
    }
}

/// Checks that some kernel takes this setting.
///
/// # Errors
/// If there is no such sysctl, or no profile takes the value.
pub(crate) fn check_of_workload(name: &str, value: &str) -> Result<(), Error> {
    let sysctl = setting(name)?;
    let mut refused = None;
    for profile in kontig_profiles::all() {
        match sysctl.parse(&profile, value) {
            Err(SysctlError::Absent { .. }) => {}
            Ok(_) | Err(SysctlError::NotModelled { .. }) => return Ok(()),
            Err(e) => refused = Some(e),
        }
    }
    refused.map_or(Ok(()), |e| Err(AskedWrongly::Value(e.to_string()).into()))
}

/// Applies a workload's own settings to each variant that does not set them and whose kernel takes
/// them. Returns notes: what is set, and what a kernel does not take.
///
/// # Errors
/// If a variant or the workload names an unknown sysctl.
pub fn set_own(variants: &mut [Variant], own: &[(String, String)]) -> Result<Vec<String>, Error> {
    let (mut set, mut notes) = (Vec::new(), Vec::new());
    for (name, value) in own {
        let sysctl = setting(name)?;
        for v in &mut *variants {
            let names = v.sysctls.keys().map(|name| setting(name)).collect::<Result<Vec<_>, _>>()?;
            if names.iter().any(|set| set.name == sysctl.name) {
                continue;
            }
            let profile = profiles::with_switches(&v.profile, &v.switches)?;
            let said = format!("{name}={value}");
            if let Err(e) = sysctl.parse(&profile, value) {
                notes.push(format!("{}: the workload's {said} is not set: {e}", v.name));
                continue;
            }
            v.sysctls.insert(name.clone(), toml::Value::String(value.clone()));
            if !set.contains(&said) {
                set.push(said);
            }
        }
    }
    if !set.is_empty() {
        notes.insert(0, format!("the workload sets {}; --set changes that", set.join(", ")));
    }
    Ok(notes)
}

/// Checks that a setting leaves a machine of `pages` memory to allocate.
///
/// # Errors
/// If it keeps all memory free.
pub(crate) fn leaves_memory(name: &str, value: &str, pages: u64) -> Result<(), String> {
    let keeps_free = Sysctl::full_name(name) == "vm.min_free_kbytes";
    let has = pages * 4;
    match value.parse::<u32>() {
        Ok(kib) if keeps_free && u64::from(kib) >= has => {
            Err(format!("vm.min_free_kbytes = {kib} keeps all memory free: the machine has {has} KiB; set less"))
        }
        _ => Ok(()),
    }
}

/// Ways to give a variant a sysctl that its profile lacks.
fn remedy(sysctl: &Sysctl, variant: &Variant) -> String {
    let mut ways = Vec::new();
    for name in kontig_profiles::switches().into_keys() {
        let switches: Vec<String> = variant.switches.iter().cloned().chain([name.clone()]).collect();
        if profiles::with_switches(&variant.profile, &switches).is_ok_and(|p| sysctl.exists(&p)) {
            ways.push(format!("--switch {name} adds it"));
        }
    }
    let profiles = profiles_with(sysctl);
    if !profiles.is_empty() {
        ways.push(format!("Kontig has it {}", when(&profiles)));
    }
    if ways.is_empty()
        && let Some((profile, switch)) = profile_and_switch_with(sysctl)
    {
        ways.push(format!("--profile {profile} with --switch {switch} has it"));
    }
    ways.join(", ")
}

/// The profiles that have a sysctl without switches.
fn profiles_with(sysctl: &Sysctl) -> Vec<String> {
    kontig_profiles::all().filter(|p| sysctl.exists(p)).map(|p| p.name).collect()
}

/// The newest profile to which a switch adds a sysctl, and the switch.
fn profile_and_switch_with(sysctl: &Sysctl) -> Option<(String, String)> {
    let switches = kontig_profiles::switches();
    let adds = |p: &Profile| {
        let throws = |switch: &Switch| switch.throw(p).is_some_and(|thrown| sysctl.exists(&thrown));
        switches.iter().find(|(_, switch)| throws(switch)).map(|(name, _)| (p.name.clone(), name.clone()))
    };
    kontig_profiles::all().filter_map(|p| adds(&p)).last()
}

/// Switches that add a sysctl to some profile.
fn switches_with(sysctl: &Sysctl) -> Vec<String> {
    let adds = |switch: &Switch| {
        kontig_profiles::all()
            .filter(|p| !sysctl.exists(p))
            .any(|p| switch.throw(&p).is_some_and(|thrown| sysctl.exists(&thrown)))
    };
    kontig_profiles::switches().into_iter().filter(|(_, switch)| adds(switch)).map(|(name, _)| name).collect()
}

/// A sysctl in one line: range, effect, default, and the profiles that have it if not all do.
pub fn listing(sysctl: &Sysctl) -> String {
    let profiles = profiles::all();
    let range_of = |p: &Profile| match sysctl.range(p) {
        _ if sysctl.words(p).is_some() => sysctl.words(p).into_iter().flatten().collect::<Vec<_>>().join("|"),
        (min, max) if min == max => format!("write {min}"),
        (min, u32::MAX) => format!("{min} or more"),
        (min, max) => format!("{min}..{max}"),
    };
    let mut ranges: Vec<(String, Vec<String>)> = Vec::new();
    for p in profiles.iter().filter(|p| sysctl.exists(p)) {
        let range = range_of(p);
        match ranges.iter_mut().find(|(r, _)| *r == range) {
            Some((_, of)) => of.push(p.name.clone()),
            None => ranges.push((range, vec![p.name.clone()])),
        }
    }
    let range = match ranges.as_slice() {
        // A switch alone has it.
        [] => switches_with(sysctl).iter().map(|s| format!("with switch {s}")).collect::<Vec<_>>().join(", "),
        [(range, _)] => range.clone(),
        several => several.iter().map(|(r, of)| format!("{r} {}", when(of))).collect::<Vec<_>>().join(", "),
    };
    let mut facts = Vec::new();
    if sysctl.is_setting() {
        facts.push(match sysctl.default_value() {
            Some(n) => format!("default {}", sysctl.text_of(n)),
            None => "default: computed".into(),
        });
    }
    let having = profiles_with(sysctl);
    if !having.is_empty() && having.len() < profiles.len() {
        let switches: String = switches_with(sysctl).iter().map(|s| format!(", and with switch {s}")).collect();
        facts.push(format!("{}{switches}", when(&having)));
    }
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    format!("{range}: {}{facts}", sysctl.summary)
}

/// Names the part of all profiles that these are, oldest first: `since 5.9`, `until 5.6`,
/// `from 4.6 to 5.10`, `only in 6.12 and 7.2`.
fn when(names: &[String]) -> String {
    let all: Vec<&str> = kontig_profiles::names().collect();
    let at = |name: &String| all.iter().position(|known| known == name);
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return "in none".into() };
    let in_a_row = at(first).zip(at(last)).is_some_and(|(first, last)| last - first + 1 == names.len());
    match names {
        [_, ..] if in_a_row && at(last) == Some(all.len() - 1) => format!("since {first}"),
        [_, _, ..] if in_a_row && at(first) == Some(0) => format!("until {last}"),
        [_, _, _, ..] if in_a_row => format!("from {first} to {last}"),
        [others @ .., last] if !others.is_empty() => format!("only in {} and {last}", others.join(", ")),
        _ => format!("only in {last}"),
    }
}

/// Whether a value is the one that boot sets everywhere.
pub(crate) fn is_default(sysctl: &Sysctl, value: &str) -> bool {
    sysctl.default_value().is_some_and(|d| value.trim() == sysctl.text_of(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(profile: &str, switches: &[&str]) -> (Variant, Profile) {
        let switches: Vec<String> = switches.iter().map(|s| (*s).into()).collect();
        let p = profiles::with_switches(profile, &switches).unwrap();
        (Variant { name: "v".into(), profile: profile.into(), switches, ..Variant::default() }, p)
    }

    #[test]
    fn a_sysctl_the_profile_does_not_have_is_refused_for_that_reason_with_a_remedy_that_works() {
        let (v, p) = variant("6.1", &[]);
        let message = check(&v, &p, "vm.defrag_mode", "1").unwrap_err().to_string();
        assert_eq!(message, "vm.defrag_mode: profile '6.1' does not have it; Kontig has it since 6.15-posted");
        // For every missing sysctl: each way named works, and some way is named.
        let mut missing = 0;
        for profile in profiles::all() {
            for sysctl in SYSCTLS.iter().filter(|s| s.is_setting() && !s.exists(&profile)) {
                missing += 1;
                let (v, p) = variant(&profile.name, &[]);
                let message = check(&v, &p, sysctl.name, "1").unwrap_err().to_string();
                let words: Vec<&str> = message.split([' ', ',']).collect();
                if let Some((profile, switch)) = message.split_once(" with --switch ") {
                    let profile = profile.rsplit(' ').next().expect("a profile");
                    let switch = switch.split(' ').next().expect("a switch");
                    let (v, p) = variant(profile, &[switch]);
                    check(&v, &p, sysctl.name, "1").unwrap();
                    continue;
                }
                let mut ways = 0;
                for pair in words.windows(2).filter(|w| w[0] == "--switch") {
                    let (v, p) = variant(&profile.name, &[pair[1]]);
                    check(&v, &p, sysctl.name, "1").unwrap();
                    ways += 1;
                }
                for named in words.iter().filter(|w| profiles::named(w).is_ok()) {
                    let (v, p) = variant(named, &[]);
                    check(&v, &p, sysctl.name, "1").unwrap();
                    ways += 1;
                }
                assert!(ways > 0, "{message}");
            }
        }
        assert_eq!(
            missing, 87,
            "defrag_mode in twelve profiles, proactiveness and khugepaged's max_ptes_shared in seven, the boost in \
             five, khugepaged's max_ptes_swap in four, the scale factor in three, the move of locked pages in one, the \
             stall's order in all sixteen, generations in all but two, node reclaim's three in six"
        );
    }

    #[test]
    fn a_line_says_range_default_and_who_has_it() {
        let line = |name: &str| listing(Sysctl::find(name).unwrap());
        assert_eq!(
            line("vm.defrag_mode"),
            "0..1: reclaim and compact before splitting foreign pageblocks (default 0; since 6.15-posted, and with \
             switch defrag-mode)"
        );
        assert_eq!(
            line("vm.compaction_proactiveness"),
            "0..100: how hard kcompactd works ahead of need (default 20; since 5.9, and with switch \
             proactive-compaction)"
        );
        assert_eq!(
            line("vm.watermark_scale_factor"),
            "1..1000 from 4.6 to 5.10, 1..3000 since 6.1: 1/10,000 of a zone between watermarks (default 10; since 4.6)"
        );
        assert!(line("vm.swappiness").starts_with("0..100 until 5.6, 0..200 since 5.9: "));
        assert!(line("lru_gen.enabled").ends_with("only in 6.12 and 7.2)"));
        assert_eq!(line("vm.compact_memory"), "write 1: compact every zone completely");
    }

    #[test]
    fn a_workloads_setting_that_a_kernel_lacks_is_noted() {
        let mut variants = [variant("6.1", &[]).0, variant("7.2", &[]).0];
        variants[0].name = "old".into();
        let notes = set_own(&mut variants, &[("vm.defrag_mode".into(), "1".into())]).unwrap();
        assert!(notes[0].starts_with("the workload sets vm.defrag_mode=1;"), "{notes:?}");
        assert!(notes[1].starts_with("old: the workload's vm.defrag_mode=1 is not set: "), "{notes:?}");
        assert_eq!(variants.map(|v| v.sysctls.len()), [0, 1]);
    }
}
