//! A zone of the engine in a dozen lines: the state that decides which block the next request gets.

use crate::recording::{CPU, ZONE};
use kontig_mm::state::FrameKind;
use kontig_mm::{Memory, MigrateType, Order, Pfn};

/// Upper bound on per-CPU lists: three types for orders 0 to 3, and two for huge pages.
const PCP_LISTS: usize = 14;
/// Entries shown of a list.
const SHOWN: usize = 6;

/// Marks, counters, per-CPU lists, the free lists of `orders`, and the surroundings of each of
/// `pfns`.
pub fn zone(m: &Memory, orders: impl Iterator<Item = Order>, pfns: &[Pfn]) -> Vec<String> {
    let z = m.zone(ZONE);
    let w = &z.watermarks;
    let mut lines = vec![
        format!("free {} (counter {}, fold at {})", z.nr_free_pages_exact(), z.nr_free_pages(), z.stat_threshold),
        format!("marks min {} low {} high {}, boost {}", w.min, w.low, w.high, z.watermark_boost),
        format!("highatomic {}", z.nr_reserved_highatomic),
    ];
    let c = &z.compaction;
    let [migrate_async, migrate_sync] = c.cached_migrate_pfn;
    lines.push(format!(
        "compaction: migrate from {migrate_async} (async) {migrate_sync} (sync), free from {}; \
         put off {} of {}, order {}",
        c.cached_free_pfn,
        c.considered,
        1u32 << c.defer_shift,
        c.order_failed
    ));
    let pcp = z.pcp(CPU);
    lines.push(format!(
        "per-CPU: count {} batch {} high {} free_factor {} unfolded {}",
        pcp.count, pcp.batch, pcp.high, pcp.free_factor, pcp.free_diff
    ));
    for i in 0..PCP_LISTS {
        lines.extend(list(&format!("per-CPU list {i}"), pcp.list(i)));
    }
    for order in orders {
        for t in MigrateType::ALL {
            let name = format!("order {} {}", order.get(), t.name());
            lines.extend(list(&name, z.free_list(order, t).iter()));
        }
    }
    lines.extend(pfns.iter().filter(|p| z.spans(**p)).map(|p| block(m, *p)));
    lines
}

/// A list's length and first entries; `None` if it is empty.
fn list(name: &str, pfns: impl Iterator<Item = Pfn>) -> Option<String> {
    let all: Vec<Pfn> = pfns.collect();
    let head: Vec<String> = all.iter().take(SHOWN).map(Pfn::to_string).collect();
    let tail = all.last().filter(|_| all.len() > SHOWN).map_or(String::new(), |last| format!(" … {last}"));
    (!all.is_empty()).then(|| format!("{name}: {} blocks: {}{tail}", all.len(), head.join(" ")))
}

/// Describes a frame and its pageblock.
fn block(m: &Memory, pfn: Pfn) -> String {
    let block = pfn.pageblock();
    let (t, skip) = (m.pageblocks().migratetype(block), m.pageblocks().skip(block));
    let skip = if skip { ", skipped by compaction" } else { "" };
    // The block that holds the frame may start below it.
    let head = Order::all().map(|o| pfn.block_start(o)).find(|p| m.frames().tag(*p).kind() != FrameKind::Tail);
    let held = head.map_or("nothing known".into(), |p| {
        let tag = m.frames().tag(p);
        format!("{:?} of order {} at {p}", tag.kind(), tag.order().get())
    });
    format!("{pfn}: {held}; pageblock {} is {}{skip}", pfn.pageblock_start(), t.name())
}
