//! Switches: one seed's patch, as the rules it changes and what they must be before.

use kontig_mm::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;

const FILE: &str = include_str!("../../../profiles/switches.toml");

/// A named switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// One line: what it does.
    pub summary: String,
    /// What the rules of a mechanism must be before: elsewhere the patch is in already, or does not fit.
    from: toml::Table,
    /// What it sets them to.
    set: toml::Table,
}

/// How a switch stands to a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The rules it sets are as they were before its patch.
    Fits,
    /// They are as it sets them.
    Already,
    /// They are otherwise: a later form of the patch.
    Otherwise,
}

/// All switches by name.
pub fn switches() -> BTreeMap<String, Switch> {
    toml::from_str(FILE).unwrap_or_else(|e| panic!("profiles/switches.toml: {e}"))
}

impl Switch {
    /// How it stands to a profile.
    pub fn fit(&self, profile: &Profile) -> Fit {
        let rules = as_table(profile);
        let is = |these: &toml::Table| each(these).all(|(mechanism, rule, value)| rules[mechanism][rule] == *value);
        match () {
            () if is(&self.from) => Fit::Fits,
            () if is(&self.set) => Fit::Already,
            () => Fit::Otherwise,
        }
    }

    /// The profile with this switch thrown; `None` if it does not fit.
    pub fn throw(&self, profile: &Profile) -> Option<Profile> {
        if self.fit(profile) != Fit::Fits {
            return None;
        }
        let mut rules = as_table(profile);
        for (mechanism, rule, value) in each(&self.set) {
            rules[mechanism][rule] = value.clone();
        }
        Some(rules.try_into().expect("switches set rules to values they take"))
    }
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
    fn every_switch_fits_some_profile_and_then_is_there_already() {
        for (name, switch) in switches() {
            let fitting: Vec<Profile> = crate::all().filter(|p| switch.fit(p) == Fit::Fits).collect();
            assert!(!fitting.is_empty(), "{name}");
            for profile in fitting {
                let thrown = switch.throw(&profile).expect("it fits");
                assert_eq!(switch.fit(&thrown), Fit::Already, "{name} over {}", profile.name);
                assert_eq!(switch.throw(&thrown), None);
            }
        }
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
