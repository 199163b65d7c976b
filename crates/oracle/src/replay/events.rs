//! Compares compaction's tracepoints line by line: runs, their ranges and their results.

use super::outcome;
use crate::error::BadRecording;
use crate::recording::{Part, Recording, ZONE};
use kontig_mm::{Event, Listen, Memory, Pfn};

/// Compared tracepoints: the scanners' work, and the ends of runs.
const COMPARED: [&str; 6] = ["begin", "end", "isolate_migratepages", "isolate_freepages", "migratepages", "finished"];
/// Those of kernels before 4.0, which do not say where.
const COMPARED_OLD: [&str; 3] = ["isolate_migratepages", "isolate_freepages", "migratepages"];
/// Such a kernel counts a batch of none as one.
const NONE_MIGRATED: &str = "nr_migrated=0 nr_failed=0";
const PREFIX: &str = "mm_compaction_";
const NONE: &str = "no more events";

/// Events the engine must emit for [`Recorded::first_difference`].
pub(super) const LISTEN: Listen = Listen::COMPACTION.with(Listen::COMPACTION_DETAIL);

/// The kernel's compared tracepoints, in order.
pub(super) struct Recorded {
    text: String,
    /// Whether its lines are those of kernels before 4.0.
    old: bool,
    /// Whether scan counts over the kernel's own pages are compared too.
    tells_compound_pages: bool,
}

/// The first event that differs.
pub(super) struct Differing {
    /// Its number, counted from 0.
    pub at: usize,
    pub kernel: String,
    pub engine: String,
}

impl Recorded {
    /// Reads `trace.txt`; `None` if there is none, or if the kernel's buffer overflowed.
    pub fn open(rec: &Recording, part: Part) -> Result<Option<Recorded>, BadRecording> {
        if !rec.has("trace.txt") {
            return Ok(None);
        }
        let text = rec.text("trace.txt")?;
        let tells_compound_pages = rec.tells_compound_pages(part)?;
        let old = !text.contains(" range=(");
        Ok(is_whole(&text).then_some(Recorded { text, old, tells_compound_pages }))
    }

    /// The lines that are compared.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().filter_map(|line| compared(line[line.find(PREFIX)?..].trim_end()));
        lines.filter(|line| !self.old || is_told_by_old(line))
    }

    /// The first event in which engine and kernel differ, or that only one of them has.
    pub fn first_difference(&self, m: &Memory, events: &[Event]) -> Option<Differing> {
        let zone_start = m.zone(ZONE).start.get();
        let told = events.iter().filter(|e| is_compared(e)).map(|e| (e, e.to_string()));
        let mut engine = told.filter(|(_, line)| !self.old || is_told_by_old(line)).map(|(e, line)| match self.old {
            true => (e, without_range(&line)),
            false => (e, line),
        });
        let mut kernel = self.lines();
        for at in 0.. {
            let (k, e) = (kernel.next(), engine.next());
            if k.is_none() && e.is_none() {
                break;
            }
            let mut lines = [k.unwrap_or(NONE).to_string(), e.as_ref().map_or(NONE, |(_, l)| l.trim_end()).to_string()];
            if let Some((Event::IsolateMigratepages { start_pfn, .. }, _)) = e
                && !self.tells_compound_pages
                && outcome::is_slab_country(start_pfn.get().saturating_sub(zone_start))
            {
                lines.iter_mut().for_each(|l| l.truncate(l.find(" nr_scanned").unwrap_or(l.len())));
            }
            let [kernel, engine] = lines;
            if kernel != engine {
                return Some(Differing { at, kernel, engine });
            }
        }
        None
    }
}

impl Differing {
    /// The first pfn of each of its two lines.
    pub fn pfns(&self) -> Vec<Pfn> {
        [&self.kernel, &self.engine].into_iter().filter_map(|line| first_pfn(line)).collect()
    }
}

/// Number of compared events among the engine's.
pub(super) fn count(events: &[Event]) -> usize {
    events.iter().filter(|e| is_compared(e)).count()
}

fn is_compared(event: &Event) -> bool {
    event.name().strip_prefix(PREFIX).is_some_and(|name| COMPARED.contains(&name))
}

/// The event, if it is compared.
fn compared(event: &str) -> Option<&str> {
    let (name, _) = event.strip_prefix(PREFIX)?.split_once(':')?;
    COMPARED.contains(&name).then_some(event)
}

/// Whether a kernel before 4.0 tells of it, and it is not about nothing.
fn is_told_by_old(line: &str) -> bool {
    let name = line.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':')).map_or("", |(name, _)| name);
    COMPARED_OLD.contains(&name) && !line.trim_end().ends_with(NONE_MIGRATED)
}

/// A line without the place that it names.
fn without_range(line: &str) -> String {
    match (line.find("range=("), line.find(") ")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &line[..from], &line[to + 2..]),
        _ => line.to_string(),
    }
}

/// Whether the buffer kept all events: `entries-in-buffer/entries-written: 6147/6147`.
fn is_whole(text: &str) -> bool {
    let numbers = text.lines().find_map(|l| l.strip_prefix("# entries-in-buffer/entries-written:"));
    let kept = numbers.and_then(|n| n.split_whitespace().next()?.split_once('/'));
    kept.is_none_or(|(kept, written)| kept == written)
}

/// The first pfn an event's line names.
fn first_pfn(line: &str) -> Option<Pfn> {
    let digits = line.split("0x").nth(1)?.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    u32::from_str_radix(digits, 16).ok().map(Pfn::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_too_small_is_not_compared() {
        assert!(is_whole("# tracer: nop\n#\n# entries-in-buffer/entries-written: 6147/6147   #P:1\n"));
        assert!(!is_whole("# tracer: nop\n#\n# entries-in-buffer/entries-written: 100/6147   #P:1\n"));
    }

    #[test]
    fn old_kernels_lines_name_no_place() {
        let line = "mm_compaction_isolate_freepages: range=(0x17fe00 ~ 0x180000) nr_scanned=512 nr_taken=1";
        assert_eq!(without_range(line), "mm_compaction_isolate_freepages: nr_scanned=512 nr_taken=1");
        assert!(is_told_by_old(line) && !is_told_by_old("mm_compaction_finished: node=1"));
        assert!(!is_told_by_old("mm_compaction_migratepages: nr_migrated=0 nr_failed=0 "));
    }

    #[test]
    fn an_event_leads_to_its_place() {
        let line = "mm_compaction_isolate_freepages: range=(0x17fe00 ~ 0x180000) nr_scanned=512 nr_taken=1";
        assert_eq!(first_pfn(line), Some(Pfn::new(0x17_fe00)));
        assert_eq!(first_pfn(NONE), None);
    }
}
