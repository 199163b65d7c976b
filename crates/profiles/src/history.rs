//! The profiles in which a rule has a value, in words. They come from the profiles, so that
//! a new profile needs no new words.

use crate::builtin::names;
use crate::catalog::linux;
use kontig_mm::rules::rule::{Rule, Setting};

/// The settings of all built-in profiles, oldest kernel first.
pub struct History {
    profiles: Vec<(&'static str, Vec<(&'static Rule, Setting)>)>,
}

impl History {
    /// Reads all built-in profiles.
    pub fn read() -> History {
        History { profiles: names().map(|name| (name, linux(name).settings().collect())).collect() }
    }

    /// The profiles in which `rule` is set to `setting`: `from 6.12`, `5.9 to 6.1`,
    /// `up to 4.6, from 7.2`.
    pub fn kernels(&self, rule: &Rule, setting: Setting) -> String {
        let has =
            |(_, settings): &(_, Vec<(&Rule, Setting)>)| settings.iter().any(|(r, s)| *r == rule && *s == setting);
        let name = |at: usize| self.profiles[at].0;
        let last = self.profiles.len() - 1;
        let (mut runs, mut at) = (Vec::new(), 0);
        for run in self.profiles.chunk_by(|a, b| has(a) == has(b)) {
            let (first, end) = (at, at + run.len() - 1);
            at = end + 1;
            if has(&run[0]) {
                runs.push(match (first, end) {
                    (0, end) if end == last => "all profiles".into(),
                    (0, 0) => name(0).into(),
                    (0, end) => format!("up to {}", name(end)),
                    (first, end) if end == last => format!("from {}", name(first)),
                    (first, end) if first == end => name(first).into(),
                    (first, end) => format!("{} to {}", name(first), name(end)),
                });
            }
        }
        if runs.is_empty() { "no profile".into() } else { runs.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_those_whose_profiles_have_the_value() {
        let history = History::read();
        let of = |rule: &str, value: &str, profile: &str| {
            let (rule, setting) = linux(profile).settings().find(|(r, _)| r.name == rule).expect("a rule");
            assert_eq!(setting.shown(), value, "{profile}");
            history.kernels(rule, setting)
        };
        assert_eq!(of("loads_add_up", "false", "5.10"), "up to 5.10");
        assert_eq!(of("loads_add_up", "true", "7.2"), "from 6.1");
        assert_eq!(of("ignored_by", "marked-atomic", "6.1"), "5.9 to 6.1");
        let stalls = of("compact_stall", "unless-skipped-or-deferred", "4.6");
        assert_eq!(stalls.split(", ").next(), Some("4.4 to 5.0"));
        assert_eq!(of("mark", "high-at-work", "6.15-posted"), "6.15-posted");
        assert_eq!(of("batch", "14", "4.6"), "up to 4.6");
        assert_eq!(of("no_lowmem_reserve_for_empty_zones", "false", "6.12"), "all profiles");
        let (rule, _) = linux("6.1").settings().find(|(r, _)| r.name == "batch").expect("a rule");
        assert_eq!(history.kernels(rule, Setting::Number(16)), "no profile");
    }
}
