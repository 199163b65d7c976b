//! `kontig oracle guest`: the counters of real kernels while a program ran a pattern, beside those
//! of the lab while it runs the same steps on the same machine.

mod build;
mod change;
mod page;
mod shares;
mod words;

use clap::Args;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_lab::guest::boot::{Booted, BootedZone, OfType};
use kontig_lab::guest::{Counted, Look, machine_of, play};
use kontig_oracle::build as pattern;
use kontig_oracle::guest::compare::{Row, Spread, rows, times};
use kontig_oracle::guest::samples::Sample;
use kontig_oracle::guest::{Guest, Pattern, State, sampled};
use kontig_terminal::Ending;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const HELP: &str = "Examples:\n  \
    kontig oracle guest                                    every recording under oracle/guest/recorded\n  \
    kontig oracle guest --pattern anon --kernel 6.1\n  \
    kontig oracle guest --no-lab                           the kernels' side alone\n  \
    kontig oracle guest --out docs/generated/pressure.md   regenerate the page in docs\n  \
    kontig oracle record guest-anon --kernel 6.1 --seed 6 && kontig oracle guest recordings/6.1-guest-anon-seed6\n\n\
    The lab runs each recording's steps as well, on machine guest-512m or guest-2g with the kernel's zones, under the \
    profile of the kernel's series. A row has the mean over the seeds and, in brackets, the lowest and the highest. \
    Events are counted from the first phase to the last; levels (nr_*) are averaged over the ends of the phases. \
    'inside' is within 15 % of the kernel's mean, or between its lowest and highest run; a counter that others give \
    ('repeats'), one that hardly moves or 'varies' from run to run, and the length of phases are shown and not \
    judged; '-' is a counter that the lab lacks. Where a pattern was also recorded with a sysctl set, a last table \
    shows the effect on both sides. Pattern build is a real build; its figures are inside within 25 %, and the lab \
    runs workload kbuild-guest on machine guest-620m.\n\n\
    Exit codes: 0 done, whether inside or outside; 2 no such folder, or a malformed recording; 1 failed otherwise.";

/// Folder of the project's recordings.
const RECORDED: &str = "oracle/guest/recorded";

/// Options of `kontig oracle guest`.
#[derive(Args)]
pub struct GuestArgs {
    /// Folders of recordings (default: all under oracle/guest/recorded)
    #[arg(value_name = "DIR")]
    recordings: Vec<PathBuf>,
    /// Only this pattern: file, anon, fork, mixed, costs, swap-costs, bursts or build
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// Only this kernel: 6.1 or 7.2
    #[arg(long, value_name = "SERIES")]
    kernel: Option<String>,
    /// Show what the kernels counted, and run nothing
    #[arg(long)]
    no_lab: bool,
    /// Write the page of the project here, as Markdown, instead of showing tables
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,
    /// Print one JSON document (schema kontig.guest/2) instead of tables
    #[arg(long)]
    json: bool,
}

/// The recordings of a pattern on a kernel, and its runs in the laboratory.
struct Group {
    pattern: String,
    series: String,
    sysctls: BTreeMap<String, String>,
    guests: Vec<Guest>,
    lab: Lab,
}

enum Lab {
    NotAsked,
    Failed(String),
    Runs(Vec<Run>),
}

/// A run in the laboratory.
struct Run {
    states: Vec<State>,
    /// Of a build alone.
    samples: Vec<Sample>,
}

/// Runs `kontig oracle guest`.
pub fn guest(args: &GuestArgs) -> Result<Ending, Error> {
    let mut groups = groups(args)?;
    if groups.is_empty() {
        let reason = "no recording is of this pattern and kernel; those of the project are of 6.1 and 7.2, and 'kontig \
                      oracle record guest-anon' makes others";
        return Err(AskedWrongly::Value(reason.into()).into());
    }
    let mut documents = Vec::new();
    for group in &mut groups {
        if !args.no_lab {
            group.lab = in_the_laboratory(&group.guests)?;
        }
        if args.json {
            documents.push(group.as_json());
        } else if args.out.is_none() {
            kontig_terminal::print(&group.table())?;
        }
    }
    if let Some(out) = &args.out {
        let failed = |e: std::io::Error| Failed::Write { path: out.display().to_string(), reason: e.to_string() };
        std::fs::write(out, page::markdown(&groups)).map_err(failed)?;
        return Ok(Ending::Done);
    }
    let settings = change::settings(&groups);
    if args.json {
        let changes: Vec<Value> = settings.iter().map(change::Setting::as_json).collect();
        let document = json!({ "schema": "kontig.guest/2", "tables": documents, "changes": changes });
        kontig_terminal::print(&format!("{document:#}\n"))?;
    } else {
        settings.iter().try_for_each(|setting| kontig_terminal::print(&setting.table()))?;
    }
    Ok(Ending::Done)
}

/// Recordings by pattern and kernel, in the order of their names.
fn groups(args: &GuestArgs) -> Result<Vec<Group>, Error> {
    if let Some(name) = args.pattern.as_ref().filter(|name| Pattern::find(name).is_none()) {
        let known: Vec<&str> = Pattern::names().collect();
        return Err(AskedWrongly::Value(format!("--pattern {name}: known are {}", known.join(", "))).into());
    }
    let mut groups: Vec<Group> = Vec::new();
    for dir in folders(&args.recordings)? {
        let guest = Guest::open(&dir).map_err(|e| AskedWrongly::Value(e.to_string()))?;
        let wanted = |asked: &Option<String>, is: &str| asked.as_ref().is_none_or(|asked| asked == is);
        if !wanted(&args.pattern, &guest.pattern) || !wanted(&args.kernel, &guest.series) {
            continue;
        }
        match groups.iter_mut().find(|g| g.holds(&guest)) {
            Some(group) => group.guests.push(guest),
            None => groups.push(Group {
                pattern: guest.pattern.clone(),
                series: guest.series.clone(),
                sysctls: guest.sysctls.clone(),
                guests: vec![guest],
                lab: Lab::NotAsked,
            }),
        }
    }
    Ok(groups)
}

fn folders(asked: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if !asked.is_empty() {
        return Ok(asked.to_vec());
    }
    super::source_tree::at_the_top(RECORDED)?;
    let entries = std::fs::read_dir(Path::new(RECORDED))
        .map_err(|e| AskedWrongly::Unreadable { path: RECORDED.into(), reason: e.to_string() })?;
    let mut all: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|path| path.is_dir()).collect();
    all.sort();
    Ok(all)
}

/// Every recording's steps or build, on the machine as its kernel had it.
fn in_the_laboratory(guests: &[Guest]) -> Result<Lab, Error> {
    let mut runs = Vec::new();
    for guest in guests {
        let Some(pattern) = Pattern::find(&guest.pattern) else { continue };
        let (machine, _) = kontig_lab::catalog::machine(machine_for(&pattern))?;
        let profile = kontig_lab::profiles::named(&guest.series)?;
        let booted = booted(guest);
        let run = match pattern {
            Pattern::Steps(steps) => play(&machine, &booted, profile, &guest.sysctls, steps.acts(guest.seed))
                .map(|counted| (counted, Vec::new())),
            Pattern::Build => {
                let (workload, _, sysctls) = kontig_lab::catalog::to_run(pattern::WORKLOAD)?;
                let sysctls = sysctls.into_iter().chain(guest.sysctls.clone()).collect();
                let of = (&workload.workload.scenario(), guest.seed);
                kontig_lab::guest::run(&machine, &booted, profile, &sysctls, of, pattern::SAMPLE_MS * 1_000_000)
            }
        };
        match run {
            Ok((counted, looks)) => runs.push(Run {
                states: counted.into_iter().map(state).collect(),
                samples: looks.into_iter().map(sample).collect(),
            }),
            // What one pattern cannot do is said in its table; the others go on.
            Err(e @ Error::Failed(_)) => return Ok(Lab::Failed(e.to_string())),
            Err(e) => return Err(e),
        }
    }
    Ok(Lab::Runs(runs))
}

/// The machine in the laboratory.
fn machine_for(pattern: &Pattern) -> &'static str {
    match pattern {
        Pattern::Steps(steps) => machine_of(steps.memory_pages),
        Pattern::Build => pattern::MACHINE,
    }
}

/// The machine as the kernel had it when counting began.
fn booted(guest: &Guest) -> Booted {
    let zone = |zone: &kontig_oracle::guest::BootedZone| {
        let of_type = |&(migratetype, blocks, free)| OfType { migratetype, blocks, free };
        BootedZone {
            spec: zone.spec.clone(),
            taken: zone.taken,
            types: zone.types.iter().map(of_type).collect(),
            unmovable_on_cpus: zone.unmovable_on_cpus as u32,
        }
    };
    let sum = |of: fn(&kontig_oracle::guest::BootedZone) -> u64| guest.zones.iter().map(of).sum::<u64>() as u32;
    let at_first = |name: &str| guest.states[0].counters.get(name).unwrap_or(0);
    let anon = sum(|zone| zone.anon);
    let shmem = (at_first("nr_shmem") as u32).min(anon);
    let files = (at_first("nr_inactive_file") + at_first("nr_active_file")) as u32;
    let dirty = (at_first("nr_dirty") as u32).min(files);
    Booted {
        zones: guest.zones.iter().map(zone).collect(),
        anon,
        active_anon: at_first("nr_active_anon") as u32,
        // What has no file is mapped, and of the file system in memory what is counted as mapped.
        mapped: anon - shmem + (at_first("nr_mapped") as u32).min(shmem),
        shmem,
        clean: files - dirty,
        dirty,
        slabs: [at_first("nr_slab_reclaimable"), at_first("nr_slab_unreclaimable")],
        on_cpus: sum(|zone| zone.on_cpus),
    }
}

fn state(counted: Counted) -> State {
    State { phase: counted.phase.into(), counters: counted.counters, took_ns: counted.took_ns }
}

fn sample(look: Look) -> Sample {
    let free_huge = look.free_huge.into_iter().map(|(zone, free)| (zone.to_string(), free)).collect();
    Sample { ns: look.ns, free_huge, counters: Default::default() }
}

impl Group {
    /// Whether a recording differs from those of the group by its seed alone.
    fn holds(&self, guest: &Guest) -> bool {
        (&self.pattern, &self.series, &self.sysctls) == (&guest.pattern, &guest.series, &guest.sysctls)
    }

    /// The machine in the laboratory.
    fn machine(&self) -> &'static str {
        Pattern::find(&self.pattern).map_or("", |pattern| machine_for(&pattern))
    }

    /// A sentence about its pattern, without its end.
    fn what(&self) -> &'static str {
        Pattern::find(&self.pattern).map_or("", |pattern| pattern.what())
    }

    fn is_build(&self) -> bool {
        self.pattern == pattern::NAME
    }

    /// The figures of a build.
    fn figures(&self) -> Vec<sampled::Row> {
        let kernel: Vec<_> =
            self.guests.iter().map(|g| sampled::Run { states: &g.states, samples: &g.samples }).collect();
        let lab: Vec<_> = match &self.lab {
            Lab::Runs(runs) => {
                runs.iter().map(|run| sampled::Run { states: &run.states, samples: &run.samples }).collect()
            }
            Lab::NotAsked | Lab::Failed(_) => Vec::new(),
        };
        sampled::rows(&kernel, &lab)
    }

    /// The sysctls set, each after a comma.
    fn settings(&self) -> String {
        self.sysctls.iter().map(|(name, value)| format!(", {name} = {value}")).collect()
    }

    /// Both sides: a run for each seed.
    fn runs(&self) -> (Vec<&[State]>, Vec<&[State]>) {
        let kernel = self.guests.iter().map(|guest| guest.states.as_slice()).collect();
        let lab = match &self.lab {
            Lab::Runs(runs) => runs.iter().map(|run| run.states.as_slice()).collect(),
            Lab::NotAsked | Lab::Failed(_) => Vec::new(),
        };
        (kernel, lab)
    }

    fn rows(&self) -> Vec<Row> {
        let (kernel, lab) = self.runs();
        rows(&kernel, &lab)
    }

    fn times(&self) -> Vec<Row> {
        let (kernel, lab) = self.runs();
        times(&kernel, &lab)
    }

    /// The counters at the end of each phase, as means over the seeds.
    fn phases(&self) -> Vec<Value> {
        let (kernel, lab) = self.runs();
        let mean = |runs: &[&[State]], i: usize, name: &str| {
            let counts = runs.iter().map(|run| run.get(i)?.counters.get(name)).collect::<Option<Vec<u64>>>()?;
            (!counts.is_empty()).then(|| counts.iter().sum::<u64>() as f64 / counts.len() as f64)
        };
        let phase = |(i, state): (usize, &State)| {
            let counters: serde_json::Map<String, Value> = state
                .counters
                .names()
                .map(|name| (name.to_string(), json!([mean(&kernel, i, name), mean(&lab, i, name)])))
                .collect();
            json!({ "phase": state.phase, "kernel_and_laboratory": counters })
        };
        kernel[0].iter().enumerate().map(phase).collect()
    }

    fn seeds(&self) -> Vec<u64> {
        self.guests.iter().map(|guest| guest.seed).collect()
    }

    fn table(&self) -> String {
        let seeds: Vec<String> = self.seeds().iter().map(u64::to_string).collect();
        let what = self.what();
        let version = &self.guests[0].version;
        let mut out =
            format!("{}: {what}\nLinux {version}{}, seeds {}", self.pattern, self.settings(), seeds.join(", "));
        out += &match &self.lab {
            Lab::NotAsked => "; the laboratory was not asked\n".to_string(),
            Lab::Failed(why) => format!("; the laboratory's side is missing: {why}\n"),
            Lab::Runs(_) => format!("; laboratory: {}, profile {}\n", self.machine(), self.series),
        };
        if self.is_build() {
            return out + &build::table(&self.figures());
        }
        let rows = self.rows();
        out += &format!("{:<32} {:>28} {:>28} {:>7}  \n", "counter", "kernel", "laboratory", "ratio");
        for row in &rows {
            let ratio = row.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let lab = row.lab.map_or("-".into(), in_words);
            let verdict = row.verdict().word();
            out +=
                format!("{:<32} {:>28} {lab:>28} {ratio:>7}  {verdict}", row.counter, in_words(row.kernel)).trim_end();
            out.push('\n');
        }
        for row in self.times() {
            let ms = |s: Spread| in_words(Spread { mean: s.mean / 1e6, least: s.least / 1e6, most: s.most / 1e6 });
            let ratio = row.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let lab = row.lab.map_or("-".into(), ms);
            let name = format!("ms of {}", row.counter);
            out += &format!("{name:<32} {:>28} {lab:>28} {ratio:>7}\n", ms(row.kernel));
        }
        out + &shares::line(&rows) + "\n\n"
    }

    fn as_json(&self) -> Value {
        let spread = |s: Spread| json!({ "mean": s.mean, "least": s.least, "most": s.most });
        let row = |row: &Row| {
            json!({
                "counter": row.counter,
                "kernel": spread(row.kernel),
                "laboratory": row.lab.map(spread),
                "at_first": row.at_first.map(spread),
                "ratio": row.ratio(),
                "verdict": row.verdict().key(),
            })
        };
        let time = |row: &Row| {
            json!({
                "of": row.counter,
                "kernel": spread(row.kernel),
                "laboratory": row.lab.map(spread),
                "ratio": row.ratio(),
            })
        };
        let missing = match &self.lab {
            Lab::NotAsked => Some("not asked"),
            Lab::Failed(why) => Some(why.as_str()),
            Lab::Runs(_) => None,
        };
        let figures = if self.is_build() { build::as_json(&self.figures()) } else { Vec::new() };
        json!({
            "pattern": self.pattern,
            "kernel": self.guests[0].version,
            "profile": self.series,
            "sysctls": self.sysctls,
            "machine": self.machine(),
            "seeds": self.seeds(),
            "laboratory_missing": missing,
            "rows": self.rows().iter().map(row).collect::<Vec<_>>(),
            "shares": shares::as_json(&self.rows()),
            "ns": self.times().iter().map(time).collect::<Vec<_>>(),
            "phases": self.phases(),
            "figures": figures,
        })
    }
}

/// A mean with the least and the most.
fn in_words(s: Spread) -> String {
    if s.least == s.most {
        return format!("{:.0}", s.mean);
    }
    format!("{:.0} [{:.0}..{:.0}]", s.mean, s.least, s.most)
}
