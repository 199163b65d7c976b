//! A process's memory by mapping: how much of it is in huge pages, and why the rest is not: `kontig
//! status --pid`.
//!
//! The rule: for each mapping the kernel's own questions are asked in the kernel's order, and the
//! first that says no is the reason. [`Process`] is the JSON of the command. Huge means mapped as a
//! whole by the page table's middle level: `/proc/PID/smaps` does not tell smaller sizes of large
//! folios apart from single pages, the frames' flags do ([`folios`]).

pub mod folios;
pub mod reason;

use crate::error::ReadError;
use crate::host::{Host, proc};
use crate::roots::Roots;
use crate::snapshot::host_page_size;
use folios::OfSize;
use kontig_procfs::smaps;
use kontig_procfs::{ProcessStatus, Smaps};
use reason::Reason;
use serde::Serialize;

/// Name and version of the schema of [`Process`].
pub const PROCESS_SCHEMA: &str = "kontig.process/1";

/// The answer of `kontig status --pid`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Process {
    pub schema: &'static str,
    pub pid: u32,
    pub name: Option<String>,
    /// The size of a huge page, bytes; null on a kernel without.
    pub huge_page_bytes: Option<u64>,
    pub resident_bytes: u64,
    /// Of that, in huge pages.
    pub huge_bytes: u64,
    /// Memory of it that is swapped out.
    pub swapped_bytes: u64,
    /// Its memory by the size of the folios it is in, the smallest first; null where that may not
    /// be seen.
    pub folios: Option<Vec<OfSize>>,
    /// Memory in small pages by the reason, the most first.
    pub reasons: Vec<Sum>,
    /// Its mappings, those with the most memory in small pages first.
    pub mappings: Vec<Mapping>,
}

/// Memory in small pages for one reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sum {
    pub reason: Reason,
    /// In words, with what is set on this host.
    pub text: String,
    pub bytes: u64,
    /// The part of that in aligned ranges of the huge page's size; the rest could not be huge with
    /// any setting.
    pub could_be_huge_bytes: u64,
    /// Number of mappings with this reason.
    pub mappings: u64,
}

/// A mapping of the process.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mapping {
    /// Its first address, in hexadecimal.
    pub start: String,
    /// The address behind its last.
    pub end: String,
    /// A path, or a name in brackets; empty of memory without either.
    pub name: String,
    pub size_bytes: u64,
    pub resident_bytes: u64,
    /// Of that, in huge pages.
    pub huge_bytes: u64,
    /// Memory of it that is swapped out.
    pub swapped_bytes: u64,
    /// How much of its size lies in whole, aligned huge pages: no more can ever be huge.
    pub aligned_bytes: u64,
    /// Why memory of it is in small pages; null if none is.
    pub reason: Option<Reason>,
}

/// A process as its files say.
#[derive(Clone, Debug)]
pub struct Files {
    pub smaps: Smaps,
    pub status: ProcessStatus,
    /// Its memory by the size of the folios.
    pub folios: Result<Vec<OfSize>, ReadError>,
}

impl Files {
    /// Reads a process's files.
    ///
    /// # Errors
    /// If there is no such process (both files are missing), or it is another user's.
    pub fn read(roots: &Roots, pid: u32) -> Result<Files, ReadError> {
        let status = proc(roots, &format!("{pid}/status"), ProcessStatus::parse)?;
        let smaps = proc(roots, &format!("{pid}/smaps"), Smaps::parse)?;
        let folios = folios::read(roots, pid, &smaps, host_page_size());
        Ok(Files { smaps, status, folios })
    }
}

impl Process {
    /// The use of huge pages by a process on this host.
    pub fn of(host: &Host, pid: u32, files: &Files) -> Process {
        let thp = host.thp.as_ref().ok();
        let huge = thp.and_then(|thp| thp.pmd_size).filter(|size| size.is_power_of_two());
        let mut mappings: Vec<Mapping> = files.smaps.mappings.iter().map(|m| mapping(host, files, huge, m)).collect();
        mappings.sort_by_key(|m| std::cmp::Reverse(m.resident_bytes - m.huge_bytes));
        let mut reasons: Vec<Sum> = Vec::new();
        for m in &mappings {
            let Some(reason) = m.reason else { continue };
            let at = reasons.iter().position(|sum| sum.reason == reason).unwrap_or_else(|| {
                reasons.push(Sum { reason, text: reason.text(host), bytes: 0, could_be_huge_bytes: 0, mappings: 0 });
                reasons.len() - 1
            });
            let small = m.resident_bytes - m.huge_bytes;
            reasons[at].bytes += small;
            reasons[at].could_be_huge_bytes += small.min(m.aligned_bytes.saturating_sub(m.huge_bytes));
            reasons[at].mappings += 1;
        }
        reasons.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
        let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(of).fold(0, u64::saturating_add);
        Process {
            schema: PROCESS_SCHEMA,
            pid,
            name: files.status.get("Name").map(str::to_string),
            huge_page_bytes: huge,
            resident_bytes: sum(|m| m.resident_bytes),
            huge_bytes: sum(|m| m.huge_bytes),
            swapped_bytes: sum(|m| m.swapped_bytes),
            folios: files.folios.as_ref().ok().cloned(),
            reasons,
            mappings,
        }
    }
}

fn mapping(host: &Host, files: &Files, huge: Option<u64>, m: &smaps::Mapping) -> Mapping {
    let bytes = |name: &str| m.kb(name).unwrap_or(0).saturating_mul(1024);
    let pool = bytes("Private_Hugetlb").saturating_add(bytes("Shared_Hugetlb"));
    // Pages of a pool are not in `Rss`.
    let resident = bytes("Rss").saturating_add(pool);
    let mapped =
        ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"].map(bytes).into_iter().fold(pool, u64::saturating_add);
    let huge_bytes = mapped.min(resident);
    let aligned = huge.map_or(0, |huge| {
        let first = m.start.div_ceil(huge);
        (m.end / huge).saturating_sub(first).saturating_mul(huge)
    });
    Mapping {
        start: format!("{:x}", m.start),
        end: format!("{:x}", m.end),
        name: m.name.clone(),
        size_bytes: m.end - m.start,
        resident_bytes: resident,
        huge_bytes,
        swapped_bytes: bytes("Swap"),
        aligned_bytes: aligned,
        reason: (huge_bytes < resident).then(|| reason::of(host, files, m, aligned, resident - huge_bytes)),
    }
}
