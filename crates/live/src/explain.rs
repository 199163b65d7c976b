//! Diagnosis of a host: the problem, the reason, and what to do (`kontig explain`).
//!
//! The rules are data (`explain/rules.toml`): conditions on facts, a reason, the kernels it is true
//! of, what to do and how to undo it, and where it is said. [`Explanation`] is the JSON of the
//! command.

pub mod condition;
pub mod facts;
pub mod kernels;
pub mod rule;

use facts::Facts;
use rule::{Decision, Rule, Severity};
use serde::Serialize;

/// Name and version of the schema of [`Explanation`].
pub const EXPLAIN_SCHEMA: &str = "kontig.explain/1";

/// The answer of `kontig explain`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    pub schema: &'static str,
    pub kernel: Option<String>,
    /// Seconds of the interval that rates are of; null if they are since boot.
    pub interval_s: Option<f64>,
    /// Rules that hold, in the order of the rules.
    pub findings: Vec<Finding>,
    /// Rules that do not hold, by name.
    pub fine: Vec<String>,
    /// Rules that are about other kernels, by name.
    pub other_kernels: Vec<String>,
    /// Rules that could not be decided.
    pub undecided: Vec<Undecided>,
}

/// A rule that holds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    pub id: String,
    pub severity: Severity,
    /// One line of text.
    pub title: String,
    /// Why it is so, with this host's numbers.
    pub reason: String,
    /// The conditions that hold on this host.
    pub because: Vec<String>,
    pub r#do: String,
    /// Null where there is nothing to undo.
    pub undo: Option<String>,
    /// Null if no cost is known.
    pub cost: Option<String>,
    /// The kernels this is true of.
    pub kernels: String,
    /// Where it is said.
    pub source: String,
}

/// A setting of the host, and a value for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// Its name: `vm.…`, or `thp.…` for a file of `transparent_hugepage`.
    pub name: String,
    pub value: String,
}

impl Finding {
    /// The setting that is recommended, where what to do is nothing but that.
    pub fn setting(&self) -> Option<Setting> {
        let of = |name: String, value: &str| Some(Setting { name, value: value.trim().into() });
        if let Some(rest) = self.r#do.strip_prefix("sysctl ") {
            let (name, value) = rest.split_once('=')?;
            return of(name.into(), value);
        }
        let (value, file) = self.r#do.strip_prefix("echo ")?.split_once(" > /sys/kernel/mm/transparent_hugepage/")?;
        of(format!("thp.{}", file.trim().replace('/', ".")), value)
    }
}

/// A rule that could not be decided.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Undecided {
    pub id: String,
    /// Facts that are not known on this host.
    pub lacks: Vec<String>,
}

impl Explanation {
    /// Applies the rules to these facts.
    pub fn of(rules: &[Rule], facts: &impl Facts, kernel: Option<&str>, interval_s: Option<f64>) -> Explanation {
        let mut e = Explanation {
            schema: EXPLAIN_SCHEMA,
            kernel: kernel.map(str::to_string),
            interval_s,
            findings: vec![],
            fine: vec![],
            other_kernels: vec![],
            undecided: vec![],
        };
        for rule in rules {
            let id = rule.id.clone();
            match rule.decide(facts, kernel) {
                Decision::OtherKernel => e.other_kernels.push(id),
                Decision::DoesNotHold => e.fine.push(id),
                Decision::Undecided { lacks } => e.undecided.push(Undecided { id, lacks }),
                Decision::Holds => e.findings.push(rule.finding(facts)),
            }
        }
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recommended_setting_is_known_as_one() {
        let rules = rule::parse(rule::RULES).expect("the built-in rules");
        let setting = |id: &str| {
            let rule = rules.iter().find(|rule| rule.id == id).expect(id);
            rule.finding(&rule.example).setting().map(|of| (of.name, of.value))
        };
        let is = |name: &str, value: &str| Some((name.to_string(), value.to_string()));
        assert_eq!(setting("proactive-compaction-off"), is("vm.compaction_proactiveness", "20"));
        assert_eq!(setting("khugepaged-fills-holes"), is("thp.khugepaged.max_ptes_none", "0"));
        assert_eq!((setting("in-pieces-and-movable"), setting("marks-are-boosted")), (None, None));
    }
}
