//! Machine files: nodes, zones, CPUs and costs, each with its unit and the source of its value.

use crate::base::cost::Costs;
use crate::base::numa::NumaEntry;
use crate::device::{BLOCK_BYTES, DiskEntry, Parameters};
use crate::state::file;
use crate::state::file::{Allocator, FileSystem};
use kontig_mm::state::{Frames, List};
use kontig_mm::zonelist::check_distances;
use kontig_mm::{MachineSpec, Memory, WrongSpec, ZoneSpec, ZoneType};
use kontig_text::parse_size;
use kontig_translation::{Processor, WrongConstant};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A machine as described by `machines/*.toml`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// The name to select it by.
    pub name: String,
    /// A description in one line.
    pub summary: String,
    /// Number of CPU threads, spread evenly over the nodes.
    pub cpus: usize,
    /// CPU threads per core.
    #[serde(default = "one")]
    pub threads_per_core: usize,
    /// Whether transparent huge pages are on, which raises `vm.min_free_kbytes`.
    pub thp: bool,
    /// Assumptions made where nothing is published, and why.
    pub notes: String,
    /// The zones, in ascending order.
    pub zone: Vec<ZoneEntry>,
    /// Distances between the nodes. By default every other node is at distance 20, as the kernel
    /// assumes, and its memory costs no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<NumaEntry>,
    /// The disks. A machine with disks has files and reclaims memory; one without keeps no LRU
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk: Vec<DiskEntry>,
    /// The slab allocator, SLUB unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slab: Option<SlabEntry>,
    /// Swap for anonymous memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapEntry>,
    pub costs: Costs,
    /// The cost of address translation, which programs that do more than touch memory need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<Processor>,
}

/// The slab allocator of a machine file, which its kernels were configured with.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SlabEntry {
    pub allocator: Allocator,
    /// Where that is known from.
    pub source: String,
}

/// The swap area of a machine file, at the end of a disk.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SwapEntry {
    pub disk: String,
    /// Size of the area, such as `"16 GiB"`.
    pub size: String,
}

/// A disk, with its blocks for files and for swap.
pub(crate) struct Disk {
    pub(crate) parameters: Parameters,
    pub(crate) filesystem: FileSystem,
    pub(crate) files: Range<u32>,
    pub(crate) swap: Range<u32>,
}

/// An error in a machine file: the keys that lead to it, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongEntry {
    /// Keys and indexes, outermost first.
    pub way: Vec<String>,
    /// The error, and how to correct it.
    pub reason: String,
}

/// A zone of a machine file. Sizes are strings such as `"512 GiB"`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ZoneEntry {
    pub node: usize,
    /// `DMA`, `DMA32` or `Normal`.
    pub kind: String,
    pub start: String,
    /// First address beyond the zone.
    pub end: String,
    /// Memory that the allocator does not manage: holes, firmware, kernel image, memmap.
    pub reserved: String,
    /// Source of the figures.
    pub source: String,
}

impl MachineFile {
    /// Whether it has disks, and therefore files and an ordered LRU.
    pub fn has_disks(&self) -> bool {
        !self.disk.is_empty()
    }

    /// The engine's description of the machine.
    ///
    /// # Errors
    /// The wrong entry, and the reason.
    pub fn spec(&self) -> Result<MachineSpec, String> {
        self.layout().map_err(|wrong| wrong.reason)
    }

    /// Checks CPUs, zones, nodes, distances, disks and swap.
    ///
    /// # Errors
    /// The first error, and where it is.
    pub fn check(&self) -> Result<(), WrongEntry> {
        let spec = self.layout()?;
        Memory::check_spec(&spec).map_err(|WrongSpec { zone, reason }| match zone {
            Some(i) => wrong(&["zone", &i.to_string()], reason),
            None => wrong(&["cpus"], reason),
        })?;
        self.costs.check().map_err(|(name, reason)| wrong(&["costs", name], reason))?;
        let wrong_constant = |e: WrongConstant| wrong(&["translation", e.key], e.reason);
        self.translation.as_ref().map_or(Ok(()), Processor::check).map_err(wrong_constant)?;
        self.check_nodes()?;
        self.check_disks()
    }

    fn layout(&self) -> Result<MachineSpec, WrongEntry> {
        let nodes = self.nodes();
        let (cpus, threads) = (self.cpus, self.threads_per_core);
        if threads == 0 || (threads > 1 && !cpus.is_multiple_of(nodes * threads)) {
            let reason = format!(
                "threads_per_core = {threads}: {cpus} CPUs on {nodes} nodes are no whole number of cores on each"
            );
            return Err(wrong(&["threads_per_core"], reason));
        }
        let zone = |(i, zone): (usize, &ZoneEntry)| {
            zone.spec().map_err(|(key, reason)| wrong(&["zone", &i.to_string(), key], reason))
        };
        let zones = self.zone.iter().enumerate().map(zone).collect::<Result<_, _>>()?;
        Ok(MachineSpec { cpus, zones, thp: self.thp, lru: self.has_disks() })
    }

    fn nodes(&self) -> usize {
        self.zone.iter().map(|zone| zone.node + 1).max().unwrap_or(1)
    }

    /// Pages of memory of each node; empty if the machine is invalid.
    pub fn node_pages(&self) -> Vec<u64> {
        let mut nodes = vec![0; self.nodes()];
        for zone in self.spec().map_or(Vec::new(), |spec| spec.zones) {
            nodes[zone.node] += zone.managed;
        }
        nodes
    }

    fn check_nodes(&self) -> Result<(), WrongEntry> {
        let nodes = self.nodes();
        if let Some(gap) = (0..nodes).find(|node| self.zone.iter().all(|zone| zone.node != *node)) {
            let beyond = self.zone.iter().position(|zone| zone.node > gap).unwrap_or(0).to_string();
            let reason = format!("nodes are numbered from 0 without a gap: there is no zone of node {gap}");
            return Err(wrong(&["zone", &beyond, "node"], reason));
        }
        let Some(numa) = &self.numa else { return Ok(()) };
        check_distances(&numa.distances, nodes).map_err(|reason| wrong(&["numa", "distances"], reason))?;
        for (key, cost) in [("touch", &numa.touch), ("page", &numa.page)] {
            cost.check(key).map_err(|reason| wrong(&["numa", key], reason))?;
        }
        Ok(())
    }

    /// Checks the disks, and that swap fits on the disk it names.
    fn check_disks(&self) -> Result<(), WrongEntry> {
        self.disks().map(|_| ())
    }

    /// Pages of files that each disk has room for; empty if the disks are invalid.
    pub fn file_pages(&self) -> Vec<u32> {
        let disks = self.disks().unwrap_or_default();
        disks.iter().map(|disk| disk.files.end - disk.files.start).collect()
    }

    /// The disks, each with its blocks for files and for swap.
    pub(crate) fn disks(&self) -> Result<Vec<Disk>, WrongEntry> {
        let mut disks = Vec::with_capacity(self.disk.len());
        for (i, disk) in self.disk.iter().enumerate() {
            let at = i.to_string();
            let parameters = disk
                .parameters()
                .map_err(|(key, why)| wrong(&["disk", &at, key], format!("disk {}: {why}", disk.name)))?;
            if self.disk[..i].iter().any(|other| other.name == disk.name) {
                return Err(wrong(&["disk", &at, "name"], format!("there is another disk named '{}'", disk.name)));
            }
            let blocks = parameters.blocks;
            let filesystem = disk.filesystem;
            disks.push(Disk { parameters, filesystem, files: 0..blocks, swap: blocks..blocks });
        }
        let Some(swap) = &self.swap else { return Ok(disks) };
        let Some(number) = self.disk.iter().position(|disk| disk.name == swap.disk) else {
            let names: Vec<&str> = self.disk.iter().map(|disk| disk.name.as_str()).collect();
            let there = if names.is_empty() {
                "this machine has none".into()
            } else {
                format!("there is {}", names.join(", "))
            };
            return Err(wrong(&["swap", "disk"], format!("swap on disk '{}', which is not there: {there}", swap.disk)));
        };
        let disk = &mut disks[number];
        let blocks = parse_size(&swap.size).map(|bytes| bytes / BLOCK_BYTES).filter(|blocks| *blocks > 1);
        match blocks.map(u32::try_from) {
            None => {
                Err(wrong(&["swap", "size"], format!("swap: size = \"{}\" is not a size such as \"4 GiB\"", swap.size)))
            }
            Some(Ok(blocks)) if blocks < disk.files.end => {
                let end = disk.files.end;
                (disk.files, disk.swap) = (0..end - blocks, end - blocks..end);
                Ok(disks)
            }
            Some(_) => {
                let of_disk = &self.disk[number];
                let reason = format!(
                    "swap of {} leaves no room for files on disk {}, of {}",
                    swap.size, of_disk.name, of_disk.size
                );
                Err(wrong(&["swap", "size"], reason))
            }
        }
    }

    /// Pages of swap; 0 if the disks are invalid.
    pub fn swap_pages(&self) -> u64 {
        let disks = self.disks().unwrap_or_default();
        disks.iter().map(|disk| u64::from(disk.swap.end - disk.swap.start)).sum()
    }

    /// Bytes of host memory that a run of this machine may need: the state and list entry of every
    /// frame, page tables with an entry for every page and, with disks, the page cache and the LRU
    /// order.
    pub fn host_bytes(&self) -> Result<u64, String> {
        let frames: u64 = self.spec()?.zones.iter().map(|z| u64::from(z.end - z.start)).sum();
        let of_engine = (Frames::BYTES_PER_FRAME + List::BYTES_PER_BLOCK) as u64;
        let of_files = if self.has_disks() { file::BYTES_PER_FRAME as u64 } else { 0 };
        Ok(frames * (of_engine + of_files + crate::BYTES_PER_PAGE) + (64 << 20))
    }
}

/// By default a thread is a core.
fn one() -> usize {
    1
}

fn wrong(way: &[&str], reason: String) -> WrongEntry {
    WrongEntry { way: way.iter().map(|s| s.to_string()).collect(), reason }
}

impl ZoneEntry {
    /// # Errors
    /// The wrong key, and the reason.
    fn spec(&self) -> Result<ZoneSpec, (&'static str, String)> {
        let at = format!("zone {} of node {}", self.kind, self.node);
        // The highest end of such a zone on x86-64.
        let (kind, most) = match self.kind.as_str() {
            "DMA" => (ZoneType::Dma, Some(("16 MiB", 1 << 12))),
            "DMA32" => (ZoneType::Dma32, Some(("4 GiB", 1 << 20))),
            "Normal" => (ZoneType::Normal, None),
            _ => return Err(("kind", format!("{at}: kind must be DMA, DMA32 or Normal"))),
        };
        let pages = |key: &'static str, text: &str| {
            let bytes = parse_size(text)
                .ok_or_else(|| (key, format!("{at}: {key} = \"{text}\" is not a size such as \"4 GiB\"")))?;
            u32::try_from(bytes / 4096).map_err(|_| (key, format!("{at}: {key} = \"{text}\" is beyond 16 TiB")))
        };
        let (start, end) = (pages("start", &self.start)?, pages("end", &self.end)?);
        if let Some((most, _)) = most.filter(|(_, most)| end > *most) {
            return Err(("end", format!("{at}: end = \"{}\": such a zone ends at {most} at the latest", self.end)));
        }
        let spanned = u64::from(end.saturating_sub(start));
        let managed = spanned
            .checked_sub(u64::from(pages("reserved", &self.reserved)?))
            .ok_or_else(|| ("reserved", format!("{at}: more is reserved than there is")))?;
        Ok(ZoneSpec { node: self.node, kind, start, end, present: spanned, managed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_make_whole_cores_on_every_node() {
        let text = include_str!("../../../../machines/xeon-1t.toml");
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

    const DISK: &str = "[[disk]]
        name = 'sda'
        kind = 'hdd'
        size = '1 GiB'
        queue_depth = 32
        read_mb_s = 150
        write_mb_s = 150
        rpm = 7200
        seek_ms = 8.5
        track_ms = 1
        source = 'a test'
        ";

    fn machine(more: &str) -> MachineFile {
        let text = include_str!("../../../../machines/xeon-1t.toml");
        // The file's own tables follow these.
        let (head, tables) = text.split_at(text.find("[[zone]]").expect("a machine has zones"));
        toml::from_str(&format!("{head}{more}\n{tables}")).expect("well-formed")
    }

    fn wrong(more: &str) -> (String, String) {
        let wrong = machine(more).check_disks().expect_err("it cannot be");
        (wrong.way.join("."), wrong.reason)
    }

    #[test]
    fn a_machine_with_a_disk_keeps_the_order_of_its_pages() {
        assert_eq!((machine("").spec().unwrap().lru, machine(DISK).spec().unwrap().lru), (false, true));
        let swapping = machine(&format!("{DISK}[swap]\ndisk = 'sda'\nsize = '512 MiB'"));
        assert_eq!((swapping.check_disks(), machine(DISK).check_disks()), (Ok(()), Ok(())));
    }

    #[test]
    fn bad_disks_are_refused_with_their_places() {
        let there = "swap on disk 'sdb', which is not there: ";
        let swap = "[swap]\ndisk = 'sdb'\nsize = '1 GiB'";
        assert_eq!(wrong(swap), ("swap.disk".into(), format!("{there}this machine has none")));
        assert_eq!(wrong(&format!("{DISK}{swap}")), ("swap.disk".into(), format!("{there}there is sda")));
        let large = wrong(&format!("{DISK}{}", swap.replace("sdb", "sda")));
        assert_eq!(large.1, "swap of 1 GiB leaves no room for files on disk sda, of 1 GiB");
        let twice = wrong(&format!("{DISK}{DISK}"));
        assert_eq!(twice, ("disk.1.name".into(), "there is another disk named 'sda'".into()));
        let slow = wrong(&DISK.replace("read_mb_s = 150", "read_mb_s = 0"));
        assert_eq!(slow.0, "disk.0.read_mb_s");
        assert!(slow.1.starts_with("disk sda: read_mb_s = 0: a disk needs more"), "{}", slow.1);
    }
}
