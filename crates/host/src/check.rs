//! `kontig check`: will the blocks be there?

use crate::answer::{document, fitted, not_read};
use crate::history::{HistoryArgs, Past};
use crate::roots::HostArgs;
use crate::rules;
use clap::Args;
use kontig_error::{AskedWrongly, Error};
use kontig_live::caller::{Caller, InTheWay};
use kontig_live::cgroup::Limits;
use kontig_live::check::{Check, Confidence, Level, Prediction, Verdict};
use kontig_live::history::at::clock;
use kontig_live::load::Load;
use kontig_live::need::{Ladder, Need};
use kontig_live::obstacles::Obstacles;
use kontig_live::prepare::execution::{supply, supply_of};
use kontig_live::snapshot::host_page_size;
use kontig_live::{Host, ReadError, Roots, Snapshot};
use kontig_mm::Profile;
use kontig_terminal::Ending;
use kontig_text::{grouped, short_size, size, time};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The needs, and the rules that predict them.
#[derive(Args)]
pub struct NeedArgs {
    /// Blocks that are needed: 2000x2M, 8x1G@0 (on node 0), 4xorder10:unmovable (for the kernel),
    /// or a ladder of which one rung is enough, 2x1G|1024x2M. Several needs must be met together
    #[arg(long = "need", value_name = "NEED", required = true, allow_hyphen_values = true)]
    pub needs: Vec<String>,
    /// The blocks are free pages of the pools of huge pages (hugetlbfs), those that are free
    /// already included. 'prepare --execute' fills the pools, and they stay so
    #[arg(long)]
    pub reserve: bool,
    /// Rules that predict it (default: the newest profile that is not newer than the host's kernel)
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
}

/// Options of `kontig check`.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    need: NeedArgs,
    /// Check a snapshot instead of this host
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    snapshot: Option<PathBuf>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Print JSON (schema kontig.check/2)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// The text of --help after the options.
pub const HELP: &str = "Examples:\n  \
    kontig check --need 2000x2M\n  \
    kontig check --need 2x1G@0 --need 512x2M --json\n  \
    kontig check --need '2x1G|1024x2M'\n  \
    kontig check --need 2000x2M --history host.history --at -3h\n\n\
    The engine's own compaction, run on a snapshot of the host, makes the prediction.\n\n\
    Exit codes: 0 met now; 4 reachable by compaction; 7 reachable after dropping clean cache; 6 not reachable; 8 it \
    cannot be told on this host; 5 more privilege is needed to tell (root); 1 failed while running; 2 asked wrongly.";

/// Carries out `kontig check`.
pub fn check(a: &CheckArgs) -> Result<Ending, Error> {
    if let Some(past) = a.history.moment()? {
        let check = of_past(&a.need, &past)?;
        let text = if a.json { document(&check, false) } else { fitted(&(then(&past) + &text(&check))) };
        kontig_terminal::print(&text)?;
        return Ok(Ending::Code(check.verdict.exit_code()));
    }
    let found = match &a.snapshot {
        Some(path) => {
            let snapshot = Snapshot::open(path)?;
            let ladders = a.need.ladders(snapshot.host.page_size)?;
            on_nodes(&ladders, snapshot.zones.iter().map(|z| z.node))?;
            let profile = a.need.profile(&snapshot.host.kernel)?;
            // Pools and control groups of another host are not known.
            let caller = Caller { from_pools: a.need.reserve, ..Caller::default() };
            HostCheck { check: predict(&snapshot, &profile, &ladders, &caller), caller, unpermitted: None }
        }
        None => {
            let roots = a.host.roots()?;
            match of_host(&a.need, &roots, Limits::read(&roots))? {
                Ok(found) => found,
                Err(e) => return not_read("check", &e),
            }
        }
    };
    kontig_terminal::print(&if a.json { document(&found.check, false) } else { fitted(&text(&found.check)) })?;
    Ok(found.ending())
}

/// The check of a host, and how the command ends.
pub struct HostCheck {
    pub check: Check,
    pub caller: Caller,
    /// The error, where the frames may not be read.
    pub unpermitted: Option<ReadError>,
}

impl HostCheck {
    /// The exit code of the command.
    pub fn ending(&self) -> Ending {
        match &self.unpermitted {
            Some(e) if self.check.verdict == Verdict::Unknown => {
                kontig_terminal::say(&e.to_string());
                Ending::Unpermitted
            }
            _ => Ending::Code(self.check.verdict.exit_code()),
        }
    }
}

/// Checks a host for a caller with these limits: first by files that anybody may read, by the
/// frames where that is not enough.
pub fn of_host(need: &NeedArgs, roots: &Roots, limits: Limits) -> Result<Result<HostCheck, ReadError>, Error> {
    let page_size = host_page_size();
    let ladders = need.ladders(page_size)?;
    // Read first: a look at every frame is a load, too.
    let load = Load::read(roots);
    let (supply, kernel) = match (supply(roots), roots.read_proc("sys/kernel/osrelease")) {
        (Ok(supply), Ok(kernel)) => (supply, kernel.trim().to_string()),
        (Err(e), _) | (_, Err(e)) => return Ok(Err(e)),
    };
    on_nodes(&ladders, supply.nodes())?;
    let profile = need.profile(&kernel)?;
    let caller = Caller::of_host(roots, need.reserve, page_size, limits);
    let supply = supply.for_caller(&caller);
    let quick = Check::of_supply(&supply, &ladders, page_size, &kernel, "no frame was examined");
    // More privilege would not change these.
    if quick.verdict == Verdict::Met || quick.limit.is_some() {
        return Ok(Ok(HostCheck { check: quick, caller, unpermitted: None }));
    }
    Ok(match Snapshot::take(roots, page_size) {
        Ok(snapshot) => {
            let check = predict(&snapshot, &profile, &ladders, &caller).under(load);
            Ok(HostCheck { check, caller, unpermitted: None })
        }
        Err(e) if e.is_permission() => Ok(HostCheck { check: quick, caller, unpermitted: Some(e) }),
        Err(e) => Err(e),
    })
}

/// Checks a moment of a history: by its free lists, and by the snapshot that was recorded before it
/// where that is not enough. Limits of control groups were the recorder's, and are left out.
fn of_past(need: &NeedArgs, past: &Past) -> Result<Check, Error> {
    let roots = &past.tree.roots;
    let found = |e: ReadError| past.error(&e);
    let page = Host::read(roots).page_size.map(|page| page.bytes).unwrap_or_else(host_page_size);
    let ladders = need.ladders(page)?;
    let supply = supply_of(roots, page).map_err(found)?;
    let kernel = roots.read_proc("sys/kernel/osrelease").map_err(found)?;
    let kernel = kernel.trim();
    on_nodes(&ladders, supply.nodes())?;
    let profile = need.profile(kernel)?;
    let caller = Caller::of_host(roots, need.reserve, page, Limits::default());
    let supply = supply.for_caller(&caller);
    let quick = Check::of_supply(&supply, &ladders, page, kernel, NO_FRAMES);
    if quick.verdict == Verdict::Met {
        return Ok(quick);
    }
    let Some((unix_ms, snapshot)) = past.snapshot()? else { return Ok(quick) };
    let older = (past.moment.sample.unix_ms - unix_ms) as f64 / 1000.0;
    let check = predict(&snapshot, &profile, &ladders, &caller).of_moment(&supply, &ladders, older);
    Ok(check.under(Load::read(roots)))
}

const NO_FRAMES: &str = "no frame was recorded before that moment; 'kontig history record --snapshots 1h' records them";

/// The line that names the moment.
fn then(past: &Past) -> String {
    format!("As it was at {} UTC\n", clock(past.moment.sample.unix_ms))
}

/// Refuses a need on a node that does not exist.
fn on_nodes(ladders: &[Ladder], nodes: impl Iterator<Item = u32>) -> Result<(), Error> {
    let nodes: BTreeSet<u32> = nodes.collect();
    let missing = ladders.iter().flatten().filter_map(|need| need.node).find(|node| !nodes.contains(node));
    let known = || nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    missing.map_or(Ok(()), |node| {
        Err(AskedWrongly::Value(format!("--need: node {node} has no memory; nodes with memory: {}", known())).into())
    })
}

fn predict(snapshot: &Snapshot, profile: &Profile, ladders: &[Ladder], caller: &Caller) -> Check {
    let bar = kontig_terminal::bar("looking ahead");
    let check = Check::of_snapshot(snapshot, profile, ladders, caller, |part| bar.set_position((part * 1000.0) as u64));
    bar.finish_and_clear();
    check
}

impl NeedArgs {
    /// The needs, for pages of this many bytes.
    pub fn ladders(&self, page_size: u64) -> Result<Vec<Ladder>, Error> {
        let parse = |text: &String| Need::parse_ladder(text, page_size).map_err(|e| AskedWrongly::Value(e).into());
        self.needs.iter().map(parse).collect()
    }

    /// The profile for a kernel.
    pub fn profile(&self, kernel: &str) -> Result<Profile, Error> {
        rules::profile("check", self.profile.as_deref(), kernel)
    }
}

/// A check as people read it.
pub fn text(check: &Check) -> String {
    let mut text = String::new();
    for asked in &check.needs {
        let now = asked
            .now
            .map_or("it is not known how many".into(), |n| if n >= asked.needed { "all".into() } else { grouped(n) });
        text.push_str(&format!("{}: {now} of {} there now\n", asked.need, grouped(asked.needed)));
    }
    if check.deferred_bytes > 0 {
        let bytes = size(check.deferred_bytes);
        text.push_str(&format!(
            "{bytes} of the free memory is initialised or accepted only when a request finds nothing else\n"
        ));
    }
    text.push_str(&format!("=> {}\n", verdict(check, check.page_bytes)));
    if let Some(left) = check.left_bytes {
        text.push_str(&format!(
            "   a control group's limit leaves {} beside these blocks for page tables and the program itself\n",
            size(left)
        ));
    }
    if let Some(most) = &check.at_most {
        let got: Vec<String> = most.blocks.iter().map(|n| n.map_or("?".into(), grouped)).collect();
        let needed: Vec<String> = check.needs.iter().map(|asked| grouped(asked.needed)).collect();
        text.push_str(&format!(
            "   at most, after dropping {} of clean cache and compacting: {} of {}\n",
            size(most.dropped_bytes),
            got.join(" + "),
            needed.join(" + ")
        ));
    }
    if check.verdict != Verdict::Met {
        for (i, (o, asked)) in check.obstacles.iter().zip(&check.needs).enumerate() {
            let most = check.at_most.as_ref().and_then(|most| most.blocks[i]);
            text.push_str(&obstacles(o, asked.needed, most, check.page_bytes));
            text.push_str(&fewest(check, i));
        }
    }
    if let Some(load) = check.load.filter(|_| check.prediction.is_some()) {
        text.push_str(&format!(
            "   the shortest time is that on a CPU of its own, the longest follows from the load: {}\n",
            load.words()
        ));
    }
    // Blocks that are there need no rules, but a snapshot that disagrees with itself may be wrong
    // about them.
    let matters = |confidence: &&Confidence| check.verdict != Verdict::Met || confidence.level == Level::Low;
    if let Some(confidence) = check.confidence.as_ref().filter(matters) {
        let because =
            if confidence.because.is_empty() { String::new() } else { format!(": {}", confidence.because.join("; ")) };
        text.push_str(&format!("confidence {}{because}\n", confidence.level.word()));
    }
    text
}

fn verdict(check: &Check, page_bytes: u64) -> String {
    match (check.verdict, &check.prediction) {
        (Verdict::Met, _) => "met now".into(),
        (Verdict::ByCompaction, Some(p)) if p.by_filling_a_pool => format!(
            "reachable by filling a pool (kontig prepare --reserve): {} to {} pages ({}) are moved out of the way, \
             {}; the kernel drops {} of clean cache for it",
            grouped(p.pages_moved_at_least.unwrap_or(p.pages_moved)),
            grouped(p.pages_moved),
            size(p.pages_moved * page_bytes),
            range(p.seconds, p.seconds_at_most),
            size(p.dropped_bytes)
        ),
        (Verdict::ByCompaction, Some(p)) => format!(
            "reachable by compaction{}: {}",
            if p.sync { " once dirty pages are written" } else { "" },
            effort(p, page_bytes)
        ),
        (Verdict::ByDroppingCache, Some(p)) => {
            format!("reachable after dropping {} of clean cache: {}", size(p.dropped_bytes), effort(p, page_bytes))
        }
        (Verdict::NotReachable, _) if check.limit.is_some() => check.limit.iter().map(limit).collect::<String>(),
        (Verdict::NotReachable, _) => "not reachable: neither compaction nor dropping cache makes these blocks".into(),
        _ => format!("unknown: {}", check.unknown.as_deref().unwrap_or("no frame was examined")),
    }
}

/// The sentence on a control group's limit that is too low.
fn limit(way: &InTheWay) -> String {
    let InTheWay { limit, room_bytes, needed_bytes, program_bytes } = way;
    let beside = match program_bytes {
        0 => String::new(),
        bytes => format!(", with {} beside them for page tables and the program itself", size(*bytes)),
    };
    format!(
        "not reachable: {} is {}, and control group {} has {} already, {} of it clean cache: it gets {} more, and \
         {} are needed{beside}",
        limit.file.display(),
        size(limit.limit_bytes),
        limit.group,
        size(limit.used_bytes),
        size(limit.cache_bytes),
        size(*room_bytes),
        size(*needed_bytes)
    )
}

fn effort(p: &Prediction, page_bytes: u64) -> String {
    let nodes: Vec<String> = p.nodes.iter().map(u32::to_string).collect();
    match nodes.is_empty() {
        true => "no page has to move".into(),
        false => format!(
            "{} pages ({}) to move on node {}, {}{}",
            grouped(p.pages_moved),
            size(p.pages_moved * page_bytes),
            nodes.join(", "),
            range(p.seconds, p.seconds_at_most),
            match p.written_bytes {
                0 => String::new(),
                bytes => format!(", and the disk's time for {}", size(bytes)),
            }
        ),
    }
}

/// How long something takes: on a CPU of its own, and at most on a host as busy as it is.
pub(crate) fn range(seconds: f64, at_most: Option<f64>) -> String {
    match at_most {
        Some(most) => format!("{} to {}", time(seconds), time(most)),
        None => format!("{} or more", time(seconds)),
    }
}

/// The fewest moves for what a need lacks, and how many compaction takes.
fn fewest(check: &Check, need: usize) -> String {
    let asked = &check.needs[need];
    let lacks = asked.needed - asked.now.unwrap_or(0).min(asked.needed);
    match check.fewest_moves.get(need).copied().flatten() {
        // Where nothing is enough, the verdict says so.
        None | Some(0) => String::new(),
        Some(least) => format!(
            "   the fewest page moves for the {} that are lacking, however they are chosen: {} ({} a block; 'kontig \
             bound' says more)\n",
            grouped(lacks),
            grouped(least),
            grouped(least.div_ceil(lacks))
        ),
    }
}

/// The obstacles to `needed` blocks, of which `most` are predicted at best.
fn obstacles(o: &Obstacles, needed: u64, most: Option<u64>, page_bytes: u64) -> String {
    let block = short_size(page_bytes << o.order);
    let mut text = String::new();
    if o.blocks < needed {
        let there =
            if o.blocks == 0 { "there is none".into() } else { format!("there are {} in all", grouped(o.blocks)) };
        let bytes = size((needed << o.order) * page_bytes);
        text.push_str(&format!("   {} blocks of {block} are {bytes}; {there}\n", grouped(needed)));
    }
    if most.is_some_and(|most| most < o.free + o.on_cpus + o.movable) {
        let pages = o.free_pages + o.droppable_pages;
        let (bytes, room) = (size(pages * page_bytes), grouped(pages >> o.order));
        text.push_str(&format!(
            "   moved pages take room elsewhere: {bytes} is free once cache is dropped, which is {room} blocks; zones \
             keep some of that\n"
        ));
    }
    if o.blocks == 0 {
        return text;
    }
    let never = match o.never {
        0 => String::new(),
        n => format!(", {} of them memory that was never the allocator's", grouped(n)),
    };
    text.push_str(&format!(
        "   of {} blocks of {block}: {} free{}, {} hold pages that can be moved; {} blocks hold pages that cannot \
         be moved ({} of them no more than 8 such pages{never})\n",
        grouped(o.blocks),
        grouped(o.free),
        if o.on_cpus == 0 { String::new() } else { format!(", {} free but on CPUs' lists", grouped(o.on_cpus)) },
        grouped(o.movable),
        grouped(o.blocked),
        grouped(o.blocked_by_few)
    ));
    for kind in &o.kinds {
        let (blocks, pages) = (grouped(kind.blocks), grouped(kind.pages));
        let alone = match kind.alone {
            0 => "never the only obstacle".into(),
            alone => format!("the only obstacle in {} of them", grouped(alone)),
        };
        text.push_str(&format!("      {}: {pages} pages in {blocks} blocks, {alone}\n", kind.kind));
    }
    text
}
