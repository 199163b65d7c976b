//! Carrying a plan out, step by step, until the needs are met, the time is over, or a step is not
//! permitted.

use super::execution::{Execution, counters, supply};
use super::hurry::Hurry;
use super::journal::{Journal, NoJournal, Setting, restore_left};
use super::plan::{Plan, PlanStep, pools};
use super::pool;
use super::receipt::{Done, Ended, Receipt, Supplied};
use super::step_runner::StepRunner;
use crate::caller::{Caller, free_in_pools};
use crate::check::Verdict;
use crate::need::Need;
use std::path::Path;
use std::time::Instant;

/// Carries a plan out.
///
/// # Errors
/// If another process is preparing the host, or the journal or a setting cannot be read or written.
/// A step that fails is no error: the receipt says so.
pub fn execute(plan: Plan, needs: &[Need], execution: &Execution) -> Result<Receipt, NoJournal> {
    if plan.steps.is_empty() && plan.check.verdict == Verdict::Met {
        // Nothing is written, so anybody may do it. Root also restores what a killed run left.
        let recovered = restore_left(execution.journal, execution.roots);
        let recovered = recovered.or_else(|e| if e.is_permission() { Ok(Vec::new()) } else { Err(e) })?;
        // Pools that have the pages already keep them.
        let give_back = give_back(needs, execution, |_| Ok(None))?;
        return Ok(Receipt { executed: true, recovered, give_back, ended: Ended::Reached, ..Receipt::planned(plan) });
    }
    let began = Instant::now();
    let (mut journal, recovered) = Journal::begin(execution.journal, execution.roots)?;
    let steps = plan.steps.clone();
    let reserves = steps.iter().any(|step| matches!(step, PlanStep::Reserve { .. }));
    let mut receipt = Receipt { executed: true, recovered, ended: Ended::AllStepsDone, ..Receipt::planned(plan) };
    let start = counters(execution.roots);
    let (mut reserved, mut unpermitted) = (reserves, false);
    let hurry = Hurry::up();
    for step in steps {
        if let Some(why) = execution.over(began) {
            (receipt.ended, reserved) = (why, false);
            break;
        }
        // Earlier steps may have been enough.
        if matches!(step, PlanStep::Compact { .. }) && execution.is_met(needs) {
            continue;
        }
        let before = counters(execution.roots);
        let at = Instant::now();
        let mut runner = StepRunner::new(needs, execution, began);
        let (ended_early, failed) = match runner.carry_out(&step, &mut journal) {
            Ok(early) => (early, None),
            Err(why) => (false, Some(why)),
        };
        let cost = before.until(execution.roots, at.elapsed(), runner.cpu_seconds(), step.drops_cache());
        let (failed, not_permitted) = failed.map_or((None, false), |why| (Some(why.text), why.is_permission));
        reserved &= failed.is_none();
        receipt.done.push(Done { step, cost, ended_early, failed });
        if not_permitted {
            // Nor are the other steps.
            unpermitted = true;
            break;
        }
    }
    drop(hurry);
    let cpu_seconds = receipt.done.iter().filter_map(|done| done.cost.cpu_seconds).reduce(|a, b| a + b);
    let drops = receipt.done.iter().any(|done| done.step.drops_cache());
    receipt.real = Some(start.until(execution.roots, began.elapsed(), cpu_seconds, drops));
    let pools = free_in_pools(execution.roots, rustix::param::page_size() as u64);
    let caller = Caller { pools, ..execution.caller.clone() };
    let now = supply(execution.roots).map(|supply| supply.for_caller(&caller).obtainable(needs));
    let mut after = receipt.before.clone();
    for (i, after) in after.iter_mut().enumerate() {
        after.blocks = now.as_ref().ok().and_then(|now| now.get(i).copied().flatten());
    }
    let enough = |s: &Supplied| s.blocks.is_some_and(|blocks| blocks >= s.needed);
    // Pages of a pool are not free any more.
    let in_pools = needs.iter().map(|need| reserves && !need.unmovable);
    let mut each = after.iter().zip(in_pools);
    receipt.reached = each.all(|(after, in_pool)| if in_pool { reserved } else { enough(after) });
    receipt.after = Some(after);
    if receipt.reached {
        receipt.ended = Ended::Reached;
    } else if unpermitted {
        receipt.ended = Ended::NotPermitted;
    } else if let Some(why) = execution.over(began) {
        receipt.ended = why;
    }
    if receipt.reached {
        receipt.give_back = give_back(needs, execution, |pool| journal.keep(pool))?;
    }
    receipt.restored = journal.end()?;
    Ok(receipt)
}

/// The command that gives back what pools have for these needs: a pool that was filled gets the
/// size that it had, which `keep` returns, another one loses its free pages. `None` where no pool
/// is used.
fn give_back(
    needs: &[Need],
    execution: &Execution,
    mut keep: impl FnMut(&Path) -> Result<Option<Setting>, NoJournal>,
) -> Result<Option<String>, NoJournal> {
    let mut commands = Vec::new();
    if execution.caller.from_pools {
        for path in pools(execution.roots, needs, rustix::param::page_size() as u64) {
            let size = match keep(&path)? {
                Some(filled) => filled.was.trim().to_string(),
                None => pool::in_use(&path).map_err(NoJournal::Unread)?.to_string(),
            };
            commands.push(format!("echo {size} > {}", quoted(&path.display().to_string())));
        }
    }
    commands.reverse();
    Ok((!commands.is_empty()).then(|| commands.join(" && ")))
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(plain) { path.into() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Allowed;
    use super::super::release;
    use super::*;
    use crate::check::Check;
    use crate::roots::{self, Roots};
    use std::fs;
    use std::process::Command;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    const ZONEINFO: &str = "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     \
        1024\n        min      1\n        low      2\n        high     3\n        spanned  4096\n        \
        present  4096\n        managed  4096\n        protection: (0)\n      nr_free_pages \
        1024\n  pagesets\n    cpu: 0\n              count: 0\n  node_unreclaimable:  0\n  start_pfn:           0\n";
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
        fs::write(pool.join("free_hugepages"), "0\n").expect("written");
        fs::write(roots.proc("zoneinfo"), ZONEINFO).expect("written");
        fs::write(roots.proc("buddyinfo"), FRAGMENTED).expect("written");
        fs::write(roots.proc("vmstat"), "pgmigrate_success 5\nnr_file_pages 7\n").expect("written");
        (tree, roots, Need::parse_ladder("1x2M", 4096).expect("a need"))
    }

    fn plan(roots: &Roots, needs: &[Need], steps: Vec<PlanStep>) -> Plan {
        let supply = supply(roots).expect("the files are there");
        let check = Check::of_supply(&supply, &[needs.to_vec()], 4096, "6.18", "why");
        Plan { steps, ..Plan::of(check, (needs, &Caller::default()), 4096, roots, Allowed::default()) }
    }

    fn run(roots: &Roots, needs: &[Need], steps: Vec<PlanStep>, script: &str, time: Duration, stop: bool) -> Receipt {
        let stop = AtomicBool::new(stop);
        let writer = |path: &Path, _: bool| Command::new("/bin/sh").arg("-c").arg(script).arg(path).spawn();
        let journal = roots.procfs.join("../journal");
        let from_pools = steps.iter().any(|step| matches!(step, PlanStep::Reserve { .. }));
        let caller = Caller { from_pools, ..Caller::default() };
        let execution = Execution { roots, caller: &caller, journal: &journal, time, stop: &stop, writer: &writer };
        let receipt = execute(plan(roots, needs, steps), needs, &execution).expect("carried out");
        assert!(!journal.exists());
        receipt
    }

    fn compact(roots: &Roots) -> Vec<PlanStep> {
        vec![PlanStep::Compact { node: 0, path: roots.proc("sys/vm/compact_memory"), sync: false }]
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_compaction_is_ended_as_soon_as_the_blocks_are_there() {
        let (_tree, roots, needs) = host();
        let script = format!("printf '%s' '{WHOLE}' > {}; sleep 60", roots.proc("buddyinfo").display());
        let receipt = run(&roots, &needs, compact(&roots), &script, LONG, false);
        assert!(receipt.reached && receipt.done[0].ended_early, "{receipt:?}");
        let after = receipt.after.expect("it was carried out");
        assert_eq!((receipt.before[0].blocks, after[0].blocks), (Some(0), Some(1)));
        assert!(receipt.real.is_some_and(|real| real.seconds < 30.0));
    }

    #[test]
    fn cpus_lists_are_kept_short_until_the_end_and_no_longer() {
        let (tree, roots, needs) = host();
        let (limit, refresh) = (roots.proc("sys/vm/percpu_pagelist_high_fraction"), roots.proc("sys/vm/stat_refresh"));
        fs::write(&limit, "8\n").expect("written");
        fs::write(&refresh, "").expect("written");
        let seen = tree.path().join("seen");
        let script = format!("cp {} {}; sleep 60", limit.display(), seen.display());
        let steps = [vec![PlanStep::Release { path: refresh, limit: Some(limit.clone()) }], compact(&roots)].concat();
        let receipt = run(&roots, &needs, steps, &script, Duration::from_millis(500), false);
        assert_eq!((roots::read(&seen), roots::read(&limit)), (Ok(release::LEAST.into()), Ok("8".into())));
        assert_eq!(receipt.restored.len(), 1);
    }

    #[test]
    fn the_time_that_the_compaction_had_a_cpu_is_told_beside_all_that_it_took() {
        let (_tree, roots, needs) = host();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec sleep 60";
        let real = run(&roots, &needs, compact(&roots), busy, Duration::from_millis(800), false)
            .real
            .expect("it was carried out");
        let cpu = real.cpu_seconds.expect("this kernel says it");
        assert!(0.0 < cpu && cpu < real.seconds, "{real:?}");
    }

    #[test]
    fn a_step_that_is_not_permitted_ends_it_and_is_no_failure_of_the_host() {
        let (_tree, roots, needs) = host();
        let steps = [compact(&roots), compact(&roots)].concat();
        let receipt = run(&roots, &needs, steps, "exit 5", LONG, false);
        assert_eq!((receipt.reached, receipt.ended, receipt.done.len()), (false, Ended::NotPermitted, 1));
        let receipt = run(&roots, &needs, compact(&roots), "exit 2", LONG, false);
        assert_eq!(receipt.ended, Ended::AllStepsDone);
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
        let steps = vec![PlanStep::Reserve { path: path.clone(), pages: 1 }];
        let receipt = run(&roots, &needs, steps, "true", LONG, false);
        assert!(receipt.reached && receipt.restored.is_empty());
        assert_eq!(roots::read(&path), Ok("4".into()));
        assert_eq!(receipt.give_back, Some(format!("echo 3 > {}", path.display())));
    }

    #[test]
    fn a_pool_is_restored_where_another_step_fails() {
        let (_tree, roots, needs) = host();
        let path = roots.sys("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
        let missing = PlanStep::Reserve { path: roots.sys("kernel/mm/hugepages/hugepages-7kB/nr_hugepages"), pages: 1 };
        let steps = vec![PlanStep::Reserve { path: path.clone(), pages: 1 }, missing];
        let receipt = run(&roots, &needs, steps, "true", LONG, false);
        assert!(!receipt.reached && receipt.restored.len() == 1, "{receipt:?}");
        assert_eq!(roots::read(&path), Ok("3".into()));
    }
}
