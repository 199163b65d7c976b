//! `kontig bench translation`: what huge pages gain on this host, and a machine file that says so.

use crate::grid::Grid;
use crate::out::{print, print_json};
use crate::wrap::{width, wrap};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kontig_bench::quiet::not_quiet;
use kontig_bench::translation::measure;
use kontig_bench::translation::measured::{FirstTouch, Loop, Measured, Point};
use kontig_bench::translation::programs::{self, Held};
use kontig_lab::catalog;
use kontig_lab::files::{check_distinct, check_writable, write_file};
use kontig_lab::session::memory_for_runs;
use kontig_lab::{Failed, LabError};
use kontig_sim::MachineFile;
use kontig_text::{parse_size, size};
use kontig_translation::{Backing, Processor};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const HELP: &str = "Examples:\n  \
    kontig bench translation                                what huge pages gain here\n  \
    kontig bench translation --machine box-2g --out my.toml\n  \
    kontig run jvm-heap --machine my.toml --set thp.enabled=never,always\n\n\
    Loops go over up to 2 GiB on small pages and on huge ones, by turns: they take a quarter of the memory \
    available, ten seconds to half a minute, and need no root. Huge pages must not be switched off \
    (transparent_hugepage/enabled is 'always' or 'madvise'). A chase is what lists, trees and hash maps do: each \
    access waits for the one before. Gains below 5 % are not shown to be any.";

/// Options of `kontig bench translation`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct TranslationArgs {
    /// Write a machine file: the machine of --machine with this host's address translation and
    /// first touch
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The machine that --out changes
    #[arg(long, value_name = "NAME|FILE", default_value = "server-64g", requires = "out")]
    machine: String,
    /// Also hold the model against a Java heap, a hash join and a compiler: needs java, gcc and
    /// valgrind, and ten minutes
    #[arg(long)]
    programs: bool,
    /// Write a Markdown page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print one JSON document (schema kontig.bench-translation/1)
    #[arg(long)]
    json: bool,
}

pub fn translation(args: &TranslationArgs) -> Result<(), LabError> {
    let base = args.out.as_ref().map(|out| Ok::<_, LabError>((out, catalog::machine(&args.machine)?.0))).transpose()?;
    check_distinct(&[("--out", args.out.as_deref()), ("--markdown", args.markdown.as_deref())])?;
    args.out.iter().chain(&args.markdown).try_for_each(|path| check_writable(path))?;
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg} {elapsed:>4}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    let told = |what: &str| bar.set_message(what.to_string());
    let measured =
        measure(memory_for_runs(), told).map_err(|reason| Failed::Run { run: "bench translation".into(), reason })?;
    let held = if args.programs { programs::hold(&measured, told) } else { Vec::new() };
    bar.finish_and_clear();
    if let Some((out, base)) = base {
        write_file(out, machine(&args.machine, &base, out, &measured)?.as_bytes())?;
    }
    if let Some(path) = &args.markdown {
        write_file(path, page(&measured, &held).as_bytes())?;
    }
    if args.json { print_json(&document(&measured, &held)) } else { print(&text(&measured, &held)) }
}

/// A program, and what it gave or why it could not be run.
type Tried = (&'static str, Result<Held, String>);

/// The gain of huge pages: the share of the time that goes away, %.
fn gain([small, huge]: [f64; 2]) -> f64 {
    100.0 * (1.0 - huge / small)
}

/// A gain below this is not shown.
const SHOWN_PERCENT: f64 = 5.0;

fn faster(ns: [f64; 2]) -> String {
    let percent = gain(ns);
    if percent.abs() < SHOWN_PERCENT {
        "as fast on huge pages as on small ones".into()
    } else if percent > 0.0 {
        format!("{percent:.0} % faster on huge pages")
    } else {
        format!("{:.0} % slower on huge pages", -percent)
    }
}

fn text(m: &Measured, held: &[Tried]) -> String {
    let paragraphs: String = conclusions(m).iter().map(|text| wrap("", text, 0, width()) + "\n").collect();
    let noise = not_quiet(m.others).map_or(String::new(), |noise| wrap("", &noise, 0, width()));
    let mut text = paragraphs + &loops(m).text(0, None) + "\n" + &wrap("", &about(m), 0, width()) + &noise;
    if let Some(grid) = of_programs(held) {
        text += &format!("\n{}", grid.text(0, None));
    }
    missing(held).fold(text, |text, line| text + &wrap("", &line, 0, width()))
}

/// The page for people who want to know how far to trust the model.
fn page(m: &Measured, held: &[Tried]) -> String {
    let paragraph = |text: &str| wrap("", text, 0, PAGE_WIDTH) + "\n";
    let item = |text: &str| wrap("- ", text, 2, PAGE_WIDTH);
    let mut text = String::from("# What huge pages gain: the model beside a real host\n\n");
    text += &paragraph(
        "Made by `kontig bench translation --programs --markdown FILE`. The model's constants come from the loops of \
         the first table; the programs of the second were predicted before they ran.",
    );
    let said = conclusions(m).into_iter().chain([about(m)]).chain(not_quiet(m.others));
    text += &said.map(|said| paragraph(&said)).collect::<String>();
    let (near, all) = programs::loops_that_hold(m);
    text += "## Loops\n\n";
    text += &paragraph(&format!(
        "Times are ns an access. The gain of {near} of {all} chases is modelled within 5 points or a quarter of it; \
         independent accesses are measured, not modelled."
    ));
    text += &loops(m).markdown();
    if let Some(grid) = of_programs(held) {
        let hold = held.iter().filter(|(_, held)| held.as_ref().is_ok_and(Held::holds)).count();
        text += "\n## Programs\n\n";
        text += &paragraph(&format!(
            "{hold} of {} predictions hold: within 5 points or a quarter of the gain; of a missed one no cause is \
             shown. A gain is of the least time of five runs on each kind of pages, by turns; its range is that of the \
             five pairs. Times are of the steady part alone, without the first touch: CPU time, \
             of the compiler user time.",
            held.len()
        ));
        text += &(grid.markdown() + "\n");
        let known = held.iter().filter_map(|(name, held)| Some((name, held.as_ref().ok()?)));
        text += &known.map(|(name, held)| item(&format!("{name}: {}.", held.known))).collect::<String>();
    }
    missing(held).fold(text, |text, line| text + &item(&line))
}

/// Columns of the page's source.
const PAGE_WIDTH: usize = 120;

/// Programs beside the model; none if none ran.
fn of_programs(held: &[Tried]) -> Option<Grid> {
    let mut grid = Grid::new(["program", "small, s", "huge, s", "gain", "range", "predicted", ""], &[0, 6]);
    let mut any = false;
    for (name, held) in held.iter().filter_map(|(name, held)| Some((name, held.as_ref().ok()?))) {
        any = true;
        grid.row(vec![
            name.to_string(),
            format!("{:.2}", held.seconds[0]),
            format!("{:.2}", held.seconds[1]),
            format!("{:.0} %", held.measured()),
            format!("{:.0} to {:.0} %", held.range[0], held.range[1]),
            format!("{:.0} %", held.predicted),
            if held.holds() { "holds" } else { "MISSED" }.into(),
        ]);
    }
    any.then_some(grid)
}

/// A line for each program that could not be run.
fn missing(held: &[Tried]) -> impl Iterator<Item = String> {
    held.iter().filter_map(|(name, held)| Some(format!("{name} was not held: {}", held.as_ref().err()?)))
}

/// The answers, a paragraph each.
fn conclusions(m: &Measured) -> Vec<String> {
    let cpu = &m.processor;
    let chases: Vec<&Point> = m.points.iter().filter(|point| point.of == Loop::Chase).collect();
    let mut paragraphs = Vec::new();
    if let Some(most) = chases.last() {
        let [small, huge] = most.ns;
        paragraphs.push(format!(
            "Accesses that wait for each other (lists, trees, hash maps) over {} are {}: {small:.0} ns on small pages, \
             {huge:.0} ns on huge ones. Over {} they are {}.",
            size(most.bytes as u64),
            faster(most.ns),
            size(chases[chases.len() / 2].bytes as u64),
            faster(chases[chases.len() / 2].ns)
        ));
    }
    if let Some(most) = cpu.independent.last() {
        let ns = [most.small_ns, most.huge_ns];
        paragraphs.push(format!(
            "Accesses that do not wait are {} over {}: {:.1} ns and {:.1} ns. A stream of {:.1} ns a cache line gains \
             nothing.",
            faster(ns),
            most.size,
            ns[0],
            ns[1],
            cpu.sequential_ns
        ));
    }
    paragraphs.push(paid(m.first_touch, chases.last().map(|most| most.ns)));
    paragraphs
}

/// The loops, size by size, beside the model.
fn loops(m: &Measured) -> Grid {
    let cpu = &m.processor;
    let mut grid = Grid::new(
        [
            "memory",
            "chase, small",
            "huge",
            "gain",
            "model, small",
            "huge",
            "gain",
            "independent, small",
            "huge",
            "gain",
        ],
        &[0],
    );
    for point in m.points.iter().filter(|point| point.of == Loop::Chase) {
        let independent = cpu.independent.iter().find(|of| parse_size(&of.size) == Some(point.bytes as u64));
        let cells = |ns: [f64; 2], digits: usize| {
            [format!("{:.digits$}", ns[0]), format!("{:.digits$}", ns[1]), format!("{:.0} %", gain(ns))]
        };
        let none = || ["–".to_string(), "–".to_string(), "–".to_string()];
        let of_independent = independent.map_or_else(none, |of| cells([of.small_ns, of.huge_ns], 1));
        let row = [cells(point.ns, 0), cells(point.modelled(cpu), 0), of_independent].concat();
        grid.row([vec![size(point.bytes as u64)], row].concat());
    }
    grid
}

/// The host, and how far to trust the figures.
fn about(m: &Measured) -> String {
    let cpu = &m.processor;
    format!(
        "{}, {}: {} and {} TLB entries. Times are ns an access, the least of eleven turns on each; turns differ by \
         {:.0} %. The model is {:.0} % off.",
        cpu.processor,
        backing(cpu.backing),
        cpu.tlb1.entries,
        cpu.tlb2.entries,
        m.spread_percent,
        cpu.error_percent
    )
}

const fn backing(backing: Backing) -> &'static str {
    match backing {
        Backing::Native => "no virtual machine",
        Backing::Small => {
            "a guest whose host seems to have small pages, so that huge pages gain half of what they could"
        }
        Backing::Huge => "a guest whose host seems to have huge pages",
    }
}

/// The time of the first touch, and the accesses after which a huge page is paid for.
fn paid(FirstTouch { ns, again_ns }: FirstTouch, access: Option<[f64; 2]>) -> String {
    let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
    let touch = format!(
        "The first touch of 2 MiB takes {} on 512 small pages and {} on a huge page; {} and {} on memory just given \
         back.",
        ms(ns[0]),
        ms(ns[1]),
        ms(again_ns[0]),
        ms(again_ns[1])
    );
    let more = again_ns[1] - again_ns[0];
    let saved = access.map_or(0.0, |[small, huge]| small - huge);
    match (more > 0.0, saved > 0.0) {
        (false, _) => touch + " A huge page costs nothing more.",
        (true, true) => format!("{touch} A huge page is paid for after {:.0} accesses that wait.", more / saved),
        (true, false) => touch,
    }
}

/// A machine file like `base`, with what was measured.
fn machine(name: &str, base: &MachineFile, out: &Path, m: &Measured) -> Result<String, LabError> {
    let failed = |e: toml::ser::Error| Failed::Write { path: out.display().to_string(), reason: e.to_string() };
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    // A file is named by its path, from where this one lies.
    let name = if kontig_profiles::is_path(name) {
        std::path::absolute(name).map_or(name.into(), |path| path.display().to_string())
    } else {
        name.to_string()
    };
    let Processor { processor, source, .. } = &m.processor;
    let head = toml::toml! {
        name = (stem.as_ref())
        summary = (format!("{} with the address translation and the first touch of {processor}", base.name))
        base = (name)
        notes = (format!("{} with what 'kontig bench translation' measured.", base.name))
    };
    let translation = toml::Table::try_from(&m.processor).map_err(failed)?;
    let mut all = toml::Table::new();
    if let Some(costs) = costs(base, m.first_touch, source) {
        all.insert("costs".into(), costs.into());
    }
    all.insert("translation".into(), translation.into());
    let text = |table: &toml::Table| toml::to_string(table).map_err(failed);
    Ok(format!("{}\n{}", text(&head)?, text(&all)?))
}

/// Costs that follow from the first touch: a huge page is clearing 2 MiB, a small page's fault is
/// what is left beside clearing it. None where the measurement does not fit the base's other costs.
fn costs(
    base: &MachineFile,
    FirstTouch { again_ns: [small, huge], .. }: FirstTouch,
    source: &str,
) -> Option<toml::Table> {
    let gb_s = f64::from(2 << 20) / huge;
    let fault = (small - huge) / 512.0;
    if fault <= 0.0 || gb_s > base.costs.write_all.gb_s {
        return None;
    }
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    let source = |what: &str| format!("{what}; {source}");
    let (of_write, of_fault) = (source("a huge page touched again"), source("a small page touched again, not cleared"));
    let (gb_s, fault) = (hundredths(gb_s), hundredths(fault));
    Some(toml::toml! {
        fault = { ns = fault, source = of_fault }
        write_one = { gb_s = gb_s, source = of_write }
    })
}

fn document(m: &Measured, held: &[Tried]) -> serde_json::Value {
    let point = |point: &Point| {
        let [small, huge] = point.modelled(&m.processor);
        let of = if point.of == Loop::Chase { "chase" } else { "line-a-page" };
        json!({
            "loop": of, "bytes": point.bytes, "small_ns": point.ns[0], "huge_ns": point.ns[1],
            "modelled_small_ns": small, "modelled_huge_ns": huge,
        })
    };
    let of_program = |(name, held): &Tried| match held {
        Ok(held) => json!({
            "program": name, "known": held.known, "small_s": held.seconds[0], "huge_s": held.seconds[1],
            "gain_percent": held.measured(), "range_percent": held.range, "predicted_percent": held.predicted,
            "holds": held.holds(),
        }),
        Err(reason) => json!({ "program": name, "missing": reason }),
    };
    let FirstTouch { ns, again_ns } = m.first_touch;
    json!({
        "schema": "kontig.bench-translation/1",
        "version": env!("CARGO_PKG_VERSION"),
        "processor": m.processor,
        "points": m.points.iter().map(point).collect::<Vec<_>>(),
        "first_touch_of_2_mib": {
            "small_ns": ns[0], "huge_ns": ns[1], "small_again_ns": again_ns[0], "huge_again_ns": again_ns[1],
        },
        "programs": held.iter().map(of_program).collect::<Vec<_>>(),
        "spread_percent": m.spread_percent,
        "cpus_of_others": m.others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_translation::Independent;

    fn measured() -> Measured {
        let zen4 = catalog::machine("zen4-guest-16g").expect("built in").0.translation.expect("measured");
        let independent = vec![Independent { size: "2 GiB".into(), small_ns: 17.5, huge_ns: 17.1 }];
        let processor = Processor { independent, ..zen4 };
        let at = |mib: usize, ns| Point { of: Loop::Chase, bytes: mib << 20, ns };
        Measured {
            processor,
            points: vec![at(16, [142.0, 139.0]), at(256, [188.0, 170.0]), at(2048, [423.0, 291.0])],
            first_touch: FirstTouch { ns: [1.1e6, 2.2e6], again_ns: [1.0e6, 0.4e6] },
            spread_percent: 3.0,
            others: None,
        }
    }

    #[test]
    fn the_gain_is_said_first() {
        let text = text(&measured(), &[]).replace('\n', " ");
        assert!(
            text.starts_with("Accesses that wait for each other (lists, trees, hash maps) over 2 GiB are 31 % faster")
        );
        assert!(
            text.contains("do not wait are as fast on huge pages as on small ones over 2 GiB: 17.5 ns and 17.1 ns")
        );
        assert!(text.contains("A huge page costs nothing more."), "{text}");
        let dearer = paid(FirstTouch { ns: [1e6; 2], again_ns: [1e6, 5e6] }, Some([330.0, 200.0]));
        assert!(dearer.ends_with("paid for after 30769 accesses that wait."), "{dearer}");
    }

    #[test]
    fn the_machine_file_can_be_read_and_has_what_was_measured() {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("mine.toml");
        let (base, _) = catalog::machine("server-64g").expect("built in");
        let m = measured();
        let text = machine("server-64g", &base, &out, &m).expect("a file");
        std::fs::write(&out, text).expect("written");
        let (mine, _) = catalog::machine(&out.display().to_string()).expect("it can be read");
        assert_eq!((mine.name.as_str(), mine.cpus), ("mine", base.cpus));
        assert_eq!(mine.translation.as_ref(), Some(&m.processor));
        assert_eq!((mine.costs.write_one.gb_s, mine.costs.fault.ns), (5.24, 1171.88));
    }

    #[test]
    fn costs_that_do_not_fit_are_left_to_the_base() {
        let (base, _) = catalog::machine("server-64g").expect("built in");
        let of = |again_ns| costs(&base, FirstTouch { ns: [1e6; 2], again_ns }, "a test");
        assert!(of([1e6, 2e6]).is_none() && of([1e6, 1.0]).is_none());
    }
}
