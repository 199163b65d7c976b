//! A rule as its file has it.

use super::Finding;
use super::condition::Condition;
use super::facts::{Fact, Facts};
use super::kernels::Kernels;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use toml::Spanned;

/// A rule about hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    pub id: String,
    /// Where its name stands in the file, in bytes.
    from: usize,
    /// The kernels it is true of, and as they are written.
    kernels: (Kernels, String),
    /// All of them have to hold, and as they are written.
    pub when: Vec<(Condition, String)>,
    pub texts: Texts,
    /// A host on which it holds.
    pub example: BTreeMap<String, Fact>,
}

/// The texts of a finding.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Texts {
    title: String,
    #[serde(default)]
    severity: Severity,
    reason: String,
    r#do: String,
    undo: Option<String>,
    cost: Option<String>,
    source: String,
}

/// Whether a finding calls for action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Act,
    /// It is good to know when numbers are read.
    Know,
    Good,
}

/// The outcome of a rule on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Holds,
    DoesNotHold,
    OtherKernel,
    /// Some facts are not known.
    Undecided {
        lacks: Vec<String>,
    },
}

/// A mistake in a file of rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRules {
    /// The line it is in, counted from 1.
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for BadRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for BadRules {}

#[derive(Deserialize)]
struct File {
    rule: Vec<Written>,
}

#[derive(Deserialize)]
struct Written {
    id: Spanned<String>,
    kernels: String,
    when: Vec<String>,
    example: BTreeMap<String, Fact>,
    #[serde(flatten)]
    texts: Texts,
}

/// The rules that come with the program.
pub const RULES: &str = include_str!("rules.toml");

/// Reads rules.
///
/// # Errors
/// The first mistake in them.
pub fn parse(text: &str) -> Result<Vec<Rule>, BadRules> {
    let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|e| BadRules {
        line: line(e.span().map_or(0, |span| span.start)),
        reason: e.message().replace('\n', " "),
    })?;
    file.rule.into_iter().map(|written| rule(written, text)).collect()
}

fn rule(written: Written, file: &str) -> Result<Rule, BadRules> {
    let Written { id, kernels, when, example, texts } = written;
    let (from, id) = (id.span().start, id.into_inner());
    let bad = |quoted: &str, why: &str| {
        let at = from + file[from..].find(quoted).unwrap_or(0);
        BadRules { line: file[..at].matches('\n').count() + 1, reason: format!("rule {id}: '{quoted}' {why}") }
    };
    let range = Kernels::parse(&kernels).ok_or_else(|| bad(&kernels, "is no range of kernels"))?;
    let condition = |text: String| match Condition::parse(&text) {
        Some(condition) if condition.mixes_words_and_numbers() => {
            Err(bad(&text, "compares a number with a word, or the other way round"))
        }
        Some(condition) => Ok((condition, text)),
        None => Err(bad(&text, "is no condition")),
    };
    let when = when.into_iter().map(condition).collect::<Result<_, BadRules>>()?;
    Ok(Rule { id, from, kernels: (range, kernels), when, texts, example })
}

/// Refuses a fact that no kernel shows. What this host does not show may be right on another.
///
/// # Errors
/// The first such name, with the nearest known one.
pub fn check_facts(rules: &[Rule], file: &str, known: &BTreeSet<String>) -> Result<(), BadRules> {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    for rule in rules {
        let of_conditions = rule.when.iter().flat_map(|(condition, _)| condition.facts());
        for name in of_conditions.chain(rule.named()) {
            let plain = name.strip_suffix(".per_hour").unwrap_or(name);
            if known.contains(plain) {
                continue;
            }
            let at = rule.from + file[rule.from..].find(name).unwrap_or(0);
            let nearest = kontig_profiles::nearest(plain, &names).map(|near| name.replacen(plain, &near, 1));
            let meant = nearest.map_or(String::new(), |near| format!(": did you mean '{near}'?"));
            let reason = format!("rule {}: unknown fact '{name}'{meant}", rule.id);
            return Err(BadRules { line: file[..at].matches('\n').count() + 1, reason });
        }
    }
    Ok(())
}

impl Rule {
    /// Decides whether it holds on a host.
    pub fn decide(&self, facts: &impl Facts, kernel: Option<&str>) -> Decision {
        match kernel.and_then(|release| self.kernels.0.contains(release)) {
            Some(false) => return Decision::OtherKernel,
            None => return Decision::Undecided { lacks: vec!["the kernel's release".into()] },
            Some(true) => {}
        }
        let decided = self.when.iter().map(|(condition, _)| condition.holds(facts));
        // One condition that does not hold is enough, whatever is not known of the others.
        if decided.clone().any(|holds| holds == Some(false)) {
            return Decision::DoesNotHold;
        }
        if decided.clone().all(|holds| holds == Some(true)) {
            return Decision::Holds;
        }
        let named = self.when.iter().flat_map(|(condition, _)| condition.facts());
        let mut lacks: Vec<String> = named.filter(|name| facts.get(name).is_none()).map(str::to_string).collect();
        lacks.dedup();
        Decision::Undecided { lacks }
    }

    /// The finding on a host where it holds.
    pub fn finding(&self, facts: &impl Facts) -> Finding {
        let texts = &self.texts;
        let filled = |text: &String| filled(text, facts);
        let because = |(condition, text): &(Condition, String)| {
            let known = |name: &str| Some(format!("{name} is {}", facts.words(name)?));
            let known: Vec<String> = condition.facts().filter_map(known).collect();
            format!("{text} ({})", known.join(", "))
        };
        Finding {
            id: self.id.clone(),
            severity: texts.severity,
            title: texts.title.clone(),
            reason: filled(&texts.reason),
            because: self.when.iter().map(because).collect(),
            r#do: filled(&texts.r#do),
            undo: texts.undo.as_ref().map(filled),
            cost: texts.cost.clone(),
            kernels: self.kernels.1.clone(),
            source: texts.source.clone(),
        }
    }

    /// The facts that its texts name in braces.
    pub fn named(&self) -> Vec<&str> {
        let texts = [Some(&self.texts.reason), Some(&self.texts.r#do), self.texts.undo.as_ref()];
        let parts = texts.into_iter().flatten().flat_map(|text| text.split('{').skip(1));
        parts.filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect()
    }
}

/// A text with facts in place of their names in braces; an unknown fact is said to be unknown.
fn filled(text: &str, facts: &impl Facts) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let Some((name, rest)) = part.split_once('}') else { continue };
        out += &facts.words(name).unwrap_or_else(|| "(not known)".into());
        out += rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Vec<Rule> {
        parse(RULES).unwrap_or_else(|e| panic!("{e}"))
    }

    const KERNEL: Option<&str> = Some("6.18.44");

    #[test]
    fn each_rule_holds_on_its_example_and_each_of_its_conditions_matters() {
        for rule in rules() {
            assert_eq!(rule.decide(&rule.example, KERNEL), Decision::Holds, "{}", rule.id);
            for (condition, text) in &rule.when {
                let mut other = rule.example.clone();
                for fact in condition.facts() {
                    other.remove(fact);
                }
                let lacks = rule.decide(&other, KERNEL);
                assert!(matches!(lacks, Decision::Undecided { .. }), "{}: '{text}' is not asked", rule.id);
            }
            let changed = |to: &dyn Fn(f64) -> f64, name: &str| {
                let mut other = rule.example.clone();
                match other.get_mut(name).expect("a fact of the example") {
                    Fact::Number(n) => *n = to(*n),
                    Fact::Word(word) => *word = if word == "never" { "always".into() } else { "never".into() },
                }
                rule.decide(&other, KERNEL)
            };
            for (condition, text) in &rule.when {
                let name = condition.facts().next().expect("a fact");
                let outcomes = [changed(&|_| 0.0, name), changed(&|n| n * 1e9 + 1e9, name), with_always(&rule, name)];
                assert!(outcomes.contains(&Decision::DoesNotHold), "{}: '{text}' always holds", rule.id);
            }
        }
    }

    fn with_always(rule: &Rule, name: &str) -> Decision {
        let mut other = rule.example.clone();
        if let Some(Fact::Word(word)) = other.get_mut(name) {
            *word = "always".into();
        }
        rule.decide(&other, KERNEL)
    }

    #[test]
    fn each_text_names_facts_of_the_example_only_and_says_what_undoes_a_setting() {
        let mut names = std::collections::BTreeSet::new();
        for rule in rules() {
            assert!(names.insert(rule.id.clone()), "{} is there twice", rule.id);
            let finding = rule.finding(&rule.example);
            for name in rule.named() {
                assert!(rule.example.contains_key(name), "{}: {{{name}}}", rule.id);
            }
            for text in [&finding.reason, &finding.r#do] {
                assert!(!text.contains(['{', '}']) && !text.contains("not known"), "{text}");
            }
            let sets = finding.r#do.starts_with("sysctl ") || finding.r#do.starts_with("echo ");
            assert!(!sets || finding.undo.is_some() && finding.cost.is_some(), "{}", rule.id);
            assert!(finding.source.starts_with("https://"), "{}", rule.id);
        }
    }

    #[test]
    fn the_command_that_undoes_a_setting_has_todays_value() {
        let rules = rules();
        let rule = rules.iter().find(|rule| rule.id == "faults-compact-for-everybody").expect("the rule");
        let undo = rule.finding(&rule.example).undo;
        assert_eq!(undo.as_deref(), Some("echo always > /sys/kernel/mm/transparent_hugepage/defrag"));
    }

    #[test]
    fn a_rule_of_later_kernels_is_not_asked_of_an_earlier_one() {
        let rules = rules();
        let rule = rules.iter().find(|rule| rule.id == "defrag-mode-off").expect("the rule");
        assert_eq!(rule.decide(&rule.example, Some("6.12.1")), Decision::OtherKernel);
        assert!(matches!(rule.decide(&rule.example, None), Decision::Undecided { .. }));
    }

    #[test]
    fn a_file_of_rules_that_is_wrong_is_refused_in_one_line() {
        let wrong = RULES.replacen("compact_stall.per_hour >= 60", "compact_stall.per_hour at least 60", 1);
        let e = parse(&wrong).expect_err("refused");
        let said = "rule faults-compact-for-everybody: 'compact_stall.per_hour at least 60' is no condition";
        let line = wrong[..wrong.find("at least 60").expect("it is there")].lines().count();
        assert_eq!(e, BadRules { line, reason: said.into() });
        for (right, wrong) in [("per_hour >= 60", "per_hour >= sixty"), ("thp.enabled = always", "thp.enabled > 1")] {
            let e = parse(&RULES.replacen(right, wrong, 1)).expect_err("refused").to_string();
            assert!(e.ends_with(&format!("{wrong}' compares a number with a word, or the other way round")), "{e}");
        }
        let e = parse("\nrule = 1\n").expect_err("refused").to_string();
        assert!(e.starts_with("line 2: ") && e.lines().count() == 1, "{e}");
    }
}
