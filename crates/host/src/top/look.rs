//! One look at a host: what a screen shows of a moment.

use kontig_live::Roots;
use kontig_live::heaviest::{Heavy, heaviest};
use kontig_live::history::{Collector, Point, Sample};
use kontig_live::stalls::Stalls;
use kontig_procfs::PageTypeInfo;
use std::time::Duration;

/// Pageblocks of a zone by type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pageblocks {
    /// Node and zone, as `0 Normal`.
    pub zone: String,
    /// Type and number of blocks, in the kernel's order.
    pub types: Vec<(String, u64)>,
}

/// A host at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    pub point: Point,
    pub kernel: String,
    /// Empty where only root may read them.
    pub pageblocks: Vec<Pageblocks>,
    /// The largest processes; `None` of a history, which names none.
    pub processes: Option<Vec<Heavy>>,
    /// The waits since the look before; `None` unless asked for.
    pub stalls: Option<Stalls>,
}

/// Processes that are shown at most.
const PROCESSES: usize = 12;

impl Look {
    /// Of a recorded sample.
    pub fn of(sample: &Sample) -> Look {
        let types = sample.text("proc/pagetypeinfo").and_then(|text| PageTypeInfo::parse("pagetypeinfo", text).ok());
        Look {
            point: Point::of(sample),
            kernel: sample.release().unwrap_or("of unknown release").to_string(),
            pageblocks: types.iter().flat_map(pageblocks).collect(),
            processes: None,
            stalls: None,
        }
    }

    /// Of this host now; the next look is to come after `interval`.
    pub fn of_host(roots: &Roots, interval: Duration) -> Look {
        let mut look = Look::of(&Collector::few(roots));
        look.point.interval_s = interval.as_secs_f64();
        let types = roots.read_proc("pagetypeinfo").ok().and_then(|text| PageTypeInfo::parse("", &text).ok());
        look.pageblocks = types.iter().flat_map(pageblocks).collect();
        look.processes = Some(heaviest(roots, kontig_live::snapshot::host_page_size(), PROCESSES));
        look
    }
}

fn pageblocks(info: &PageTypeInfo) -> Vec<Pageblocks> {
    let tables = info.nodes.iter().filter_map(|node| node.blocks.first());
    let zone = |types: &[String], at: &kontig_procfs::zone_at::ZoneAt, blocks: &[u64]| Pageblocks {
        zone: format!("{} {}", at.node, at.zone),
        types: types.iter().cloned().zip(blocks.iter().copied()).filter(|(_, blocks)| *blocks > 0).collect(),
    };
    let of_table = |table: &kontig_procfs::pagetypeinfo::BlockTable| -> Vec<Pageblocks> {
        table.zones.iter().map(|(at, blocks)| zone(&table.types, at, blocks)).collect()
    };
    tables.flat_map(of_table).filter(|zone| !zone.types.is_empty()).collect()
}
