//! Monitors: files that MMTests reads every ten seconds while a benchmark runs, and its trace.

use super::epoch;
use crate::ftrace::Prefix;
use flate2::Compression;
use flate2::write::GzEncoder;
use kontig_mm::Event;
use kontig_sim::{Machine, Traced};
use std::fmt::Write as _;
use std::io::Write;

const INTERVAL_NS: u64 = 10_000_000_000;

/// Text is compressed in blocks of this size, bytes.
const BLOCK: usize = 1 << 20;

/// The monitors' file names.
pub(super) const NAMES: [&str; 3] = ["proc-vmstat", "proc-buddyinfo", "ftrace"];

#[derive(Clone, Default)]
pub(crate) struct Monitors {
    next_ns: u64,
    vmstat: Packed,
    buddyinfo: Packed,
    trace: Packed,
}

impl Monitors {
    /// Reads the files if ten seconds have passed.
    pub(crate) fn look(&mut self, m: &Machine) {
        if m.now() < self.next_ns {
            return;
        }
        self.next_ns = (m.now() / INTERVAL_NS + 1) * INTERVAL_NS;
        let time = epoch(m.now());
        self.vmstat.add(format_args!("time: {time}\n{}", super::vmstat(m)));
        self.buddyinfo.add(format_args!("time: {time}\n{}", kontig_procfs::BuddyInfo::of(m.memory())));
    }

    pub(crate) fn note(&mut self, events: &[Traced]) {
        for traced in events {
            let mut text = traced.event.to_string();
            if let Event::PageAllocExtfrag { pfn, .. } = traced.event {
                // Printed in the format of old kernels: MMTests reads no other.
                text = text.replacen(&format!("pfn={pfn}"), &format!("page=0 pfn={}", pfn.get()), 1);
            }
            self.trace.add(format_args!("{}{text}\n", Prefix { traced, epoch: super::BOOT }));
        }
    }

    /// The files of an iteration that has ended, by name. The next one begins.
    pub(super) fn finish(&mut self) -> [(&'static str, Vec<u8>); 3] {
        let Monitors { vmstat, buddyinfo, trace, .. } = std::mem::take(self);
        let mut files = [vmstat, buddyinfo, trace].map(Packed::finish).into_iter();
        NAMES.map(|name| (name, files.next().unwrap_or_default()))
    }
}

/// Text compressed as it comes, block by block: concatenated gzip members are one valid file.
#[derive(Clone, Default)]
struct Packed {
    packed: Vec<u8>,
    text: String,
}

impl Packed {
    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing into memory cannot fail.
        let _ = self.text.write_fmt(text);
        if self.text.len() >= BLOCK {
            self.pack();
        }
    }

    fn pack(&mut self) {
        self.packed.extend(gzip(self.text.as_bytes()));
        self.text.clear();
    }

    fn finish(mut self) -> Vec<u8> {
        self.pack();
        self.packed
    }
}

/// Packs bytes as `gzip` would, without a time or a name.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory cannot fail.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}
