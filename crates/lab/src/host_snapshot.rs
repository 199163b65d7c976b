//! A snapshot of a real host as the start of a run.
//!
//! Of the host are its zones, CPUs, marks, settings and what every frame is used for; of the machine that is named, what things
//! take and the disks. The swap area is as large as the host's, on that machine's swap disk; a host without swap has none here. Not
//! known of a host and so made up: whose a page is (a process at rest's, or of files of 64 pages), in which order pages were used (by
//! address), and which of them were used lately (none). Folios between a page and a huge page are taken apart, because the simulated
//! machine has none.

use crate::error::{AskedWrongly, LabError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use kontig_live::Snapshot;
use kontig_live::frame::State;
use kontig_live::snapshot::NoSnapshot;
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{Memory, Pfn, Profile};
use kontig_sim::machine_file::{SwapEntry, ZoneEntry};
use kontig_sim::{FoundIn, FoundPage, MachineFile};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Opens a file of `kontig snapshot`.
///
/// # Errors
/// If it cannot be read or is none, with the line.
pub fn open(path: &Path) -> Result<Snapshot, LabError> {
    let shown = path.display().to_string();
    let wrong = |e: NoSnapshot| match e {
        NoSnapshot::Unreadable(e) => AskedWrongly::Unreadable { path: shown, reason: e.to_string() },
        NoSnapshot::Bad(bad) => AskedWrongly::Malformed { path: shown, line: bad.line, reason: bad.reason },
    };
    Ok(Snapshot::open(path).map_err(wrong)?)
}

/// A snapshot, and what it is called. It is stored whole with a result, so that it can be run again anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct HostSnapshot {
    name: String,
    snapshot: Arc<Snapshot>,
}

/// As it is stored: the text, deflated, in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    name: String,
    deflated: String,
}

impl From<HostSnapshot> for Packed {
    fn from(of: HostSnapshot) -> Packed {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
        // Nothing fails that is written to memory.
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
    /// A snapshot that was taken just now, under a name.
    pub fn new(name: impl Into<String>, snapshot: Snapshot) -> HostSnapshot {
        HostSnapshot { name: name.into(), snapshot: Arc::new(snapshot) }
    }

    /// Reads a file of `kontig snapshot`.
    ///
    /// # Errors
    /// If it cannot be read or is none, with the line.
    pub fn read(path: &str) -> Result<HostSnapshot, LabError> {
        let snapshot = open(Path::new(path))?;
        let name = Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into_owned());
        Ok(HostSnapshot::new(name, snapshot))
    }

    /// The host's kernel.
    pub fn kernel(&self) -> &str {
        &self.snapshot.host.kernel
    }

    /// The profile that stands for the host's kernel; `None` where the snapshot names no kernel.
    pub fn profile(&self) -> Option<Profile> {
        kontig_profiles::of_kernel(self.kernel())
    }

    /// The host as a machine with the costs and disks of another.
    ///
    /// # Errors
    /// In one line, why the laboratory cannot be this host.
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

    /// The memory of the host under a profile; with `ordered`, it keeps users' pages in an order.
    ///
    /// # Errors
    /// In one line, why the engine cannot be this host.
    pub(crate) fn memory(&self, profile: &Profile, ordered: bool) -> Result<Memory, String> {
        self.snapshot.machine_of_pages(profile, ordered)
    }

    /// The users' pages of that memory.
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

    /// What has to be said of a run that begins with it.
    pub(crate) fn notes(&self, base: &str) -> Vec<String> {
        vec![
            format!(
                "a simulation: begins as Linux {} was found ({}), with the costs and disks of {base}",
                self.kernel(),
                self.name
            ),
            "made up, as no host shows it: whose pages are, in which order they were used, and that none was used lately; \
             folios between a page and a huge page are single pages"
                .into(),
        ]
    }
}
