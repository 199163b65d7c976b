//! Recordings of a real host as workloads: allocations from a trace of `kmem:mm_page_alloc` and
//! `mm_page_free`, or a process's memory from copies of its `/proc/PID/smaps`.
//!
//! An allocation belongs to the process that made it, whoever frees it. What a recording cannot say
//! is counted, and said: frees of what was allocated before it began, events that the tracer lost,
//! flags that are not known here.

use crate::error::{AskedWrongly, LabError};
use kontig_procfs::{BadText, Smaps, TraceLine, lost_events};
use kontig_program::Gfp;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};

/// A recording, ready to be written as a workload.
#[derive(Default)]
pub struct Recording {
    /// By the process's number, its name and allocations.
    processes: BTreeMap<u32, (String, Vec<Allocation>)>,
    /// The sets of flags that allocations name.
    flags: Vec<String>,
    /// Remarks on what could not be taken over, a line each.
    pub notes: Vec<String>,
}

struct Allocation {
    at_us: u64,
    order: u8,
    /// Its place among the sets of flags.
    flags: usize,
    lives_us: Option<u64>,
}

/// No line of a trace is longer.
const LONGEST: u64 = 64 << 10;
/// No workload has more processes.
const MOST_PROCESSES: usize = 1 << 12;

/// Flags that decide nothing in the engine: who pays for a page, and how it is checked.
const WITHOUT_EFFECT: [&str; 10] = [
    "__GFP_ACCOUNT",
    "__GFP_WRITE",
    "__GFP_NOLOCKDEP",
    "__GFP_ZEROTAGS",
    "__GFP_SKIP_ZERO",
    "__GFP_SKIP_KASAN",
    "__GFP_SKIP_KASAN_POISON",
    "__GFP_SKIP_KASAN_UNPOISON",
    "__GFP_NO_OBJ_EXT",
    "__GFP_CMA",
];

/// The kernel's names for sets that the engine has no name for.
const SETS: [(&str, &str); 9] = [
    ("GFP_KERNEL_ACCOUNT", "GFP_KERNEL"),
    ("GFP_USER", "GFP_KERNEL|__GFP_HARDWALL"),
    ("GFP_HIGHUSER", "GFP_KERNEL|__GFP_HARDWALL|__GFP_HIGHMEM"),
    ("GFP_NOFS", "__GFP_DIRECT_RECLAIM|__GFP_KSWAPD_RECLAIM|__GFP_IO"),
    ("GFP_NOIO", "__GFP_DIRECT_RECLAIM|__GFP_KSWAPD_RECLAIM"),
    ("GFP_NOWAIT", "__GFP_KSWAPD_RECLAIM"),
    ("__GFP_RECLAIM", "__GFP_DIRECT_RECLAIM|__GFP_KSWAPD_RECLAIM"),
    ("GFP_DMA", "__GFP_DMA"),
    ("GFP_DMA32", "__GFP_DMA32"),
];

/// A set of flags as a trace prints it, and the names that are not known here.
fn flags(text: &str) -> (Gfp, Vec<&str>) {
    let mut unknown = Vec::new();
    let mut gfp = Gfp::NONE;
    for word in text.split('|').map(str::trim).filter(|word| !word.is_empty() && !WITHOUT_EFFECT.contains(word)) {
        let name = SETS.iter().find(|(name, _)| *name == word).map_or(word, |(_, flags)| flags);
        match Gfp::parse(name) {
            Some(flags) => gfp = gfp | flags,
            None => unknown.push(word),
        }
    }
    (gfp, unknown)
}

/// Times and counts of things that were left out.
#[derive(Default)]
struct LeftOut {
    lost: u64,
    failed: u64,
    frees: u64,
    missed_frees: u64,
    other_events: u64,
    too_large: u64,
    unknown: BTreeMap<String, u64>,
}

impl LeftOut {
    fn notes(&self) -> Vec<String> {
        let counted = [
            (self.lost, "events that the tracer lost, with what they allocated or freed"),
            (self.frees, "frees of what was not allocated in the recording, left out"),
            (self.missed_frees, "pages allocated again without a free, taken for freed then"),
            (self.failed, "allocations that had failed, left out"),
            (self.too_large, "allocations of an order above 10, which the engine lacks, left out"),
            (self.other_events, "events other than mm_page_alloc and mm_page_free, left out"),
        ];
        let counted = counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what}: {n}"));
        let unknown =
            self.unknown.iter().map(|(name, n)| format!("flag {name}, which is not known here, left out: {n}"));
        counted.chain(unknown).collect()
    }
}

impl Recording {
    /// Reads a trace's text, as ftrace, `trace-cmd report` or `perf script` print it.
    ///
    /// # Errors
    /// The first line that is none of a trace, or that there is nothing to replay.
    pub fn of_trace(path: &str, text: impl Read) -> Result<Recording, LabError> {
        let mut recording = Recording::default();
        let mut left_out = LeftOut::default();
        let mut live: BTreeMap<u64, (u32, usize)> = BTreeMap::new();
        let (mut began, mut number) = (None, 0);
        let mut lines = Lines { from: BufReader::new(text), bytes: Vec::new() };
        let wrong =
            |line: usize, reason: String| LabError::from(AskedWrongly::Malformed { path: path.into(), line, reason });
        while let Some(line) = lines.next(path, number + 1)? {
            number += 1;
            left_out.lost += lost_events(line).unwrap_or(0);
            let parsed = TraceLine::parse(path, number, line).map_err(|e: BadText| wrong(e.line, e.reason))?;
            let Some(event) = parsed else { continue };
            let needed = |name: &str| {
                let missing =
                    || wrong(number, format!("{} without a number {name}: print the event's fields", event.event));
                event.number(name).ok_or_else(missing)
            };
            let began_us = *began.get_or_insert(event.at_us);
            let at_us = event.at_us.saturating_sub(began_us);
            match event.event {
                "mm_page_alloc" => {
                    let (pfn, order) = (needed("pfn")?, needed("order")?);
                    if pfn == 0 {
                        left_out.failed += 1;
                        continue;
                    }
                    if order > 10 {
                        left_out.too_large += 1;
                        continue;
                    }
                    if let Some((pid, place)) = live.remove(&pfn) {
                        left_out.missed_frees += 1;
                        recording.end(pid, place, at_us);
                    }
                    let (gfp, unknown) = flags(event.field("gfp_flags").unwrap_or_default());
                    unknown.into_iter().for_each(|name| *left_out.unknown.entry(name.into()).or_default() += 1);
                    let place = recording.take(event.pid, event.comm, at_us, order as u8, &gfp.to_string());
                    if recording.processes.len() > MOST_PROCESSES {
                        return Err(wrong(number, format!("more than {MOST_PROCESSES} processes: record fewer")));
                    }
                    live.insert(pfn, (event.pid, place));
                }
                "mm_page_free" => match live.remove(&needed("pfn")?) {
                    Some((pid, place)) => recording.end(pid, place, at_us),
                    None => left_out.frees += 1,
                },
                // The kernel tells of these pages twice: this is the other time.
                "mm_page_free_batched" => {}
                _ => left_out.other_events += 1,
            }
        }
        if recording.processes.is_empty() {
            let reason = "no kmem:mm_page_alloc in it: there is nothing to replay".into();
            return Err(wrong(number.max(1), reason));
        }
        recording.notes = left_out.notes();
        Ok(recording)
    }

    /// Reads copies of one process's smaps, taken every `every_s` seconds, as memory that grows and
    /// shrinks: huge pages as such, other anonymous memory in pieces of 1 MiB.
    ///
    /// # Errors
    /// The first line that is none of smaps, or that there is no memory in them.
    pub fn of_smaps(copies: &[(String, String)], every_s: f64) -> Result<Recording, LabError> {
        /// Order, flags and KiB of the pieces that memory is taken in.
        const PIECES: [(u8, &str, u64); 2] = [(9, "GFP_TRANSHUGE", 2048), (8, "GFP_HIGHUSER_MOVABLE", 1024)];
        let mut recording = Recording::default();
        let mut held: [Vec<usize>; 2] = Default::default();
        let mut of_files = 0;
        for ((path, text), i) in copies.iter().zip(0u32..) {
            let malformed = |e: BadText| AskedWrongly::Malformed { path: e.file, line: e.line, reason: e.reason };
            let smaps = Smaps::parse(path, text).map_err(malformed)?;
            let sum = |name: &str| smaps.mappings.iter().filter_map(|mapping| mapping.kb(name)).sum::<u64>();
            let (anonymous, huge) = (sum("Anonymous"), sum("AnonHugePages"));
            of_files = of_files.max(sum("Rss").saturating_sub(anonymous));
            let at_us = (f64::from(i) * every_s * 1e6).round() as u64;
            let kib = [huge, anonymous.saturating_sub(huge)];
            for ((held, kib), (order, flags, piece)) in held.iter_mut().zip(kib).zip(PIECES) {
                let wanted = (kib + piece / 2) / piece;
                while held.len() as u64 > wanted {
                    held.pop().into_iter().for_each(|place| recording.end(0, place, at_us));
                }
                while (held.len() as u64) < wanted {
                    held.push(recording.take(0, "process", at_us, order, flags));
                }
            }
        }
        if recording.processes.is_empty() {
            let (path, reason) = (copies.first().map_or("", |(path, _)| path).to_owned(), "no anonymous memory in it");
            return Err(AskedWrongly::Malformed { path, line: 1, reason: reason.into() }.into());
        }
        recording.notes = vec![
            "sizes are rounded: huge pages to 2 MiB, other anonymous memory to 1 MiB; what grew last shrinks first"
                .into(),
        ];
        if of_files > 0 {
            recording.notes.push(format!("up to {} MiB of files in its memory are left out", of_files.div_ceil(1024)));
        }
        Ok(recording)
    }

    /// Adds an allocation of a process; its place among that process's.
    fn take(&mut self, pid: u32, comm: &str, at_us: u64, order: u8, flags: &str) -> usize {
        let known = self.flags.iter().position(|known| known == flags);
        let flags = known.unwrap_or_else(|| {
            self.flags.push(flags.into());
            self.flags.len() - 1
        });
        let (name, allocations) = self.processes.entry(pid).or_default();
        if name != comm {
            // A process executes another program: its last name is its own.
            comm.clone_into(name);
        }
        allocations.push(Allocation { at_us, order, flags, lives_us: None });
        allocations.len() - 1
    }

    fn end(&mut self, pid: u32, place: usize, at_us: u64) {
        let of = self.processes.get_mut(&pid).and_then(|(_, allocations)| allocations.get_mut(place));
        if let Some(allocation) = of {
            allocation.lives_us = Some(at_us - allocation.at_us);
        }
    }

    /// The allocations, of all processes.
    pub fn allocations(&self) -> usize {
        self.processes.values().map(|(_, allocations)| allocations.len()).sum()
    }

    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The text of the workload's file.
    pub fn workload(&self, of: &str, machine: &str) -> String {
        let quoted = |text: &str| toml::Value::String(text.into()).to_string();
        let summary =
            format!("as recorded in {of}; allocations: {}, processes: {}", self.allocations(), self.processes());
        let mut text = format!("# Written by 'kontig workload' from {}.\n", of.escape_debug());
        self.notes.iter().for_each(|note| text += &format!("# {}\n", note.escape_debug()));
        text += &format!(
            "summary = {}\nmachine = {}\nsysctls = {{ \"thp.enabled\" = \"madvise\" }}\n\n\
             [[phase]]\nname = \"measure\"\nmeasured = true\n\n\
             [[phase.task]]\nname = \"recorded\"\ncopies = {}\n\n\
             [phase.task.run]\nkind = \"trace\"\nflags = {}\n",
            quoted(&summary),
            quoted(machine),
            self.processes(),
            toml::Value::from(self.flags.clone()),
        );
        for (pid, (name, allocations)) in &self.processes {
            let name = if *pid == 0 { name.clone() } else { format!("{name} {pid}") };
            text += &format!("\n[[phase.task.run.process]]\nname = {}\nallocations = \"\"\"\n", quoted(&name));
            for Allocation { at_us, order, flags, lives_us } in allocations {
                let lives = lives_us.map_or("-".into(), |us| us.to_string());
                // Writing to a text cannot fail.
                let _ = writeln!(text, "{at_us} {order} {flags} {lives}");
            }
            text += "\"\"\"\n";
        }
        text
    }
}

/// Lines of a text that may be large, none longer than it may be.
struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self, path: &str, number: usize) -> Result<Option<&str>, LabError> {
        self.bytes.clear();
        let unreadable = |e: std::io::Error| AskedWrongly::Unreadable { path: path.into(), reason: e.to_string() };
        let got = self.from.by_ref().take(LONGEST).read_until(b'\n', &mut self.bytes).map_err(unreadable)?;
        let wrong = |reason: &str| AskedWrongly::Malformed { path: path.into(), line: number, reason: reason.into() };
        if got as u64 == LONGEST {
            return Err(wrong("longer than 64 KiB, which no line of a trace is").into());
        }
        match std::str::from_utf8(&self.bytes) {
            _ if got == 0 => Ok(None),
            Ok(line) => Ok(Some(line.trim_end_matches('\n'))),
            Err(_) => {
                Err(wrong("this is no text: write the recording as text, with perf script or trace-cmd report").into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_workload::WorkloadFile;

    const TRACE: &str = "\
# tracer: nop
# entries-in-buffer/entries-written: 10/12   #P:2
    cat-7    [000] ..... 100.000000: mm_page_alloc: pfn=0x101 order=0 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO
    cat-7    [000] ..... 100.000005: mm_page_alloc: pfn=0x108 order=3 gfp_flags=GFP_KERNEL_ACCOUNT|__GFP_COMP|__GFP_NEW
    bash-8   [001] ..... 100.000010: mm_page_alloc: pfn=0x200 order=0 gfp_flags=GFP_NOFS
    bash-8   [001] ..... 100.000011: mm_page_alloc: pfn=0x0 order=9 gfp_flags=GFP_TRANSHUGE_LIGHT
    kswapd-9 [001] ..... 100.000020: mm_page_free: page=0xe1 pfn=0x101 order=0
    kswapd-9 [001] ..... 100.000021: mm_page_free: page=0xe9 pfn=0x900 order=0
CPU:1 [LOST 3 EVENTS]
    bash-8   [001] ..... 100.000030: mm_page_alloc: pfn=0x200 order=0 gfp_flags=GFP_NOFS
    bash-8   [001] ..... 100.000031: sched_switch: prev_comm=bash
";

    fn trace(text: &str) -> Result<Recording, String> {
        Recording::of_trace("t.txt", text.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn an_allocation_is_its_processs_whoever_frees_it() {
        let text = trace(TRACE).expect("a trace").workload("t.txt", "tiny-64m");
        let process = |name: &str, lines: &str| {
            format!("[[phase.task.run.process]]\nname = \"{name}\"\nallocations = \"\"\"\n{lines}\"\"\"\n")
        };
        assert!(text.contains(&process("cat 7", "0 0 0 20\n5 3 1 -\n")), "{text}");
        assert!(text.contains(&process("bash 8", "10 0 2 20\n30 0 2 -\n")), "{text}");
        let workload: WorkloadFile = toml::from_str(&text).expect("a workload");
        assert_eq!(workload.workload.validate(), Ok(()));
        assert_eq!(workload.summary, "as recorded in t.txt; allocations: 4, processes: 2");
    }

    #[test]
    fn missing_and_unknown_parts_are_counted_and_said() {
        let notes = trace(TRACE).expect("a trace").notes;
        assert_eq!(
            notes,
            [
                "events that the tracer lost, with what they allocated or freed: 5",
                "frees of what was not allocated in the recording, left out: 1",
                "pages allocated again without a free, taken for freed then: 1",
                "allocations that had failed, left out: 1",
                "events other than mm_page_alloc and mm_page_free, left out: 1",
                "flag __GFP_NEW, which is not known here, left out: 1",
            ]
        );
    }

    #[test]
    fn text_of_perf_script_gives_the_same_workload() {
        let perf: String = TRACE
            .replace("mm_page", "kmem:mm_page")
            .replace("cat-7 ", "cat 7 ")
            .replace("bash-8 ", "bash 8 ")
            .replace("kswapd-9 ", "kswapd 9 ")
            .replace(" .....", "")
            .replace("sched_switch", "sched:sched_switch");
        let workload = |text: &str| trace(text).expect("a trace").workload("t.txt", "tiny-64m");
        assert_eq!(workload(&perf), workload(TRACE));
    }

    #[test]
    fn the_kernels_sets_of_flags_are_known() {
        for set in SETS.iter().map(|(name, _)| *name).chain(["GFP_ATOMIC", "GFP_TRANSHUGE", "GFP_HIGHUSER_MOVABLE"]) {
            let text = format!("{set}|__GFP_ACCOUNT");
            let (gfp, unknown) = flags(&text);
            assert!(gfp != Gfp::NONE && unknown.is_empty(), "{set}");
        }
        assert_eq!(flags("GFP_KERNEL|0x8000000"), (Gfp::KERNEL, vec!["0x8000000"]));
    }

    #[test]
    fn a_text_that_is_no_trace_is_refused_with_its_line() {
        let said = |text: &str| trace(text).err().expect("refused");
        assert!(said("nonsense\n").starts_with("t.txt:1: no line of a trace"));
        assert_eq!(said("# nothing\n"), "t.txt:1: no kmem:mm_page_alloc in it: there is nothing to replay");
        let without = "cat-7 [000] 1.0: mm_page_alloc: page=0xe1 order=0\n";
        assert_eq!(said(without), "t.txt:1: mm_page_alloc without a number pfn: print the event's fields");
        let bytes = Recording::of_trace("perf.data", &b"PERFILE2\xff\xfe\n"[..]).err().expect("refused");
        assert!(bytes.to_string().starts_with("perf.data:1: this is no text"), "{bytes}");
    }

    fn smaps(anonymous: u64, huge: u64) -> String {
        format!(
            "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \nRss: {} kB\nAnonymous: {anonymous} kB\n\
             AnonHugePages: {huge} kB\n",
            anonymous + 3000
        )
    }

    #[test]
    fn memory_of_smaps_grows_and_shrinks_at_its_times() {
        let copies = [(5000, 4096), (8200, 4096), (2100, 2048)];
        let copies: Vec<(String, String)> =
            copies.iter().map(|(anonymous, huge)| ("s".into(), smaps(*anonymous, *huge))).collect();
        let recording = Recording::of_smaps(&copies, 2.0).map_err(|e| e.to_string()).expect("smaps");
        let text = recording.workload("smaps", "tiny-64m");
        let lines = "0 9 0 4000000\n0 9 0 -\n0 8 1 4000000\n2000000 8 1 2000000\n2000000 8 1 2000000\n\
                     2000000 8 1 2000000\n";
        // What grew last shrinks first.
        let lines = lines.replacen("0 9 0 4000000\n0 9 0 -", "0 9 0 -\n0 9 0 4000000", 1);
        assert!(text.contains(&format!("\"\"\"\n{lines}\"\"\"")), "{text}");
        assert!(text.contains("\nname = \"process\"\n"), "{text}");
        assert_eq!(recording.notes[1], "up to 3 MiB of files in its memory are left out");
        let none = Recording::of_smaps(&[("s".into(), smaps(0, 0))], 2.0).err().expect("refused");
        assert_eq!(none.to_string(), "s:1: no anonymous memory in it");
    }
}
