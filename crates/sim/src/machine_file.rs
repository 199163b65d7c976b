//! Machine files: nodes, zones, CPUs and costs, each with its unit and the source of its value.

use crate::cost::Costs;
use kontig_mm::state::{Frames, List};
use kontig_mm::{MachineSpec, ZoneSpec, ZoneType};
use kontig_program::parse_size;
use serde::{Deserialize, Serialize};

/// A machine as described by `machines/*.toml`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// The name it is asked for by.
    pub name: String,
    /// One line: what it is.
    pub summary: String,
    /// Number of CPU threads, spread evenly over the nodes.
    pub cpus: usize,
    /// How many of them are threads of one core.
    #[serde(default = "one")]
    pub threads_per_core: usize,
    /// Whether transparent huge pages are on, which raises `vm.min_free_kbytes`.
    pub thp: bool,
    /// What was assumed where nothing is published, and why.
    pub notes: String,
    /// The zones, ascending.
    pub zone: Vec<ZoneEntry>,
    /// What things take.
    pub costs: Costs,
}

/// A zone of a machine file. Sizes are strings such as `"512 GiB"`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ZoneEntry {
    /// The node it belongs to.
    pub node: usize,
    /// `DMA`, `DMA32` or `Normal`.
    pub kind: String,
    /// First address.
    pub start: String,
    /// First address after it.
    pub end: String,
    /// What the allocator does not get: holes, firmware, kernel image, memmap.
    pub reserved: String,
    /// Where the figures come from.
    pub source: String,
}

impl MachineFile {
    /// The machine the engine is to make.
    ///
    /// # Errors
    /// Which entry is wrong, and why.
    pub fn spec(&self) -> Result<MachineSpec, String> {
        let nodes = self.zone.iter().map(|zone| zone.node + 1).max().unwrap_or(1);
        let (cpus, threads) = (self.cpus, self.threads_per_core);
        if threads == 0 || (threads > 1 && !cpus.is_multiple_of(nodes * threads)) {
            return Err(format!(
                "threads_per_core = {threads}: {cpus} CPUs on {nodes} nodes are no whole number of cores on each"
            ));
        }
        let zones = self.zone.iter().map(ZoneEntry::spec).collect::<Result<_, _>>()?;
        Ok(MachineSpec { cpus: self.cpus, zones, thp: self.thp, lru: false })
    }

    /// Bytes of host memory a run of this machine may need: every frame's state, with a place in a list, and page tables
    /// with an entry for every page.
    pub fn host_bytes(&self) -> Result<u64, String> {
        let frames: u64 = self.spec()?.zones.iter().map(|z| u64::from(z.end - z.start)).sum();
        let of_engine = (Frames::BYTES_PER_FRAME + List::BYTES_PER_BLOCK) as u64;
        Ok(frames * (of_engine + crate::BYTES_PER_PAGE) + (64 << 20))
    }
}

/// Where nothing is said, a thread is a core.
fn one() -> usize {
    1
}

impl ZoneEntry {
    fn spec(&self) -> Result<ZoneSpec, String> {
        let at = format!("zone {} of node {}", self.kind, self.node);
        let kind = match self.kind.as_str() {
            "DMA" => ZoneType::Dma,
            "DMA32" => ZoneType::Dma32,
            "Normal" => ZoneType::Normal,
            _ => return Err(format!("{at}: kind must be DMA, DMA32 or Normal")),
        };
        let pages = |what: &str, text: &str| -> Result<u32, String> {
            let bytes =
                parse_size(text).ok_or_else(|| format!("{at}: {what} = \"{text}\" is not a size such as \"4 GiB\""))?;
            u32::try_from(bytes / 4096).map_err(|_| format!("{at}: {what} = \"{text}\" is beyond 16 TiB"))
        };
        let (start, end) = (pages("start", &self.start)?, pages("end", &self.end)?);
        let spanned = u64::from(end.saturating_sub(start));
        let managed = spanned
            .checked_sub(u64::from(pages("reserved", &self.reserved)?))
            .ok_or_else(|| format!("{at}: more is reserved than there is"))?;
        Ok(ZoneSpec { node: self.node, kind, start, end, present: spanned, managed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_make_whole_cores_on_every_node() {
        let text = include_str!("../../../machines/xeon-1t.toml");
        let with = |threads: usize| {
            let mut file: MachineFile = toml::from_str(text).expect("a machine file");
            file.threads_per_core = threads;
            file.spec().map(drop)
        };
        assert_eq!((with(1), with(2), with(4)), (Ok(()), Ok(()), Ok(())));
        let said = with(3).expect_err("20 CPUs a node");
        assert_eq!(said, "threads_per_core = 3: 80 CPUs on 4 nodes are no whole number of cores on each");
        assert!(with(0).is_err());
    }
}
