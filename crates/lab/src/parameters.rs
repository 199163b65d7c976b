//! Parameters of workloads by the names that users give them.

use crate::names::nearest;
use kontig_sim::MachineFile;
use kontig_workload::{Parameter, Room, Workload, Wrong};

/// Names that a message lists.
const LISTED: usize = 12;

/// The parameters of this name: one, or those of tasks alike.
///
/// # Errors
/// If there is none, or if other parameters are called so, too: what they are called in full.
fn named<'a>(all: &'a [Parameter], name: &str) -> Result<Vec<&'a Parameter>, String> {
    let found: Vec<&Parameter> = all.iter().filter(|parameter| parameter.is_called(name)).collect();
    let whole: Vec<&Parameter> = found.iter().copied().filter(|parameter| parameter.path() == name).collect();
    let found = if whole.is_empty() { found } else { whole };
    let paths = paths(found.iter().copied());
    match paths.as_slice() {
        [] => Err(unknown(all, name)),
        [_] => Ok(found),
        several => Err(format!("several parameters are called '{name}': choose {}", listed(several, "or"))),
    }
}

fn unknown(all: &[Parameter], name: &str) -> String {
    let paths = paths(all.iter());
    let last = |path: &String| path.rsplit('.').next().unwrap_or_default().to_owned();
    let mut keys: Vec<String> = paths.iter().map(last).collect();
    keys.dedup();
    let known: Vec<&str> = paths.iter().chain(&keys).map(String::as_str).collect();
    nearest("parameter", name, &known).unwrap_or_else(|| match paths.as_slice() {
        [] => format!("unknown parameter '{name}': the workload has none"),
        paths => format!("unknown parameter '{name}'; the workload has {}", listed(paths, "and")),
    })
}

fn paths<'a>(parameters: impl Iterator<Item = &'a Parameter>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for path in parameters.map(Parameter::path) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn listed(names: &[String], last: &str) -> String {
    let (shown, left) = names.split_at(names.len().min(LISTED));
    match (shown, left.len()) {
        ([], _) => String::new(),
        ([one], 0) => one.clone(),
        ([first @ .., end], 0) => format!("{} {last} {end}", first.join(", ")),
        (shown, left) => format!("{} {last} {left} more", shown.join(", ")),
    }
}

/// The whole name of this parameter.
///
/// # Errors
/// If there is no such parameter, or several are called so.
pub(crate) fn path(workload: &Workload, name: &str) -> Result<String, String> {
    Ok(named(&workload.parameters(), name)?.first().map(|parameter| parameter.path()).unwrap_or_default())
}

/// Its value now; of tasks alike with several values, each.
pub(crate) fn text(workload: &Workload, name: &str) -> String {
    let all = workload.parameters();
    let mut texts: Vec<String> = Vec::new();
    for text in named(&all, name).unwrap_or_default().iter().map(|parameter| parameter.text()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

/// Reads a value of this parameter.
///
/// # Errors
/// If there is no such parameter; or what it takes on a machine with this room.
pub(crate) fn read(workload: &Workload, name: &str, text: &str, room: Option<&Room>) -> Result<toml::Value, String> {
    let all = workload.parameters();
    let parameters = named(&all, name)?;
    let takes = || workload.takes(&parameters, room).map_or(String::new(), |takes| format!("; it takes {takes}"));
    parameters[0].read(text).map_err(|reason| format!("{reason}{}", takes()))
}

/// The resources of a machine for a workload.
pub fn room(machine: &MachineFile) -> Room {
    Room {
        nodes: machine.node_pages(),
        swap: machine.swap_pages(),
        cpus: machine.cpus,
        disks: machine.file_pages(),
        translates: machine.translation.is_some(),
    }
}

/// Whether a workload can be run on a machine that has this.
///
/// # Errors
/// The part that does not fit, and what it takes if it is a parameter.
pub(crate) fn fits(workload: &Workload, room: &Room) -> Result<(), Wrong> {
    workload.fits(room).map_err(|wrong| {
        let all = workload.parameters();
        let of = all.iter().find(|parameter| parameter.is_at(&wrong.way));
        let takes = of.and_then(|parameter| workload.takes(&[parameter], Some(room)));
        Wrong { reason: wrong.reason + &takes.map_or(String::new(), |takes| format!("; it takes {takes}")), ..wrong }
    })
}

/// A parameter that cannot be set, and why.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// The workload with these parameters set, all at once.
///
/// # Errors
/// The first that there is not; or that cannot have its value, and what it takes on a machine with
/// this room.
pub(crate) fn set(
    workload: &Workload,
    values: &[(&str, &toml::Value)],
    room: Option<&Room>,
) -> Result<Workload, Refused> {
    let refused = |name: &str, reason: String| Refused { name: name.into(), reason };
    let all = workload.parameters();
    let of = |(name, _): &(&str, &toml::Value)| named(&all, name).map_err(|reason| refused(name, reason));
    let parameters = values.iter().map(of).collect::<Result<Vec<Vec<&Parameter>>, Refused>>()?;
    let with = |which: &[usize]| {
        let each = which.iter().flat_map(|i| parameters[*i].iter().map(|parameter| (*parameter, values[*i].1)));
        let changed = workload.set(&each.collect::<Vec<_>>())?;
        room.map_or(Ok(()), |room| changed.fits(room)).map_err(|wrong| wrong.reason)?;
        Ok(changed)
    };
    with(&(0..values.len()).collect::<Vec<_>>()).map_err(|reason: String| {
        // One that fails for the same reason alone is the wrong one. A parameter may need another.
        let is_it = |i: &usize| with(&[*i]).is_err_and(|alone| alone == reason);
        let is_named = |i: &usize| reason.starts_with(values[*i].0);
        let all = 0..values.len();
        match all.clone().find(is_it).or_else(|| all.clone().find(is_named)) {
            Some(i) => {
                let takes = workload.takes(&parameters[i], room);
                refused(values[i].0, reason + &takes.map_or(String::new(), |takes| format!("; it takes {takes}")))
            }
            None => refused(values.last().map_or("", |(name, _)| name), reason),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        toml::from_str(
            "[[phase]]\nname = 'measure'\nmeasured = true\n\
             [[phase.task]]\nname = 'a 1'\nrun = { kind = 'heap', size = '1 MiB' }\n\
             [[phase.task]]\nname = 'a 2'\nrun = { kind = 'heap', size = '1 MiB' }\n\
             [[phase.task]]\nname = 'b'\nrun = { kind = 'thp-bursts', size = '2 MiB', bursts = 1, every_ms = 1 }",
        )
        .unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_name_means_one_parameter_or_those_of_tasks_alike() {
        let all = workload().parameters();
        assert_eq!(named(&all, "a.size").map(|found| found.len()), Ok(2));
        assert_eq!(named(&all, "a-2.size").map(|found| found.len()), Ok(1));
        let said = named(&all, "size").expect_err("of several");
        assert_eq!(said, "several parameters are called 'size': choose measure.a.size or measure.b.size");
        let said = named(&all, "brusts").expect_err("misspelled");
        assert!(said.contains("did you mean 'bursts'?"), "{said}");
        let said = named(&all, "qqqqqqqq").expect_err("unknown");
        assert!(said.contains("the workload has measure.a.size, measure.b.size, "), "{said}");
    }

    #[test]
    fn a_value_that_is_refused_is_answered_with_what_is_taken() {
        let room = Room { nodes: vec![1024], cpus: 1, ..Room::default() };
        let said = |name: &str, text: &str| {
            let value = read(&workload(), name, text, Some(&room))?;
            set(&workload(), &[(name, &value)], Some(&room)).map(drop).map_err(|refused| refused.reason)
        };
        assert_eq!(said("b.written", "512"), Ok(()));
        let refused = |name, text| said(name, text).expect_err("refused");
        let written = "written = 513: from 1 to the 512 pages of a huge page; it takes 1 to 512";
        assert_eq!(refused("b.written", "513"), written);
        assert!(refused("a-1.size", "8MiB").ends_with("; it takes 4 KiB to 4 MiB"), "{}", refused("a-1.size", "8MiB"));
        assert_eq!(refused("bursts", "x"), "'x' is not a whole number; it takes 1 or more");
        assert_eq!(refused("bursts", "-1"), "bursts = -1 is negative; it takes 1 or more");
        assert_eq!(
            refused("b.written", "99999999999"),
            "written = 99999999999 is more than 4294967295; it takes 1 to 512"
        );
    }

    #[test]
    fn a_parameter_that_does_not_fit_says_what_it_takes() {
        let text = "[[phase]]\nname = 'measure'\nmeasured = true\n\
                    [[phase.task]]\nrun = { kind = 'heap', size = '1 MiB' }";
        let heap: Workload = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        let room = |pages: u64| Room { nodes: vec![pages], cpus: 1, ..Room::default() };
        let wrong = fits(&heap, &room(128)).expect_err("1 MiB in 512 KiB");
        assert!(wrong.reason.ends_with(": choose less, or another machine; it takes 4 KiB to 512 KiB"), "{wrong}");
        assert_eq!(fits(&heap, &room(512)), Ok(()));
    }

    #[test]
    fn parameters_that_depend_on_each_other_are_set_at_once() {
        let java: Workload = toml::from_str(
            "[[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\nrun = { kind = 'young-generation', \
             size = '1 GiB', eden = '512 MiB', mib_s = 1000, collections = 1 }",
        )
        .unwrap_or_else(|e| panic!("{e}"));
        let size = |text: &str| toml::Value::String(text.into());
        let (small, half) = (size("256MiB"), size("512MiB"));
        let alone = set(&java, &[("size", &half)], None).expect_err("eden is as large");
        assert_eq!(alone.name, "size");
        assert!(set(&java, &[("size", &half), ("eden", &small)], None).is_ok());
        let large = set(&java, &[("size", &half), ("eden", &half)], None).expect_err("they contradict each other");
        assert!(large.reason.contains("leaves nothing of size"), "{}", large.reason);
    }
}
