//! Allocations from a trace of `kmem:mm_page_alloc` and `mm_page_free`, as ftrace, `trace-cmd
//! report` or `perf script` print it.
//!
//! An allocation belongs to the process that made it, whoever frees it. Pages that are freed apart,
//! as those of a huge page that was split are, end apart. Pages that compaction moves are followed,
//! where the trace has `migrate:remove_migration_pte`. What the trace lacks is counted: frees of
//! what was allocated before it began, events that the tracer lost, processes of which it names the
//! threads alone.

mod left_out;
mod lines;
mod moves;

use super::Recording;
use super::live::Live;
use kontig_error::{AskedWrongly, Error};
use kontig_procfs::{BadText, Lost, TraceLine, lost_events};
use kontig_program::{Gfp, Order};
use kontig_workload::trace::recording::MOST_ORDER;
use left_out::LeftOut;
use lines::Lines;
use moves::Moves;
use std::io::Read;

/// No workload has more processes.
const MOST_PROCESSES: usize = 1 << 12;

/// What was read so far.
#[derive(Default)]
struct Reader {
    recording: Recording,
    left_out: LeftOut,
    live: Live,
    moves: Moves,
    began_us: Option<u64>,
    /// When the event before happened.
    last_us: u64,
}

impl Reader {
    /// Takes in an event.
    ///
    /// # Errors
    /// A field that it lacks, a time before that of the event before, or too many processes.
    fn event(&mut self, event: &TraceLine<'_>) -> Result<(), String> {
        let at_us = event.at_us.saturating_sub(*self.began_us.get_or_insert(event.at_us));
        if event.at_us < self.last_us {
            return Err("it happened before the event above: sort the lines by their times".into());
        }
        self.last_us = event.at_us;
        let copy = self.moves.next(event, &self.live)?;
        match event.event {
            "mm_page_alloc" => self.allocated(event, at_us)?,
            "mm_page_free" => self.freed(event, copy, at_us)?,
            moves::REMOVE | moves::REMOVE_HUGE => {}
            event if moves::SET.contains(&event) => {}
            // The kernel also emits mm_page_free for these pages.
            "mm_page_free_batched" => {}
            _ => self.left_out.other_events += 1,
        }
        Ok(())
    }

    fn allocated(&mut self, event: &TraceLine<'_>, at_us: u64) -> Result<(), String> {
        let (pfn, order) = (needed(event, "pfn")?, needed(event, "order")?);
        if pfn == 0 {
            self.left_out.failed += 1;
            return Ok(());
        }
        let Some(order) = u8::try_from(order).ok().filter(|order| *order <= MOST_ORDER).map(Order::new) else {
            self.left_out.too_large += 1;
            return Ok(());
        };
        let pages = 1 << order.get();
        self.left_out.missed_frees += u64::from(self.free(pfn, pages, at_us));
        let (gfp, not_taken) = Gfp::read(event.field("gfp_flags").unwrap_or("none"));
        not_taken.into_iter().for_each(|flag| self.left_out.flag(flag));
        self.left_out.threads_alone |= event.tgid.is_none();
        let pid = event.tgid.unwrap_or(event.pid);
        let place = self.recording.take(pid, at_us, order, gfp);
        self.live.take(pfn, pages, (pid, place));
        let processes = self.recording.processes.len();
        if let Some((name, _)) = self.recording.processes.get_mut(&pid)
            && (name.is_empty() || event.pid == pid)
        {
            // Threads have names of their own. And a process executes another program: its last
            // name is its own.
            event.comm.clone_into(name);
        }
        if processes > MOST_PROCESSES {
            return Err(format!("more than {MOST_PROCESSES} processes: record fewer"));
        }
        Ok(())
    }

    /// Frames are freed, of which there may be a copy at another place.
    fn freed(&mut self, event: &TraceLine<'_>, copy: Option<u64>, at_us: u64) -> Result<(), String> {
        let (pfn, pages) = (needed(event, "pfn")?, pages(needed(event, "order")?));
        if let Some(copy) = copy {
            let to = copy / u64::from(pages) * u64::from(pages);
            self.left_out.missed_frees += u64::from(self.free(to, pages, at_us));
            self.left_out.moved += u64::from(self.live.shift(pfn, pages, to));
            return Ok(());
        }
        let freed = self.free(pfn, pages, at_us);
        if event.comm.starts_with("kcompactd") {
            self.left_out.moved_away += u64::from(freed);
        } else if freed < pages {
            self.left_out.frees += 1;
        }
        Ok(())
    }

    /// Frees what is in use of these frames; how many pages that is.
    fn free(&mut self, pfn: u64, pages: u32, at_us: u64) -> u32 {
        let pieces = self.live.free(pfn, pages);
        for piece in &pieces {
            let (pid, place) = piece.of;
            self.recording.free(pid, place, piece.first, piece.pages, at_us);
        }
        pieces.iter().map(|piece| piece.pages).sum()
    }
}

/// A number of an event's fields.
fn needed(event: &TraceLine<'_>, name: &str) -> Result<u64, String> {
    event.number(name).ok_or_else(|| format!("{} without a number {name}: print the event's fields", event.event))
}

/// The pages of a block that is freed; of one larger than any, all that there can be.
fn pages(order: u64) -> u32 {
    1 << order.min(20)
}

impl Recording {
    /// Reads a trace's text.
    ///
    /// # Errors
    /// The first line that is none of a trace, or that there is nothing to replay.
    pub fn of_trace(path: &str, text: impl Read) -> Result<Recording, Error> {
        let mut reader = Reader::default();
        let mut number = 0;
        let mut lines = Lines::of(text);
        let wrong =
            |line: usize, reason: String| Error::from(AskedWrongly::Malformed { path: path.into(), line, reason });
        while let Some(line) = lines.next(path, number + 1)? {
            number += 1;
            let lost = lost_events(line);
            match lost {
                Some(Lost::Events(events)) => reader.left_out.lost += events,
                Some(Lost::Unsaid) => reader.left_out.gaps += 1,
                None => {}
            }
            if lost.is_some() {
                // The free that follows may be another's.
                reader.moves = Moves::default();
            }
            let event = TraceLine::parse(path, number, line).map_err(|e: BadText| wrong(e.line, e.reason))?;
            event.map_or(Ok(()), |event| reader.event(&event)).map_err(|reason| wrong(number, reason))?;
        }
        let Reader { mut recording, left_out, .. } = reader;
        if recording.processes.is_empty() {
            let reason = "no kmem:mm_page_alloc in it: there is nothing to replay".into();
            return Err(wrong(number.max(1), reason));
        }
        recording.notes = left_out.notes(&recording);
        Ok(recording)
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
    cat-7    [000] ..... 100.000005: mm_page_alloc: pfn=0x108 order=3 gfp_flags=GFP_KERNEL_ACCOUNT|__GFP_COMP|__GFP_NEW|__GFP_WRITE
    bash-8   [001] ..... 100.000010: mm_page_alloc: pfn=0x200 order=0 gfp_flags=GFP_NOFS|__GFP_NOFAIL|__GFP_WRITE
    bash-8   [001] ..... 100.000011: mm_page_alloc: pfn=0x0 order=9 gfp_flags=GFP_TRANSHUGE_LIGHT
    kswapd-9 [001] ..... 100.000020: mm_page_free: page=0xe1 pfn=0x101 order=0
    kswapd-9 [001] ..... 100.000021: mm_page_free: page=0xe9 pfn=0x900 order=0
CPU:1 [LOST 3 EVENTS]
    bash-8   [001] ..... 100.000030: mm_page_alloc: pfn=0x200 order=0 gfp_flags=GFP_NOFS
    bash-8   [001] ..... 100.000031: sched_switch: prev_comm=bash
";

    const THREADS: &str = "threads are named without their processes: each is replayed as a process of its own; \
                           perf script -F comm,pid,tid,cpu,time,event,trace and option record-tgid of ftrace name both";

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
                "allocations that were not freed in the recording, or not all of them: they stay to the end: 2",
                "allocations that had failed, left out: 1",
                "events that say nothing of an allocation, left out: 1",
                "flags without effect here: __GFP_WRITE",
                "flag __GFP_NOFAIL, whose effect is lacking here: 1",
                "flag __GFP_NEW, which is not known here, left out: 1",
                THREADS,
            ]
        );
    }

    /// Lines of real recordings on Linux 6.18, as trace-cmd 3.1 and perf 6.1 print them.
    const TRACE_CMD: &str = include_str!("trace-cmd.txt");
    const PERF_SCRIPT: &str = include_str!("perf-script.txt");

    /// What the process of this name allocates: the time, order and life of each.
    fn allocations(text: &str, name: &str) -> Vec<String> {
        let lines = text.split_once(&format!("name = \"{name}\"\nallocations = \"\"\"\n")).expect("a process").1;
        let lines = lines.split_once("\"\"\"").expect("an end").0.lines();
        let without_flags = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            format!("{} {} {}", words[0], words[1], words[3])
        };
        lines.map(without_flags).collect()
    }

    #[test]
    fn a_real_report_of_trace_cmd_is_read() {
        let recording = trace(TRACE_CMD).expect("a trace");
        let text = recording.workload("t.txt", "tiny-64m");
        assert_eq!(allocations(&text, "rustc 23006"), ["678215 9 17937", "679101 7 17057"]);
        assert!(text.contains(&format!("allocations: {},", TRACE_CMD.matches("mm_page_alloc:").count())), "{text}");
        let gap = "places where the tracer lost events and does not say how many: 1";
        assert!(recording.notes.iter().any(|note| note == gap), "{:?}", recording.notes);
    }

    #[test]
    fn real_text_of_perf_script_is_read() {
        let text = trace(PERF_SCRIPT).expect("a trace").workload("t.txt", "tiny-64m");
        assert_eq!(allocations(&text, "perf-exec 22834"), ["11355 0 451", "11477 0 330"]);
        assert!(text.contains(&format!("allocations: {},", PERF_SCRIPT.matches("mm_page_alloc:").count())), "{text}");
    }

    /// Lines of a real trace of ftrace on Linux 6.18: three pages that compaction moved, one of
    /// them twice, and one that it did not.
    const MOVED: &str = include_str!("moved.txt");

    #[test]
    fn pages_that_compaction_moved_are_freed_where_they_are_then() {
        let lives = |text: &str| {
            let recording = trace(text).expect("a trace");
            let lives = allocations(&recording.workload("t.txt", "tiny-64m"), "python3 663");
            (lives, recording.notes)
        };
        let (followed, notes) = lives(MOVED);
        assert_eq!(followed, ["0 0 266838", "6 0 574906", "15 0 574897", "21 0 574892"]);
        assert_eq!(notes, ["moves of pages, which are freed where they were then: 4"]);
        let without: String =
            MOVED.lines().filter(|line| !line.contains("migration")).map(|l| format!("{l}\n")).collect();
        let (ended, notes) = lives(&without);
        assert_eq!(ended, ["0 0 266838", "6 0 510534", "15 0 471067", "21 0 474810"]);
        assert_eq!(notes, ["frees of what was not allocated in the recording, left out: 4"]);
    }

    #[test]
    fn a_move_of_which_the_tracer_lost_a_part_is_none() {
        let lost: String = MOVED
            .lines()
            .map(|line| {
                if line.contains("remove_migration") {
                    format!("{line}\nCPU:1 [LOST 3 EVENTS]\n")
                } else {
                    format!("{line}\n")
                }
            })
            .collect();
        let notes = trace(&lost).expect("a trace").notes;
        let of_nothing = "frees of what was not allocated in the recording, left out: 4";
        assert!(notes.iter().any(|note| note == of_nothing), "{notes:?}");
    }

    #[test]
    fn pages_that_kcompactd_moved_nobody_knows_where_are_counted() {
        let free = "kcompactd0-9 [001] 100.000040: mm_page_free: page=0xe1 pfn=0x200 order=0\n";
        let notes = trace(&format!("{TRACE}{free}")).expect("a trace").notes;
        let moved = "pages that kcompactd moved and the trace does not say where to: they end there; \
                     migrate:remove_migration_pte says it of pages that a process maps: 1";
        assert!(notes.iter().any(|note| note == moved), "{notes:?}");
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
    fn a_text_that_is_no_trace_is_refused_with_its_line() {
        let said = |text: &str| trace(text).err().expect("refused");
        let cut = TRACE.split_once("_MOVABLE").expect("flags").0;
        assert_eq!(said(cut), "t.txt:3: the text is cut short: this line has no end");
        let back = TRACE.replace("100.000030", "100.000003");
        assert_eq!(said(&back), "t.txt:10: it happened before the event above: sort the lines by their times");
        assert!(said("nonsense\n").starts_with("t.txt:1: no line of a trace"));
        assert_eq!(said("# nothing\n"), "t.txt:1: no kmem:mm_page_alloc in it: there is nothing to replay");
        let without = "cat-7 [000] 1.0: mm_page_alloc: page=0xe1 order=0\n";
        assert_eq!(said(without), "t.txt:1: mm_page_alloc without a number pfn: print the event's fields");
        let bytes = Recording::of_trace("perf.data", &b"PERFILE2\xff\xfe\n"[..]).err().expect("refused");
        assert!(bytes.to_string().starts_with("perf.data:1: this is no text"), "{bytes}");
    }

    #[test]
    fn the_pages_of_a_huge_page_that_was_split_end_when_they_are_freed() {
        let line = |at: u32, event: &str| format!("a-7 [000] 100.{at:06}: {event}\n");
        let free = |at, pfn: u32| line(at, &format!("mm_page_free: pfn={pfn:#x} order=0"));
        let huge = line(0, "mm_page_alloc: pfn=0x10000 order=9 gfp_flags=GFP_TRANSHUGE");
        let tails: String = (1..512).map(|page| free(900, 0x10000 + page)).collect();
        let recording = trace(&format!("{huge}{}{tails}", free(100, 0x10000))).expect("a trace");
        assert!(recording.workload("t", "m").contains("\n0 9 0 1:100,511:900\n"));
        assert_eq!(recording.notes, [THREADS]);
        let of_none = trace(&format!("{huge}{}{}", free(100, 0x10005), free(101, 0x10005))).expect("a trace");
        assert!(of_none.workload("t", "m").contains("\n0 9 0 5:-,1:100,506:-\n"));
        let notes = [
            "frees of what was not allocated in the recording, left out: 1",
            "allocations that were not freed in the recording, or not all of them: they stay to the end: 1",
        ];
        assert_eq!(of_none.notes[..2], notes);
    }

    #[test]
    fn threads_whose_process_is_named_are_one_process() {
        let thread = |who: &str, pfn: u32| {
            format!("{who} [000] 1.000000: kmem:mm_page_alloc: pfn={pfn:#x} order=0 gfp_flags=GFP_KERNEL\n")
        };
        let named = trace(&[thread("worker-1 7/8", 1), thread("java 7/7", 2), thread("worker-2 7/9", 3)].concat());
        let named = named.expect("a trace");
        assert_eq!((named.processes(), named.notes.len()), (1, 1), "{:?}", named.notes);
        assert!(named.workload("t", "m").contains("name = \"java 7\""), "its first thread's name is its own");
        let alone = trace(&[thread("worker-1 8", 1), thread("java 7", 2)].concat()).expect("a trace");
        assert_eq!((alone.processes(), alone.notes[1].as_str()), (2, THREADS));
    }

    #[test]
    fn huge_pages_ask_as_most_did() {
        let of = |flags: &[&str]| {
            let line = |(i, flags): (usize, &&str)| {
                format!("a-7 [000] 1.0: mm_page_alloc: pfn={} order=9 gfp_flags={flags}\n", 512 * (i + 1))
            };
            let recording = trace(&flags.iter().enumerate().map(line).collect::<String>()).expect("a trace");
            let text = recording.workload("t", "m");
            let workload: WorkloadFile = toml::from_str(&text).expect("a workload");
            (workload.sysctls["thp.defrag"].to_string(), recording.notes[1].clone())
        };
        let (direct, light) = ("GFP_TRANSHUGE", "GFP_TRANSHUGE_LIGHT");
        let others = |defrag: &str, n| {
            format!("huge pages that the recording asked for otherwise than thp.defrag={defrag} does: {n}")
        };
        assert_eq!(of(&[direct, direct]), ("\"madvise\"".into(), THREADS.into()));
        assert_eq!(of(&["GFP_TRANSHUGE|__GFP_NORETRY|__GFP_THISNODE"]), ("\"madvise\"".into(), THREADS.into()));
        assert_eq!(of(&[light, light]), ("\"never\"".into(), THREADS.into()));
        assert_eq!(of(&[light, light, direct]), ("\"never\"".into(), others("never", 1)));
        assert_eq!(of(&["GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM"]).0, "\"defer\"");
        assert_eq!(of(&["GFP_TRANSHUGE|__GFP_NORETRY"]), ("\"madvise\"".into(), others("madvise", 1)));
    }
}
