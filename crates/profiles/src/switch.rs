//! Switches: one patch each, as the rules it changes and their values before it.

use kontig_mm::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;

const FILE: &str = include_str!("../../../profiles/switches.toml");

/// A patch that can be applied to a profile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The effect, in one line.
    pub summary: String,
    /// The values that rules must have before the patch; with other values, the profile has it
    /// already, or it does not fit.
    from: toml::Table,
    /// The values that the patch sets.
    set: toml::Table,
}

/// The relation of a switch to a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The rules have their values from before the patch.
    Fits,
    /// The rules have the patch's values already.
    Already,
    /// The rules have other values: a later form of the patch.
    Otherwise,
}

/// All switches by name.
pub fn switches() -> BTreeMap<String, Switch> {
    toml::from_str(FILE).unwrap_or_else(|e| panic!("profiles/switches.toml: {e}"))
}

impl Switch {
    /// The relation of this switch to a profile.
    pub fn fit(&self, profile: &Profile) -> Fit {
        let rules = as_table(profile);
        let is = |these: &toml::Table| each(these).all(|(mechanism, rule, value)| rules[mechanism][rule] == *value);
        match () {
            () if is(&self.from) => Fit::Fits,
            () if is(&self.set) => Fit::Already,
            () => Fit::Otherwise,
        }
    }

    /// The profile with this switch thrown, which is no recorded kernel; `None` if the switch does
    /// not fit.
    pub fn throw(&self, profile: &Profile) -> Option<Profile> {
        if self.fit(profile) != Fit::Fits {
            return None;
        }
        let mut rules = as_table(profile);
        for (mechanism, rule, value) in each(&self.set) {
            rules[mechanism][rule] = value.clone();
        }
        // No kernel like this was recorded, even if the one without the switch was.
        rules.insert("recorded".into(), false.into());
        Some(rules.try_into().expect("switches set rules to values they take"))
    }
}

/// The switches to throw before this one, in order, so that it fits a profile: none if it fits
/// already, else the fewest, up to two. `None` if they do not help, or if the profile has it
/// already.
pub fn to_throw_before(name: &str, profile: &Profile) -> Option<Vec<String>> {
    let known = switches();
    let wanted = known.get(name)?;
    if wanted.fit(profile) == Fit::Already {
        return None;
    }
    let mut ways: Vec<(Vec<String>, Profile)> = vec![(Vec::new(), profile.clone())];
    for _ in 0..=2 {
        if let Some((names, _)) = ways.iter().find(|(_, p)| wanted.fit(p) == Fit::Fits) {
            return Some(names.clone());
        }
        let thrown = |(names, profile): &(Vec<String>, Profile)| -> Vec<(Vec<String>, Profile)> {
            let each = known.iter().filter_map(|(next, switch)| Some((next, switch.throw(profile)?)));
            each.map(|(next, thrown)| ([names.as_slice(), std::slice::from_ref(next)].concat(), thrown)).collect()
        };
        ways = ways.iter().flat_map(thrown).collect();
    }
    None
}

fn as_table(profile: &Profile) -> toml::Table {
    toml::Table::try_from(profile).expect("a profile is a table")
}

/// The rules in a table of mechanisms.
fn each(mechanisms: &toml::Table) -> impl Iterator<Item = (&str, &str, &toml::Value)> {
    let rules = |(mechanism, rules)| {
        let rules: &toml::Value = rules;
        let rules = rules.as_table().expect("switches name mechanisms, then rules");
        rules.iter().map(move |(rule, value): (&String, _)| (mechanism, rule, value))
    };
    mechanisms
        .iter()
        .map(|(m, rules)| (m.as_str(), rules))
        .flat_map(rules)
        .map(|(m, rule, value)| (m, rule.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_fits_some_profile_or_what_others_make_of_it_and_then_is_there_already() {
        let mut profiles: Vec<Profile> = crate::all().collect();
        let mut left = switches();
        loop {
            let (fitting, rest) = left.into_iter().partition(|(_, s)| profiles.iter().any(|p| s.fit(p) == Fit::Fits));
            left = rest;
            let fitting: BTreeMap<String, Switch> = fitting;
            if fitting.is_empty() {
                break;
            }
            for (name, switch) in fitting {
                for profile in profiles.clone() {
                    let Some(thrown) = switch.throw(&profile) else { continue };
                    assert_eq!(switch.fit(&thrown), Fit::Already, "{name} over {}", profile.name);
                    assert_eq!(switch.throw(&thrown), None);
                    assert!(!thrown.recorded, "{name} over {}", profile.name);
                    profiles.push(thrown);
                }
            }
        }
        assert_eq!(left.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "these fit nothing");
    }

    /// A profile's rules with some switches thrown, one after the other.
    fn with(profile: &str, names: &[&str]) -> toml::Table {
        let known = switches();
        let thrown = names.iter().fold(crate::linux(profile), |p, name| {
            known[*name].throw(&p).unwrap_or_else(|| panic!("{name} does not fit {profile}"))
        });
        rules(&thrown)
    }

    fn rules(profile: &Profile) -> toml::Table {
        as_table(profile).into_iter().filter(|(_, value)| value.is_table()).collect()
    }

    #[test]
    fn the_patches_of_seed_001_make_6_14_what_was_posted_and_the_fixes_what_was_released() {
        let patches = [
            "suitability-by-mark",
            "traced-captures",
            "defrag-mode",
            "defrag-mode-pageblocks",
            "defrag-mode-watermarks",
        ];
        let mut posted = with("6.14", &patches);
        // Of 6.15, but not of the patches.
        posted["proactive"]["half_leeway"] = true.into();
        posted["compaction"]["splits_from_the_end"] = false.into();
        assert_eq!(posted, rules(&crate::linux("6.15-posted")));
        let fixes = ["defrag-mode-mark", "defrag-mode-retry", "defrag-mode-exact-balance", "defrag-mode-handoff"];
        assert_eq!(with("6.15-posted", &fixes), rules(&crate::linux("6.15")));
    }

    #[test]
    fn switches_know_those_that_must_be_thrown_before_them() {
        let before = |name, profile| to_throw_before(name, &crate::linux(profile));
        assert_eq!(before("defrag-mode", "6.14"), Some(vec![]));
        assert_eq!(before("defrag-mode-pageblocks", "6.14"), Some(vec!["defrag-mode".into()]));
        let marks = ["defrag-mode".to_owned(), "defrag-mode-watermarks".into()];
        assert_eq!(before("defrag-mode-mark", "6.14"), Some(marks.into()));
        assert_eq!(before("defrag-mode-mark", "6.15"), None, "it is there");
        assert_eq!(before("stall-free-huge-pages", "6.14"), None, "nothing leads there");
    }

    #[test]
    fn the_patch_of_seed_003_fits_4_4_and_4_6_has_it() {
        let switch = &switches()["stall-free-huge-pages"];
        let fits: Vec<Fit> = ["4.4-kcompactd", "4.6", "5.6"].map(|p| switch.fit(&crate::linux(p))).into();
        assert_eq!(fits, [Fit::Fits, Fit::Already, Fit::Otherwise]);
    }

    #[test]
    fn the_patch_of_seed_000_fits_5_6_only() {
        let switch = &switches()["proactive-compaction"];
        let fits: Vec<Fit> = ["5.6", "5.9", "6.1"].map(|p| switch.fit(&crate::linux(p))).into();
        assert_eq!(fits, [Fit::Fits, Fit::Already, Fit::Otherwise]);
    }
}
