//! Changes between two samples: boots, the clock, settings, limits of groups, and times of
//! which there is no sample.

use super::sample::Sample;
use kontig_text::time;
use serde::Serialize;
use std::collections::BTreeMap;

/// A change, at the time of the first sample that shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    pub unix_ms: i64,
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum What {
    /// The host was started anew; `kernel` is the release that runs since then, if it is another.
    Boot { kernel: Option<String> },
    /// The clock was set forward, or back: seconds below 0.
    Clock { by_s: f64 },
    /// No sample was taken for so long.
    Gap { seconds: f64 },
    /// A setting, by the name that `kontig status` has for it, or the path of a group's limit.
    Setting { name: String, from: Option<String>, to: Option<String> },
}

impl Change {
    /// The change in words.
    pub fn words(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".into());
        match &self.what {
            What::Boot { kernel: None } => "the host was started anew".into(),
            What::Boot { kernel: Some(kernel) } => format!("the host was started anew, with Linux {kernel}"),
            What::Clock { by_s } if *by_s < 0.0 => format!("the clock was set back by {}", time(-by_s)),
            What::Clock { by_s } => format!("the clock was set forward by {}", time(*by_s)),
            What::Gap { seconds } => format!("no sample for {}", time(*seconds)),
            What::Setting { name, from, to } => format!("{name}: {} → {}", value(from), value(to)),
        }
    }
}

/// The changes from one sample to the next.
pub fn between(before: &Sample, after: &Sample) -> Vec<Change> {
    let mut found = Vec::new();
    let wall_s = (after.unix_ms - before.unix_ms) as f64 / 1000.0;
    let ran_s = before.uptime_s().zip(after.uptime_s()).map(|(before, after)| after - before);
    if before.boot() != after.boot() {
        let kernel = after.release().filter(|release| before.release() != Some(*release)).map(str::to_string);
        found.push(What::Boot { kernel });
        found.extend(gap(before, wall_s));
    } else if let Some(ran_s) = ran_s {
        let by_s = wall_s - ran_s;
        if by_s.abs() > CLOCK_S + ran_s.abs() * DRIFT {
            found.push(What::Clock { by_s: (by_s * 10.0).round() / 10.0 });
        }
        found.extend(gap(before, ran_s));
    }
    found.extend(settings(before, after));
    found.into_iter().map(|what| Change { unix_ms: after.unix_ms, what }).collect()
}

/// A clock that is corrected bit by bit, or texts that are read a moment later, is not a jump.
const CLOCK_S: f64 = 2.0;
const DRIFT: f64 = 0.001;

fn gap(before: &Sample, seconds: f64) -> Option<What> {
    is_gap(before.interval_s(), seconds).then_some(What::Gap { seconds })
}

/// Whether samples are missing in `seconds`, where one should come every `interval_s`.
pub fn is_gap(interval_s: f64, seconds: f64) -> bool {
    // A busy host is late by a sample or two.
    seconds > interval_s * 3.0 + 5.0
}

fn settings(before: &Sample, after: &Sample) -> Vec<What> {
    let mut paths: Vec<&str> = before.files.keys().chain(after.files.keys()).map(|path| &**path).collect();
    paths.retain(|path| is_setting(path));
    paths.sort_unstable();
    paths.dedup();
    let changed = |path: &&str| {
        let value = |sample: &Sample| sample.text(path).map(|text| chosen(text.trim()));
        let (from, to) = (value(before), value(after));
        // A group that comes or goes is not a change of its limits.
        let is_change = from != to && (!path.contains(GROUPS) || from.is_some() && to.is_some());
        is_change.then(|| What::Setting { name: name(path), from, to })
    };
    paths.iter().filter_map(changed).collect()
}

const GROUPS: &str = "sys/fs/cgroup/";

/// Whether somebody sets what the file says.
fn is_setting(path: &str) -> bool {
    const COUNTED: [&str; 6] =
        ["free_hugepages", "resv_hugepages", "surplus_hugepages", "pages_collapsed", "full_scans", "hpage_pmd_size"];
    const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];
    let file = path.rsplit('/').next().unwrap_or(path);
    if path.starts_with(GROUPS) {
        return LIMITS.contains(&file);
    }
    if path.starts_with("proc/sys/vm/") {
        return true;
    }
    path.starts_with("sys/kernel/mm/") && !path.contains("/stats/") && !COUNTED.contains(&file)
}

/// The settings of a sample, by name. Limits of groups are not among them.
pub fn values(sample: &Sample) -> BTreeMap<String, String> {
    let settings = sample.files.iter().filter(|(path, _)| is_setting(path) && !path.starts_with(GROUPS));
    settings.filter_map(|(path, stored)| Some((name(path), chosen(stored.text()?.trim())))).collect()
}

/// The name of a setting: `vm.swappiness`, `transparent_hugepage/enabled`, `/a/memory.max`.
fn name(path: &str) -> String {
    let sysctl = path.strip_prefix("proc/sys/vm/").map(|name| format!("vm.{name}"));
    let below = || path.trim_start_matches("sys/kernel/mm/").trim_start_matches("sys/fs/cgroup").to_string();
    sysctl.unwrap_or_else(below)
}

/// The chosen word of a list, or the value itself.
fn chosen(value: &str) -> String {
    let inner = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    inner.unwrap_or(value).replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::sample::Stored;

    fn sample(seconds: i64, uptime: i64, files: &[(&str, &str)]) -> Sample {
        let stored = |(path, text): &(&str, &str)| ((*path).into(), Stored::Text((*text).into()));
        let mut sample = Sample { unix_ms: seconds * 1000, files: files.iter().map(stored).collect() };
        sample.files.insert("proc/uptime".into(), Stored::Text(format!("{uptime}.00 1.00\n").into()));
        sample
    }

    fn said(before: &Sample, after: &Sample) -> Vec<String> {
        between(before, after).iter().map(Change::words).collect()
    }

    #[test]
    fn boots_the_clock_and_gaps_are_told_apart() {
        let (boot, other) = (("proc/sys/kernel/random/boot_id", "a\n"), ("proc/sys/kernel/random/boot_id", "b\n"));
        let release = ("proc/sys/kernel/osrelease", "6.12.1\n");
        let before = sample(1000, 500, &[boot, ("proc/sys/kernel/osrelease", "6.1.0\n")]);
        let after = |seconds, uptime| sample(seconds, uptime, &[boot, ("proc/sys/kernel/osrelease", "6.1.0\n")]);
        assert!(said(&before, &after(1010, 510)).is_empty());
        assert!(said(&before, &after(1031, 530)).is_empty(), "a busy host is late");
        assert_eq!(said(&before, &after(4610, 510)), ["the clock was set forward by 1 h 0 min"]);
        assert_eq!(said(&before, &after(410, 510)), ["the clock was set back by 10 min 0 s"]);
        assert_eq!(said(&before, &after(8200, 7700)), ["no sample for 2 h 0 min"], "the clock went on with it");
        let anew = sample(1100, 20, &[other, release]);
        assert_eq!(said(&before, &anew), ["the host was started anew, with Linux 6.12.1", "no sample for 1 min 40 s"]);
    }

    #[test]
    fn settings_and_limits_change_and_counts_do_not() {
        const THP: &str = "sys/kernel/mm/transparent_hugepage";
        let paths = [
            format!("{THP}/enabled"),
            format!("{THP}/khugepaged/pages_collapsed"),
            format!("{THP}/hugepages-64kB/stats/anon_fault_alloc"),
        ];
        let files = |words: [&'static str; 5]| {
            let fixed = ["proc/sys/vm/compaction_proactiveness", "sys/fs/cgroup/a/memory.max"];
            let paths = paths.iter().map(String::as_str).chain(fixed);
            let files: Vec<(&str, &str)> = paths.zip(words).collect();
            sample(0, 0, &files)
        };
        let before = files(["always [madvise] never\n", "1\n", "1\n", "20\n", "max\n"]);
        let after = files(["[always] madvise never\n", "2\n", "2\n", "60\n", "1048576\n"]);
        let expected = [
            "vm.compaction_proactiveness: 20 → 60",
            "/a/memory.max: max → 1048576",
            "transparent_hugepage/enabled: madvise → always",
        ];
        assert_eq!(said(&before, &after), expected);
        let gone = sample(0, 0, &[("proc/sys/vm/compaction_proactiveness", "20\n")]);
        assert!(said(&gone, &files(["[always]", "", "", "20\n", "max\n"])).iter().all(|said| !said.contains("/a/")));
    }
}
