//! The machine's whole file system, as a cpio archive ("newc") that the kernel unpacks into memory.
//!
//! Every build gives the same bytes: there are no times and no owners, and the order is fixed.

use super::experiment::Plan;
use super::guest::{Guest, is_for_builds};
use super::kernel::Kernel;
use super::module::Built;
use super::reclaim::Reclaim;
use crate::error::{RecordError, about_file};
use std::path::Path;

/// A static binary with the shell and all its tools.
const BUSYBOX: &str = "/bin/busybox";

const INIT: &str = include_str!("../../../oracle/guest/init");
const EXPERIMENTS: [(&str, &str); 10] = [
    ("trace", include_str!("../../../oracle/guest/experiments/trace.sh")),
    ("module-compact", include_str!("../../../oracle/guest/experiments/module-compact.sh")),
    ("anon-compact", include_str!("../../../oracle/guest/experiments/anon-compact.sh")),
    ("anon-proactive", include_str!("../../../oracle/guest/experiments/anon-proactive.sh")),
    ("build", include_str!("../../../oracle/guest/experiments/build.sh")),
    ("direct", include_str!("../../../oracle/guest/experiments/direct.sh")),
    ("guest", include_str!("../../../oracle/guest/experiments/guest.sh")),
    ("kcompactd", include_str!("../../../oracle/guest/experiments/kcompactd.sh")),
    ("lru", include_str!("../../../oracle/guest/experiments/lru.sh")),
    ("thp", include_str!("../../../oracle/guest/experiments/thp.sh")),
];

/// Builds the file system of one experiment.
pub(super) fn assemble(plan: &Plan, built: &Built, kernel: &Kernel) -> Result<Vec<u8>, RecordError> {
    let busybox = std::fs::read(BUSYBOX).map_err(about_file(Path::new(BUSYBOX), "read (package busybox-static)"))?;
    let mut a = Archive::default();
    for folder in ["bin", "dev", "experiments"] {
        a.folder(folder);
    }
    // The first process's console.
    a.device("dev/console", 5, 1);
    a.program("bin/busybox", &busybox);
    a.link("bin/sh", "busybox");
    let builds = matches!(plan.guest, Some(Guest::Build(_)));
    let is_for_it = |name: &str| builds || !is_for_builds(name);
    for (name, program) in built.programs.iter().filter(|(name, _)| is_for_it(name)) {
        a.program(&format!("bin/{name}"), program);
    }
    a.file("kontig.ko", &built.module);
    a.program("init", INIT.as_bytes());
    for (name, script) in EXPERIMENTS.into_iter().filter(|(name, _)| is_for_it(name)) {
        a.file(&format!("experiments/{name}.sh"), script.as_bytes());
    }
    a.file("parameters", plan.parameters().as_bytes());
    if plan.reclaim.as_ref().is_some_and(Reclaim::swaps) {
        a.file("brd.ko", &kernel.module("drivers/block/brd.ko")?);
    }
    if let Some((name, text)) = plan.guest.as_ref().and_then(Guest::file) {
        a.file(name, text.as_bytes());
    }
    if let Some(trace) = &plan.trace {
        a.file("trace.bin", trace);
    }
    Ok(a.finish())
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive being written.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, (0, 0), &[]);
    }
    fn file(&mut self, name: &str, contents: &[u8]) {
        self.entry(name, FILE, (0, 0), contents);
    }
    fn program(&mut self, name: &str, contents: &[u8]) {
        self.entry(name, PROGRAM, (0, 0), contents);
    }
    fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK, (0, 0), target.as_bytes());
    }
    fn device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, CHARACTER_DEVICE, (major, minor), &[]);
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let links = if mode == FOLDER { 2 } else { 1 };
        // Nothing here is near 4 GiB: the largest is a trace, limited where it is made.
        let (size, name_size) = (contents.len() as u32, name.len() as u32 + 1);
        // Inode, mode, uid, gid, links, mtime, size, device (2), rdevice (2), name length,
        // checksum.
        let head = [self.entries, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0]
            .map(|n| format!("{n:08x}"));
        self.bytes.extend(b"070701");
        self.bytes.extend(head.concat().bytes());
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(contents);
        self.pad();
    }

    /// Headers and contents are aligned to four bytes.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_form_the_kernel_reads() {
        let mut a = Archive::default();
        a.file("ab", b"xyz");
        let bytes = a.finish();
        let head = "070701\
                    00000001000081a40000000000000000000000010000000000000003\
                    00000000000000000000000000000000\
                    0000000300000000";
        assert_eq!(std::str::from_utf8(&bytes[..110]), Ok(head));
        // 110 bytes of head, "ab" and its end, filled up to 116; three bytes, filled up to 120.
        assert_eq!(&bytes[110..120], b"ab\0\0\0\0xyz\0");
        assert!(bytes[120..].starts_with(b"070701") && bytes.len().is_multiple_of(4));
        assert!(bytes.windows(11).any(|w| w == b"TRAILER!!!\0"));
    }

    #[test]
    fn every_experiment_finds_its_script() {
        for script in super::super::experiment::scripts() {
            assert!(EXPERIMENTS.iter().any(|(name, _)| *name == script), "{script}");
        }
    }
}
