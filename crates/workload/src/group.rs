//! Memory control groups of a workload: made before anything runs, each with the tasks that name
//! it.
//!
//! ```toml
//! [[group]]
//! name = "java"
//! max = "512 MiB"
//! ```
//!
//! `parent = "…"` names a group that stands before it. `max`, `high`, `low` and `min` are its
//! limits and protections, as `memory.max` and the others are: a size, or `"max"` for none.

use crate::size;
use crate::wrong::Wrong;
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};

/// A group, as a file says it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    pub name: String,
    /// The group it is in; without, the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `memory.max`: the most it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// `memory.high`: above it, tasks are slowed down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<String>,
    /// `memory.low`: spared where others have enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<String>,
    /// `memory.min`: spared in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
}

/// A group that a run makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The number of the group it is in, from 0; without, the root.
    pub parent: Option<usize>,
    /// In pages, where they are set.
    pub max: Option<u64>,
    pub high: Option<u64>,
    pub low: Option<u64>,
    pub min: Option<u64>,
}

/// The most groups of a workload; more than most hosts have.
const MOST_GROUPS: usize = 1000;

/// The keys of its limits.
pub const LIMITS: [&str; 4] = ["max", "high", "low", "min"];

impl GroupEntry {
    fn limits(&self) -> [&Option<String>; 4] {
        [&self.max, &self.high, &self.low, &self.min]
    }

    fn limit(&self, key: &str) -> Option<u64> {
        let at = LIMITS.iter().position(|name| *name == key)?;
        self.limits()[at].as_deref().and_then(|text| pages(key, text).ok()).flatten()
    }
}

/// The pages of a limit; `None` for the kernel's word for none.
fn pages(key: &str, text: &str) -> Result<Option<u64>, String> {
    match text.trim() {
        "max" => Ok(None),
        "0" => Ok(Some(0)),
        text if parse_size(text).is_none() => Err(format!("{key} = \"{text}\" is not a size such as \"512 MiB\"")),
        text => size::pages(key, text).map(|pages| Some(u64::from(pages))),
    }
}

/// The groups that a run makes, of entries that were checked.
pub(crate) fn groups(entries: &[GroupEntry]) -> Vec<Group> {
    let number = |name: &String| entries.iter().position(|entry| entry.name == *name);
    let group = |entry: &GroupEntry| Group {
        name: entry.name.clone(),
        parent: entry.parent.as_ref().and_then(number),
        max: entry.limit("max"),
        high: entry.limit("high"),
        low: entry.limit("low"),
        min: entry.limit("min"),
    };
    entries.iter().map(group).collect()
}

/// Whether the groups can be made.
///
/// # Errors
/// What is wrong, and the remedy.
pub(crate) fn check(entries: &[GroupEntry]) -> Result<(), Wrong> {
    if entries.len() > MOST_GROUPS {
        let reason = format!("{} groups: a workload has at most {MOST_GROUPS}", entries.len());
        return Err(Wrong::at(&["group"], reason));
    }
    for (i, entry) in entries.iter().enumerate() {
        let (name, before) = (&entry.name, &entries[..i]);
        let wrong = |key: &str, reason: String| Err(Wrong::at(&["group", &i.to_string(), key], reason));
        if ["", "/", "root"].contains(&name.trim()) {
            let reason = format!("a group cannot be called '{name}': the root is there without it, and has no limits");
            return wrong("name", reason);
        }
        if name.contains(char::is_control) {
            let reason = "a group's name is a word or more on one line";
            return wrong("name", reason.into());
        }
        if before.iter().any(|other| other.name == *name) {
            return wrong("name", format!("two groups are called '{name}'"));
        }
        if let Some(parent) = entry.parent.as_ref().filter(|parent| !before.iter().any(|other| other.name == **parent))
        {
            let reason = match entries.iter().any(|other| other.name == *parent) {
                true => {
                    format!("group '{name}' is in '{parent}', which comes after it: put [[group]] '{parent}' first")
                }
                false => unknown(parent, entries),
            };
            return wrong("parent", reason);
        }
        for (key, limit) in LIMITS.into_iter().zip(entry.limits()) {
            match limit.as_deref().map(|text| pages(key, text)) {
                None => {}
                Some(Err(reason)) => return wrong(key, reason),
                Some(Ok(Some(0))) if key == "max" => {
                    return wrong(key, "max = \"0\": nothing can run in the group".into());
                }
                Some(Ok(None)) if key == "low" || key == "min" => {
                    let reason = format!("{key} = \"max\": name a size; what is protected wholly has its own size");
                    return wrong(key, reason);
                }
                Some(Ok(_)) => {}
            }
        }
        if let (Some(min), Some(max)) = (entry.limit("min"), entry.limit("max"))
            && min > max
        {
            return wrong("min", format!("min is above max: group '{name}' may never have as much"));
        }
    }
    Ok(())
}

/// That there is no group of this name.
pub(crate) fn unknown(name: &str, entries: &[GroupEntry]) -> String {
    let known: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    match known.as_slice() {
        [] => format!("group '{name}': the workload has none: begin with [[group]], name = \"{name}\""),
        known => format!("group '{name}' is none of the workload's: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::Workload;

    const PHASE: &str = "[[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\n";

    fn read(groups: &str, task: &str) -> Workload {
        let text = format!("{groups}\n{PHASE}{task}\nrun = {{ kind = 'heap', size = '2 MiB' }}");
        toml::from_str(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_group_has_its_limits_in_pages_and_its_tasks_name_it() {
        let groups =
            "[[group]]\nname = 'a'\nmax = '1 MiB'\nlow = '0'\n[[group]]\nname = 'a.b'\nparent = 'a'\nhigh = 'max'";
        let workload = read(groups, "group = 'a.b'");
        assert_eq!(workload.validate(), Ok(()));
        let scenario = workload.scenario();
        let [a, b] = scenario.groups.as_slice() else { panic!("{:?}", scenario.groups) };
        assert_eq!((a.parent, a.max, a.high, a.low, a.min), (None, Some(256), None, Some(0), None));
        assert_eq!((b.parent, b.max, b.high), (Some(0), None, None));
        assert_eq!(scenario.phases[0].tasks[0].group, Some(1));
        let written = toml::to_string(&workload).expect("it can be written");
        assert_eq!(toml::from_str::<Workload>(&written).as_ref(), Ok(&workload), "{written}");
    }

    #[test]
    fn a_group_that_contradicts_itself_is_refused_with_its_place() {
        let said = |groups: &str, task: &str| {
            let wrong = read(groups, task).validate().expect_err("refused");
            (wrong.way.join("."), wrong.reason)
        };
        let group = |rest: &str| format!("[[group]]\nname = 'a'\n{rest}");
        let (way, reason) = said(&group(""), "group = 'b'");
        assert_eq!((way.as_str(), reason.as_str()), ("phase.0.task.0.group", "group 'b' is none of the workload's: a"));
        assert!(said("", "group = 'b'").1.contains("the workload has none: begin with [[group]], name = \"b\""));
        let (way, reason) = said(&group("parent = 'b'\n[[group]]\nname = 'b'"), "");
        assert_eq!(way, "group.0.parent");
        assert_eq!(reason, "group 'a' is in 'b', which comes after it: put [[group]] 'b' first");
        assert!(said(&group("parent = 'c'"), "").1.contains("is none of the workload's"));
        assert!(said(&group("[[group]]\nname = 'a'"), "").1.contains("two groups are called 'a'"));
        assert!(said("[[group]]\nname = 'root'\nmax = '1 GiB'", "").1.contains("and has no limits"));
        let (way, reason) = said(&group("max = 'lots'"), "");
        assert_eq!(
            (way.as_str(), reason.as_str()),
            ("group.0.max", "max = \"lots\" is not a size such as \"512 MiB\"")
        );
        assert!(said(&group("max = '0'"), "").1.contains("nothing can run"));
        assert!(said(&group("max = '1 MiB'\nmin = '2 MiB'"), "").1.contains("min is above max"));
        assert!(said(&group("low = 'max'"), "").1.contains("name a size"));
        let short = "[[group]]\nname = 'a'\n";
        let short = format!("prepare = {{ kind = 'nothing' }}\nmeasure = {{ kind = 'compact' }}\n{short}");
        let error = toml::from_str::<Workload>(&short).expect_err("refused").message().to_owned();
        assert!(error.contains("write a list of phases"), "{error}");
    }

    #[test]
    fn limits_are_parameters_by_the_groups_name() {
        let workload = read("[[group]]\nname = 'java'\nmax = '4 MiB'", "group = 'java'");
        let all = workload.parameters();
        let of = |name: &str| all.iter().find(|parameter| parameter.is_called(name)).expect("a parameter");
        assert_eq!((of("group.java.max").text(), of("java.high").text()), ("4 MiB".into(), "–".into()));
        let set = |name: &str, text: &str| {
            let value = of(name).read(text)?;
            workload.set(&[(of(name), &value)]).map(|changed| changed.scenario().groups[0].clone())
        };
        assert_eq!(set("java.max", "2MiB").map(|group| group.max), Ok(Some(512)));
        assert_eq!(set("java.max", "max").map(|group| group.max), Ok(None));
        assert!(set("java.max", "lots").is_err_and(|e| e.contains("is not a size")));
        assert_eq!(set("java.high", "1MiB").map(|group| group.high), Ok(Some(256)));
        assert!(set("java.high", "much").is_err_and(|e| e.contains("is not a size")));
    }
}
