//! A run that starts from the snapshot of a real host.
//!
//! Zones, CPUs, watermarks, settings and the use of every frame come from the host; costs and disks
//! from the named machine. The swap area has the host's size, on that machine's swap disk; a host
//! without swap gets none. A host does not show, so it is made up: the owner of a page (a resting
//! process, or files of 64 pages), the order in which pages were used (by address), and recent use
//! (none). Folios between a page and a huge page are split, because the simulated machine has none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use kontig_error::Error;
use kontig_live::Snapshot;
use kontig_live::frame::State;
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{Memory, Pfn, Profile};
use kontig_sim::machine_file::{SwapEntry, ZoneEntry};
use kontig_sim::{FoundIn, FoundPage, MachineFile};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The default machine for costs and disks of a run that starts from a host: one socket, files and
/// swap on flash.
pub const COSTS_OF_HOSTS: &str = "skylake-1s";

/// A snapshot with its name. Results store it whole, so that it can be rerun anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct HostSnapshot {
    name: String,
    snapshot: Arc<Snapshot>,
}

/// The stored form: the text, deflated, in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    name: String,
    deflated: String,
}

impl From<HostSnapshot> for Packed {
    fn from(of: HostSnapshot) -> Packed {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing to memory cannot fail.
        let _ = deflated.write_all(of.snapshot.to_text().as_bytes());
        Packed { name: of.name, deflated: STANDARD.encode(deflated.finish().unwrap_or_default()) }
    }
}

impl TryFrom<Packed> for HostSnapshot {
    type Error = String;

    fn try_from(packed: Packed) -> Result<HostSnapshot, String> {
        let deflated = STANDARD.decode(&packed.deflated).map_err(|e| format!("the snapshot is damaged: {e}"))?;
        let mut text = String::new();
        let inflated = DeflateDecoder::new(&*deflated).read_to_string(&mut text);
        inflated.map_err(|e| format!("the snapshot is damaged: {e}"))?;
        let snapshot = Snapshot::parse(&text).map_err(|e| format!("the snapshot: {e}"))?;
        Ok(HostSnapshot { name: packed.name, snapshot: Arc::new(snapshot) })
    }
}

impl HostSnapshot {
    /// Names a snapshot taken just now.
    pub fn new(name: impl Into<String>, snapshot: Snapshot) -> HostSnapshot {
        HostSnapshot { name: name.into(), snapshot: Arc::new(snapshot) }
    }

    /// Reads a file written by `kontig snapshot`.
    ///
    /// # Errors
    /// If it cannot be read or is none, with the line.
    pub fn read(path: &str) -> Result<HostSnapshot, Error> {
        let snapshot = Snapshot::open(Path::new(path))?;
        let name = Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into_owned());
        Ok(HostSnapshot::new(name, snapshot))
    }

    /// The host's kernel version.
    pub fn kernel(&self) -> &str {
        &self.snapshot.host.kernel
    }

    /// The profile for the host's kernel; `None` if the snapshot names no kernel.
    pub fn profile(&self) -> Option<Profile> {
        kontig_profiles::of_kernel(self.kernel())
    }

    /// The host as a machine with the costs and disks of another machine.
    ///
    /// # Errors
    /// One line: why the laboratory cannot simulate this host.
    pub fn on(&self, base: &MachineFile) -> Result<MachineFile, String> {
        let host = &self.snapshot.host;
        let kib = |pages: u64| format!("{} KiB", pages * 4);
        let block = u64::from(PAGEBLOCK_PAGES);
        let zone = |z: &kontig_live::snapshot::FoundZone| {
            let (start, end) = (z.start / block * block, (z.start + z.spanned).next_multiple_of(block));
            ZoneEntry {
                node: z.node as usize,
                kind: z.name.clone(),
                start: kib(start),
                end: kib(end),
                reserved: kib(end - start - z.managed_at_most().min(end - start)),
                source: format!("the snapshot {}", self.name),
            }
        };
        let zone: Vec<ZoneEntry> = self.snapshot.zones.iter().filter(|z| z.managed > 0).map(zone).collect();
        if zone.is_empty() {
            return Err("it has no zone with memory".into());
        }
        self.snapshot.suits()?;
        let nodes = |machine: &[ZoneEntry]| machine.iter().map(|z| z.node).max();
        let swap = base.swap.clone().and_then(|swap| match host.swap_pages {
            Some(0) => None,
            Some(pages) => Some(SwapEntry { size: kib(pages), ..swap }),
            None => Some(swap),
        });
        let machine = MachineFile {
            name: format!("{}+{}", self.name, base.name),
            summary: format!("Linux {} as it was found, with the costs and disks of {}", host.kernel, base.name),
            cpus: host.cpus,
            threads_per_core: 1,
            numa: base.numa.clone().filter(|_| nodes(&base.zone) == nodes(&zone)),
            swap,
            zone,
            ..base.clone()
        };
        machine.check().map_err(|wrong| wrong.reason)?;
        Ok(machine)
    }

    /// The host's memory under a profile; `ordered` keeps user pages on LRU lists.
    ///
    /// # Errors
    /// One line: why the engine cannot represent this host.
    pub(crate) fn memory(&self, profile: &Profile, ordered: bool) -> Result<Memory, String> {
        self.snapshot.machine_of_pages(profile, ordered)
    }

    /// The user pages of that memory.
    pub(crate) fn pages(&self) -> Vec<FoundPage> {
        let page = |(pfn, pages, state): (u32, usize, State)| FoundPage {
            pfn: Pfn::new(pfn),
            huge: pages > 1,
            of: match state {
                State::FileClean | State::FileMapped => FoundIn::File { dirty: false },
                State::FileDirty => FoundIn::File { dirty: true },
                _ => FoundIn::Process,
            },
        };
        self.snapshot.pages_of_users().map(page).collect()
    }

    /// The remark on a host whose pages age by generations, under a profile.
    pub(crate) fn on_generations(&self, profile: &Profile) -> Option<String> {
        let remark = |()| match kontig_profiles::has_lru_gen(profile) {
            true => "pages begin in generations as if these had just been switched on, because no file shows which \
                     page is in which"
                .into(),
            false => kontig_profiles::lru_gen_left_out("this host runs"),
        };
        (self.snapshot.lru_gen() > 0).then_some(()).map(remark)
    }

    /// Notes for a run that starts from it.
    pub(crate) fn notes(&self, base: &str) -> Vec<String> {
        let generations = "its pages age by generations: profiles that have these begin with them as if they had just \
                           been switched on, because no file shows which page is in which; with others, pages are on \
                           active and inactive lists";
        let notes = [
            format!(
                "a simulation: starts as Linux {} was found ({}), with the costs and disks of {base}",
                self.kernel(),
                self.name
            ),
            "made up, because no host shows it: who owns a page, the order in which pages were used, and that none was \
             used lately; folios between a page and a huge page are single pages"
                .into(),
        ];
        notes.into_iter().chain((self.snapshot.lru_gen() > 0).then(|| generations.into())).collect()
    }
}
