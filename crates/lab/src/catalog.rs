//! The built-in data: machines, experiments and published targets. Kernel generations are in
//! [`kontig_profiles`].
//!
//! The files are compiled in, so that one binary is enough. A path to a file works wherever a name
//! does. An unknown name is answered with the nearest known one.

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::names::unknown;
use crate::profiles::{self, with_switches};
use crate::source::Source;
use crate::sysctls;
use crate::target::Target;
use kontig_profiles::is_path;
use kontig_sim::{Costs, MachineFile};
use kontig_workload::Wrong;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

macro_rules! data {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../", $name)))),*]
    };
}

const MACHINES: &[(&str, &str)] = data![
    "machines/xeon-1t.toml",
    "machines/xeon-64g.toml",
    "machines/desktop-32g.toml",
    "machines/desktop-8g.toml",
    "machines/skylake-1s.toml",
    "machines/box-2g.toml",
    "machines/xeon-4g.toml",
    "machines/tiny-64m.toml",
    "machines/guest-512m.toml",
    "machines/guest-2g.toml",
    "machines/haswell-2s-64g.toml",
    "machines/server-64g.toml",
    "machines/server-1t.toml",
];
const EXPERIMENTS: &[(&str, &str)] = data![
    "experiments/hugepage-latency.toml",
    "experiments/java-heap.toml",
    "experiments/stutter.toml",
    "experiments/hugealloc-kbuild.toml",
    "experiments/hugealloc-kbuild-async.toml",
    "experiments/hugealloc-kbuild-wmarks.toml",
    "experiments/hugealloc-kbuild-handoff.toml",
    "experiments/hugealloc-kbuild-vanillafix.toml",
    "experiments/thpscale.toml",
    "experiments/usemem.toml",
    "experiments/thpfioscale.toml",
    "experiments/backoff.toml",
    "experiments/compact-32g.toml",
    "experiments/pageblock-goal.toml",
];
const TARGETS: &[(&str, &str)] = data![
    "experiments/targets/hugepage-latency.toml",
    "experiments/targets/java-heap.toml",
    "experiments/targets/stutter.toml",
    "experiments/targets/hugealloc-kbuild.toml",
    "experiments/targets/hugealloc-kbuild-async.toml",
    "experiments/targets/hugealloc-kbuild-wmarks.toml",
    "experiments/targets/hugealloc-kbuild-handoff.toml",
    "experiments/targets/hugealloc-kbuild-vanillafix.toml",
    "experiments/targets/thpscale.toml",
    "experiments/targets/usemem.toml",
    "experiments/targets/thpfioscale.toml",
    "experiments/targets/backoff.toml",
    "experiments/targets/compact-32g.toml",
];

fn builtin(list: &[(&'static str, &'static str)]) -> impl Iterator<Item = Source> {
    list.iter().map(|(path, text)| Source { path: (*path).into(), text: (*text).into(), built_in: true })
}

/// The name of a built-in file, which is also inside it.
fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml")
}

/// Refuses a file with the name of another built-in file: its results would be taken for the
/// other's.
fn own_name(
    what: &str,
    list: &'static [(&'static str, &'static str)],
    name: &str,
    source: &Source,
) -> Result<(), LabError> {
    match builtin(list).find(|s| stem(&s.path) == name) {
        Some(other) if other.text != source.text => {
            let key = if what == "machine" { "name" } else { "id" };
            let reason = format!("another {what} that comes along is called '{name}': give this one its own {key}");
            Err(source.wrong(Wrong::at(&[key], reason)))
        }
        _ => Ok(()),
    }
}

/// Finds a file by path, or a built-in one by the name inside it.
fn find<T>(
    what: &'static str,
    list: &'static [(&'static str, &'static str)],
    name: &str,
    parse: impl Fn(&Source) -> Result<T, LabError>,
    id: impl Fn(&T) -> &str,
) -> Result<(T, Source), LabError> {
    if is_path(name) {
        let source = Source::read(name)?;
        let value = parse(&source)?;
        own_name(what, list, id(&value), &source)?;
        return Ok((value, source));
    }
    match builtin(list).find(|s| stem(&s.path) == name) {
        Some(source) => {
            let value = parse(&source)?;
            debug_assert!(id(&value) == name, "{} holds '{}'", source.path, id(&value));
            Ok((value, source))
        }
        None => Err(unknown(what, name, list.iter().map(|(path, _)| stem(path)))),
    }
}

/// Reads a machine file. `costs = "NAME"` takes the costs of another machine; `like = "NAME"` among
/// its own costs does so for those it leaves out.
fn parse_machine(source: &Source) -> Result<MachineFile, LabError> {
    let mut table: toml::Table = source.parse()?;
    let (own, of, way): (_, _, &[&str]) = match table.remove("costs") {
        Some(toml::Value::String(of)) => (toml::Table::new(), of, &["costs"]),
        Some(toml::Value::Table(mut own)) => match own.remove("like") {
            Some(toml::Value::String(of)) => (own, of, &["costs", "like"]),
            _ => return source.parse(),
        },
        _ => return source.parse(),
    };
    let of = if is_path(&of) { source.beside(&of) } else { of };
    let costs = machine(&of).map_err(|e| source.wrong_name(way, e))?.0.costs;
    let mut costs = toml::Table::try_from(costs).map_err(|e| source.wrong(Wrong::at(way, e.to_string())))?;
    costs.extend(own);
    table.insert("costs".into(), costs.clone().into());
    table.try_into().map_err(|e| source.unreadable_as_asked(&in_its_place(source, &costs, e)))
}

/// The same error with its place, which a merged table has lost: parses the text once more with
/// these costs in place of its own.
fn in_its_place(source: &Source, costs: &toml::Table, e: toml::de::Error) -> toml::de::Error {
    let of_costs = toml::to_string(costs).unwrap_or_default();
    let (Ok(document), Ok(of_costs)) = (DeTable::parse(&source.text), DeTable::parse(&of_costs)) else { return e };
    if costs.clone().try_into::<Costs>().is_err() {
        return e;
    }
    let (span, mut table) = (document.span(), document.into_inner());
    let costs = DeValue::Table(of_costs.into_inner());
    table.insert(Spanned::new(0..0, "costs".into()), Spanned::new(0..0, costs));
    let again = MachineFile::deserialize(Deserializer::from(Spanned::new(span, table)));
    again.err().filter(|found| found.message() == e.message()).unwrap_or(e)
}

/// A machine by name or file, with its text.
pub fn machine(name: &str) -> Result<(MachineFile, String), LabError> {
    let (m, source) = find("machine", MACHINES, name, parse_machine, |m| &m.name)?;
    m.check().map_err(|wrong| source.wrong(Wrong { way: wrong.way, reason: wrong.reason }))?;
    Ok((m, source.text))
}

pub fn machines() -> Result<Vec<MachineFile>, LabError> {
    builtin(MACHINES).map(|s| parse_machine(&s)).collect()
}

/// An experiment by name or file, with its source. A path in it starts from its own folder.
///
/// # Errors
/// If it is missing or wrong: a line with the place in the file.
pub fn experiment(name: &str) -> Result<(Experiment, Source), LabError> {
    let (mut e, source) = find("experiment", EXPERIMENTS, name, Source::parse, |e: &Experiment| &e.id)?;
    e.validate().map_err(|wrong| source.wrong(wrong))?;
    if !source.built_in {
        for path in e.names_mut().filter(|name| is_path(name)) {
            *path = source.beside(path);
        }
        // A snapshot is always a file.
        let workloads = std::iter::once(&mut e.workload).chain(e.case.iter_mut().filter_map(|c| c.workload.as_mut()));
        workloads.filter_map(|w| w.snapshot_mut()).for_each(|path| *path = source.beside(path));
    }
    check_names(&e, &source)?;
    Ok((e, source))
}

/// Checks that everything an experiment names exists and fits.
fn check_names(e: &Experiment, source: &Source) -> Result<(), LabError> {
    machine(&e.machine).map_err(|error| source.wrong_name(&["machine"], error))?;
    if let Some(t) = &e.target {
        target(t).map_err(|error| source.wrong_name(&["target"], error))?;
    }
    if let Some(pace) = &e.pace {
        machine(&pace.machine).map_err(|error| source.wrong_name(&["pace", "machine"], error))?;
    }
    for (i, case) in e.case.iter().enumerate() {
        let way = |key: &'static str| ["case".to_owned(), i.to_string(), key.to_owned()];
        let wrong = |key: &'static str, error| source.wrong_name(&way(key).each_ref().map(String::as_str), error);
        case.machine.iter().try_for_each(|name| machine(name).map(drop).map_err(|e| wrong("machine", e)))?;
        case.target.iter().try_for_each(|name| target(name).map(drop).map_err(|e| wrong("target", e)))?;
        for v in &e.of_case(case).variant {
            let thrown = with_switches(&v.profile, &v.switches).map_err(|error| wrong("sysctls", error))?;
            let settings = v.sysctl_texts().into_iter().filter(|(name, _)| case.sysctls.contains_key(name));
            settings
                .into_iter()
                .try_for_each(|(name, value)| sysctls::check(v, &thrown, &name, &value))
                .map_err(|error| wrong("sysctls", error))?;
        }
    }
    for (i, v) in e.variant.iter().enumerate() {
        let wrong = |way: &[&str], error| source.wrong_name(&[&["variant", &i.to_string()], way].concat(), error);
        profiles::named(&v.profile).map_err(|error| wrong(&["profile"], error))?;
        let thrown = with_switches(&v.profile, &v.switches).map_err(|error| wrong(&["switches"], error))?;
        for (name, value) in v.sysctl_texts() {
            sysctls::check(v, &thrown, &name, &value).map_err(|error| wrong(&["sysctls", &name], error))?;
        }
    }
    Ok(())
}

pub fn experiments() -> Result<Vec<Experiment>, LabError> {
    builtin(EXPERIMENTS).map(|s| s.parse()).collect()
}

/// A target by name or file, with its text.
pub fn target(name: &str) -> Result<(Target, String), LabError> {
    let (t, source) = find("target", TARGETS, name, Source::parse, |t: &Target| &t.id)?;
    t.validate().map_err(|wrong| source.wrong(wrong))?;
    Ok((t, source.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_comes_along_can_be_read_and_fits_together() {
        for m in machines().unwrap() {
            machine(&m.name).unwrap();
        }
        for p in profiles::all() {
            for (name, switch) in kontig_profiles::switches() {
                let fits = switch.fit(&p) == kontig_profiles::Fit::Fits;
                assert_eq!(with_switches(&p.name, std::slice::from_ref(&name)).is_ok(), fits, "{} with {name}", p.name);
            }
        }
        for e in experiments().unwrap() {
            experiment(&e.id).unwrap();
            machine(&e.machine).unwrap();
            for v in &e.variant {
                with_switches(&v.profile, &v.switches).unwrap();
            }
            if let Some(t) = &e.target {
                let (t, _) = target(t).unwrap();
                assert_eq!(t.variants.len(), e.variant.len(), "{}", e.id);
            }
        }
    }

    #[test]
    fn the_box_of_2_gib_has_the_watermarks_that_were_published_of_it() {
        use kontig_mm::{Memory, Wmark};
        let spec = machine("box-2g").unwrap().0.spec().unwrap();
        let memory = Memory::new(&spec, profiles::named("6.12").unwrap()).unwrap();
        let [_, dma32] = memory.zones() else { panic!("it has two zones") };
        let marks = [Wmark::Min, Wmark::Low, Wmark::High].map(|mark| dma32.wmark(mark));
        let published = target("hugealloc-kbuild").unwrap().0.watermarks;
        let [of] = published.as_slice() else { panic!("of one zone") };
        assert_eq!((of.zone.as_str(), of.managed, [of.min, of.low, of.high]), ("DMA32", dma32.managed, marks));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let message = experiment("hugepage-latncy").unwrap_err().to_string();
        assert!(message.contains("did you mean 'hugepage-latency'"), "{message}");
        let message = machine("xeon").unwrap_err().to_string();
        assert!(message.contains("xeon-"), "{message}");
        let message = experiment("qqqqqqqqqqqqqqqqqqqqqq").unwrap_err().to_string();
        assert!(message.contains("known: "), "{message}");
    }

    #[test]
    fn costs_like_anothers_are_its_but_for_those_that_are_said() {
        let dir = std::env::temp_dir().join(format!("kontig-costs-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("m.toml");
        let machine = |costs: &str| {
            let tiny = MACHINES.iter().find(|(name, _)| name.contains("tiny")).expect("it comes along").1;
            std::fs::write(&path, tiny.replace("tiny-64m", "mine").replace("costs = \"xeon-1t\"", costs)).unwrap();
            super::machine(path.to_str().unwrap())
        };
        let (mine, _) = machine("costs = { like = \"xeon-1t\", syscall = { ns = 7, source = \"mine\" } }").unwrap();
        let (like, _) = super::machine("xeon-1t").unwrap();
        for ((name, mine), (_, like)) in mine.costs.iter().zip(like.costs.iter()) {
            assert_eq!(mine.ns, if name == "syscall" { 7.0 } else { like.ns }, "{name}");
        }
        let said = machine("costs = { like = \"xeon-2t\" }").unwrap_err().to_string();
        assert!(said.contains("m.toml:6: ") && said.contains("did you mean 'xeon-1t'"), "{said}");
        let said =
            machine("costs = { like = \"xeon-1t\", sycall = { ns = 7, source = \"mine\" } }").unwrap_err().to_string();
        assert!(said.contains("m.toml:6: ") && said.contains("did you mean 'syscall'"), "{said}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_disk_that_cannot_be_is_named_with_its_line() {
        let dir = std::env::temp_dir().join(format!("kontig-disk-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("m.toml");
        let machine = |more: &str| {
            let tiny = MACHINES.iter().find(|(name, _)| name.contains("tiny")).expect("it comes along").1;
            let text = format!("{}\n{more}", tiny.replace("name = \"tiny-64m\"", "name = \"mine\""));
            std::fs::write(&path, &text).unwrap();
            let line = 1 + text[..text.find("HERE").expect("the test says where")].matches('\n').count();
            (super::machine(path.to_str().unwrap()).unwrap_err().to_string(), line)
        };
        let (said, line) = machine("[swap]\ndisk = \"sdb\" # HERE\nsize = \"1 GiB\"");
        let reason = "swap on disk 'sdb', which is not there: this machine has none";
        assert_eq!(said, format!("{}:{line}: {reason}", path.display()));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_malformed_file_is_named_with_its_line() {
        let text = "name = \"a\"\nsummary = 3\n".into();
        let source = Source { path: "x.toml".into(), text, built_in: false };
        let message = source.parse::<MachineFile>().unwrap_err().to_string();
        assert!(message.starts_with("x.toml:2: "), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}
