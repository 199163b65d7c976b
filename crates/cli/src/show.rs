//! `kontig show`: the file of what has a name, what is in it, or a stored result.

use crate::figures::FiguresArgs;
use crate::profile::{ProfileCommand, ShowArgs as OfProfile, profile};
use clap::{Args, ValueEnum};
use kontig_error::{AskedWrongly, Error};
use kontig_lab::catalog;
use kontig_lab::drawn::{Drawn, drawn};
use kontig_lab::experiment::Experiment;
use kontig_lab::plan::room;
use kontig_lab::resolved::Resolved;
use kontig_lab::store::StoredResult;
use kontig_report::table::Figures;
use kontig_sim::MachineFile;
use kontig_terminal::{width, wrap};
use kontig_text::{grouped, size};
use kontig_workload::{Parameter, Workload};
use std::io::IsTerminal;
use std::path::Path;

pub const HELP: &str = "Examples:\n  \
    kontig show heap > mine.toml                      the file, to copy and change\n  \
    kontig show workload heap                         its parameters, for --with\n  \
    kontig show machine box-2g\n  \
    kontig show results/x                             the tables of a stored result, the answer first\n  \
    kontig show --target thpscale                     the published figures of an experiment\n\n\
    A kind before the name is workload, machine, experiment or profile; then a file can be named, too.";

/// Options of `kontig show`.
#[derive(Args)]
pub struct ShowArgs {
    /// A name in 'kontig list', or the directory of a result; after its kind, its contents are
    /// listed instead of its file
    #[arg(value_name = "[KIND] NAME|RESULT", required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// Print the published figures that the experiment of this name is compared with
    #[arg(long, conflicts_with_all = ["all_figures", "figures"])]
    target: bool,
    #[command(flatten)]
    figures: FiguresArgs,
}

/// A kind that a name can follow.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Workload,
    Machine,
    Experiment,
    Profile,
}

/// The words for them.
pub fn kinds() -> impl Iterator<Item = String> {
    Kind::value_variants().iter().filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()))
}

pub fn show(a: &ShowArgs) -> Result<(), Error> {
    let wrong = |reason: String| Err(AskedWrongly::Value(format!("kontig show {reason}")).into());
    match a.what.as_slice() {
        [kind, _] if a.target || a.figures.are_asked_for() => {
            wrong(format!("{kind}: --target is of an experiment's name alone, figures are of a result"))
        }
        [kind, name] => match Kind::from_str(kind, false) {
            Ok(Kind::Workload) => workload(name),
            Ok(Kind::Machine) => machine(name),
            Ok(Kind::Experiment) => experiment(name),
            Ok(Kind::Profile) => profile(&ProfileCommand::Show(OfProfile::brief(name))),
            Err(_) => wrong(format!("{kind}: unknown kind: it is {}", kinds().collect::<Vec<_>>().join(", "))),
        },
        // Clap takes one or two.
        names => {
            let name = names.first().map_or("", String::as_str);
            if a.target {
                kontig_terminal::print(&catalog::target_text(name)?)
            } else if Kind::from_str(name, false).is_ok() {
                wrong(format!("{name}: name the {name}; 'kontig list' shows all"))
            } else {
                match catalog::text(name) {
                    Err(_) if Path::new(name).exists() => result(Path::new(name), &a.figures.wanted()),
                    Ok(_) if a.figures.are_asked_for() => wrong(format!("{name}: figures are of a stored result")),
                    text => kontig_terminal::print(&text?),
                }
            }
        }
    }
}

/// The tables of a result, drawn from its runs; of a part of them, such as a shard, how many there
/// are.
fn result(dir: &Path, figures: &Figures) -> Result<(), Error> {
    let stored = StoredResult::read(dir)?;
    let Drawn { experiments, parts } = drawn(&stored, dir)?;
    let (terminal, width) = (std::io::stdout().is_terminal(), kontig_terminal::columns());
    let table = |result| kontig_report::table::render(result, figures, width, terminal) + "\n";
    let mut text: String = experiments.iter().map(table).collect();
    for (name, there, planned) in parts {
        text += &paragraph(&format!(
            "{name}: {there} of {planned} runs are here, and so no table. 'kontig export' puts shards together; \
             --resume finishes a session that was stopped."
        ));
    }
    if let Some(most) = experiments.iter().map(|result| result.repetitions).max() {
        text += &format!("{}; ", stored.seed.said(most));
    }
    kontig_terminal::print(&format!("{text}written by kontig {}\n", stored.version))
}

fn workload(name: &str) -> Result<(), Error> {
    let (file, id, source) = catalog::workload(name)?;
    let machine = catalog::machine(&file.machine)?.0;
    catalog::check_fits(&file.workload, &machine, &source)?;
    let mut text = paragraph(&format!("{id}: {}, on {}.", file.summary, machine.name));
    let sysctls: Vec<String> = file.sysctls.iter().map(|(name, value)| format!("{name}={}", bare(value))).collect();
    if !sysctls.is_empty() {
        text += &paragraph(&format!("It sets {}; --set changes that.", sysctls.join(", ")));
    }
    text += "\n";
    text += &parameters(&file.workload, &machine);
    kontig_terminal::print(&(text + &example(&id, &file.workload)))
}

fn bare(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn paragraph(text: &str) -> String {
    wrap("", text, 0, width())
}

/// A line for each parameter: its name, value now, unit, and what it takes on this machine.
fn parameters(workload: &Workload, machine: &MachineFile) -> String {
    let all = workload.parameters();
    let room = room(machine);
    let mut lines = vec![["parameter", "now", "unit", "takes"].map(String::from)];
    for alike in alike(&all) {
        let first = alike[0];
        // There can be many steps, and nobody reads the range of each.
        let takes = if first.is_of_a_step() { None } else { workload.takes(&alike, Some(&room)) };
        let of = if alike.len() > 1 { format!(" (of {})", alike.len()) } else { String::new() };
        lines.push([first.path(), cut(&first.text()) + &of, first.unit().into(), takes.unwrap_or_default()]);
    }
    let widest = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [names, values, units] = [0, 1, 2].map(widest);
    let line = |[name, now, unit, takes]: &[String; 4]| {
        format!("{name:names$}  {now:values$}  {unit:units$}  {takes}").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// A value, or its beginning: what a task's processes do is a table of steps.
fn cut(value: &str) -> String {
    const COLUMNS: usize = 32;
    if value.chars().count() <= COLUMNS {
        return value.to_owned();
    }
    value.chars().take(COLUMNS - 1).chain(['…']).collect()
}

/// Parameters of tasks alike that have the same value.
fn alike(all: &[Parameter]) -> Vec<Vec<&Parameter>> {
    let mut groups: Vec<Vec<&Parameter>> = Vec::new();
    for parameter in all {
        let same =
            |group: &&mut Vec<&Parameter>| group[0].path() == parameter.path() && group[0].value == parameter.value;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(parameter),
            None => groups.push(vec![parameter]),
        }
    }
    groups
}

/// How to set one of the parameters.
fn example(id: &str, workload: &Workload) -> String {
    let all = workload.parameters();
    let own = all.iter().rfind(|parameter| parameter.value.is_some() && !parameter.is_of_a_step());
    let Some(own) = own else { return String::new() };
    let set = format!("{}={}", own.path(), own.text().replace(' ', ""));
    let none = if all.iter().any(|parameter| parameter.value.is_none()) { " A dash is a value left out." } else { "" };
    let text = format!(
        "'kontig run {id} --with {set}' sets one; its last part is enough where no other parameter has it. What a \
         parameter takes is what this machine has room for while all others are as they are.{none}"
    );
    format!("\n{}", paragraph(&text))
}

fn machine(name: &str) -> Result<(), Error> {
    let machine = catalog::machine(name)?.0;
    let mut text = paragraph(&format!("{}: {}.", machine.name, machine.summary));
    let nodes = machine.node_pages();
    let pages = |pages: u64| size(pages * 4096);
    let mut line = |what: &str, is: String| text += &wrap(&format!("{what:8}"), &is, 8, width());
    let each: Vec<String> = nodes.iter().map(|of| pages(*of)).collect();
    line(
        "memory",
        match each.as_slice() {
            [one] => one.clone(),
            several => format!("{} on {} nodes: {}", pages(nodes.iter().sum()), several.len(), several.join(", ")),
        },
    );
    let threads = machine.threads_per_core;
    line(
        "CPUs",
        match threads {
            1 => machine.cpus.to_string(),
            threads => format!("{}, {threads} threads a core", machine.cpus),
        },
    );
    for (disk, files) in machine.disk.iter().zip(machine.file_pages()) {
        line("disk", format!("{}, {} for files", disk.name, pages(u64::from(files))));
    }
    if machine.swap_pages() > 0 {
        line("swap", pages(machine.swap_pages()));
    }
    let here = machine.host_bytes().map_err(AskedWrongly::Value)?;
    line("here", format!("a run takes up to {} of this host's memory", size(here)));
    text += &format!("\n{}", paragraph(&machine.notes));
    kontig_terminal::print(&text)
}

fn experiment(name: &str) -> Result<(), Error> {
    let (e, source) = catalog::experiment(name)?;
    Resolved::all(&e, Some(&source))?;
    let mut text = paragraph(&format!("{}: {}.", e.id, e.summary));
    let mut line = |what: &str, is: String| text += &wrap(&format!("{what:10}"), &is, 10, width());
    let names: Vec<&str> = e.variant.iter().map(|v| v.name.as_str()).collect();
    line("variants", names.join(", "));
    let cases: Vec<String> = e.case.iter().map(|case| format!("{} on {}", case.name, machine_of(&e, case))).collect();
    match cases.as_slice() {
        [] => line("machine", e.machine.clone()),
        cases => line("cases", cases.join(", ")),
    }
    if e.rounds > 1 {
        line("rounds", grouped(e.rounds));
    }
    line("seeds", grouped(e.repetitions));
    if let Some(target) = &e.target {
        line("published", format!("'kontig show --target {target}' prints the figures"));
    }
    text += "\n";
    text += &paragraph(&e.assumptions);
    text += "\n";
    text += &parameters(&e.workload, &catalog::machine(&e.machine)?.0);
    kontig_terminal::print(&(text + &example(&e.id, &e.workload)))
}

fn machine_of<'a>(e: &'a Experiment, case: &'a kontig_lab::experiment::Case) -> &'a str {
    case.machine.as_deref().unwrap_or(&e.machine)
}
