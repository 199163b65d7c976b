//! Carrying a plan out.
//!
//! The kernel compacts on behalf of whoever writes to the file, and gives up when that process is killed. So a process of
//! its own writes, and is killed as soon as the blocks are there, which this one sees in `/proc/buddyinfo`.

use super::hurry::Hurry;
use super::journal::{Journal, NoJournal, restore_left};
use super::plan::{Plan, Step};
use super::receipt::{Cost, Done, Ended, Receipt, Supplied};
use super::release;
use crate::check::Verdict;
use crate::error::ReadError;
use crate::host::buddyinfo;
use crate::need::Need;
use crate::roots::{self, Roots};
use crate::snapshot::take::{found_zones, parse, possible};
use crate::supply::Supply;
use kontig_procfs::{VmStat, ZoneInfo};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How it is to be carried out.
pub struct Orders<'a> {
    /// Where the host's files are.
    pub roots: &'a Roots,
    /// Where the journal is kept.
    pub journal: &'a Path,
    /// How long it may take.
    pub time: Duration,
    /// Somebody wants it to end.
    pub stop: &'a AtomicBool,
    /// Starts a process that writes 1 to a file; with true, once dirty pages are on disk.
    pub writer: &'a dyn Fn(&Path, bool) -> std::io::Result<Child>,
}

impl Orders<'_> {
    /// Why a preparation that began then is to end now, if it is.
    fn over(&self, began: Instant) -> Option<Ended> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(Ended::Stopped);
        }
        (began.elapsed() >= self.time).then_some(Ended::TimeOver)
    }
}

/// How often the free blocks are looked at: some hundred pages are moved meanwhile.
const INTERVAL: Duration = Duration::from_millis(2);
/// Passes in a row that move nothing, after which there are no more.
const IDLE_PASSES: u32 = 8;

/// What can be had now, by what anybody may read.
///
/// # Errors
/// If `zoneinfo` or `buddyinfo` cannot be read.
pub fn supply(roots: &Roots) -> Result<Supply, ReadError> {
    let zones = parse(roots, "zoneinfo", ZoneInfo::parse)?;
    let zones = found_zones(&zones, &buddyinfo(roots)?, None);
    possible(roots, &zones)?;
    Ok(Supply::of_zones(&zones))
}

/// Carries a plan out.
///
/// # Errors
/// If another process is preparing the host, or the journal or a setting cannot be read or written. A step that fails is no
/// error: the receipt says so.
pub fn execute(plan: Plan, needs: &[Need], orders: &Orders) -> Result<Receipt, NoJournal> {
    if plan.steps.is_empty() && plan.check.verdict == Verdict::Met {
        // Nothing is written, so that anybody may do it. What a killed run left is restored by who may.
        let recovered = restore_left(orders.journal, orders.roots);
        let recovered = recovered.or_else(|e| if e.is_permission() { Ok(Vec::new()) } else { Err(e) })?;
        return Ok(Receipt { executed: true, recovered, ended: Ended::Reached, ..Receipt::planned(plan) });
    }
    let began = Instant::now();
    let (mut journal, recovered) = Journal::begin(orders.journal, orders.roots)?;
    let steps = plan.steps.clone();
    let reserves = steps.iter().any(|step| matches!(step, Step::Reserve { .. }));
    let mut receipt = Receipt { executed: true, recovered, ended: Ended::AllStepsDone, ..Receipt::planned(plan) };
    let start = counters(orders.roots);
    let mut reserved = reserves;
    let hurry = Hurry::up();
    for step in steps {
        if let Some(why) = orders.over(began) {
            (receipt.ended, reserved) = (why, false);
            break;
        }
        // What needs no more compacting gets none.
        if matches!(step, Step::Compact { .. }) && is_met(orders.roots, needs) {
            continue;
        }
        let before = counters(orders.roots);
        let at = Instant::now();
        let (ended_early, failed) = match carry_out(&step, needs, orders, began, &mut journal) {
            Ok(early) => (early, None),
            Err(NotDone(why)) => (false, Some(why)),
        };
        reserved &= failed.is_none();
        receipt.done.push(Done { step, cost: before.until(orders.roots, at.elapsed()), ended_early, failed });
    }
    drop(hurry);
    receipt.real = start.until(orders.roots, began.elapsed());
    let now = supply(orders.roots).map(|supply| supply.obtainable(needs));
    for (i, after) in receipt.after.iter_mut().enumerate() {
        after.blocks = now.as_ref().ok().and_then(|now| now.get(i).copied().flatten());
    }
    let enough = |s: &Supplied| s.blocks.is_some_and(|blocks| blocks >= s.needed);
    // What is in a pool is not free any more.
    receipt.reached = if reserves { reserved } else { receipt.after.iter().all(enough) };
    if receipt.reached {
        receipt.ended = Ended::Reached;
    } else if let Some(why) = orders.over(began) {
        receipt.ended = why;
    }
    if receipt.reached {
        for done in &receipt.done {
            if let Step::Reserve { path, .. } = &done.step {
                journal.keep(path)?;
            }
        }
    }
    receipt.restored = journal.end()?;
    Ok(receipt)
}

/// Why a step was not carried out.
struct NotDone(String);

/// Carries out a step, and says whether it was ended early as the needs were met.
fn carry_out(
    step: &Step,
    needs: &[Need],
    orders: &Orders,
    began: Instant,
    journal: &mut Journal,
) -> Result<bool, NotDone> {
    match step {
        Step::Release { path, limit } => {
            let change = |limit: &PathBuf| journal.change(limit, release::LEAST).map_err(|e| NotDone(e.to_string()));
            limit.as_ref().map(change).transpose()?;
            release::all(orders.roots, path, || orders.over(began).is_some()).map_err(|e| NotDone(e.to_string()))?;
            Ok(is_met(orders.roots, needs))
        }
        Step::Compact { path, sync, .. } => compact(path, *sync, needs, orders, began),
        Step::DropCaches { path } => write_and_watch(path, true, orders, began, || false),
        Step::Reserve { path, pages } => {
            let size = |path: &Path| roots::read(path).map_err(|e| NotDone(e.to_string()));
            let number =
                |text: String| text.trim().parse::<u64>().map_err(|_| NotDone(format!("'{text}' is no number")));
            let wanted = number(size(path)?)? + pages;
            journal.change(path, &wanted.to_string()).map_err(|e| NotDone(e.to_string()))?;
            let got = number(size(path)?)?;
            match got >= wanted {
                true => Ok(false),
                false => Err(NotDone(format!("the pool has {got} huge pages instead of {wanted}"))),
            }
        }
    }
}

/// Compacts a node, in as many passes as it takes. A pass ends early at a large dirty folio: what is dirty is written before the
/// next one, and what somebody writes by then is elsewhere. Passes that move nothing are not repeated for long.
fn compact(path: &Path, sync: bool, needs: &[Need], orders: &Orders, began: Instant) -> Result<bool, NotDone> {
    let (mut sync, mut idle) = (sync, 0);
    while idle < IDLE_PASSES {
        let before = counters(orders.roots).moved;
        if write_and_watch(path, sync, orders, began, || is_met(orders.roots, needs))? {
            return Ok(true);
        }
        // The last pages that the pass has freed are with the CPUs. A kernel without the file keeps few there.
        let _ = release::all(orders.roots, &release::refresh(orders.roots), || false);
        if is_met(orders.roots, needs) {
            return Ok(false);
        }
        idle = if counters(orders.roots).moved > before { 0 } else { idle + 1 };
        sync = true;
    }
    Ok(false)
}

/// Has 1 written to a file, and ends that early if it is enough, time is over, or it is stopped.
fn write_and_watch(
    path: &Path,
    sync: bool,
    orders: &Orders,
    began: Instant,
    enough: impl Fn() -> bool,
) -> Result<bool, NotDone> {
    let failed = |e: std::io::Error| NotDone(format!("{}: {e}", path.display()));
    let mut writer = Running((orders.writer)(path, sync).map_err(failed)?);
    loop {
        if let Some(status) = writer.0.try_wait().map_err(failed)? {
            let why = || NotDone(format!("{}: it could not be written", path.display()));
            return if status.success() { Ok(false) } else { Err(why()) };
        }
        if enough() {
            return Ok(true);
        }
        if let Some(why) = orders.over(began) {
            return Err(NotDone(why.words().into()));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// A process that does not outlive this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_met(roots: &Roots, needs: &[Need]) -> bool {
    supply(roots).is_ok_and(|supply| supply.meets(needs))
}

/// The host's counters at one moment; what cannot be read has not moved.
struct Counters {
    moved: u64,
    not_moved: u64,
    file_pages: u64,
}

fn counters(roots: &Roots) -> Counters {
    let vmstat = parse(roots, "vmstat", VmStat::parse).unwrap_or_default();
    let get = |name| vmstat.get(name).unwrap_or(0);
    Counters { moved: get("pgmigrate_success"), not_moved: get("pgmigrate_fail"), file_pages: get("nr_file_pages") }
}

impl Counters {
    fn until(&self, roots: &Roots, took: Duration) -> Cost {
        let now = counters(roots);
        Cost {
            seconds: took.as_secs_f64(),
            pages_moved: now.moved.saturating_sub(self.moved),
            pages_not_moved: now.not_moved.saturating_sub(self.not_moved),
            dropped_bytes: self.file_pages.saturating_sub(now.file_pages) * rustix::param::page_size() as u64,
        }
    }
}

/// Where the journal is kept where nobody says otherwise.
pub fn default_journal() -> PathBuf {
    "/run/kontig/prepare.journal".into()
}

#[cfg(test)]
mod tests {
    use super::super::plan::Allowed;
    use super::*;
    use crate::check::Check;
    use std::fs;
    use std::process::Command;

    const ZONEINFO: &str = "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     1024\n        min      1\n        low      2\n        high     3\n        spanned  4096\n        present  4096\n        managed  4096\n        protection: (0)\n      nr_free_pages 1024\n  pagesets\n    cpu: 0\n              count: 0\n  node_unreclaimable:  0\n  start_pfn:           0\n";
    const FRAGMENTED: &str =
        "Node 0, zone   Normal   1024      0      0      0      0      0      0      0      0      0      0 \n";
    const WHOLE: &str =
        "Node 0, zone   Normal      0      0      0      0      0      0      0      0      0      0      2 \n";

    /// A host with a pool of huge pages that takes any size, and a need of one huge page.
    fn host() -> (tempfile::TempDir, Roots, Vec<Need>) {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        let pool = roots.sys("kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).expect("made");
        fs::create_dir_all(roots.proc("sys/vm")).expect("made");
        fs::write(pool.join("nr_hugepages"), "3\n").expect("written");
        fs::write(roots.proc("zoneinfo"), ZONEINFO).expect("written");
        fs::write(roots.proc("buddyinfo"), FRAGMENTED).expect("written");
        fs::write(roots.proc("vmstat"), "pgmigrate_success 5\nnr_file_pages 7\n").expect("written");
        (tree, roots, Need::parse_ladder("1x2M", 4096).expect("a need"))
    }

    fn plan(roots: &Roots, needs: &[Need], steps: Vec<Step>) -> Plan {
        let supply = supply(roots).expect("the files are there");
        let check = Check::of_supply(&supply, &[needs.to_vec()], 4096, "6.18", "why");
        Plan { steps, ..Plan::of(check, needs, 4096, roots, Allowed::default()) }
    }

    fn run(roots: &Roots, needs: &[Need], steps: Vec<Step>, script: &str, time: Duration, stop: bool) -> Receipt {
        let stop = AtomicBool::new(stop);
        let writer = |path: &Path, _: bool| Command::new("/bin/sh").arg("-c").arg(script).arg(path).spawn();
        let journal = roots.procfs.join("../journal");
        let orders = Orders { roots, journal: &journal, time, stop: &stop, writer: &writer };
        let receipt = execute(plan(roots, needs, steps), needs, &orders).expect("carried out");
        assert!(!journal.exists());
        receipt
    }

    fn compact(roots: &Roots) -> Vec<Step> {
        vec![Step::Compact { node: 0, path: roots.proc("sys/vm/compact_memory"), sync: false }]
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_compaction_is_ended_as_soon_as_the_blocks_are_there() {
        let (_tree, roots, needs) = host();
        let script = format!("printf '%s' '{WHOLE}' > {}; sleep 60", roots.proc("buddyinfo").display());
        let receipt = run(&roots, &needs, compact(&roots), &script, LONG, false);
        assert!(receipt.reached && receipt.done[0].ended_early, "{receipt:?}");
        assert_eq!((receipt.before[0].blocks, receipt.after[0].blocks), (Some(0), Some(1)));
        assert!(receipt.real.seconds < 30.0);
    }

    #[test]
    fn cpus_lists_are_kept_short_until_the_end_and_no_longer() {
        let (tree, roots, needs) = host();
        let (limit, refresh) = (roots.proc("sys/vm/percpu_pagelist_high_fraction"), roots.proc("sys/vm/stat_refresh"));
        fs::write(&limit, "8\n").expect("written");
        fs::write(&refresh, "").expect("written");
        let seen = tree.path().join("seen");
        let script = format!("cp {} {}; sleep 60", limit.display(), seen.display());
        let steps = [vec![Step::Release { path: refresh, limit: Some(limit.clone()) }], compact(&roots)].concat();
        let receipt = run(&roots, &needs, steps, &script, Duration::from_millis(500), false);
        assert_eq!((roots::read(&seen), roots::read(&limit)), (Ok(release::LEAST.into()), Ok("8".into())));
        assert_eq!(receipt.restored.len(), 1);
    }

    #[test]
    fn it_ends_when_the_time_is_over_or_somebody_wants_it_to() {
        let (_tree, roots, needs) = host();
        let receipt = run(&roots, &needs, compact(&roots), "sleep 60", Duration::from_millis(50), false);
        assert_eq!((receipt.reached, receipt.ended), (false, Ended::TimeOver));
        let receipt = run(&roots, &needs, compact(&roots), "sleep 60", LONG, true);
        assert_eq!((receipt.ended, receipt.done.len()), (Ended::Stopped, 0));
    }

    #[test]
    fn a_pool_that_gets_all_its_pages_is_kept() {
        let (_tree, roots, needs) = host();
        let path = roots.sys("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
        let steps = vec![Step::Reserve { path: path.clone(), pages: 1 }];
        let receipt = run(&roots, &needs, steps, "true", LONG, false);
        assert!(receipt.reached && receipt.restored.is_empty());
        assert_eq!(roots::read(&path), Ok("4".into()));
    }

    #[test]
    fn a_pool_is_restored_where_another_step_fails() {
        let (_tree, roots, needs) = host();
        let path = roots.sys("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
        let missing = Step::Reserve { path: roots.sys("kernel/mm/hugepages/hugepages-7kB/nr_hugepages"), pages: 1 };
        let steps = vec![Step::Reserve { path: path.clone(), pages: 1 }, missing];
        let receipt = run(&roots, &needs, steps, "true", LONG, false);
        assert!(!receipt.reached && receipt.restored.len() == 1, "{receipt:?}");
        assert_eq!(roots::read(&path), Ok("3".into()));
    }
}
