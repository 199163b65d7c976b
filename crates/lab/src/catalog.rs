//! The data that comes with Kontig, by name: machines, workloads, experiments and the published
//! targets, beside the kernel generations of [`kontig_profiles`].
//!
//! A path to a file works wherever a name does. An unknown name is answered with the nearest known
//! one.

use crate::built_in::{Form, stem};
use crate::experiment::{self, Experiment, Variant};
use crate::groups;
use crate::names::unknown;
use crate::parameters::{self, room};
use crate::profiles::{self, with_switches};
use crate::source::Source;
use crate::sysctls;
use crate::target::Target;
use kontig_error::Error;
use kontig_error::files::is_file_name;
use kontig_profiles::{STANDARD_INPUT, is_path};
use kontig_sim::MachineFile;
use kontig_workload::{Workload, WorkloadFile, Wrong};
use serde::de::DeserializeOwned;
use toml::de::DeTable;

fn builtin(form: Form) -> impl Iterator<Item = Source> {
    form.names().filter_map(move |name| Source::built_in(form, name))
}

/// Refuses a file that has the name of a built-in one: its results would be taken for that one's.
fn own_name(name: &str, source: &Source) -> Result<(), Error> {
    let what = source.form.name();
    match Source::built_in(source.form, name) {
        Some(other) if other.text != source.text => {
            let remedy = match source.form {
                Form::Workload => {
                    let reason = format!("'{name}' is a built-in {what}: change the name of the file");
                    return Err(source.malformed(0, reason));
                }
                Form::Machine => "name",
                Form::Experiment | Form::Target => "id",
            };
            let reason = format!("'{name}' is a built-in {what}: change the {remedy}");
            Err(source.wrong(Wrong::at(&[remedy], reason)))
        }
        _ => Ok(()),
    }
}

/// Finds by file or by the name inside a built-in file. `is_valid` says whether the numbers in a
/// file are possible, which is started from its folder.
fn find<T: DeserializeOwned>(
    form: Form,
    name: &str,
    id: impl Fn(&T) -> String,
    is_valid: impl Fn(&T, &Source) -> bool,
) -> Result<(T, Source), Error> {
    if is_path(name) {
        let source = Source::read(name, form)?;
        let value = source.parse_valid(|value| is_valid(value, &source))?;
        own_name(&id(&value), &source)?;
        return Ok((value, source));
    }
    match Source::built_in(form, name) {
        Some(source) => {
            let value = source.parse()?;
            debug_assert!(id(&value) == name, "{} holds '{}'", source.path, id(&value));
            Ok((value, source))
        }
        None => Err(unknown(form.name(), name, form.names())),
    }
}

/// Whether a workload in a file fits the machine that the file names; true if that is not known.
fn fits(workload: &Workload, machine: &str, source: &Source) -> bool {
    let named = if is_path(machine) { source.beside(machine) } else { machine.to_owned() };
    self::machine(&named).map_or(true, |(machine, _)| workload.fits(&room(&machine)).is_ok())
}

/// Checks that a workload fits its machine. One that begins as a host does has that host's memory.
///
/// # Errors
/// The part that does not fit, with its place in the file.
pub fn check_fits(workload: &Workload, machine: &MachineFile, source: &Source) -> Result<(), Error> {
    if workload.beginning().is_some() {
        return Ok(());
    }
    parameters::fits(workload, &room(machine)).map_err(|wrong| source.wrong(wrong))
}

/// A machine by name or file, with the text it came from.
pub fn machine(name: &str) -> Result<(MachineFile, String), Error> {
    let (m, source) = find(Form::Machine, name, |m: &MachineFile| m.name.clone(), |m, _| m.check().is_ok())?;
    m.check().map_err(|wrong| source.wrong(Wrong { way: wrong.way, reason: wrong.reason }))?;
    Ok((m, source.text))
}

/// Every machine that is built in.
pub fn machines() -> Result<Vec<MachineFile>, Error> {
    builtin(Form::Machine).map(|s| s.parse()).collect()
}

/// An experiment by name or file, with the file. What it names is there; a path it names starts
/// from its own folder.
///
/// # Errors
/// If there is none, or it is wrong: a line with the place in the file.
pub fn experiment(name: &str) -> Result<(Experiment, Source), Error> {
    let is_valid = |e: &Experiment, source: &Source| {
        let fits = |e: &Experiment| fits(&e.workload, &e.machine, source);
        e.validate().is_ok()
            && match e.case.as_slice() {
                [] => fits(e),
                cases => cases.iter().all(|case| fits(&e.of_case(case))),
            }
    };
    let (mut e, source) = find(Form::Experiment, name, |e: &Experiment| e.id.clone(), is_valid)?;
    e.validate().map_err(|wrong| source.wrong(wrong))?;
    if !source.built_in {
        for path in e.names_mut().filter(|name| is_path(name)) {
            *path = source.beside(path);
        }
        // A machine's start state is in files always.
        let workloads = std::iter::once(&mut e.workload).chain(e.case.iter_mut().filter_map(|c| c.workload.as_mut()));
        workloads.flat_map(|w| w.files_of_beginning()).for_each(|path| *path = source.beside(path));
    }
    check_names(&e, &source)?;
    Ok((e, source))
}

/// A workload by name or file; what it is called, and the file.
///
/// # Errors
/// If there is none, or it is wrong: a line with the place in the file.
pub fn workload(name: &str) -> Result<(WorkloadFile, String, Source), Error> {
    let id = if name == STANDARD_INPUT { "stdin" } else { stem(name) }.to_owned();
    let is_valid =
        |w: &WorkloadFile, source: &Source| w.workload.validate().is_ok() && fits(&w.workload, &w.machine, source);
    let (mut w, source) = find(Form::Workload, name, |_: &WorkloadFile| id.clone(), is_valid)?;
    if !is_file_name(&id) {
        return Err(source.malformed(0, format!("a workload cannot be called '{id}', as its file is")));
    }
    w.workload.validate().map_err(|wrong| source.wrong(wrong))?;
    if !source.built_in {
        let machine = Some(&mut w.machine).filter(|name| is_path(name));
        for path in w.workload.files_of_beginning().into_iter().chain(machine) {
            *path = source.beside(path);
        }
    }
    machine(&w.machine).map_err(|error| source.wrong_name(&["machine"], error))?;
    for (name, value) in experiment::texts(&w.sysctls) {
        sysctls::check_of_workload(&name, &value).map_err(|error| source.wrong_name(&["sysctls", &name], error))?;
    }
    Ok((w, id, source))
}

/// Every built-in workload, with its name.
pub fn workloads() -> Result<Vec<(&'static str, WorkloadFile)>, Error> {
    Form::Workload.names().map(|name| Ok((name, workload(name)?.0))).collect()
}

/// An experiment with its file, and the sysctls that belong to its workload.
pub type ToRun = (Experiment, Source, Vec<(String, String)>);

/// An experiment by name or file, or a workload as an experiment of one variant.
///
/// # Errors
/// If there is none, or it is wrong: a line with the place in the file.
pub fn to_run(name: &str) -> Result<ToRun, Error> {
    if Form::Experiment.names().any(|known| known == name) || is_path(name) && !is_workload(name)? {
        return experiment(name).map(|(e, source)| (e, source, Vec::new()));
    }
    if !is_path(name) && !Form::Workload.names().any(|known| known == name) {
        return Err(unknown("workload or experiment", name, Form::Experiment.names().chain(Form::Workload.names())));
    }
    let (w, id, source) = workload(name)?;
    let sysctls = experiment::texts(&w.sysctls);
    // One whose control groups are known, if the workload has any.
    let profile = if w.workload.groups.is_empty() { Some("6.1".to_owned()) } else { groups::kernels().next() };
    let profile = profile.unwrap_or_default();
    let variant = Variant { name: profile.clone(), profile, ..Variant::default() };
    let experiment = Experiment {
        id,
        summary: w.summary,
        assumptions: String::new(),
        machine: w.machine,
        target: None,
        repetitions: 1,
        workload: w.workload,
        rounds: 1,
        case: Vec::new(),
        caveat: Vec::new(),
        lack: Vec::new(),
        variant: vec![variant],
        pace: None,
        page: None,
    };
    Ok((experiment, source, sysctls))
}

/// Whether a file is a workload's: it has phases, or a base, and nothing that an experiment alone
/// has.
fn is_workload(path: &str) -> Result<bool, Error> {
    let source = Source::read(path, Form::Experiment)?;
    let Ok(document) = DeTable::parse(&source.text) else { return Ok(false) };
    let any = |keys: &[&str]| keys.iter().any(|key| document.get_ref().contains_key(*key));
    Ok(any(&["phase", "prepare", "measure", "base"]) && !any(&["id", "workload", "variant", "case", "assumptions"]))
}

/// The text of a built-in experiment, workload, machine or profile, as it is written.
///
/// # Errors
/// If none of them has this name.
pub fn text(name: &str) -> Result<String, Error> {
    let forms = [Form::Experiment, Form::Workload, Form::Machine];
    let source = forms.into_iter().find_map(|form| Source::built_in(form, name));
    let profile = || kontig_profiles::text(name).map(str::to_owned);
    source.map(|source| source.text).or_else(profile).ok_or_else(|| {
        let known = forms.into_iter().flat_map(Form::names).chain(kontig_profiles::names());
        unknown("experiment, workload, machine or profile", name, known)
    })
}

/// The text of a built-in target, as it is written. Targets have the names of experiments.
///
/// # Errors
/// If none has this name.
pub fn target_text(name: &str) -> Result<String, Error> {
    let source = Source::built_in(Form::Target, name);
    source.map(|source| source.text).ok_or_else(|| unknown("target", name, Form::Target.names()))
}

/// Checks that everything an experiment names exists and fits.
fn check_names(e: &Experiment, source: &Source) -> Result<(), Error> {
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
        v.machine.iter().try_for_each(|name| machine(name).map(drop).map_err(|error| wrong(&["machine"], error)))?;
        let thrown = with_switches(&v.profile, &v.switches).map_err(|error| wrong(&["switches"], error))?;
        for (name, value) in v.sysctl_texts() {
            sysctls::check(v, &thrown, &name, &value).map_err(|error| wrong(&["sysctls", &name], error))?;
        }
    }
    Ok(())
}

/// Every experiment that is built in.
pub fn experiments() -> Result<Vec<Experiment>, Error> {
    builtin(Form::Experiment).map(|s| s.parse()).collect()
}

/// The names of the built-in experiments that have published figures, by series.
///
/// # Errors
/// As [`experiments`].
pub fn published() -> Result<Vec<String>, Error> {
    let mut published: Vec<Experiment> = experiments()?;
    published.retain(|e| e.target.is_some());
    published.sort_by(|a, b| a.series().cmp(b.series()));
    Ok(published.into_iter().map(|e| e.id).collect())
}

/// A target by name or file, with its file.
pub fn target(name: &str) -> Result<(Target, Source), Error> {
    let (t, source) = find(Form::Target, name, |t: &Target| t.id.clone(), |t, _| t.validate().is_ok())?;
    t.validate().map_err(|wrong| source.wrong(wrong))?;
    Ok((t, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_built_in_can_be_read_and_fits_together() {
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
            let tiny = Source::built_in(Form::Machine, "tiny-64m").expect("it is built in").text;
            std::fs::write(&path, tiny.replace("tiny-64m", "mine").replace("costs = \"xeon-1t\"", costs)).unwrap();
            super::machine(path.to_str().unwrap())
        };
        let (mine, _) = machine("costs = { base = \"xeon-1t\", syscall = { ns = 7, source = \"mine\" } }").unwrap();
        let (like, _) = super::machine("xeon-1t").unwrap();
        for ((name, mine), (_, like)) in mine.costs.iter().zip(like.costs.iter()) {
            assert_eq!(mine.ns, if name == "syscall" { 7.0 } else { like.ns }, "{name}");
        }
        let said = machine("costs = { base = \"xeon-2t\" }").unwrap_err().to_string();
        assert!(said.contains("m.toml:6: ") && said.contains("did you mean 'xeon-1t'"), "{said}");
        let said =
            machine("costs = { base = \"xeon-1t\", sycall = { ns = 7, source = \"mine\" } }").unwrap_err().to_string();
        assert!(said.contains("m.toml:6: ") && said.contains("did you mean 'syscall'"), "{said}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_disk_that_cannot_be_is_named_with_its_line() {
        let dir = std::env::temp_dir().join(format!("kontig-disk-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("m.toml");
        let machine = |more: &str| {
            let tiny = Source::built_in(Form::Machine, "tiny-64m").expect("it is built in").text;
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
        let source = Source { path: "x.toml".into(), text, form: Form::Machine, built_in: false, may_repeat: false };
        let message = source.parse::<MachineFile>().unwrap_err().to_string();
        assert!(message.starts_with("x.toml:2: "), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}
