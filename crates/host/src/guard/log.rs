//! A line of the log as people read it.

use crate::answer::cpu;
use kontig_live::guard::event::{Event, Tally, What};
use kontig_live::guard::reason::{NoGain, Rest};
use kontig_live::guard::rules::{Rules, Target};
use kontig_live::history::at;
use kontig_live::prepare::journal::stays;
use kontig_text::{grouped, percent, short_size, time};

/// The text of an event, in one line or, at the end, in one for each node.
pub fn line(event: &Event, page_bytes: u64) -> String {
    let text = match &event.what {
        What::Watches { rules, beside_kernel } => {
            let beside = beside_kernel.map_or(String::new(), |proactiveness| {
                format!("; the kernel compacts as well (vm.compaction_proactiveness is {proactiveness})")
            });
            watches(rules, page_bytes) + &beside
        }
        What::Rests { at_hand, score, why } => {
            format!("rests with {} blocks at hand (score {score}): {}", grouped(at_hand), rest(why))
        }
        What::Synced { seconds } => format!("waited {} for dirty pages to be written, ahead of a run", time(*seconds)),
        What::Compacted { before, after, score, pages_moved, cpu_s, no_gain, .. } => {
            let moved = pages_moved.map_or("pages moved are not counted".into(), |n| format!("{} moved", grouped(n)));
            let why = no_gain.map_or(String::new(), |why| format!("; nothing gained: {}", nothing(&why)));
            format!(
                "compacted: {} to {} blocks at hand (score {score}), {moved}, {} of a CPU{why}",
                grouped(before),
                grouped(after),
                cpu(*cpu_s)
            )
        }
        What::WouldCompact { at_hand, score, lacks, predicted, not_predicted } => {
            let gain = match (predicted, not_predicted) {
                (Some(run), _) => format!(
                    "one run is predicted to make {} for {} page moves and {} of a CPU (the fewest moves are {}){}{}",
                    grouped(run.effort.more),
                    grouped(run.effort.pages_moved),
                    cpu(run.effort.cpu_seconds),
                    run.fewest_moves.map_or("not known".into(), grouped),
                    if run.ends_early { ", and ends early at a large dirty folio" } else { "" },
                    match run.from_cpus_lists {
                        0 => String::new(),
                        blocks => format!("; emptying CPUs' lists makes {} ahead of it", grouped(blocks)),
                    }
                ),
                (None, why) => format!("what it would gain is not known: {}", why.as_deref().unwrap_or("–")),
            };
            let lacks = grouped(lacks);
            format!("would compact for {lacks} more, {} blocks at hand (score {score}): {gain}", grouped(at_hand))
        }
        What::Drives { proactiveness, at_hand } => {
            format!("vm.compaction_proactiveness is {proactiveness} for now, {} blocks at hand", grouped(at_hand))
        }
        What::Released { before, at_hand } => format!(
            "vm.compaction_proactiveness is as it was, {} to {} blocks at hand",
            grouped(before),
            grouped(at_hand)
        ),
        What::Left { path, was, is } => stays(path, is, was),
        What::Restored { path, was } => {
            format!("restored {path} to {was}, as the guard that had changed it was killed")
        }
        What::NotRestored { path, was, journal, why } => not_restored(path.as_deref(), was.as_deref(), journal, why),
        What::PolicyRead => "the policy was read anew".into(),
        What::PolicyRefused { why } => format!("the old policy stays: {why}"),
        What::Failed { why } => format!("goes on without: {why}"),
        What::Ended { seconds, own_cpu_s, looks_cpu_s, nodes } => {
            let looks = match *looks_cpu_s > 0.0 {
                true => format!(", {} of it for looks at every frame", cpu(*looks_cpu_s)),
                false => String::new(),
            };
            let own = format!(
                "ended after {}; guard itself took {} of a CPU ({}){looks}",
                time(*seconds),
                cpu(*own_cpu_s),
                percent(own_cpu_s / seconds)
            );
            let tallies =
                nodes.iter().map(|node| format!("\n{}node {}: {}", clock(event), node.node, tally(node, *seconds)));
            own + &tallies.collect::<String>()
        }
    };
    let node = event.node.map_or(String::new(), |node| format!("node {node}: "));
    format!("{}{node}{text}\n", clock(event))
}

/// A setting that a killed guard has left raised, and the command that restores it beside this one.
fn not_restored(path: Option<&str>, was: Option<&str>, journal: &str, why: &str) -> String {
    let still = match (path, was) {
        (Some(path), Some(was)) => format!("{path} is still as a killed guard has set it, and was {was}"),
        _ => "what a killed guard has changed is not restored".into(),
    };
    format!(
        "{still} ({why}); {journal} stays, and 'kontig prepare --need 1xorder0 --execute --journal {journal}' restores \
         it where it can be written"
    )
}

/// When it was, in UTC.
fn clock(event: &Event) -> String {
    at::clock((event.unix_s * 1000.0) as i64) + " "
}

fn watches(rules: &Rules, page_bytes: u64) -> String {
    let target = match rules.target {
        Target::Blocks { count, order } => {
            format!("keeps {} blocks of {}", grouped(count), short_size(page_bytes << order))
        }
        Target::Score { above, until } => format!("keeps the score at {above} or less, down to {until}"),
    };
    format!("{target}, with {} of a CPU at most", percent(rules.cpu_share))
}

fn rest(why: &Rest) -> String {
    match why {
        Rest::AtTarget => "it has what is kept".into(),
        Rest::Held => "held by 'kontig guard hold'".into(),
        Rest::KernelCompacts { proactiveness } => format!(
            "the kernel compacts by itself (vm.compaction_proactiveness is {proactiveness}): set that to 0, or keep \
             blocks (--keep)"
        ),
        Rest::BelowScore { above } => {
            format!("this kernel compacts by itself above a score of {above} at the earliest")
        }
        Rest::NoFreeMemory { possible } => {
            format!("no free memory: it makes {} blocks at most, whatever moves", grouped(possible))
        }
        Rest::WaitsForCpu { share } => format!("tasks wait for a CPU {} of the time", percent(*share)),
        Rest::WaitsForMemory { share } => format!("tasks wait for memory {} of the time", percent(*share)),
        Rest::Busy { load } => format!("{load:.1} tasks want each CPU"),
        Rest::Budget { for_s } => format!("its CPU time is used up for {}", time(*for_s)),
        Rest::BackOff { for_s, after: NoGain::DryRun } => {
            format!("a dry run changes nothing; it looks again in {}", time(*for_s))
        }
        Rest::BackOff { for_s, after } => {
            format!("the last run gained nothing, for {}: {}", time(*for_s), nothing(after))
        }
    }
}

fn nothing(why: &NoGain) -> String {
    match why {
        NoGain::Poisoned { blocks } => {
            format!("all other blocks, {}, are poisoned by pages that stay", grouped(blocks))
        }
        NoGain::NoRoom { emptiable } => {
            format!("{} blocks could be emptied, but there is no room for their pages", grouped(emptiable))
        }
        NoGain::NotFragmented => "nothing is fragmented".into(),
        NoGain::Pinned { failed } => format!("{} pages did not move: somebody holds them", grouped(failed)),
        NoGain::NothingScanned => "the kernel compacted nothing".into(),
        NoGain::Taken { most } => format!("there were {} blocks, and somebody took them at once", grouped(most)),
        NoGain::NoBlockWhole { moved } => format!("{} pages moved, and no block became whole", grouped(moved)),
        NoGain::NotLooked { needs_s } => format!(
            "every frame would have to be looked at for the reason, for {} of a CPU, which the CPU share does not have",
            cpu(*needs_s)
        ),
        NoGain::Killed { signal } => format!("the process that compacts was killed by signal {signal}"),
        NoGain::DryRun | NoGain::Unknown => "the reason is not known".into(),
    }
}

fn tally(t: &Tally, seconds: f64) -> String {
    let moves = t.pages_moved.map(|pages| format!("{} page moves", grouped(pages)));
    let took = t.cpu_s.map(|cpu_s| format!("{} of a CPU ({})", cpu(cpu_s), percent(cpu_s / seconds)));
    let cost: Vec<String> = [moves, took].into_iter().flatten().collect();
    let cost = if cost.is_empty() { "what nobody counts".into() } else { cost.join(" and ") };
    // One that was watched for no time had no share of it.
    let kept = match t.watched_s > 0.0 {
        true => format!("it had what is kept for {} of the time; ", percent(t.kept_s / t.watched_s)),
        false => String::new(),
    };
    let [runs, fruitless, gained] = [t.runs, t.fruitless, t.gained].map(grouped);
    format!("{kept}{runs} runs, {fruitless} without gain, made {gained} blocks for {cost}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_one_line_that_says_why() {
        let said = |what| line(&Event { schema: "", unix_s: 3723.0, node: Some(1), what }, 4096);
        let why = Rest::BackOff { for_s: 4.0, after: NoGain::Poisoned { blocks: 1234 } };
        assert_eq!(
            said(What::Rests { at_hand: 7, score: 93, why }),
            "1970-01-01 01:02:03 node 1: rests with 7 blocks at hand (score 93): the last run gained nothing, for \
             4.0 s: all other blocks, 1,234, are poisoned by pages that stay\n"
        );
        let ended =
            |tally| said(What::Ended { seconds: 10.0, own_cpu_s: 0.01, looks_cpu_s: 0.004, nodes: vec![tally] });
        let counted = Tally { watched_s: 10.0, kept_s: 5.0, runs: 3, ..Tally::counted(1) };
        let text = ended(counted);
        assert!(
            text.contains("for 50 % of the time; 3 runs") && text.contains("for 0 page moves and 0.000 s"),
            "{text}"
        );
        let text = ended(Tally { pages_moved: None, cpu_s: None, ..counted });
        assert!(text.ends_with("made 0 blocks for what nobody counts\n"), "{text}");
        let why = Rest::KernelCompacts { proactiveness: 20 };
        assert!(said(What::Rests { at_hand: 7, score: 93, why }).contains("set that to 0"));
        assert!(said(What::PolicyRefused { why: "x: line 3: y".into() }).ends_with("stays: x: line 3: y\n"));
    }
}
