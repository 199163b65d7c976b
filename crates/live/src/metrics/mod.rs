//! A host's state as series for Prometheus: what node_exporter does not have.
//!
//! Units are bytes, seconds and ratios of 0 to 1; what only grows ends in `_total`. A series that a
//! host does not tell is left out, never 0. Labels are bounded by the machine: nodes, zones, sizes
//! of blocks, kinds of pages, names of kernel threads.

pub mod exposition;
mod guard;

use crate::check::{Prediction, compacted};
use crate::clock::unix_s;
use crate::error::ReadError;
use crate::guard::state::State;
use crate::history::count::{PAGES_MOVED, ROWS, Row, SERIES};
use crate::history::point::{self, counted};
use crate::history::{Collector, Sample};
use crate::host::Host;
use crate::need::Need;
use crate::obstacles::Obstacles;
use crate::roots::Roots;
use crate::snapshot::Snapshot;
use crate::status::Status;
use crate::status::events::count;
use exposition::{Family, Kind};
use kontig_mm::Profile;
use std::path::Path;
use std::time::Duration;

/// The findings of a look at every frame, for root only.
#[derive(Clone, Debug)]
pub struct FramesFound {
    /// When, in seconds since 1970, and how long it took.
    pub unix_s: f64,
    pub took: Duration,
    pub nodes: Vec<NodeFrames>,
}

/// A node's blocks of a huge page.
#[derive(Clone, Debug)]
pub struct NodeFrames {
    pub node: u32,
    pub obstacles: Obstacles,
    /// The end of a compaction of the whole node; `None` where it cannot be predicted.
    pub compacted: Option<Prediction>,
}

impl FramesFound {
    /// Looks at every frame, and predicts the end of a compaction by the rules of `profile`.
    ///
    /// # Errors
    /// Mostly that only root may look at the frames.
    pub fn take(
        roots: &Roots,
        page_bytes: u64,
        order: u32,
        profile: Option<&Profile>,
    ) -> Result<FramesFound, ReadError> {
        let began = std::time::Instant::now();
        let unix_s = unix_s();
        let snapshot = Snapshot::take(roots, page_bytes)?;
        let node = |node: u32| {
            let need = Need { count: 1, order, node: Some(node), unmovable: false };
            let compacted = profile.and_then(|profile| compacted(&snapshot, profile, order, node).ok());
            NodeFrames { node, obstacles: Obstacles::of(&snapshot, &need), compacted }
        };
        let nodes = snapshot.nodes().into_iter().map(node).collect();
        Ok(FramesFound { unix_s, took: began.elapsed(), nodes })
    }
}

/// All series of a host now, with those of a guard that is controlled from `control`.
///
/// # Errors
/// If free lists or zones cannot be read.
pub fn of_host(roots: &Roots, control: &Path, frames: Option<&FramesFound>) -> Result<Vec<Family>, ReadError> {
    let began = std::time::Instant::now();
    let mut families = of(&Collector::few(roots), frames)?;
    families.extend(guard::read(&State::read(control)));
    let mut took =
        Family::new("kontig_collect_duration_seconds", Kind::Gauge, "Time that reading this host's files took.");
    took.add(Vec::new(), began.elapsed().as_secs_f64());
    families.push(took);
    Ok(families)
}

/// The series of a sample.
fn of(sample: &Sample, frames: Option<&FramesFound>) -> Result<Vec<Family>, ReadError> {
    let host = point::host(sample);
    let status = Status::of(&host, None, None)?;
    let mut families = vec![build(&host)];
    families.extend(blocks(&status));
    families.extend(zones(&status));
    families.extend(counters(&host, sample));
    families.extend(frames.iter().flat_map(|frames| of_frames(frames, &status)));
    Ok(families)
}

fn build(host: &Host) -> Family {
    let mut build =
        Family::new("kontig_build_info", Kind::Gauge, "The version of kontig and the kernel's release; always 1.");
    let kernel = host.release.clone().unwrap_or_default();
    build.add(vec![("version", env!("CARGO_PKG_VERSION").into()), ("kernel", kernel)], 1.0);
    build
}

fn node_label(node: u32) -> (&'static str, String) {
    ("node", node.to_string())
}

fn blocks(status: &Status) -> Vec<Family> {
    let mut obtainable = Family::new(
        "kontig_obtainable_blocks",
        Kind::Gauge,
        "Blocks of this size that requests get at once, without compaction or reclaim.",
    );
    let mut huge = Family::new(
        "kontig_huge_page_bytes",
        Kind::Gauge,
        "Size of the huge page that scores, obstacles and compacted blocks are about.",
    );
    huge.series.extend(status.huge_page_order.map(|order| (Vec::new(), (status.page_bytes << order) as f64)));
    let mut score = Family::new(
        "kontig_fragmentation_ratio",
        Kind::Gauge,
        "The kernel's fragmentation score of the node, from 0 (none) to 1.",
    );
    let mut above = Family::new(
        "kontig_fragmentation_compacts_above_ratio",
        Kind::Gauge,
        "The score above which the kernel compacts the node by itself; absent where it does not.",
    );
    for node in &status.nodes {
        let mut orders: Vec<u32> = node.zones.iter().flat_map(|z| z.orders.iter().map(|o| o.order)).collect();
        orders.sort_unstable();
        orders.dedup();
        for order in orders {
            let of_order = node.zones.iter().flat_map(|z| z.orders.iter().filter(|o| o.order == order));
            let blocks: u64 = of_order.map(|o| o.at_hand).sum();
            let labels = vec![node_label(node.node), ("block_bytes", (status.page_bytes << order).to_string())];
            obtainable.add(labels, blocks as f64);
        }
        let labels = || vec![node_label(node.node)];
        score.series.extend(node.score.map(|score| (labels(), score as f64 / 100.0)));
        above.series.extend(node.compacts_above.map(|above| (labels(), above as f64 / 100.0)));
    }
    vec![obtainable, huge, score, above]
}

fn zones(status: &Status) -> Vec<Family> {
    let mut distance = Family::new(
        "kontig_watermark_distance_bytes",
        Kind::Gauge,
        "Free memory of the zone above its mark and its reserve for requests of lower zones; below 0 where it lacks.",
    );
    let mut unusable = Family::new(
        "kontig_unusable_free_ratio",
        Kind::Gauge,
        "The share of the zone's free memory in blocks too small for a huge page.",
    );
    for node in &status.nodes {
        for zone in &node.zones {
            let marks = [("min", zone.marks.min_bytes), ("low", zone.marks.low_bytes), ("high", zone.marks.high_bytes)];
            let labels = || vec![node_label(node.node), ("zone", zone.zone.clone())];
            for (mark, bytes) in marks {
                let kept = bytes as f64 + zone.marks.reserve_bytes as f64;
                let labels = [labels(), vec![("mark", mark.to_string())]].concat();
                distance.add(labels, (zone.free_bytes + zone.deferred_bytes) as f64 - kept);
            }
            unusable.add(labels(), zone.unusable_index);
        }
    }
    vec![distance, unusable]
}

/// The counts that a history has, too, and two that are told as series only.
fn counters(host: &Host, sample: &Sample) -> Vec<Family> {
    let mut families: Vec<Family> = SERIES
        .iter()
        .map(|series| {
            let mut family = Family::new(series.name, Kind::Counter, series.help);
            let of_series = |row: &&Row| row.series.is_some_and(|(of, _)| of == *series);
            let labels = |row: &Row| {
                let value = row.series.map_or("", |(_, value)| value);
                series.label.iter().map(|label| (*label, value.to_string())).collect()
            };
            let rows = ROWS.iter().filter(of_series);
            family.series.extend(rows.filter_map(|row| Some((labels(row), counted(sample, host, row.source)?))));
            family
        })
        .collect();
    let label = |name: &'static str, value: &str| vec![(name, value.to_string())];
    let counter = |family: &mut Family, labels: Vec<_>, name: &str| {
        family.series.extend(count(host, name).map(|value| (labels, value as f64)));
    };
    if let Some(moved) = families.iter_mut().find(|family| family.name == PAGES_MOVED.name) {
        counter(moved, label("result", "failure"), "pgmigrate_fail");
    }
    let mut outcomes = Family::new(
        "kontig_direct_compactions_total",
        Kind::Counter,
        "Compactions that requests waited for, each attempt one, by whether the block was there afterwards.",
    );
    counter(&mut outcomes, label("result", "success"), "compact_success");
    counter(&mut outcomes, label("result", "failure"), "compact_fail");
    let mut scanned =
        Family::new("kontig_frames_scanned_total", Kind::Counter, "Frames that compaction's scanners looked at.");
    counter(&mut scanned, label("scanner", "migrate"), "compact_migrate_scanned");
    counter(&mut scanned, label("scanner", "free"), "compact_free_scanned");
    families.extend([outcomes, scanned]);
    families
}

fn of_frames(frames: &FramesFound, status: &Status) -> Vec<Family> {
    let size = status.huge_page_order.map_or(0, |order| status.page_bytes << order);
    let mut after = Family::new(
        "kontig_compacted_blocks",
        Kind::Gauge,
        "Huge pages that requests would get at once after a compaction of the whole node, those at hand before among \
         them: dirty pages written first, no cache dropped, as 'kontig check' predicts it.",
    );
    let mut moves = Family::new("kontig_compacted_page_moves", Kind::Gauge, "Pages that this compaction would move.");
    let mut by_state = Family::new(
        "kontig_huge_page_blocks",
        Kind::Gauge,
        "Aligned blocks of a huge page: free, partly on CPUs' lists, with movable pages only, poisoned by others, or \
         never free, as a part was never the allocator's.",
    );
    let mut poisoned = Family::new(
        "kontig_poisoned_blocks",
        Kind::Gauge,
        "Blocks that hold pages of this kind, which cannot be moved; one with several kinds counts at each.",
    );
    let mut alone = Family::new(
        "kontig_poisoned_blocks_by_one_kind",
        Kind::Gauge,
        "Blocks that hold pages of this kind and nothing else that cannot be moved.",
    );
    for NodeFrames { node, obstacles, compacted } in &frames.nodes {
        let label = || node_label(*node);
        if let Some(p) = compacted {
            let labels = || vec![label(), ("block_bytes", size.to_string())];
            let blocks = p.blocks.first().copied().flatten();
            after.series.extend(blocks.map(|blocks| (labels(), blocks as f64)));
            moves.add(labels(), p.pages_moved as f64);
        }
        let states = [
            ("free", obstacles.free),
            ("on_cpus", obstacles.on_cpus),
            ("movable", obstacles.movable),
            ("poisoned", obstacles.poisoned()),
            ("never", obstacles.never),
        ];
        for (state, blocks) in states {
            by_state.add(vec![label(), ("state", state.into())], blocks as f64);
        }
        for kind in obstacles.kinds.iter().filter(|kind| !kind.state.is_fixed()) {
            let labels = || vec![label(), ("kind", kind.state.label())];
            poisoned.add(labels(), kind.blocks as f64);
            alone.add(labels(), kind.alone as f64);
        }
    }
    let mut at = Family::new(
        "kontig_frames_timestamp_seconds",
        Kind::Gauge,
        "When every frame was looked at last, since 1970: compacted and poisoned blocks are of then.",
    );
    at.add(Vec::new(), frames.unix_s);
    let mut took = Family::new("kontig_frames_duration_seconds", Kind::Gauge, "Time that this look took.");
    took.add(Vec::new(), frames.took.as_secs_f64());
    vec![after, moves, by_state, poisoned, alone, at, took]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Stored;

    const ZONEINFO: &str = "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     \
        4096\n        min      10\n        low      20\n        high     30\n        spanned  8192\n        \
        present  8192\n        managed  8192\n        protection: (0)\n      nr_free_pages \
        4096\n  pagesets\n    cpu: 0\n              count: 0\n  node_unreclaimable:  0\n  start_pfn:           0\n";

    fn text_of(files: &[(&str, &str)], frames: Option<&FramesFound>) -> String {
        let stored = |(path, text): &(&str, &str)| ((*path).into(), Stored::Text((*text).into()));
        let all = [
            ("proc/zoneinfo", ZONEINFO),
            ("proc/buddyinfo", "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 4 2 \n"),
            ("proc/meminfo", "MemTotal: 32768 kB\nMemFree: 16384 kB\nHugepagesize: 2048 kB\n"),
            ("kontig/page_size", "4096\n"),
        ];
        let sample = Sample { unix_ms: 0, files: all.iter().chain(files).map(stored).collect() };
        exposition::text(&of(&sample, frames).expect("the lists are there"))
    }

    #[test]
    fn values_are_in_bytes_and_ratios_and_what_the_host_does_not_tell_is_left_out() {
        let kernel = ("proc/sys/kernel/osrelease", "6.1.0-49-amd64\n");
        let text = text_of(&[("proc/sys/vm/compaction_proactiveness", "20\n"), kernel], None);
        for line in [
            "kontig_obtainable_blocks{node=\"0\",block_bytes=\"2097152\"} 7",
            "kontig_watermark_distance_bytes{node=\"0\",zone=\"Normal\",mark=\"low\"} 16695296",
            "kontig_fragmentation_compacts_above_ratio{node=\"0\"} 0.9",
            "kontig_unusable_free_ratio{node=\"0\",zone=\"Normal\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        for absent in ["_total", "kontig_compacted", "kontig_poisoned"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
    }

    #[test]
    fn memory_that_is_initialised_late_is_above_the_marks_as_it_is_at_hand() {
        let zoneinfo = ZONEINFO.replace("spanned  8192", "spanned  16384").replace("present  8192", "present  16384");
        let meminfo = "MemTotal: 65536 kB\nMemFree: 49152 kB\nHugepagesize: 2048 kB\n";
        let text = text_of(&[("proc/zoneinfo", &zoneinfo), ("proc/meminfo", meminfo)], None);
        // 4,096 pages on lists and 8,192 on none, of which the low mark keeps 20.
        let line =
            format!("kontig_watermark_distance_bytes{{node=\"0\",zone=\"Normal\",mark=\"low\"}} {}\n", 12268 << 12);
        assert!(text.contains(&line), "{text}");
        assert!(text.contains("kontig_obtainable_blocks{node=\"0\",block_bytes=\"2097152\"} 23\n"), "{text}");
    }

    #[test]
    fn the_score_at_which_the_kernel_compacts_is_by_the_hosts_own_rules() {
        let above = |release: &str| {
            let kernel = ("proc/sys/kernel/osrelease", release);
            let text = text_of(&[("proc/sys/vm/compaction_proactiveness", "100\n"), kernel], None);
            let value = text.lines().find_map(|line| line.strip_prefix("kontig_fragmentation_compacts_above_ratio{"));
            value.and_then(|line| line.rsplit(' ').next()).map(str::to_string)
        };
        assert_eq!((above("6.1.0\n").as_deref(), above("6.18.44\n").as_deref()), (Some("0.15"), Some("0")));
        assert_eq!(above("strange\n"), None);
    }

    #[test]
    fn a_zones_distance_to_its_mark_leaves_out_its_reserve_too() {
        let zoneinfo = ZONEINFO.replace("protection: (0)", "protection: (0, 0, 1000)");
        let text = text_of(&[("proc/zoneinfo", &zoneinfo)], None);
        let pages = [("min", 4096 - 10 - 1000), ("low", 4096 - 20 - 1000), ("high", 4096 - 30 - 1000)];
        for (mark, pages) in pages {
            let labels = format!("{{node=\"0\",zone=\"Normal\",mark=\"{mark}\"}}");
            let line = format!("kontig_watermark_distance_bytes{labels} {}\n", pages << 12);
            assert!(text.contains(&line), "{line} in {text}");
        }
    }

    #[test]
    fn outcomes_of_direct_compactions_are_told_apart() {
        let text = text_of(&[("proc/vmstat", "compact_stall 9\ncompact_fail 7\ncompact_success 2\n")], None);
        assert!(text.contains("kontig_direct_compactions_total{result=\"success\"} 2\n"), "{text}");
        assert!(text.contains("kontig_direct_compactions_total{result=\"failure\"} 7\n"), "{text}");
    }

    #[test]
    fn counters_of_several_zones_are_one_series() {
        let vmstat = "allocstall_dma 1\nallocstall_normal 2\ncompact_stall 9\nthp_fault_fallback 4\n";
        let text = text_of(&[("proc/vmstat", vmstat)], None);
        assert!(text.contains("kontig_allocation_stalls_total{waited_for=\"reclaim\"} 3\n"), "{text}");
        assert!(text.contains("kontig_huge_page_faults_total{result=\"fallback\"} 4\n"), "{text}");
        assert!(!text.contains("result=\"huge\""), "{text}");
    }
}
