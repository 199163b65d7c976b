//! A profile file: its own rules, and those inherited from its base.
//!
//! Every error names the file and the line; one about a name suggests the name that was probably
//! meant, one about a value lists the values the rule takes.

use crate::builtin::{file_of, is_built_in, is_path, names};
use crate::complaint::Complaint;
use crate::error::ProfileError;
use crate::kernel::neighbours;
use crate::nearest::nearest;
use kontig_mm::Profile;
use kontig_mm::rules::MECHANISMS;
use kontig_mm::rules::rule::{Kind, Mechanism, Rule};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of a profile file outside the mechanisms' tables.
const HEAD: [&str; 6] = ["name", "summary", "base", "recorded", "reclaim_recorded", "version"];

/// The least the kernel computes for `vm.min_free_kbytes`.
const LEAST_KBYTES: u32 = 128;

/// The text of a profile file, and its origin.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The base of a built-in file is built in too; others may name a file beside them.
    pub(crate) built_in: bool,
}

impl Source {
    pub(crate) fn built_in((path, text): (&str, &str)) -> Source {
        Source { path: path.into(), text: text.into(), built_in: true }
    }

    fn read(path: &str) -> Result<Source, ProfileError> {
        let text = read_text(path)?;
        let built_in = is_built_in(&text);
        Ok(Source { path: said(path).into(), text, built_in })
    }

    fn wrong(&self, at: usize, reason: impl Into<String>) -> ProfileError {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        ProfileError::Malformed { path: self.path.clone(), line, reason: reason.into() }
    }
}

/// Bytes of the longest file that is read: the longest built-in one has 16 KiB, but a workload can
/// hold millions of recorded allocations.
pub const MOST_BYTES: u64 = 64 << 20;

/// The name of standard input where a file can be named.
pub const STANDARD_INPUT: &str = "-";

/// The name of such a file in messages.
pub fn said(path: &str) -> &str {
    if path == STANDARD_INPUT { "standard input" } else { path }
}

/// The text of a user's file, if it is UTF-8 and no longer than such files are.
///
/// # Errors
/// If it cannot be read, is longer than 64 MiB, or is not UTF-8 in some line.
pub fn read_text(path: &str) -> Result<String, ProfileError> {
    let unreadable = |reason| ProfileError::Unreadable { path: said(path).into(), reason };
    let bytes = match path {
        STANDARD_INPUT => standard_input(),
        path => File::open(path).map_err(|e| e.to_string()).and_then(bytes_of),
    };
    let bytes = bytes.map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unreadable(format!("it is longer than {} MiB, as no such file is", MOST_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        ProfileError::Malformed { path: said(path).into(), line, reason: "this is no text (UTF-8)".into() }
    })
}

fn bytes_of(file: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// It can be read once, and a name may be looked up several times.
fn standard_input() -> Result<Vec<u8>, String> {
    static READ: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    READ.get_or_init(|| bytes_of(std::io::stdin().lock())).clone()
}

/// Reads a profile from a user's file.
///
/// # Errors
/// If it cannot be read, or has an unknown rule, value or base.
pub fn read(path: &str) -> Result<Profile, ProfileError> {
    resolve(&Source::read(path)?)
}

/// Whether a profile's values are within the kernel's own bounds.
///
/// # Errors
/// The value that is not, and its bound.
pub fn check(profile: &Profile) -> Result<(), String> {
    match profile.watermark.min_free_kbytes_cap {
        cap if cap < LEAST_KBYTES => Err(format!("min_free_kbytes_cap = {cap}: at least {LEAST_KBYTES}")),
        _ => Ok(()),
    }
}

/// The profile of a file, with the rules it inherits.
pub(crate) fn resolve(source: &Source) -> Result<Profile, ProfileError> {
    let rules = rules_of(source, &mut Vec::new())?;
    let profile: Profile = rules.try_into().map_err(|e: toml::de::Error| source.wrong(0, joined_lines(e.message())))?;
    check(&profile).map_err(|reason| {
        let at = source.text.find("min_free_kbytes_cap").unwrap_or(0);
        source.wrong(at, reason)
    })?;
    Ok(profile)
}

/// The whole profile as a table; `above` are the files that lead here.
fn rules_of(source: &Source, above: &mut Vec<String>) -> Result<toml::Table, ProfileError> {
    let malformed = |e: toml::de::Error| {
        let Complaint { at, reason, .. } = Complaint::of(&source.text, &e);
        source.wrong(at, reason)
    };
    let document = DeTable::parse(&source.text).map_err(malformed)?;
    let document = document.get_ref();
    check_names(source, document)?;
    let mut rules = match document.get("base") {
        Some(base) => base_rules(source, base, above)?,
        None => toml::Table::new(),
    };
    // These are not inherited: a change of a recorded kernel makes another one, which was not
    // recorded.
    rules.remove("name");
    rules.remove("summary");
    rules.remove("version");
    rules.insert("recorded".into(), false.into());
    rules.insert("reclaim_recorded".into(), false.into());
    for (key, value) in document {
        match MECHANISMS.iter().find(|m| m.name == key.get_ref()) {
            Some(mechanism) => {
                let table = rules.entry(mechanism.name).or_insert_with(|| toml::Table::new().into());
                let table = table.as_table_mut().expect("a mechanism's rules are a table");
                add_rules(source, mechanism, value, table)?;
            }
            None if key.get_ref() == "base" => {}
            None => {
                rules.insert(key.get_ref().to_string(), head(source, key.get_ref(), value)?);
            }
        }
    }
    // The kernel of a file is the built-in profile at the root of its bases; a file without a base
    // is its own.
    if source.built_in || !rules.contains_key("kernel") {
        let name = rules.get("name").cloned().unwrap_or_else(|| String::new().into());
        rules.insert("kernel".into(), name);
    }
    check_complete(source, &rules)?;
    Ok(rules)
}

fn check_names(source: &Source, document: &DeTable<'_>) -> Result<(), ProfileError> {
    let known: Vec<&str> = HEAD.into_iter().chain(MECHANISMS.iter().map(|m| m.name)).collect();
    for key in document.keys() {
        let name = key.get_ref().as_ref();
        if known.contains(&name) {
            continue;
        }
        let reason = match MECHANISMS.iter().flat_map(|m| m.rules).find(|r| r.name == name) {
            Some(rule) => format!("'{name}' is a rule of [{}]: put it there", rule.mechanism),
            None => unknown("table or key", name, &known),
        };
        return Err(source.wrong(key.span().start, reason));
    }
    Ok(())
}

/// A value outside the mechanisms' tables.
fn head(source: &Source, key: &str, value: &Spanned<DeValue<'_>>) -> Result<toml::Value, ProfileError> {
    match (key, value.get_ref()) {
        ("recorded" | "reclaim_recorded", DeValue::Boolean(true)) if !source.built_in => {
            let reason =
                format!("{key} = true is for built-in profiles, whose recordings can be replayed: leave it out");
            Err(source.wrong(value.span().start, reason))
        }
        ("recorded" | "reclaim_recorded", DeValue::Boolean(recorded)) => Ok((*recorded).into()),
        ("name", DeValue::String(name)) if !source.built_in && names().any(|known| known == name) => {
            let reason = format!("'{name}' is a built-in profile: change the name");
            Err(source.wrong(value.span().start, reason))
        }
        ("name" | "summary", DeValue::String(text)) if !text.trim().is_empty() => Ok(text.to_string().into()),
        ("version", DeValue::String(version)) if is_version(version) => Ok(version.to_string().into()),
        ("version", _) => {
            let reason = "version is a kernel's with its patch level, in quotes, such as \"5.10.223\"";
            Err(source.wrong(value.span().start, reason))
        }
        ("recorded" | "reclaim_recorded", _) => {
            Err(source.wrong(value.span().start, format!("{key} is true or false")))
        }
        (_, DeValue::String(_)) => Err(source.wrong(value.span().start, format!("{key} is empty: give it a text"))),
        _ => Err(source.wrong(value.span().start, format!("{key} is a text in quotes"))),
    }
}

/// Whether this is an upstream version, such as `5.10.223`.
fn is_version(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|n| n.parse::<u16>().is_ok())
}

/// The rules of the base, a built-in profile or a file beside this one.
fn base_rules(
    source: &Source,
    base: &Spanned<DeValue<'_>>,
    above: &mut Vec<String>,
) -> Result<toml::Table, ProfileError> {
    let at = base.span().start;
    let Some(name) = base.get_ref().as_str() else {
        return Err(source.wrong(at, "base is a profile's name in quotes, such as \"6.1\""));
    };
    let of = match is_path(name) && !source.built_in {
        true => {
            let beside = Path::new(&source.path).parent().unwrap_or(Path::new("")).join(name);
            Source::read(&beside.to_string_lossy()).map_err(|e| source.wrong(at, format!("base: {e}")))?
        }
        false => match file_of(name) {
            Some(file) => Source::built_in(file),
            None => return Err(source.wrong(at, unknown("base", name, &known_names()))),
        },
    };
    above.push(file_id(source));
    if above.contains(&file_id(&of)) {
        return Err(source.wrong(at, format!("base '{name}' leads back to {}: a profile is not its own base", of.path)));
    }
    rules_of(&of, above)
}

fn known_names() -> Vec<&'static str> {
    names().collect()
}

/// Equal for the same file, whatever path names it.
fn file_id(source: &Source) -> String {
    match std::fs::canonicalize(&source.path) {
        Ok(path) if !source.built_in => path.to_string_lossy().into_owned(),
        _ => source.path.clone(),
    }
}

/// Adds a mechanism's own rules to those of the base.
fn add_rules(
    source: &Source,
    mechanism: &Mechanism,
    given: &Spanned<DeValue<'_>>,
    rules: &mut toml::Table,
) -> Result<(), ProfileError> {
    let Some(given) = given.get_ref().as_table() else {
        let reason = format!("[{}] is a table of rules", mechanism.name);
        return Err(source.wrong(given.span().start, reason));
    };
    for (key, value) in given {
        let name = key.get_ref().as_ref();
        let Some(rule) = mechanism.rules.iter().find(|r| r.name == name) else {
            return Err(source.wrong(key.span().start, unknown_rule(mechanism, name)));
        };
        let value = rule_value(rule, value.get_ref()).map_err(|reason| source.wrong(value.span().start, reason))?;
        rules.insert(name.into(), value);
    }
    Ok(())
}

fn unknown_rule(mechanism: &Mechanism, name: &str) -> String {
    let elsewhere = MECHANISMS.iter().flat_map(|m| m.rules).find(|r| r.name == name);
    match elsewhere {
        Some(rule) => format!("'{name}' is a rule of [{}], not of [{}]", rule.mechanism, mechanism.name),
        None => {
            let known: Vec<&str> = mechanism.rules.iter().map(|r| r.name).collect();
            unknown(&format!("rule of [{}]", mechanism.name), name, &known)
        }
    }
}

/// A rule's value, if the rule takes it.
fn rule_value(rule: &Rule, value: &DeValue<'_>) -> Result<toml::Value, String> {
    let name = rule.name;
    match (&rule.kind, value) {
        (Kind::Switch, DeValue::Boolean(on)) => Ok((*on).into()),
        (Kind::Switch, _) => Err(format!("{name} is true or false")),
        (Kind::Number, DeValue::Integer(i)) => match u32::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => Ok(i64::from(n).into()),
            Err(_) => Err(format!("{name} = {i}: a whole number from 0 to {}", u32::MAX)),
        },
        (Kind::Number, _) => Err(format!("{name} is a whole number")),
        (Kind::OneOf(variants), given) => {
            let names: Vec<String> = variants.iter().map(|v| v.name()).collect();
            match given.as_str() {
                Some(text) if names.iter().any(|n| n == text) => Ok(text.into()),
                Some(text) => {
                    let known: Vec<&str> = names.iter().map(String::as_str).collect();
                    Err(unknown(&format!("value of {name}"), text, &known))
                }
                None => Err(format!("{name} is one of \"{}\"", names.join("\", \""))),
            }
        }
    }
}

/// Whether the profile has a name, a summary and every rule.
fn check_complete(source: &Source, rules: &toml::Table) -> Result<(), ProfileError> {
    if let Some(missing) = ["name", "summary"].iter().find(|key| !rules.contains_key(**key)) {
        return Err(source.wrong(0, format!("'{missing}' is missing: a text in quotes")));
    }
    let is_said = |r: &&Rule| rules.get(r.mechanism).is_some_and(|m| m.get(r.name).is_some());
    match MECHANISMS.iter().flat_map(|m| m.rules).find(|r| !is_said(r)) {
        Some(rule) => {
            let reason = format!(
                "rule {}.{} is missing: say it, or name a profile to start from, such as base = \"6.1\"",
                rule.mechanism, rule.name
            );
            Err(source.wrong(0, reason))
        }
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    if let Some(neighbours) = neighbours(name).filter(|_| what == "base") {
        return format!("unknown {what} '{name}': {neighbours}");
    }
    match nearest(name, known) {
        Some(nearest) => format!("unknown {what} '{name}': did you mean '{nearest}'?"),
        None => format!("unknown {what} '{name}'; known: {}", known.join(", ")),
    }
}

fn joined_lines(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(text: &str) -> String {
        let source = Source { path: "p.toml".into(), text: text.into(), built_in: false };
        let said = resolve(&source).expect_err("not a profile").to_string();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    fn with(lines: &str) -> String {
        format!("name = \"x\"\nsummary = \"mine\"\nbase = \"6.1\"\n{lines}\n")
    }

    #[test]
    fn a_file_takes_over_what_it_does_not_say() {
        let text = with("[proactive]\nhalf_leeway = true");
        let source = Source { path: "p.toml".into(), text, built_in: false };
        let profile = resolve(&source).expect("a profile");
        let mut expected = crate::linux("6.1");
        expected.name = "x".into();
        expected.summary = "mine".into();
        (expected.recorded, expected.reclaim_recorded) = (false, false);
        expected.version = None;
        expected.proactive.half_leeway = true;
        assert_eq!(profile, expected);
    }

    #[test]
    fn a_users_file_is_neither_recorded_nor_takes_the_name_of_a_built_in_one() {
        assert_eq!(
            said_of(&with("recorded = true")),
            "p.toml:4: recorded = true is for built-in profiles, whose recordings can be replayed: leave it out"
        );
        assert_eq!(
            said_of("name = \"7.2\"\nsummary = \"mine\"\nbase = \"6.1\"\n"),
            "p.toml:1: '7.2' is a built-in profile: change the name"
        );
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/linux-6.1.toml");
        assert_eq!(read(file), Ok(crate::linux("6.1")));
    }

    #[test]
    fn a_file_says_nothing_that_its_base_says_already() {
        let table = |name: &str| toml::Table::try_from(crate::linux(name)).expect("a profile is a table");
        for name in names() {
            let own: toml::Table = toml::from_str(file_of(name).expect("it is built in").1).expect("TOML");
            let Some(base) = own.get("base") else { continue };
            let (before, now) = (table(base.as_str().expect("a name")), table(name));
            for (mechanism, rules) in own.iter().filter_map(|(m, rules)| Some((m, rules.as_table()?))) {
                for rule in rules.keys() {
                    assert_ne!(before[mechanism][rule], now[mechanism][rule], "{name}: {mechanism}.{rule}");
                }
            }
        }
    }

    #[test]
    fn a_patch_level_is_a_base_with_its_version_and_the_rules_that_differ() {
        let older = "name = \"5.10.223\"\nsummary = \"mine\"\nbase = \"5.10\"\nversion = \"5.10.223\"\n\
                     [reclaim]\nfree_counts_as_reclaimable = false";
        let source = Source { path: "p.toml".into(), text: older.into(), built_in: false };
        let profile = resolve(&source).expect("a profile");
        assert_eq!(profile.version.as_deref(), Some("5.10.223"));
        assert_eq!(profile.kernel, "5.10");
        assert!(!profile.reclaim.free_counts_as_reclaimable);
        for wrong in ["version = \"5.10\"", "version = 5.10", "version = \"5.10.x\""] {
            assert_eq!(
                said_of(&with(wrong)),
                "p.toml:4: version is a kernel's with its patch level, in quotes, such as \"5.10.223\""
            );
        }
    }

    #[test]
    fn a_recorded_profile_says_its_patch_level() {
        for profile in crate::all() {
            let series = |version: &String| version.starts_with(&format!("{}.", profile.name));
            assert_eq!(profile.version.as_ref().is_some_and(series), profile.recorded, "{}", profile.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_its_line() {
        assert_eq!(
            said_of(&with("[compacton]\n")),
            "p.toml:4: unknown table or key 'compacton': did you mean 'compaction'?"
        );
        assert_eq!(
            said_of(&with("[proactive]\nscore = \"own\"\nhalf_leway = true")),
            "p.toml:6: unknown rule of [proactive] 'half_leway': did you mean 'half_leeway'?"
        );
        assert_eq!(
            said_of(&with("busy_nodes_last = true")),
            "p.toml:4: 'busy_nodes_last' is a rule of [zonelist]: put it there"
        );
        assert_eq!(
            said_of(&with("[pcp]\nbusy_nodes_last = true")),
            "p.toml:5: 'busy_nodes_last' is a rule of [zonelist], not of [pcp]"
        );
        assert_eq!(
            said_of("name = \"x\"\nbase = \"6.11\""),
            "p.toml:2: unknown base '6.11': it is between 6.1 and 6.12"
        );
    }

    #[test]
    fn a_value_the_rule_does_not_take_is_answered_with_those_it_takes() {
        assert_eq!(
            said_of(&with("[pcp]\nlists = \"multi-orders\"")),
            "p.toml:5: unknown value of lists 'multi-orders': did you mean 'multi-order'?"
        );
        assert_eq!(
            said_of(&with("[pcp]\nlists = 3")),
            "p.toml:5: lists is one of \"order-zero\", \"multi-order\", \"auto-tuned\""
        );
        assert_eq!(said_of(&with("[proactive]\nhalf_leeway = 1")), "p.toml:5: half_leeway is true or false");
        assert_eq!(
            said_of(&with("[watermark]\nscale_factor_max = -1")),
            "p.toml:5: scale_factor_max = -1: a whole number from 0 to 4294967295"
        );
        assert_eq!(
            said_of(&with("\n[watermark]\nmin_free_kbytes_cap = 2")),
            "p.toml:6: min_free_kbytes_cap = 2: at least 128"
        );
    }

    #[test]
    fn a_file_without_a_base_says_every_rule() {
        let said = said_of("name = \"x\"\nsummary = \"mine\"\n");
        assert!(said.starts_with("p.toml:1: rule boot.frees_to_tail is missing: say it, or name"), "{said}");
        assert_eq!(said_of("summary = \"mine\"\nbase = \"6.1\""), "p.toml:1: 'name' is missing: a text in quotes");
    }
}
