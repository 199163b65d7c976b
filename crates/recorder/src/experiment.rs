//! The experiments that can be recorded. Each has a script for the machine, a trace and sysctls.

mod guest;
mod pressure;
mod scenarios;

use super::kernel::Series;
use crate::error::RecordError;
use crate::given::Given;
use crate::guest::{self as guests, Guest};
use crate::qemu::{Board, Qemu};
use crate::reclaim::{GivenOps, Reclaim};
use crate::sysctls::{self, LRU_GEN};
use kontig_mm::Order;
use kontig_mm::types::MAX_ORDER;
use kontig_oracle::guest::{PREFIX, Pattern};
use kontig_oracle::trace::pressure as traces;
use kontig_oracle::trace::{self, Op, Request};
use scenarios::{DIRECT_SCRIPT, PROACTIVE_SCRIPT, PROACTIVENESS, THP_SCRIPT, enough_requests};
pub use scenarios::{SCENARIOS, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Results of more operations do not fit into node 0.
const MOST_OPS: usize = 16 << 20;
/// An order-9 block is a pageblock, and a huge page.
const HUGE: Order = Order::new(9);

/// µs between two huge page faults: the program uses the page, and the daemon works meanwhile.
const PAUSE_US: u32 = 2000;

/// Name of the experiment that runs a trace file.
pub const GIVEN: &str = "trace";
/// Name of the experiment that runs a file of operations on reclaimable pages.
pub const GIVEN_LRU: &str = "lru";
/// File of compaction's tracepoints.
const EVENTS_FILE: &str = "trace.txt";
/// Script that executes a trace, and the files it sends.
const TRACE_SCRIPT: &str = "trace";
const TRACE_EXPECTED: &[&str] = &["t0.snap", "res.bin", "t1.snap"];

/// Sysctls by name, in the form a plan keeps.
fn owned(sysctls: &'static [(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    sysctls.iter().map(|(k, v)| (k.to_string(), v.to_string()))
}

/// The scripts that experiments refer to.
#[cfg(test)]
pub(super) fn scripts() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|s| s.script).chain([TRACE_SCRIPT, super::reclaim::SCRIPT]).chain(guests::scripts())
}

/// A request for a recording.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub experiment: String,
    /// Number of operations, or of whatever the experiment counts instead.
    pub ops: Option<usize>,
    pub seed: u64,
    /// Order of the requests, for experiments that let it be chosen.
    pub order: Option<u8>,
    pub sysctls: BTreeMap<String, String>,
    /// Trace to execute: for [`GIVEN`], or in place of the experiment's own.
    pub trace: Option<Given>,
    /// Operations of the file for [`GIVEN_LRU`].
    pub lru: Option<GivenOps>,
    /// Whether to record compaction's tracepoints in an experiment that does not need them.
    pub events: bool,
    /// The kernel's tree that a guest builds.
    pub sources: Option<PathBuf>,
    /// Debian root with the emulator to use, instead of the host's.
    pub qemu_root: Option<PathBuf>,
}

/// An experiment with all its parameters settled.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    /// Seed, if anything depends on it.
    pub seed: Option<u64>,
    /// Order of the requests, if the experiment lets it be chosen.
    pub order: Option<u8>,
    pub sysctls: BTreeMap<String, String>,
    /// The experiment's default sysctls, which the folder's name leaves out.
    pub(super) usual: &'static [(&'static str, &'static str)],
    /// Records of the trace, if the experiment executes one.
    pub trace: Option<Vec<u8>>,
    /// Whether compaction's tracepoints are recorded although the experiment does not need them.
    pub events: bool,
    pub board: Board,
    /// Debian root with the emulator to use, instead of the host's.
    qemu_root: Option<PathBuf>,
    /// Parameters of a trace under memory pressure.
    pub(super) reclaim: Option<Reclaim>,
    pub(super) guest: Option<Guest>,
    pub(super) script: &'static str,
    pub(super) expected: &'static [&'static str],
}

impl Plan {
    /// Settles the parameters for a kernel of this series.
    ///
    /// # Errors
    /// If the experiment is unknown, or options contradict each other.
    pub fn new(asked: &Asked, series: Series) -> Result<Plan, RecordError> {
        let refuse = |reason: String| Err(RecordError::Asked(reason));
        if let Some(n) = asked.ops.filter(|n| *n == 0 || *n > MOST_OPS) {
            return refuse(format!("--ops {n}: must be between 1 and {MOST_OPS}"));
        }
        if asked.sources.is_some() && guests::find(&asked.experiment).is_none() {
            return refuse(format!("{}: builds nothing; leave --sources out", asked.experiment));
        }
        for (name, value) in &asked.sysctls {
            sysctls::check(name, value, series)?;
        }
        if asked.sysctls.contains_key(LRU_GEN) && guests::find(&asked.experiment).is_none() {
            return refuse(format!("--set {LRU_GEN}: is for guest-*; experiments gen-* have generations of their own"));
        }
        if let Some(given) = &asked.trace {
            check_given(given, asked, series)?;
        }
        match SCENARIOS.iter().find(|s| s.name == asked.experiment) {
            Some(scenario) => Plan::of_scenario(asked, scenario, series),
            None if asked.experiment == GIVEN_LRU => Plan::of_given_lru(asked, series),
            None => match (traces::find(&asked.experiment), guests::find(&asked.experiment)) {
                (Some(pressure), _) => Plan::of_pressure(asked, pressure, series),
                (None, Some(pattern)) => Plan::of_guest(asked, &pattern, series),
                (None, None) => Plan::of_trace(asked),
            },
        }
    }

    /// A trace alone, generated or from a file.
    fn of_trace(asked: &Asked) -> Result<Plan, RecordError> {
        let refuse = |reason: String| Err(RecordError::Asked(reason));
        if asked.order.is_some() {
            return refuse("--order: a trace says the sizes of its requests itself".into());
        }
        let mut sysctls = BTreeMap::new();
        let (name, ops, seed) = match &asked.trace {
            Some(given) if asked.experiment == GIVEN => (name_of(&given.file), given.ops.clone(), None),
            None if asked.experiment == GIVEN => {
                return refuse(format!("{GIVEN}: which one? write '{GIVEN} FILE'; see docs/kernel/traces.md"));
            }
            given => {
                let recipe = trace::recipes().find(|r| r.name == asked.experiment);
                let recipe = recipe.ok_or_else(|| unknown(&asked.experiment))?;
                if let Some(given) = given {
                    let (name, file) = (recipe.name, &given.file);
                    return refuse(format!("{name} is a trace of its own; for {file} write '{GIVEN} {file}'"));
                }
                sysctls.extend(owned(recipe.sysctls));
                let ops = asked.ops.unwrap_or(recipe.ops);
                let ops = trace::generate(recipe.name, asked.seed, ops).ok_or_else(|| unknown(recipe.name))?;
                (recipe.name.into(), ops, Some(asked.seed))
            }
        };
        sysctls.extend(asked.sysctls.clone());
        Ok(Plan {
            name,
            seed,
            order: None,
            sysctls,
            usual: &[],
            trace: Some(trace::encode(&ops)),
            events: asked.events,
            board: Board::USUAL,
            qemu_root: asked.qemu_root.clone(),
            reclaim: None,
            guest: None,
            script: TRACE_SCRIPT,
            expected: TRACE_EXPECTED,
        })
    }

    fn of_scenario(asked: &Asked, s: &'static Scenario, series: Series) -> Result<Plan, RecordError> {
        let given = asked.trace.as_ref();
        let refuse = |reason: String| Err(RecordError::Asked(reason));
        if !s.kernels.contains(&series) {
            return refuse(format!("{}: kernel {series} does not let a module own migratable pages; 6.1 does", s.name));
        }
        if asked.order.is_some() && (!s.sized || given.is_some()) {
            return refuse(format!("--order: the size of {}'s requests cannot be chosen", s.name));
        }
        if s.trace.is_none() && (given.is_some() || asked.ops.is_some()) {
            return refuse(format!("{}: executes no trace: neither --ops nor a FILE means anything", s.name));
        }
        if let Some(o) = asked.order.filter(|o| *o > MAX_ORDER.get()) {
            return refuse(format!("--order {o}: the largest is {}", MAX_ORDER.get()));
        }
        let order = asked.order.map_or(HUGE, Order::new);
        let generated = given.is_none();
        // Three quarters of a pageblock in one piece hold plenty of smaller blocks.
        let at_random = s.script == DIRECT_SCRIPT && order < HUGE;
        let trace = match (given, s.trace) {
            (Some(given), _) => Some(trace::encode(&given.ops)),
            (None, own) => own.map(|(ops, make)| {
                trace::encode(&make(asked.ops.unwrap_or(enough_requests(ops, order)), asked.seed, order))
            }),
        };
        let mut sysctls: BTreeMap<String, String> =
            owned(s.sysctls).filter(|(name, value)| value != "0" || sysctls::exists(name, series)).collect();
        sysctls.extend(asked.sysctls.clone());
        Ok(Plan {
            name: given.map_or(s.name.into(), |given| format!("{}-{}", s.name, name_of(&given.file))),
            seed: (s.random || at_random).then_some(asked.seed),
            order: (s.sized && generated).then_some(order.get()),
            sysctls,
            usual: s.sysctls,
            trace,
            events: asked.events && !s.expected.contains(&EVENTS_FILE),
            board: Board::USUAL,
            qemu_root: asked.qemu_root.clone(),
            reclaim: None,
            guest: None,
            script: s.script,
            expected: s.expected,
        })
    }

    /// The emulator that will run it.
    pub(super) fn qemu(&self) -> Result<Qemu, RecordError> {
        let qemu = Qemu::find(self.qemu_root.as_deref())?;
        qemu.suits(self.board)?;
        Ok(qemu)
    }

    /// Length of the trace, in operations.
    pub fn ops(&self) -> Option<u64> {
        self.trace.as_ref().map(|t| t.len() as u64 / 8)
    }

    /// µs between two page faults, in experiments that make any.
    pub(super) fn fault_pause_us(&self) -> Option<u32> {
        (self.script == THP_SCRIPT).then_some(PAUSE_US)
    }

    /// Turns the files the machine sent into those of a recording, with the trace added.
    pub(super) fn files(&self, mut sent: Vec<(String, Vec<u8>)>) -> Result<Vec<(String, Vec<u8>)>, RecordError> {
        match (&self.reclaim, &self.guest, &self.trace) {
            (Some(reclaim), ..) => reclaim.answer(&mut sent)?,
            (None, Some(guest), _) => guest.gather(&mut sent)?,
            (None, None, Some(trace)) => sent.push(("trace.bin".into(), trace.clone())),
            (None, None, None) => {}
        }
        Ok(sent)
    }

    /// Files the machine must send.
    pub(super) fn expected(&self) -> Vec<String> {
        let of_script = self.expected.iter().copied().chain(self.events.then_some(EVENTS_FILE)).map(String::from);
        of_script.chain(self.guest.iter().flat_map(Guest::expected)).collect()
    }

    /// Shell variables for the machine's init script.
    pub(super) fn parameters(&self) -> String {
        let (late, early): (Vec<_>, Vec<_>) =
            self.sysctls.iter().partition(|(k, _)| self.script == PROACTIVE_SCRIPT && *k == PROACTIVENESS);
        // Not below /proc/sys: the script has a variable for it.
        let (generations, early): (Vec<_>, Vec<_>) = early.into_iter().partition(|(k, _)| *k == LRU_GEN);
        let generations: String = generations.iter().map(|(_, v)| format!("LRU_GEN={v}\n")).collect();
        let early: Vec<String> = early.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let late: String = late.iter().map(|(_, v)| format!("PROACTIVENESS={v}\n")).collect();
        let (seed, events) = (self.seed.unwrap_or(0), if self.events { "yes" } else { "" });
        // Variables of single experiments.
        let late = match (self.script, self.seed) {
            (DIRECT_SCRIPT, Some(_)) => late + "HOLES=random\n",
            (DIRECT_SCRIPT, None) => late + "HOLES=section\n",
            (THP_SCRIPT, _) => late + &format!("PAUSE_US={PAUSE_US}\n"),
            _ => late,
        };
        let late = late + &self.reclaim.as_ref().map(Reclaim::parameters).unwrap_or_default();
        let late = late + &self.guest.as_ref().map(Guest::parameters).unwrap_or_default();
        let head = format!("EXPERIMENT={}\nSEED={seed}\nEVENTS={events}\n", self.script);
        format!("{head}SYSCTLS='{}'\n{generations}{late}", early.join(" "))
    }

    /// Name of the recording's folder: kernel, experiment and all that is not a default.
    pub fn folder_name(&self, series: Series) -> String {
        let mut name = format!("{series}-{}", self.name);
        if let Some(o) = self.order.filter(|o| *o != HUGE.get()) {
            name += &format!("-order{o}");
        }
        if self.events {
            name += "-events";
        }
        if let Some(seed) = self.seed.filter(|_| self.guest.is_some()) {
            name += &format!("-seed{seed}");
        }
        for (k, v) in &self.sysctls {
            if !self.usual.contains(&(k.as_str(), v.as_str())) {
                let short = if *k == LRU_GEN { "lru_gen" } else { k.rsplit('.').next().unwrap_or(k) };
                name += &format!("-{short}{v}");
            }
        }
        name
    }
}

fn unknown(name: &str) -> RecordError {
    let known: Vec<&str> = SCENARIOS
        .iter()
        .map(|s| s.name)
        .chain(traces::TRACES.iter().map(|p| p.name))
        .chain(trace::recipes().map(|r| r.name))
        .collect();
    let guests: Vec<String> = Pattern::names().map(|name| format!("{PREFIX}{name}")).collect();
    let known = [known.join(", "), guests.join(", ")].join(", ");
    RecordError::Asked(format!("no experiment '{name}'; known: {known}, {GIVEN} FILE and {GIVEN_LRU} FILE"))
}

/// Name of a recording made from a file: the file's own, in characters safe for a folder's name.
fn name_of(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let name: String = stem.chars().map(fine).collect();
    if name.is_empty() { GIVEN.into() } else { name }
}

/// Refuses a trace file that a kernel of this series cannot carry out.
fn check_given(given: &Given, asked: &Asked, series: Series) -> Result<(), RecordError> {
    let refuse = |reason: String| Err(RecordError::Asked(reason));
    if asked.ops.is_some() {
        return refuse(format!("--ops: {} has the operations it has", given.file));
    }
    if given.ops.len() > MOST_OPS {
        return refuse(format!("{}: {} operations are more than {MOST_OPS}", given.file, given.ops.len()));
    }
    // Only kernels that let any module own migratable pages let ours.
    let owned = |op: &Op| matches!(op, Op::Alloc { request, .. } if request.has(Request::OWNED));
    match given.ops.iter().position(owned) {
        Some(op) if !series.lets_modules_own() => {
            let place = given.place(op);
            refuse(format!("{place}: kernel {series} lets no module own a page; leave 'owned' out, or record on 6.1"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::scenarios::BOOST;
    use super::*;

    fn asked(name: &str) -> Asked {
        Asked { experiment: name.into(), seed: 1, ..Asked::default() }
    }

    fn refused(asked: &Asked) -> String {
        Plan::new(asked, Series::V7_2).expect_err("refused").to_string()
    }

    #[test]
    fn a_direct_trace_is_requests_of_one_size() {
        let plan = Plan::new(&Asked { order: Some(4), ops: Some(3), ..asked("direct-unmovable") }, Series::V6_1);
        let plan = plan.expect("an experiment");
        assert_eq!(plan.trace.as_deref().map(|t| &t[8..16]), Some(&[1, 4, 76, 0, 1, 0, 0, 0][..]));
        assert_eq!((plan.ops(), plan.order, plan.seed), (Some(3), Some(4), Some(1)));
        assert!(plan.parameters().ends_with("HOLES=random\n"));
        assert_eq!(plan.folder_name(Series::V6_1), "6.1-direct-unmovable-order4");
    }

    #[test]
    fn a_filled_node_is_freed_to_a_quarter() {
        let plan = Plan::new(&Asked { ops: Some(4000), ..asked("module-compact") }, Series::V6_1).expect("one");
        let ops = plan.ops().expect("a trace");
        assert!((6_900..7_100).contains(&ops), "{ops}");
    }

    #[test]
    fn proactiveness_waits_until_memory_is_prepared() {
        let plan = Plan::new(&asked("anon-proactive40-random"), Series::V6_1).expect("an experiment");
        assert_eq!(plan.parameters(), "EXPERIMENT=anon-proactive\nSEED=1\nEVENTS=\nSYSCTLS=''\nPROACTIVENESS=40\n");
        let set = BTreeMap::from([(PROACTIVENESS.to_string(), "20".to_string())]);
        let plan = Plan::new(&Asked { sysctls: set, ..asked("anon-compact-random") }, Series::V6_1).expect("one");
        assert_eq!(
            plan.parameters(),
            format!("EXPERIMENT=anon-compact\nSEED=1\nEVENTS=\nSYSCTLS='{PROACTIVENESS}=20'\n")
        );
        assert_eq!(plan.folder_name(Series::V6_1), "6.1-anon-compact-random-compaction_proactiveness20");
    }

    #[test]
    fn senseless_requests_are_refused_in_words() {
        let set = |k: &str, v: &str| BTreeMap::from([(k.to_string(), v.to_string())]);
        assert!(refused(&asked("nonsense")).contains("known: module-compact"));
        assert!(refused(&asked("../x")).contains("no experiment"));
        assert!(refused(&asked("module-compact")).contains("6.1 does"));
        let mine = |text: &str| Some(Given::read("mine.txt", text.as_bytes()).expect("a trace"));
        let owned = mine("alloc a 3 movable direct\nalloc b 0 movable owned\n");
        assert!(refused(&Asked { trace: owned, ..asked(GIVEN) }).starts_with("mine.txt:2: kernel 7.2 lets no module"));
        let one = mine("alloc a 3 movable direct\n");
        assert!(
            refused(&Asked { trace: one.clone(), ops: Some(9), ..asked(GIVEN) })
                .contains("mine.txt has the operations")
        );
        assert!(refused(&Asked { trace: one.clone(), ..asked("mixed") }).contains("write 'trace mine.txt'"));
        assert!(refused(&Asked { trace: one, ..asked("thp") }).contains("executes no trace"));
        assert!(refused(&asked(GIVEN)).contains("write 'trace FILE'"));
        assert!(refused(&Asked { order: Some(11), ..asked("direct-movable") }).contains("largest"));
        assert!(refused(&Asked { ops: Some(0), ..asked("mixed") }).contains("between 1 and"));
        assert!(refused(&Asked { ops: Some(1), ..asked("thp") }).contains("no trace"));
        assert!(
            refused(&Asked { sysctls: set("vm.swappines", "1"), ..asked("thp") }).contains("kernel 7.2 has no such")
        );
    }

    #[test]
    fn anybodys_trace_is_an_experiment() {
        let given = Given::read("/tmp/my trace.txt", b"alloc a 2 movable kswapd direct\nfree a\n").expect("a trace");
        let plan = Plan::new(&Asked { trace: Some(given), ..asked(GIVEN) }, Series::V7_2).expect("an experiment");
        assert_eq!((plan.folder_name(Series::V7_2).as_str(), plan.ops(), plan.seed), ("7.2-my-trace", Some(2), None));
        let given = Given::read("waves.txt", b"alloc a 2 movable kswapd direct\n").expect("a trace");
        let plan = Plan::new(&Asked { trace: Some(given), ..asked("direct-movable") }, Series::V6_1).expect("one");
        assert_eq!(plan.folder_name(Series::V6_1), "6.1-direct-movable-waves");
    }

    #[test]
    fn anybodys_trace_named_like_an_experiment_has_nothing_set_as_usual() {
        let given = Given::read("direct-movable-x.txt", b"alloc a 2 movable kswapd direct\n").expect("a trace");
        let sysctls = BTreeMap::from([(BOOST.to_string(), "0".to_string())]);
        let plan = Plan::new(&Asked { trace: Some(given), sysctls, ..asked(GIVEN) }, Series::V6_1).expect("one");
        assert_eq!(plan.folder_name(Series::V6_1), "6.1-direct-movable-x-watermark_boost_factor0");
    }

    #[test]
    fn a_trace_brings_what_has_to_be_set_for_it() {
        let plan = Plan::new(&asked("claim"), Series::V6_1).expect("a known trace");
        assert_eq!(plan.sysctls.get(BOOST).map(String::as_str), Some("0"));
        let other = BTreeMap::from([(BOOST.to_string(), "100".to_string())]);
        let plan = Plan::new(&Asked { sysctls: other, ..asked("claim") }, Series::V6_1).expect("a known trace");
        assert_eq!(plan.sysctls.get(BOOST).map(String::as_str), Some("100"), "what is asked for goes before");
    }
}
