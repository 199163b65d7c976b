//! Stored results beside each other: every experiment that two of them share as one table, with the
//! first result's first variant as the baseline.
//!
//! Runs of one seed are paired, whatever the results they are of. What else differs between the
//! results than the variants is said below the table.

use crate::compare::{Subject, compare};
use crate::elsewhere::Elsewhere;
use crate::experiment::Variant;
use crate::outcome::Outcome;
use crate::resolved::Resolved;
use crate::store::StoredResult;
use kontig_error::files::check_named_once;
use kontig_error::{AskedWrongly, Error};
use kontig_results::{Compared, RunResult};
use std::path::{Path, PathBuf};

/// A stored result with its runs.
pub struct Stored {
    /// As the user named it.
    name: String,
    result: StoredResult,
    runs: Vec<RunResult>,
}

impl Stored {
    /// Reads a directory that `--out` wrote.
    fn read(dir: &Path) -> Result<Stored, Error> {
        let result = StoredResult::read(dir)?;
        let runs = result.read_runs(dir)?;
        Ok(Stored { name: dir.display().to_string(), result, runs })
    }

    /// Its name, and the seeds of its runs.
    pub fn compared(&self) -> Compared {
        let mut seeds: Vec<u64> = self.runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Compared { name: self.name.clone(), seeds }
    }

    fn of(&self, key: &str) -> Option<&Resolved> {
        self.result.inputs.iter().find(|input| input.key() == key)
    }
}

/// An experiment as one of the results has it.
struct Part<'a> {
    of: &'a Stored,
    input: &'a Resolved,
}

impl Part<'_> {
    /// How many of its runs there are, if some are missing: of a shard, or of a session that was
    /// stopped.
    fn lacking(&self) -> Result<Option<String>, Error> {
        let (there, planned) = self.of.result.runs_of(self.input)?;
        Ok((there < planned).then(|| {
            format!(
                "{} has {there} of the {planned} runs of {}: the command that made it, with --resume and without \
                 --shard, does the others",
                self.of.name,
                self.input.key()
            )
        }))
    }
}

/// Reads these directories.
///
/// # Errors
/// If one holds no result, or a run's file is missing or changed, or one is given twice.
pub fn read_all(dirs: &[PathBuf]) -> Result<Vec<Stored>, Error> {
    check_named_once(dirs)?;
    dirs.iter().map(|dir| Stored::read(dir)).collect()
}

/// The tables of the experiments that at least two of the results have, and notes on the others.
///
/// # Errors
/// If there is no such experiment.
pub fn beside(all: &[Stored]) -> Result<(Vec<Outcome>, Vec<String>), Error> {
    let mut keys: Vec<String> = Vec::new();
    for input in all.iter().flat_map(|one| &one.result.inputs) {
        if !keys.contains(&input.key()) {
            keys.push(input.key());
        }
    }
    let (mut outcomes, mut notes) = (Vec::new(), Vec::new());
    for key in keys {
        let parts: Vec<Part<'_>> = all.iter().filter_map(|of| Some(Part { of, input: of.of(&key)? })).collect();
        match parts.as_slice() {
            [only] => notes.push(format!("{key} is only in {}, and has no table", only.of.name)),
            parts => outcomes.push(together(parts)?),
        }
    }
    if outcomes.is_empty() {
        let of = |one: &Stored| {
            let keys: Vec<String> = one.result.inputs.iter().map(Resolved::key).collect();
            format!("{} has {}", one.name, keys.join(", "))
        };
        let each: Vec<String> = all.iter().map(of).collect();
        return Err(AskedWrongly::Value(format!("the results share no experiment: {}", each.join("; "))).into());
    }
    Ok((outcomes, notes))
}

fn together(parts: &[Part<'_>]) -> Result<Outcome, Error> {
    let names = names(parts);
    let mut variants = Vec::new();
    let mut runs = Vec::new();
    let mut seeds: Vec<u64> = parts.iter().flat_map(|part| &part.of.runs).map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    for (part, names) in parts.iter().zip(&names) {
        for (variant, name) in part.input.experiment.variant.iter().zip(names) {
            variants.push(Variant { name: name.clone(), ..variant.clone() });
            let key = (&part.input.experiment.id, &part.input.case, &variant.name);
            let own = part.of.runs.iter().filter(|run| (&run.experiment, &run.case, &run.variant) == key);
            runs.extend(own.map(|run| RunResult {
                variant: name.clone(),
                repetition: seeds.partition_point(|seed| *seed < run.seed) as u32,
                ..run.clone()
            }));
        }
    }
    let first = &parts[0];
    let mut machines: Vec<&str> = parts.iter().map(|part| part.input.machine.name.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    let differences: Vec<Difference> = parts[1..].iter().flat_map(|part| differences(first, part)).collect();
    let lacking = parts.iter().filter_map(|part| part.lacking().transpose());
    let mut notes: Vec<String> = lacking.collect::<Result<_, _>>()?;
    notes.extend(differences.iter().map(|difference| difference.text.clone()));
    for of in parts.iter().flat_map(|part| part.input.notes.iter().cloned().chain(part.input.rests_on())) {
        if !notes.contains(&of) {
            notes.push(of);
        }
    }
    let elsewhere = Elsewhere::of(&first.input.experiment);
    let subject = Subject {
        id: &first.input.experiment.id,
        case: &first.input.case,
        machine: &machines.join(" and "),
        variants: &variants,
        target: None,
        caveats: &[],
        lacks: &[],
        notes: &notes,
        elsewhere: elsewhere.as_ref(),
    };
    let mut result = compare(&subject, &runs);
    // Of unlike machines, workloads or seeds it would be more than the sysctl that differs.
    if differences.iter().any(|difference| difference.is_of_the_run) {
        result.sweeps.clear();
    }
    Ok(Outcome { result, runs, pace: Vec::new() })
}

/// Each part's variants, by names that occur once: their own; the result's where each has a single
/// variant; else both.
fn names(parts: &[Part<'_>]) -> Vec<Vec<String>> {
    let own: Vec<Vec<String>> = parts.iter().map(|part| part.input.variants()).collect();
    let mut all: Vec<&String> = own.iter().flatten().collect();
    all.sort();
    if all.windows(2).all(|two| two[0] != two[1]) {
        return own;
    }
    let single = own.iter().all(|variants| variants.len() == 1);
    let name = |of: &Stored, variant: &String| match single {
        true => of.name.clone(),
        false => format!("{}: {variant}", of.name),
    };
    parts.iter().zip(&own).map(|(part, own)| own.iter().map(|variant| name(part.of, variant)).collect()).collect()
}

/// A difference between two results beside their variants.
struct Difference {
    text: String,
    /// Whether it alone can change a figure.
    is_of_the_run: bool,
}

fn differences(first: &Part<'_>, other: &Part<'_>) -> Vec<Difference> {
    let (a, b) = (&first.input.experiment, &other.input.experiment);
    let machines = first.input.machine != other.input.machine || first.input.begins_as != other.input.begins_as;
    let all = [
        (first.of.result.version != other.of.result.version, true, "was written by another version of kontig"),
        (machines, true, "is of another machine"),
        (a.workload != b.workload, true, "has another workload, or other settings of it,"),
        (a.rounds != b.rounds, true, "has another number of rounds"),
        (a.repetitions != b.repetitions, false, "has another number of seeds"),
        (first.of.result.seed != other.of.result.seed, true, "begins with another seed"),
    ];
    let said = all.into_iter().filter(|(differs, ..)| *differs);
    let difference = |(_, is_of_the_run, what): (bool, bool, &str)| Difference {
        text: format!("{} {what} than {}", other.of.name, first.of.name),
        is_of_the_run,
    };
    said.map(difference).collect()
}
