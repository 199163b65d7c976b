//! One look at a host: what a screen shows of a moment.

use kontig_live::Roots;
use kontig_live::heaviest::{Heavy, heaviest};
use kontig_live::history::{Collector, Point, SELDOM_EVERY, Sample};
use kontig_live::stalls::Stalls;
use kontig_procfs::PageTypeInfo;
use std::time::{Duration, Instant};

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

    /// Of this host now; the next look comes after `interval`.
    pub fn of_host(roots: &Roots, interval: Duration, seldom: &mut Seldom) -> Look {
        let mut look = Look::of(&Collector::few(roots));
        look.point.interval_s = interval.as_secs_f64();
        look.pageblocks = seldom.pageblocks(roots, Instant::now()).to_vec();
        look.processes = Some(heaviest(roots, kontig_live::snapshot::host_page_size(), PROCESSES));
        look
    }
}

/// The files that are read once a minute, since others' allocations wait for them.
#[derive(Default)]
pub struct Seldom(Option<(Instant, Vec<Pageblocks>)>);

impl Seldom {
    fn pageblocks(&mut self, roots: &Roots, now: Instant) -> &[Pageblocks] {
        let is_old = |(then, _): &(Instant, Vec<Pageblocks>)| now.duration_since(*then) >= SELDOM_EVERY;
        if self.0.as_ref().is_none_or(is_old) {
            let types = roots.read_proc("pagetypeinfo").ok().and_then(|text| PageTypeInfo::parse("", &text).ok());
            self.0 = Some((now, types.iter().flat_map(pageblocks).collect()));
        }
        self.0.as_ref().map_or(&[], |(_, blocks)| blocks)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn pageblocks_are_read_once_a_minute() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
        let write = |movable: u32| {
            let text = format!(
                "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order 0 1\n\
                 Node    0, zone   Normal, type    Unmovable 1 1\n\
                 Node    0, zone   Normal, type      Movable 1 1\n\n\
                 Number of blocks type     Unmovable      Movable\n\
                 Node 0, zone   Normal            1            {movable}\n"
            );
            fs::write(tree.path().join("pagetypeinfo"), text).expect("written");
        };
        let (mut seldom, began) = (Seldom::default(), Instant::now());
        let mut movable = |after_s| {
            let blocks = seldom.pageblocks(&roots, began + Duration::from_secs(after_s));
            blocks[0].types.iter().find(|(name, _)| name == "Movable").map(|(_, blocks)| *blocks)
        };
        write(7);
        assert_eq!(movable(0), Some(7));
        write(9);
        assert_eq!([movable(59), movable(60)], [Some(7), Some(9)]);
    }
}
