//! `/sys/kernel/tracing/trace`: a line per event, after a head of comments.
//!
//! A line is `COMM-PID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: TEXT`. The flags may be missing,
//! and a process number in parentheses may stand before the CPU (`record-tgid`). The text of `perf
//! script` is read, too: there the line begins with `COMM TID`, or with `COMM PID/TID` if these
//! fields are asked for, and the event with its system, `kmem:`; and `trace-cmd report`, which
//! begins each line of a buffer of its own with its name. The calls that led to an event (`perf
//! script -g`, ftrace's option `stacktrace`) stand below it, a line each, and are no events.

use crate::error::BadText;

/// An event of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceLine<'a> {
    pub comm: &'a str,
    /// The number of the thread, which the kernel's lines call a process's.
    pub pid: u32,
    /// The number of its process, where the line has it.
    pub tgid: Option<u32>,
    /// Microseconds since the trace's clock began.
    pub at_us: u64,
    pub event: &'a str,
    /// The fields as the kernel prints them.
    pub text: &'a str,
}

impl<'a> TraceLine<'a> {
    /// Parses a line. `None` for an empty line, a comment, a note about lost events, a call that
    /// led to the event above, and the number of CPUs with which trace-cmd's report begins.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(file: &str, number: usize, line: &'a str) -> Result<Option<TraceLine<'a>>, BadText> {
        let line = without_buffer(line);
        if line.trim().is_empty() || line.starts_with('#') || line.starts_with("CPU:") || line.starts_with("cpus=") {
            return Ok(None);
        }
        let found = TraceLine::fields(line);
        // A task may have a name like an address.
        if found.is_none() && is_call(line) {
            return Ok(None);
        }
        let reason = || format!("no line of a trace, 'COMM-PID [CPU] FLAGS TIME: EVENT: TEXT': {}", start(line));
        found.map(Some).ok_or_else(|| BadText { file: file.into(), line: number, reason: reason() })
    }

    fn fields(line: &'a str) -> Option<TraceLine<'a>> {
        // A comm may hold nearly everything, brackets included; the CPU is digits alone.
        let cpu = line.match_indices(" [").find_map(|(at, _)| {
            let (inside, rest) = line[at + 2..].split_once("] ")?;
            let is_cpu = !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_digit());
            is_cpu.then_some((&line[..at], rest))
        });
        let (task, rest) = cpu?;
        let task = task.trim();
        let (task, group) = task.split_once(" (").map_or((task, ""), |(task, group)| (task.trim_end(), group));
        let group = group.trim_end_matches(')').trim().parse().ok();
        let ftrace = task.rsplit_once('-').and_then(|(comm, pid)| Some((comm, pid.trim().parse().ok()?, group)));
        let perf = || {
            let (comm, number) = task.rsplit_once(' ')?;
            match number.split_once('/') {
                Some((process, thread)) => Some((comm.trim_end(), thread.parse().ok()?, process.parse().ok())),
                None => Some((comm.trim_end(), number.parse().ok()?, None)),
            }
        };
        let (comm, pid, tgid) = ftrace.or_else(perf)?;
        let (time, rest) = rest.split_once(": ")?;
        let (s, us) = time.split_whitespace().last()?.split_once('.')?;
        let (event, text) = rest.trim_start().split_once(':')?;
        // After a system's name there is no blank.
        let (event, text) = match text.split_once(':') {
            Some(of_system) if !text.starts_with(' ') => of_system,
            _ => (event, text),
        };
        let at_us = s.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(format!("{us:0<6.6}").parse().ok()?)?;
        Some(TraceLine { comm, pid, tgid, at_us, event, text: text.trim_start() })
    }

    /// A field of the text, `NAME=VALUE`.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        let value = |word: &'a str| word.strip_prefix(name)?.strip_prefix('=');
        self.text.split([' ', ',']).find_map(value)
    }

    /// A field that is a number, decimal or hexadecimal.
    pub fn number(&self, name: &str) -> Option<u64> {
        let value = self.field(name)?;
        match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => value.parse().ok(),
        }
    }
}

/// Events that a tracer has lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    Events(u64),
    /// It does not know how many.
    Unsaid,
}

/// Events that the tracer says it has lost at this line: `CPU:3 [LOST 27 EVENTS]`; of trace-cmd
/// `CPU:3 [27 EVENTS DROPPED]` or, where it does not know how many, `CPU:3 [EVENTS DROPPED]`; or in
/// the head, those that later ones replaced, `# entries-in-buffer/entries-written: 17000/25218
/// #P:2`.
pub fn lost_events(line: &str) -> Option<Lost> {
    let line = without_buffer(line);
    if let Some(entries) = line.strip_prefix("# entries-in-buffer/entries-written: ") {
        let (there, written) = entries.split_whitespace().next()?.split_once('/')?;
        return written
            .parse::<u64>()
            .ok()?
            .checked_sub(there.parse().ok()?)
            .filter(|lost| *lost > 0)
            .map(Lost::Events);
    }
    let (_, note) = line.strip_prefix("CPU:")?.split_once('[')?;
    let counts = note.contains("LOST") || note.contains("DROPPED");
    counts.then(|| note.split(' ').find_map(|word| word.parse().ok()).map_or(Lost::Unsaid, Lost::Events))
}

/// A line without the name of its buffer, `mine: `. Names of tasks are aligned to the right, so one
/// with a colon, `tmux: server`, has blanks before it.
fn without_buffer(line: &str) -> &str {
    let name = line.split(' ').next().unwrap_or_default();
    if name.len() > 1 && name.ends_with(':') { line[name.len()..].trim_start() } else { line }
}

/// Whether the line is of a stack: of perf `ffffffff8129e5c1 compact_zone+0x121
/// ([kernel.kallsyms])`, indented; of ftrace `=> compact_zone`, which trace-cmd does not indent,
/// below a line with `<stack trace>` in place of an event.
fn is_call(line: &str) -> bool {
    let call = line.trim_start();
    let (address, rest) = call.split_once(' ').unwrap_or((call, ""));
    let is_address = (1..=16).contains(&address.len()) && address.bytes().all(|b| b.is_ascii_hexdigit());
    // A broken stack of a program has any small number.
    let is_named = address.len() >= 4 || rest.starts_with("[unknown]") || rest.ends_with(')');
    let of_perf = call.len() < line.len() && is_address && is_named;
    of_perf || call.starts_with("=> ") || [": <stack trace>", ": <user stack trace>"].iter().any(|n| line.ends_with(n))
}

/// The start of a line, for a message.
fn start(line: &str) -> String {
    line.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> TraceLine<'_> {
        TraceLine::parse("trace", 1, line).expect("a line of a trace").expect("an event")
    }

    #[test]
    fn lines_of_several_kernels_are_read() {
        let old =
            "             cc1-4711  [002] ....    12.345678: mm_compaction_begin: zone_start=4096 zone_end=720896";
        let TraceLine { comm, pid, at_us, event, .. } = parsed(old);
        assert_eq!((comm, pid, at_us, event), ("cc1", 4711, 12_345_678, "mm_compaction_begin"));
        assert_eq!(parsed(old).number("zone_end"), Some(720_896));
        let new = "    kworker/0:1 [x]-12      (     12) [000] d..1.     1.5: mm_compaction_end: zone_start=0x1000, \
                   mode=sync";
        assert_eq!((parsed(new).comm, parsed(new).pid, parsed(new).at_us), ("kworker/0:1 [x]", 12, 1_500_000));
        assert_eq!((parsed(old).tgid, parsed(new).tgid), (None, Some(12)));
        assert_eq!(parsed(&new.replace("(     12)", "(-------)")).tgid, None, "the kernel does not know it");
        assert_eq!((parsed(new).number("zone_start"), parsed(new).field("mode")), (Some(0x1000), Some("sync")));
        assert_eq!(parsed(new).field("zone"), None);
    }

    #[test]
    fn lines_of_perf_script_are_read() {
        let line = "kworker/0:1-eve  4711 [002]  1234.567890:         kmem:mm_page_free: page=0xff pfn=0x12 order=3";
        let TraceLine { comm, pid, at_us, event, .. } = parsed(line);
        assert_eq!((comm, pid, at_us, event), ("kworker/0:1-eve", 4711, 1_234_567_890, "mm_page_free"));
        assert_eq!(parsed(line).number("pfn"), Some(18));
        let with_thread = "Web Content  4711/4712  [002]  1.5: kmem:mm_page_free: page=0xff pfn=0x12 order=3";
        let TraceLine { comm, pid, tgid, .. } = parsed(with_thread);
        assert_eq!((comm, pid, tgid), ("Web Content", 4712, Some(4711)));
        assert_eq!(parsed(line).tgid, None, "perf script prints the thread alone");
    }

    #[test]
    fn the_calls_below_an_event_are_none() {
        for line in [
            "\tffffffff8129e5c1 compact_zone+0x121 ([kernel.kallsyms])",
            "            7f2a5c5a1b10 [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)",
            "\t          401136 main+0x1f (/tmp/a b.out)",
            "\t               0 [unknown] ([unknown])",
            " => compact_zone_order",
            "=> compact_zone (ffffffff8129e5c1)",
            "      kcompactd0-58 [001] .....   1.500000: <stack trace>",
            "            java-58 [001] .....   1.500000: <user stack trace>",
        ] {
            assert_eq!(TraceLine::parse("trace", 1, line), Ok(None), "{line}");
        }
        let named_so = "            cafe  4711 [002]  1.5: kmem:mm_page_free: pfn=0x12 order=3";
        assert_eq!(parsed(named_so).comm, "cafe");
    }

    #[test]
    fn lines_of_a_buffer_of_trace_cmds_own_are_read() {
        let line = "kx:     k14-21133 [001] 51333.936775: mm_page_free:     page=0x47c340 pfn=0x47c340 order=0";
        let TraceLine { comm, pid, at_us, event, .. } = parsed(line);
        assert_eq!((comm, pid, at_us, event), ("k14", 21_133, 51_333_936_775, "mm_page_free"));
        assert_eq!(parsed("    tmux: server-7 [001] 1.5: mm_page_free: pfn=0x1").comm, "tmux: server");
        assert_eq!(TraceLine::parse("trace", 1, "kx: CPU:0 [EVENTS DROPPED]"), Ok(None));
    }

    #[test]
    fn a_tracer_says_what_it_lost() {
        let lost = ["CPU:3 [LOST 27 EVENTS]", "CPU:0 [12 EVENTS DROPPED]", "kx: CPU:0 [EVENTS DROPPED]"];
        assert_eq!(lost.map(lost_events), [Some(Lost::Events(27)), Some(Lost::Events(12)), Some(Lost::Unsaid)]);
        let head = "# entries-in-buffer/entries-written: ";
        assert_eq!(
            ["17000/25218   #P:2", "5/5   #P:2"].map(|n| lost_events(&format!("{head}{n}"))),
            [Some(Lost::Events(8218)), None]
        );
        assert_eq!(["cpus=8", "##### CPU 2 buffer started ####"].map(lost_events), [None, None]);
    }

    #[test]
    fn comments_and_notes_are_no_events_and_anything_else_is_refused_with_its_line() {
        for line in ["# tracer: nop", "", "CPU:3 [LOST 27 EVENTS]", "cpus=8"] {
            assert_eq!(TraceLine::parse("trace", 1, line), Ok(None));
        }
        for line in ["ffffffff8129e5c1 compact_zone", "  addresses of calls", "   root:x:0:0"] {
            TraceLine::parse("trace", 7, line).expect_err("no trace");
        }
        let refused = TraceLine::parse("trace", 7, "root:x:0:0").expect_err("no trace");
        assert_eq!((refused.file.as_str(), refused.line), ("trace", 7));
    }
}
