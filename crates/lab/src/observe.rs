//! Readings of a machine at one moment: scores, counts and the state of its pageblocks.

use kontig_mm::Memory;
use kontig_mm::state::BlockContent;
use kontig_results::Cell;
use kontig_sim::Machine;

pub(crate) fn gib(pages: u64) -> f64 {
    kontig_text::gib(pages * kontig_mm::types::PAGE_SIZE)
}

/// The highest fragmentation score of a node.
pub(crate) fn machine_score(m: &Machine) -> f64 {
    let mem = m.memory();
    mem.nodes().iter().map(|n| mem.fragmentation_score_node(n.id)).max().unwrap_or(0) as f64
}

pub(crate) fn node_runs(m: &Machine) -> impl Iterator<Item = u64> + '_ {
    m.memory().nodes().iter().map(|n| n.kcompactd.proactive_runs)
}

/// A picture: a byte for each pageblock of each zone.
pub(crate) fn cells(mem: &Memory) -> Vec<u8> {
    let mut out = Vec::new();
    for z in mem.zones() {
        out.extend((z.start.pageblock()..=z.last_pageblock().pageblock()).map(|block| cell(mem, block)));
    }
    out
}

fn cell(mem: &Memory, block: usize) -> u8 {
    let (class, has_unmovable) = match mem.frames().content(block) {
        BlockContent::Free => (Cell::Free, false),
        BlockContent::UserHugePage => (Cell::HugeUser, false),
        BlockContent::KernelHugePage => (Cell::HugeKernel, true),
        BlockContent::Reserved => (Cell::Reserved, true),
        BlockContent::Split(pages) => {
            let class = match pages.used + pages.reserved {
                _ if pages.reserved == 512 => Cell::Reserved,
                0..=128 => Cell::Quarter,
                129..=256 => Cell::Half,
                257..=384 => Cell::ThreeQuarters,
                385..=511 => Cell::Nearly,
                _ => Cell::Full,
            };
            (class, pages.unmovable > 0 || pages.reserved > 0)
        }
    };
    class.byte(mem.pageblocks().migratetype(block) as u8, has_unmovable)
}
