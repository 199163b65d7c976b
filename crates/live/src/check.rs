//! Whether needs will be met: now, after compacting, after dropping clean cache, or not at all. The
//! engine's own compaction runs on a snapshot of the host, as `kontig prepare` runs the kernel's.
//!
//! CPUs give back the free pages they keep, and keep hardly any until the end; then
//! `/proc/sys/vm/compact_memory` is written to. The run ends when the needs are met. The pages
//! moved until then are the prediction, and the seconds at the costs of [`COSTS`]. [`Confidence`]
//! says what was not known.

use crate::bound;
use crate::caller::{Caller, InTheWay};
pub use crate::confidence::{Confidence, Level};
use crate::contiguous::{Emptied, emptied};
use crate::frame::State;
use crate::load::Load;
use crate::need::{Ladder, Need};
use crate::obstacles::Obstacles;
use crate::snapshot::Snapshot;
use crate::supply::Supply;
use crate::sweep::{self, COSTS, Owners, compact, release};
use kontig_mm::{CpuId, Memory, Pfn, Profile};
use kontig_text::time;
use serde::Serialize;
use std::ops::ControlFlow;

/// Name and version of a check's schema.
pub const SCHEMA: &str = "kontig.check/2";

/// The answer to whether needs will be met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    ByCompaction,
    /// They are there once clean cache is dropped, and compaction has run where that is not enough.
    ByDroppingCache,
    NotReachable,
    /// This host does not tell.
    Unknown,
}

impl Verdict {
    /// The exit code of `kontig check`, which means the same for `kontig prepare`.
    pub const fn exit_code(self) -> u8 {
        match self {
            Verdict::Met => 0,
            Verdict::ByCompaction => 4,
            Verdict::NotReachable => 6,
            Verdict::ByDroppingCache => 7,
            Verdict::Unknown => 8,
        }
    }
}

/// The predicted effort of meeting the needs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Prediction {
    pub nodes: Vec<u32>,
    pub pages_moved: u64,
    /// The pages of the ranges with the fewest, where it depends on which ranges the kernel can
    /// empty.
    pub pages_moved_at_least: Option<u64>,
    /// Frames that compaction's two scanners look at.
    pub frames_scanned: u64,
    /// Seconds on a CPU of its own; writing dirty pages comes on top.
    pub seconds: f64,
    /// Seconds at most while the host is as busy as it was; `None` where the load is not known.
    pub seconds_at_most: Option<f64>,
    /// The kernel empties ranges when a pool of huge pages of that size is filled; nothing is
    /// compacted.
    pub by_filling_a_pool: bool,
    /// Bytes of clean cache that are dropped: first of all, or by the kernel from the ranges that
    /// it empties.
    pub dropped_bytes: u64,
    /// Dirty pages of files are written first, as large ones among them would end the compaction.
    pub sync: bool,
    /// Bytes that are written then; the disk decides how long that takes.
    pub written_bytes: u64,
    /// Blocks of each need that are there afterwards.
    pub blocks: Vec<Option<u64>>,
}

/// The verdict on one rung of each ladder, with its reasons.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Check {
    pub schema: &'static str,
    /// The answer to whether needs will be met.
    pub verdict: Verdict,
    pub page_bytes: u64,
    /// The needs, of each ladder the rung that was chosen.
    pub needs: Vec<Asked>,
    /// `None` where the needs are met or cannot be.
    pub prediction: Option<Prediction>,
    /// Where nothing is enough: the result of the last way tried, which does the most.
    pub at_most: Option<Prediction>,
    /// Obstacles for each need; empty where they are not known.
    pub obstacles: Vec<Obstacles>,
    /// The fewest page moves for the blocks of each need that are not there now; `None` where no
    /// placement of pages makes as many, or frames were not looked at.
    pub fewest_moves: Vec<Option<u64>>,
    /// Bytes of free memory that the allocator gets only on demand: not initialised yet, or not
    /// accepted.
    pub deferred_bytes: u64,
    /// The control group's limit that is too low, whatever is free.
    pub limit: Option<InTheWay>,
    /// Bytes that the limit of the control group's memory leaves beside the needs; `None` without a
    /// limit.
    pub left_bytes: Option<u64>,
    pub kernel: String,
    pub profile: String,
    pub confidence: Option<Confidence>,
    /// The reason for [`Verdict::Unknown`].
    pub unknown: Option<String>,
    /// How busy the host was when it was looked at; `None` of a snapshot that was kept.
    pub load: Option<Load>,
}

/// A need and what is there of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Asked {
    pub need: String,
    pub needed: u64,
    /// Blocks that are there; `None` where that is not known.
    pub now: Option<u64>,
}

/// Upper bound on repeated work: allocations meanwhile undo some of it. Busy hosts moved up to
/// twice the predicted pages.
const AGAIN: f64 = 2.0;
/// Seconds at an ordinary priority at most: a process is started that writes, this one looks at the
/// result, and the kernel's workers empty CPUs' lists. What 15 tries of `kontig trial` took beyond
/// the CPU time of the compaction was 0.012 to 0.053 s times [`Load::stretch`], which was 10 to 15.
const ORDINARY: f64 = 0.06;

/// Pageblocks visited between two looks at whether the needs are met.
const BUDGET: u64 = 64;

/// All choices of one rung of each ladder, the dearest first.
pub fn choices(ladders: &[Ladder]) -> Vec<Vec<Need>> {
    ladders.iter().fold(vec![Vec::new()], |choices, ladder| {
        let with = |chosen: &Vec<Need>, need: &Need| chosen.iter().chain([need]).copied().collect();
        choices.iter().flat_map(|chosen| ladder.iter().map(move |need| with(chosen, need))).collect()
    })
}

impl Check {
    /// The check that anybody may do: whether `/proc/buddyinfo` has the blocks.
    pub fn of_supply(supply: &Supply, ladders: &[Ladder], page_size: u64, kernel: &str, why: &str) -> Check {
        let choices = match permitted(choices(ladders), supply, page_size) {
            Ok(choices) => choices,
            Err((needs, limit)) => return Check::new(&needs, supply, page_size, kernel, "").beyond(limit),
        };
        let met = choices.iter().find(|needs| supply.meets(needs));
        let mut check = Check::new(met.unwrap_or(&choices[0]), supply, page_size, kernel, "");
        if met.is_some() {
            check.verdict = Verdict::Met;
        } else {
            check.unknown = Some(why.into());
        }
        check
    }

    /// The check of a snapshot, by the rules of `profile`; `progress` gets the part done, from 0 to
    /// 1.
    pub fn of_snapshot(
        snapshot: &Snapshot,
        profile: &Profile,
        ladders: &[Ladder],
        caller: &Caller,
        mut progress: impl FnMut(f64),
    ) -> Check {
        let orders: Vec<u32> = ladders.iter().flatten().map(|need| need.order).collect();
        let (kernel, page_size) = (&snapshot.host.kernel, snapshot.host.page_size);
        let now = Supply::of_snapshot(snapshot, &orders).for_caller(caller);
        let choices = match permitted(choices(ladders), &now, page_size) {
            Ok(choices) => choices,
            Err((needs, limit)) => {
                return Check::new(&needs, &now, page_size, kernel, &profile.name).beyond(limit);
            }
        };
        let new = |needs: &[Need]| {
            let mut check = Check::new(needs, &now, page_size, kernel, &profile.name);
            check.confidence = Some(Confidence::of(snapshot, profile));
            check.obstacles = needs.iter().map(|need| Obstacles::of(snapshot, need)).collect();
            let fewest = |(need, asked): (&Need, &Asked)| {
                let lacks = need.count.saturating_sub(asked.now?);
                bound::fewest(snapshot, need.order, need.node).moves(lacks)
            };
            check.fewest_moves = needs.iter().zip(&check.needs).map(fewest).collect();
            check
        };
        if let Some(needs) = choices.iter().find(|needs| now.meets(needs)) {
            return Check { verdict: Verdict::Met, ..new(needs) };
        }
        let emptied = |needs: &Vec<Need>| Some((needs.clone(), emptied(snapshot, &now, needs)?));
        if let Some((needs, Emptied { pages_moved, pages_dropped, at_least })) = choices.iter().find_map(emptied) {
            let prediction = Prediction {
                nodes: Vec::new(),
                pages_moved,
                pages_moved_at_least: Some(at_least),
                frames_scanned: 0,
                seconds: COSTS.seconds(pages_moved, 0),
                seconds_at_most: None,
                by_filling_a_pool: true,
                dropped_bytes: pages_dropped * page_size,
                sync: false,
                written_bytes: 0,
                blocks: needs.iter().map(|need| Some(need.count)).collect(),
            };
            return Check { verdict: Verdict::ByCompaction, prediction: Some(prediction), ..new(&needs) };
        }
        let ways = [
            (Verdict::ByCompaction, Way { sync: false, drop: false }),
            (Verdict::ByCompaction, Way { sync: true, drop: false }),
            (Verdict::ByDroppingCache, Way { sync: true, drop: true }),
        ];
        let tries = (ways.len() * choices.len()) as f64;
        let mut most = None;
        for (nr, (verdict, way)) in ways.into_iter().enumerate() {
            for (i, needs) in choices.iter().enumerate() {
                let done = (nr * choices.len() + i) as f64 / tries;
                let asked = (needs.as_slice(), caller);
                // Made anew for each: on a large host, two at a time are gigabytes.
                let memory = match snapshot.machine(profile, false) {
                    Ok(memory) => memory,
                    Err(why) => return Check { unknown: Some(why), ..new(&choices[0]) },
                };
                let tried = attempt(snapshot, memory, asked, way, |part| progress(done + part / tries));
                if tried.met {
                    let mut check = Check { verdict, prediction: Some(tried.prediction), ..new(needs) };
                    check.confidence = check.confidence.map(|confidence| of_way(confidence, way));
                    return check;
                }
                most = Some(tried.prediction);
            }
        }
        let last = choices.last().map_or(&[][..], Vec::as_slice);
        Check { verdict: Verdict::NotReachable, at_most: most, ..new(last) }
    }

    fn new(needs: &[Need], supply: &Supply, page_size: u64, kernel: &str, profile: &str) -> Check {
        let asked = |(need, now): (&Need, Option<u64>)| Asked { need: need.text(page_size), needed: need.count, now };
        Check {
            schema: SCHEMA,
            verdict: Verdict::Unknown,
            page_bytes: page_size,
            needs: needs.iter().zip(supply.obtainable(needs)).map(asked).collect(),
            prediction: None,
            at_most: None,
            obstacles: Vec::new(),
            fewest_moves: Vec::new(),
            deferred_bytes: supply.deferred() * page_size,
            limit: None,
            left_bytes: supply.left_bytes(needs, page_size),
            kernel: kernel.into(),
            profile: profile.into(),
            confidence: None,
            unknown: None,
            load: None,
        }
    }

    /// The same on a host with this load, which bounds the time.
    pub fn under(mut self, load: Option<Load>) -> Check {
        self.load = load;
        for prediction in self.prediction.iter_mut().chain(&mut self.at_most) {
            let compaction = prediction.seconds - COSTS.start;
            prediction.seconds_at_most =
                load.map(|load| compaction * AGAIN * load.stretch_of_compaction() + ORDINARY * load.stretch());
        }
        self
    }
}

/// A snapshot that is older than this is not of the moment.
const SAME_TIME_S: f64 = 30.0;

impl Check {
    /// The check of a snapshot for a moment `older_s` seconds later, of which the free lists alone
    /// are known. What is there now is what these say: the frames tell what can be made, not what
    /// was there still.
    pub fn of_moment(mut self, lists: &Supply, ladders: &[Ladder], older_s: f64) -> Check {
        let is_old = older_s >= SAME_TIME_S;
        if let Some(confidence) = self.confidence.as_mut().filter(|_| is_old) {
            confidence.level = Level::Low;
            confidence.because.push(format!("the frames are those of {} before", time(older_s)));
        }
        let page_bytes = self.page_bytes;
        let chosen = |(ladder, asked): (&Ladder, &Asked)| {
            ladder.iter().find(|need| need.text(page_bytes) == asked.need).copied()
        };
        let needs: Vec<Need> = ladders.iter().zip(&self.needs).filter_map(chosen).collect();
        for (i, (asked, of_lists)) in self.needs.iter_mut().zip(lists.obtainable(&needs)).enumerate() {
            // The lists tell nothing of blocks above their largest order.
            let now = of_lists.or(asked.now.filter(|_| !is_old));
            if let Some(fewest) = self.fewest_moves.get_mut(i).filter(|_| now != asked.now) {
                *fewest = None;
            }
            asked.now = now;
        }
        self.deferred_bytes = lists.deferred() * page_bytes;
        let is_there = |asked: &Asked| asked.now.is_some_and(|now| now >= asked.needed);
        if self.verdict == Verdict::Met && !self.needs.iter().all(is_there) {
            self.verdict = Verdict::Unknown;
            let before = format!("only the frames recorded {} before had all these blocks free", time(older_s));
            self.unknown = Some(before);
        }
        self
    }

    /// The verdict where a limit is too low.
    fn beyond(self, limit: InTheWay) -> Check {
        Check { verdict: Verdict::NotReachable, limit: Some(limit), left_bytes: None, ..self }
    }
}

/// The choices within the limits of the caller's control groups; if there are none, the last choice
/// and the limit in its way.
fn permitted(
    choices: Vec<Vec<Need>>,
    supply: &Supply,
    page_size: u64,
) -> Result<Vec<Vec<Need>>, (Vec<Need>, InTheWay)> {
    let mut last = None;
    let mut permitted = Vec::new();
    for needs in choices {
        match supply.limit_in_the_way(&needs, page_size) {
            None => permitted.push(needs),
            Some(limit) => last = Some((needs, limit)),
        }
    }
    match last {
        Some(last) if permitted.is_empty() => Err(last),
        _ => Ok(permitted),
    }
}

/// The blocks of this order that a node has once it has been compacted from end to end, with dirty
/// pages written first and no cache dropped.
///
/// # Errors
/// Why no machine can be made of the snapshot.
pub fn compacted(snapshot: &Snapshot, profile: &Profile, order: u32, node: u32) -> Result<Prediction, String> {
    let memory = snapshot.machine(profile, false)?;
    // More than there can be, so that it goes on to the end.
    let count = (snapshot.nr_frames() >> order) as u64 + 1;
    let needs = [Need { count, order, node: Some(node), unmovable: false }];
    let asked = (&needs[..], &Caller::default());
    Ok(attempt(snapshot, memory, asked, Way { sync: true, drop: false }, |_| {}).prediction)
}

/// Steps before compacting, from the least harmful on.
#[derive(Clone, Copy)]
struct Way {
    sync: bool,
    drop: bool,
}

/// The result of trying one way.
struct Tried {
    met: bool,
    prediction: Prediction,
}

/// Drops clean cache if the way says so, then compacts the nodes in question until the needs are
/// met.
fn attempt(
    snapshot: &Snapshot,
    mut memory: Memory,
    (needs, caller): (&[Need], &Caller),
    way: Way,
    mut progress: impl FnMut(f64),
) -> Tried {
    let supply_of =
        |memory: &Memory, orders: &[u32]| Supply::of_memory(memory, &snapshot.zones, orders).for_caller(caller);
    let orders: Vec<u32> = needs.iter().map(|need| need.order).collect();
    let dropped = if way.drop { drop_clean_cache(snapshot, &mut memory) } else { 0 };
    let mut prediction = Prediction {
        nodes: Vec::new(),
        pages_moved: 0,
        pages_moved_at_least: None,
        frames_scanned: 0,
        seconds: 0.0,
        seconds_at_most: None,
        by_filling_a_pool: false,
        dropped_bytes: dropped * snapshot.host.page_size,
        sync: way.sync,
        written_bytes: if way.sync { dirty(snapshot) * snapshot.host.page_size } else { 0 },
        blocks: Vec::new(),
    };
    let mut owners = Owners::new(snapshot, if way.sync { sweep::Way::Synced } else { sweep::Way::AsItIs });
    let mut nodes = snapshot.nodes();
    nodes.retain(|node| needs.iter().any(|need| need.node.is_none_or(|n| n == *node)));
    release(&mut memory);
    let mut supply = supply_of(&memory, &orders);
    let blocks = (snapshot.nr_frames() / snapshot.pages_per_block()).max(1) as u64;
    let mut visited = 0;
    if !supply.meets(needs) {
        compact(&mut memory, &mut owners, &nodes, BUDGET, |memory, nr| {
            if prediction.nodes.len() == nr {
                prediction.nodes.push(nodes[nr]);
                visited = 0;
            }
            visited += BUDGET;
            let part = (visited as f64 / blocks as f64).min(1.0);
            progress((nr as f64 + part) / nodes.len() as f64);
            release(memory);
            match supply_of(memory, &orders).meets(needs) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }
    let work = memory.take_work();
    supply = supply_of(&memory, &orders);
    prediction.pages_moved = work.migrated;
    prediction.frames_scanned = work.migrate_scanned + work.free_scanned;
    prediction.seconds = COSTS.seconds(work.migrated, prediction.frames_scanned);
    prediction.blocks = supply.obtainable(needs);
    Tried { met: supply.meets(needs), prediction }
}

/// Pages of files that are not on disk yet.
fn dirty(snapshot: &Snapshot) -> u64 {
    snapshot.zones.iter().map(|zone| snapshot.census(zone.frames())[State::FileDirty as usize]).sum()
}

/// Frees the clean pages of files that nobody maps, as a write of 1 to `drop_caches` does; returns
/// how many.
fn drop_clean_cache(snapshot: &Snapshot, memory: &mut Memory) -> u64 {
    let mut dropped = 0;
    for zone in snapshot.zones.iter().filter(|z| z.managed > 0) {
        for piece in snapshot.pieces(zone.frames()).filter(|p| p.state == State::FileClean) {
            let Some(order) = crate::snapshot::engine_order(piece.pages) else { continue };
            memory.free(CpuId::new(0), Pfn::new(piece.pfn as u32), order);
            dropped += piece.pages as u64;
        }
    }
    release(memory);
    memory.take_work();
    dropped
}

/// Adds the doubt that a way brings.
fn of_way(mut confidence: Confidence, way: Way) -> Confidence {
    if way.sync {
        confidence.level = Level::Low;
        let files = "programs that keep writing files end passes of compaction early: more passes move more pages";
        confidence.because.push(files.into());
    }
    confidence
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 MiB: `lower` describes the lower half block by block, in the upper half every second page
    /// is a user's.
    fn host(lower: &str) -> Snapshot {
        of_kernel("6.12.9", lower)
    }

    fn of_kernel(kernel: &str, lower: &str) -> Snapshot {
        let header = concat!(
            r#"{"schema":"kontig.snapshot/1","host":{"kernel":"KERNEL","page_size":4096,"block_order":9,"#,
            r#""cpus":1,"pinned":0,"sysctls":[]},"zones":[{"node":0,"name":"Normal","start":0,"spanned":16384,"#,
            r#""present":16384,"managed":16384,"marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"#,
            r#""free":[0,0,0,0,0,0,0,0,0,0,0],"blocks":null}]}"#,
        );
        let header = header.replace("KERNEL", kernel);
        let upper = " a1 F1".repeat(256);
        let text = format!("{header}\n0 M{} *16\n2000 M{upper} *16\n", lower.repeat(512 / 16));
        Snapshot::parse(&text).expect("a snapshot")
    }

    fn check(snapshot: &Snapshot, need: &str) -> Check {
        let ladder = Need::parse_ladder(need, 4096).expect("a need");
        Check::of_snapshot(snapshot, &kontig_profiles::linux("6.12"), &[ladder], &Caller::default(), |_| {})
    }

    #[test]
    fn users_pages_are_moved_until_the_needs_are_met_and_no_further() {
        let few = check(&host(" a1 F15"), "4x2M");
        let many = check(&host(" a1 F15"), "12x2M");
        let moved = |check: &Check| check.prediction.as_ref().expect("it is reachable").pages_moved;
        assert_eq!((few.verdict, many.verdict), (Verdict::ByCompaction, Verdict::ByCompaction));
        assert!(0 < moved(&few) && moved(&few) < moved(&many), "{} {}", moved(&few), moved(&many));
    }

    #[test]
    fn a_large_dirty_folio_without_a_target_of_its_size_ends_a_compaction_until_it_is_written() {
        let prediction = |lower| check(&host(lower), "8x2M").prediction.expect("it is reachable");
        let (clean, dirty) = (prediction(" f1^2 F12"), prediction(" d1^2 F12"));
        assert_eq!((clean.sync, clean.written_bytes), (false, 0));
        assert_eq!((dirty.sync, dirty.written_bytes), (true, 16 * 32 * 4 * 4096));
    }

    #[test]
    fn a_prediction_by_another_kernels_rules_says_so() {
        let told = |kernel: &str, profile: &str| {
            let ladder = Need::parse_ladder("4x2M", 4096).expect("a need");
            let profile = kontig_profiles::linux(profile);
            let check =
                Check::of_snapshot(&of_kernel(kernel, " a1 F15"), &profile, &[ladder], &Caller::default(), |_| {});
            check
                .confidence
                .expect("it is predicted")
                .because
                .contains(&"the rules of 6.1 stand for those of 6.11.3".into())
        };
        assert!(told("6.11.3", "6.1") && !told("6.1.9", "6.1"));
    }

    #[test]
    fn on_a_busy_host_what_has_an_ordinary_priority_takes_as_many_times_longer() {
        let ladder = Need::parse_ladder("4x2M", 4096).expect("a need");
        let of = |load| {
            let check = Check::of_snapshot(
                &host(" a1 F15"),
                &kontig_profiles::linux("6.12"),
                std::slice::from_ref(&ladder),
                &Caller::default(),
                |_| {},
            );
            check.under(load).prediction.expect("it is reachable")
        };
        let (waited_memory, waited_io) = (Some(0.0), Some(0.5));
        let busy = Load { cpus: 2, tasks: 12.0, waited_cpu: Some(0.25), waited_memory, waited_io, in_cpu_group: false };
        let compaction = of(None).seconds - COSTS.start;
        let most = |load| of(Some(load)).seconds_at_most.expect("it knows the load");
        let near = |most: f64, expected: f64| assert!((most - expected).abs() < 1e-9, "{most} {expected}");
        assert_eq!(of(None).seconds_at_most, None);
        near(most(busy), compaction * AGAIN + ORDINARY * 4.0);
        near(most(Load { in_cpu_group: true, ..busy }), (compaction * AGAIN + ORDINARY) * 4.0);
    }

    #[test]
    fn a_ladders_first_rung_that_can_be_had_is_chosen() {
        let snapshot = host(" a1 F15");
        assert_eq!(check(&snapshot, "1x1G|4x2M").needs[0].need, "4x2M");
        assert_eq!(check(&snapshot, "1x1G").verdict, Verdict::NotReachable);
    }

    #[test]
    fn of_a_moment_its_own_lists_say_what_is_there_and_older_frames_only_what_can_be_made() {
        let ladders = |need| [Need::parse_ladder(need, 4096).expect("a need")];
        let lists = |blocks: u64| {
            let mut zone = host(" a1 F15").zones.remove(0);
            (zone.free[9], zone.marks) = (blocks, [0; 4]);
            Supply::of_zones(&[zone])
        };
        // 16 blocks are free in the frames, without their marks.
        let mut frames = host(" F16");
        (frames.zones[0].free[10], frames.zones[0].marks) = (8, [0; 4]);
        let then = |need, blocks, older_s| {
            let check = check(&frames, need).of_moment(&lists(blocks), &ladders(need), older_s);
            let level = check.confidence.as_ref().map(|confidence| confidence.level);
            (check.verdict, check.needs[0].now, level, check.unknown)
        };
        assert_eq!(check(&frames, "16x2M").verdict, Verdict::Met);
        let (verdict, now, level, why) = then("16x2M", 13, 114.0);
        assert_eq!((verdict, now, level), (Verdict::Unknown, Some(13), Some(Level::Low)));
        let why = why.expect("why it is not known");
        assert_eq!(why, "only the frames recorded 1 min 54 s before had all these blocks free");
        assert_eq!(then("16x2M", 13, 5.0).0, Verdict::Unknown, "the lists are those of the moment");
        // Blocks of which the lists tell nothing.
        let mut large = frames.clone();
        large.zones[0].free[10] = 16;
        let then = |older_s| {
            let check = check(&large, "1x32M").of_moment(&lists(13), &ladders("1x32M"), older_s);
            (check.verdict, check.needs[0].now)
        };
        assert_eq!((then(5.0), then(114.0)), ((Verdict::Met, Some(1)), (Verdict::Unknown, None)));
        // What the frames can be made into remains an answer.
        let made = check(&host(" a1 F15"), "12x2M").of_moment(&lists(9), &ladders("12x2M"), 114.0);
        assert_eq!((made.verdict, made.needs[0].now, made.fewest_moves[0]), (Verdict::ByCompaction, Some(9), None));
    }
}
