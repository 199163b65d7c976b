//! `kontig guard replay`: the controller on a recorded host.

use super::policy::PolicyArgs;
use crate::answer::{document, fitted};
use crate::history::{open, wrong};
use crate::rules::profile;
use kontig_error::{AskedWrongly, Error};
use kontig_live::guard::policy::ForHost;
use kontig_live::guard::replay::{Replayed, ReplayedNode, replay as replayed};
use kontig_live::history::at::clock;
use kontig_live::history::{History, Item, Sample, point};
use kontig_procfs::BuddyInfo;
use kontig_terminal::Ending;
use kontig_text::{grouped, percent};
use std::path::Path;

/// Replays the history in a file.
pub(super) fn replay(file: &Path, policy: &PolicyArgs, rules: Option<&str>, json: bool) -> Result<Ending, Error> {
    let history = open(file)?;
    let host = host(&history, rules)?;
    let policy = policy.read(host, false)?;
    let found = replayed(&history, &policy, host.page_bytes);
    if let Some(node) = policy.named().find(|node| !found.nodes.iter().any(|known| known.node == *node)) {
        let reason = format!("it has no node {node} with memory: name another");
        return Err(AskedWrongly::Contradictory { path: file.display().to_string(), reason }.into());
    }
    kontig_terminal::print(&if json { document(&found, false) } else { fitted(&text(&found)) })?;
    Ok(Ending::Done)
}

/// The recorded host, each fact by the first sample that tells it.
fn host(history: &History, rules: Option<&str>) -> Result<ForHost, Error> {
    // Where no sample can be read, why.
    history.span().map_err(wrong)?;
    let (mut kernel, mut page_bytes, mut max_order) = (None, None, None);
    for item in history.items() {
        let Item::Sample(sample) = item else { continue };
        kernel = kernel.or_else(|| sample.release().map(str::to_string));
        page_bytes = page_bytes.or_else(|| point::page_bytes(&sample));
        max_order = max_order.or_else(|| largest_order(&sample));
        if kernel.is_some() && page_bytes.is_some() && max_order.is_some() {
            break;
        }
    }
    let missing = |what: &str| {
        let reason = format!("no sample in it tells {what}");
        Error::from(AskedWrongly::Contradictory { path: history.path.display().to_string(), reason })
    };
    let max_order = max_order.ok_or_else(|| missing("the free lists"))?;
    let page_bytes = page_bytes.ok_or_else(|| missing("the size of a page"))?;
    let kernel = match (kernel, rules) {
        (None, None) => return Err(missing("the kernel's release")),
        (kernel, _) => kernel.unwrap_or_default(),
    };
    Ok(ForHost { page_bytes, proactive: profile("guard replay", rules, &kernel)?.proactive, max_order })
}

/// The largest order that free lists have.
fn largest_order(sample: &Sample) -> Option<u32> {
    let buddy = BuddyInfo::parse("proc/buddyinfo", sample.text("proc/buddyinfo")?).ok()?;
    let orders = buddy.zones.iter().map(|zone| zone.of_order.len()).max()?;
    Some(orders.checked_sub(1)? as u32)
}

fn text(found: &Replayed) -> String {
    let mut text = format!("{} to {} UTC\n", clock(found.from_unix_ms), clock(found.to_unix_ms));
    if found.unread > 0 {
        text += &format!("{} samples tell no free lists, and are left out\n", grouped(found.unread));
    }
    if found.damage.is_any() {
        text += &format!("Of the file {}.\n", found.damage);
    }
    text + &found.nodes.iter().map(node).collect::<String>()
}

fn node(node: &ReplayedNode) -> String {
    let share = |kept: u64| format!("{} ({})", grouped(kept), percent(kept as f64 / node.samples.max(1) as f64));
    let makes: u64 = node.runs.iter().map(|run| run.makes).sum();
    let rested: Vec<String> =
        node.rested.iter().map(|(why, n)| format!("{} {}", why.replace('_', " "), grouped(n))).collect();
    format!(
        "node {}: of {} samples, what is kept was there in {} as recorded, and with guard in {} at most, by {} runs \
         that make {} blocks for {:.1} s of a CPU, if a block takes moves of half of its pages; rests: {}\n",
        node.node,
        grouped(node.samples),
        share(node.kept),
        share(node.kept_with_guard),
        grouped(node.runs.len()),
        grouped(makes),
        node.cpu_s,
        rested.join(", ")
    )
}
