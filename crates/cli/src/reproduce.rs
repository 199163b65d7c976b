//! `kontig reproduce`, `kontig run` and `kontig rerun`.

use crate::run_args::{OutputArgs, ReproduceArgs, RerunArgs, RunArgs};
use crate::shard::Shard;
use crate::values;
use kontig_error::files::{check_directory, check_distinct, check_not_read, check_writable, write_file};
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_lab::catalog;
use kontig_lab::expected::Expected;
use kontig_lab::experiment::Experiment;
use kontig_lab::host_snapshot::{COSTS_OF_HOSTS, HostSnapshot};
use kontig_lab::outcome::Outcome;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;
use kontig_lab::store::{HostFacts, Store, StoredResult};
use kontig_lab::what_if::{Changes, WhatIf, what_if};
use kontig_mm::state::LruGen;
use kontig_profiles::STANDARD_INPUT;
use kontig_report::overview::{Listed, Overview};
use kontig_results::{ExperimentResult, REPRODUCE_SCHEMA, Remark, Reproduction, RunResult, Seeds};
use kontig_terminal::Ending;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The time that a session took is stored again after so long.
const BETWEEN_FACTS: Duration = Duration::from_secs(1);

pub fn reproduce(a: &ReproduceArgs) -> Result<(), Error> {
    read_once(a.names.iter().map(String::as_str))?;
    let mut resolved: Vec<Resolved> = Vec::new();
    let names = if a.all { catalog::published()? } else { a.names.clone() };
    for name in &names {
        let (mut experiment, source) = catalog::experiment(name)?;
        with_seeds(&mut experiment, &a.output.seed, None)?;
        let cases = Resolved::all(&experiment, Some(&source))?;
        if resolved.iter().any(|o| o.experiment.id == experiment.id) {
            return Err(AskedWrongly::Value(format!("experiment '{}' is named twice", experiment.id)).into());
        }
        resolved.extend(cases);
    }
    carry_out(resolved, &a.output, a.all, None, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Refuses standard input in two places: it is read once.
fn read_once<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    match names.into_iter().filter(|name| *name == STANDARD_INPUT).count() {
        0 | 1 => Ok(()),
        n => Err(AskedWrongly::Value(format!("standard input (-) is named {n} times, and holds one file")).into()),
    }
}

pub fn run(a: &RunArgs) -> Result<(), Error> {
    read_once(std::iter::once(&a.what).chain(&a.machine).chain(&a.profile).map(String::as_str))?;
    let (e, source, own) = catalog::to_run(&a.what)?;
    let host = a.snapshot.as_deref().map(HostSnapshot::read).transpose()?;
    let parameters = a.with.iter().map(|text| values::parameters(text)).collect::<Result<Vec<_>, _>>()?;
    let changes = Changes {
        machines: match host.is_some() && a.machine.is_empty() {
            true => vec![COSTS_OF_HOSTS.into()],
            false => a.machine.clone(),
        },
        profiles: if a.profile.is_empty() { of_host(host.as_ref())? } else { a.profile.clone() },
        switches: a.switch.clone(),
        settings: a.set.iter().map(|text| values::setting(text)).collect::<Result<_, _>>()?,
        parameters: parameters.concat(),
        snapshot: a.snapshot.clone(),
    };
    let WhatIf { experiment: mut e, mut notes, of_the_workload } = what_if(e, &changes)?;
    notes.extend(kontig_lab::sysctls::set_own(&mut e.variant, &own)?);
    if let Some(name) = &a.baseline {
        let names: Vec<&str> = e.variant.iter().map(|v| v.name.as_str()).collect();
        let at = names.iter().position(|known| known == name).ok_or_else(|| {
            AskedWrongly::Value(format!("--baseline: no variant is called '{name}'; there are {}", names.join(", ")))
        })?;
        e.variant[..=at].rotate_right(1);
    }
    if let Some(n) = a.repetitions {
        e.repetitions = n;
    }
    with_seeds(&mut e, &a.output.seed, a.repetitions)?;
    e.validate().map_err(|wrong| AskedWrongly::Value(wrong.reason))?;
    let cases = Resolved::all(&e, Some(&source))?.into_iter();
    // What is refused needs no notes.
    notes.iter().for_each(|note| kontig_terminal::say(note));
    let notes: Vec<String> = notes.into_iter().chain(of_the_workload).collect();
    let cases = cases.map(|r| Resolved { notes: r.notes.iter().chain(&notes).cloned().collect(), ..r });
    let read = std::iter::once(&a.what).chain(&a.machine).chain(&a.snapshot).chain(&a.profile);
    carry_out(cases.collect(), &a.output, false, a.shard, &read.map(String::as_str).collect::<Vec<_>>())
}

/// As many repetitions as seeds were given.
fn with_seeds(e: &mut Experiment, seeds: &Seeds, repetitions: Option<u32>) -> Result<(), Error> {
    let Seeds::These(seeds) = seeds else { return Ok(()) };
    let n = seeds.len() as u32;
    if let Some(asked) = repetitions.filter(|asked| *asked != n) {
        let reason = format!("--seed names {n} seeds and --repetitions {asked}: leave out one of the two");
        return Err(AskedWrongly::Value(reason).into());
    }
    e.repetitions = n;
    Ok(())
}

/// The profile nearest to a host's kernel.
fn of_host(host: Option<&HostSnapshot>) -> Result<Vec<String>, Error> {
    let Some(host) = host else { return Ok(Vec::new()) };
    let none = || {
        let reason = format!("'{}' is not a kernel release: choose a profile with --profile", host.kernel());
        Error::from(AskedWrongly::Value(reason))
    };
    let profile = host.profile().ok_or_else(none)?;
    kontig_terminal::say(&format!(
        "Linux {} runs with profile {}, the newest that is not newer",
        host.kernel(),
        profile.name
    ));
    Ok(vec![profile.name])
}

/// Runs the experiments and writes the results. An overview replaces the tables. `read` names the
/// files that the experiments may come from.
fn carry_out(
    resolved: Vec<Resolved>,
    o: &OutputArgs,
    overview: bool,
    shard: Option<Shard>,
    read: &[&str],
) -> Result<(), Error> {
    let begin = Instant::now();
    if o.markdown.is_some() && !overview {
        crate::markdown::check(&resolved)?;
    }
    let files = [
        ("--html", &o.html),
        ("--markdown", &o.markdown),
        ("--svg", &o.svg),
        ("--trace", &o.trace),
        ("--history", &o.history),
    ];
    // These three have files of different names, and may share a directory.
    for directory in [("--out", &o.out), ("--procfs", &o.procfs), ("--mmtests", &o.mmtests)] {
        let outputs = files.into_iter().chain([directory]).map(|(option, path)| (option, path.as_deref()));
        check_distinct(&outputs.collect::<Vec<_>>())?;
    }
    check_not_read(&files.map(|(option, path)| (option, path.as_deref())), read)?;
    let maps = o.out.is_some() || o.html.is_some() || o.svg.is_some();
    let views = Views {
        procfs: o.procfs.clone(),
        mmtests: o.mmtests.clone(),
        trace: o.trace.clone(),
        history: o.history.clone(),
        maps,
    };
    let mut session = Session::new(resolved, o.seed.clone(), &views)?;
    let planned = session.jobs().len();
    let resumes = o.resume && o.out.as_deref().is_some_and(Store::is_begun);
    // Fail on unwritable outputs now, not after a minute of work. What is there is a resumed
    // session's own: it was checked when that began.
    if !resumes {
        if let Some(shard) = shard {
            session = shard.part_of(session, None)?;
        }
        session.check_new()?;
    }
    let open = if o.resume { Store::resume } else { Store::create };
    let mut store = o.out.as_deref().map(|dir| open(dir, &o.seed, session.resolved(), &views)).transpose()?;
    if let Some(shard) = shard.filter(|_| resumes) {
        session = shard.part_of(session, store.as_ref().zip(o.out.as_deref()))?;
    }
    if let Some(store) = store.as_ref().filter(|_| o.resume) {
        let (had, all) = (session.resume(|plan| store.run(plan))?, session.jobs().len());
        kontig_terminal::say(&format!("{had} of {all} runs are finished already"));
        session.clear_unfinished()?;
    }
    for file in [&o.html, &o.svg, &o.markdown].into_iter().flatten() {
        check_writable(file)?;
    }
    for file in session.traces() {
        check_writable(file)?;
    }
    for file in session.histories() {
        check_writable(file)?;
    }
    for dir in [&o.procfs, &o.mmtests].into_iter().flatten() {
        check_directory(dir)?;
    }
    session.check_mmtests()?;
    let resumable = store.as_mut().is_some_and(|store| store.begin(&views));
    let files = Mutex::new(BTreeMap::new());
    let runs_kept = AtomicUsize::new(0);
    let facts = || HostFacts { wall_s: begin.elapsed().as_secs_f64(), peak_rss_bytes: peak_rss() };
    let told = Mutex::new(Instant::now());
    let finished = |run: &RunResult| {
        if let Some(store) = &store {
            let (path, file) = store.keep_run(run)?;
            files.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(path, file);
            let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if told.elapsed() > BETWEEN_FACTS {
                store.keep_host(&facts())?;
                *told = Instant::now();
            }
        }
        runs_kept.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let (outcomes, error) = run_session(&session, o.jobs, &finished);
    let files = files.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let runs_kept = runs_kept.into_inner();
    let host = facts();
    // Runs finished before an interrupt or an error are a result too, of fewer runs.
    if let Some(store) = store.as_ref().filter(|_| error.is_none() || runs_kept > 0) {
        let result = StoredResult::new(&o.seed, session.resolved(), &outcomes, files)?;
        let completed = store.complete(&result, &host);
        if error.is_none() {
            completed?;
        }
    }
    if let (Some(shard), Some(dir)) = (shard, &o.out) {
        let (runs, dir) = (session.jobs().len(), dir.display());
        kontig_terminal::print(&format!(
            "shard {shard}: {runs_kept} of its {runs} runs are in {dir}, of {planned} in all\n"
        ))?;
    } else if !outcomes.is_empty() {
        let in_all = store.as_ref().map_or_else(|| host.clone(), |store| store.in_all(&host));
        show(&session, &outcomes, o, overview, &Took { in_all, now_s: resumes.then_some(host.wall_s) })?;
    }
    match error {
        None => Ok(()),
        Some(Error::Failed(Failed::Interrupted { .. })) => {
            let total = session.jobs().len();
            let kept = match (runs_kept, &o.out) {
                (0, _) if resumable => {
                    format!("none of {total} runs was finished: the same command with --resume goes on")
                }
                (0, _) => format!("none of {total} runs was finished, and nothing is kept"),
                (n, None) => match &o.mmtests {
                    Some(dir) => {
                        let dir = dir.display();
                        format!(
                            "{n} of {total} runs were finished; their iterations are in {dir}. Without --out they \
                             cannot be resumed: remove {dir} and begin again with --out"
                        )
                    }
                    None => format!("{n} of {total} runs were finished and are not stored (no --out)"),
                },
                (n, Some(_)) => {
                    format!("{n} of {total} runs were finished and are kept: the same command with --resume goes on")
                }
            };
            Err(Failed::Interrupted { kept }.into())
        }
        Some(e) => Err(e),
    }
}

/// Runs a session, with its progress on standard error. Ctrl-C stops it.
pub fn run_session(
    session: &Session,
    jobs: Option<usize>,
    finished: &(dyn Fn(&RunResult) -> Result<(), Error> + Sync),
) -> (Vec<Outcome>, Option<Error>) {
    let stop = session.stop_flag();
    kontig_terminal::interrupt::act(move || {
        // Runs check it between slices of simulated time; a second Ctrl-C does not wait for that.
        if stop.swap(true, Ordering::Relaxed) {
            kontig_terminal::say("interrupted again: the runs under way are lost");
            std::process::exit(1);
        }
    });
    let threads = jobs.or_else(|| Some(std::thread::available_parallelism().ok()?.get())).unwrap_or(1);
    let expected = &Expected::of(session, threads);
    // Closing it ends the progress.
    let (at_work, done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Without a thread for the progress the work continues without it.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || match std::io::stderr().is_terminal() {
            true => crate::progress::show(session.jobs(), expected, &done),
            false => crate::progress::tell(session.jobs(), expected, &done),
        });
        let result = session.run(threads, finished);
        drop(at_work);
        result
    })
}

/// The time and memory of a result.
struct Took {
    /// Of all sessions, one after the other.
    in_all: HostFacts,
    /// In this one, if it resumed another, s.
    now_s: Option<f64>,
}

impl Took {
    fn said(&self) -> String {
        let gib = self.in_all.peak_rss_bytes as f64 / (1u64 << 30) as f64;
        let now = self.now_s.map_or(String::new(), |now| format!(" in all, {now:.1} s in this session"));
        format!("{:.1} s{now}, {gib:.1} GiB at most", self.in_all.wall_s)
    }
}

/// Prints the outcomes and writes the pages.
fn show(session: &Session, outcomes: &[Outcome], o: &OutputArgs, overview: bool, took: &Took) -> Result<(), Error> {
    if o.json {
        let doc = Reproduction {
            schema: REPRODUCE_SCHEMA.into(),
            seed: o.seed.clone(),
            wall_s: took.in_all.wall_s,
            peak_rss_bytes: took.in_all.peak_rss_bytes,
            experiments: outcomes.iter().map(|x| kontig_report::answer(&x.result)).collect(),
        };
        kontig_terminal::print_json(&doc)?;
    } else {
        let terminal = std::io::stdout().is_terminal();
        // Files and pipes have no width.
        let width = kontig_terminal::columns();
        let figures = o.figures.wanted();
        let mut text = String::new();
        if overview {
            text += &overview_of(session, outcomes).text(width, terminal);
            text += "\n";
        }
        for cases in outcomes.chunk_by(|a, b| a.result.id == b.result.id).filter(|_| !overview) {
            for x in cases {
                let result = with_remarks_on_kernels(session, &x.result);
                text += &kontig_report::table::render(&result, &figures, width, terminal);
                if o.statistics {
                    text += &kontig_report::statistics::render(&x.result, width, terminal).unwrap_or_default();
                }
                text += &kontig_report::pace::render(&x.pace, &pace_machine(session, &x.result));
                text += "\n";
            }
            let together = kontig_report::table::together(&cases.iter().map(|x| &x.result).collect::<Vec<_>>());
            text += &together.map_or(String::new(), |line| line + "\n");
        }
        let most = outcomes.iter().map(|x| x.result.repetitions).max().unwrap_or(1);
        text += &format!("{}; {}\n", o.seed.said(most), took.said());
        kontig_terminal::print(&text)?;
    }
    if let Some(file) = &o.html {
        let all = overview.then(|| overview_of(session, outcomes));
        write_file(file, page(session, outcomes, all).as_bytes())?;
    }
    if let Some(file) = &o.markdown {
        let text = match overview {
            true => {
                let most = outcomes.iter().map(|x| x.result.repetitions).max().unwrap_or(1);
                let seeds = o.seed.said(most);
                kontig_report::published::page(&overview_of(session, outcomes), &listed(session, outcomes), &seeds)
            }
            false => crate::markdown::page(session.resolved(), outcomes)?,
        };
        write_file(file, text.as_bytes())?;
    }
    if let (Some(file), Some(first)) = (&o.svg, outcomes.first()) {
        let picture = kontig_report::svg::Picture::default();
        let svg = kontig_report::svg::memory_map_svg(&first.runs, &picture)
            .map_err(|e| Failed::Write { path: file.display().to_string(), reason: e.to_string() })?;
        write_file(file, svg.as_bytes())?;
    }
    Ok(())
}

/// The overview of all outcomes.
fn overview_of(session: &Session, outcomes: &[Outcome]) -> Overview {
    let unfinished: Vec<String> = (session.resolved().iter())
        .filter(|r| !outcomes.iter().any(|x| (&x.result.id, &x.result.case) == (&r.experiment.id, &r.case)))
        .map(|r| format!("{} {}", r.experiment.id, r.case).trim_end().to_owned())
        .collect();
    Overview::new(&listed(session, outcomes), &unfinished)
}

/// The results with the series that their experiments belong to.
fn listed<'a>(session: &'a Session, outcomes: &'a [Outcome]) -> Vec<Listed<'a>> {
    let series = |result| source(session, result).map_or("", |source| source.experiment.series());
    outcomes.iter().map(|x| Listed { series: series(&x.result), result: &x.result }).collect()
}

/// The experiment's case that this result is of.
fn source<'a>(session: &'a Session, result: &ExperimentResult) -> Option<&'a Resolved> {
    session.resolved().iter().find(|r| (&r.experiment.id, &r.case) == (&result.id, &result.case))
}

/// The machine of its pace sweep; empty without one.
fn pace_machine(session: &Session, result: &ExperimentResult) -> String {
    let pace = source(session, result).and_then(|r| r.experiment.pace.as_ref());
    pace.map(|pace| pace.machine.clone()).unwrap_or_default()
}

/// The result with a remark for each variant whose kernel's distributions run another reclaim, if
/// the machine reclaims at all and does not begin as a host, whose settings are known. Not stored
/// with the result, as no run produced it.
fn with_remarks_on_kernels(session: &Session, result: &ExperimentResult) -> ExperimentResult {
    let source = source(session, result).filter(|source| source.machine.has_disks() && !source.begins_as_host());
    let variants = source.iter().flat_map(|source| source.experiment.variant.iter().zip(&source.profiles));
    let said = variants.enumerate().filter_map(|(i, (variant, profile))| {
        let set = variant.sysctls_by_full_name();
        let enabled = set.get("lru_gen.enabled").and_then(|value| value.parse().ok()).unwrap_or(LruGen::ALL.0);
        Some(Remark { variant: Some(i), text: kontig_profiles::lru_gen_of_distributions(profile, enabled)? })
    });
    ExperimentResult { remarks: result.remarks.iter().cloned().chain(said).collect(), ..result.clone() }
}

fn page(session: &Session, outcomes: &[Outcome], overview: Option<Overview>) -> String {
    let results: Vec<ExperimentResult> = outcomes.iter().map(|x| with_remarks_on_kernels(session, &x.result)).collect();
    let experiments = outcomes
        .iter()
        .zip(&results)
        .map(|(x, result)| {
            let source = source(session, result);
            kontig_report::html::PageExperiment {
                result,
                runs: &x.runs,
                pace: &x.pace,
                pace_machine: pace_machine(session, result),
                summary: source.map(|r| r.experiment.summary.clone()).unwrap_or_default(),
                notes: source.map(|r| format!("{} {}", r.experiment.assumptions, r.machine.notes)).unwrap_or_default(),
            }
        })
        .collect();
    kontig_report::html::page(&kontig_report::html::Page {
        title: "Kontig".into(),
        subtitle: "Experiments on a simulated machine, next to what was published".into(),
        overview,
        experiments,
    })
}

/// `kontig rerun`: checks the stored files, then repeats the runs.
pub fn rerun(a: &RerunArgs) -> Result<Ending, Error> {
    let shown = a.result.display();
    let stored = StoredResult::read(&a.result)?;
    let others = stored.check_runs(&a.result)?;
    if let Some(first) = others.first() {
        let more = match others.len() - 1 {
            0 => "is".into(),
            more => format!("and {more} more are"),
        };
        kontig_terminal::say(&format!(
            "{shown}: {first} {more} not part of this result: its result.json names no such run"
        ));
    }
    let session = Session::new(stored.inputs.clone(), stored.seed.clone(), &Views { maps: true, ..Views::default() })?;
    let planned = session.jobs().len();
    let session = session.only(|plan| stored.has(plan));
    let files = Mutex::new(BTreeMap::new());
    let finished = |run: &RunResult| {
        let (path, file) = StoredResult::run_file(run)?;
        files.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(path, file);
        Ok(())
    };
    let (outcomes, error) = run_session(&session, a.jobs, &finished);
    if let Some(e) = error {
        return Err(e);
    }
    let files = files.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let again = StoredResult {
        version: stored.version.clone(),
        ..StoredResult::new(&stored.seed, &stored.inputs, &outcomes, files)?
    };
    let Some(difference) = stored.first_difference(&again) else {
        let runs = match stored.runs.len() {
            1 => "1 run".into(),
            n => format!("{n} runs"),
        };
        let unfinished = match planned - session.jobs().len() {
            0 => String::new(),
            n => format!(" ({n} of the {planned} runs planned are not in it)"),
        };
        kontig_terminal::print(&format!(
            "{shown}: identical, {runs} byte for byte, as stored and as run again{unfinished}\n"
        ))?;
        return Ok(Ending::Done);
    };
    kontig_terminal::say(&format!("{shown}: not reproduced (written by kontig {}): {difference}", stored.version));
    Ok(Ending::Different)
}

/// The process's peak resident memory in bytes; 0 if unknown.
fn peak_rss() -> u64 {
    let text = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let kib = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(0, |k| k * 1024)
}
