//! Compares event counters and the zone's final state after a replay.

use super::{Care, Compared, Replayed};
use crate::difference::{At, Difference, Section};
use crate::error::BadRecording;
use crate::recording::{Part, Recording, ZONE};
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{Memory, VmEvent};
use kontig_procfs::VmStat;

/// Compared counters. Only the experiment allocates from node 1, reclaims or compacts on the
/// recorded machine, so their growth is its own.
const COUNTERS: [VmEvent; 11] = [
    VmEvent::AllocstallNormal,
    VmEvent::AllocstallMovable,
    VmEvent::Pageoutrun,
    VmEvent::KswapdLowWmarkHitQuickly,
    VmEvent::PgmigrateSuccess,
    VmEvent::PgmigrateFail,
    VmEvent::CompactFreeScanned,
    VmEvent::CompactIsolated,
    VmEvent::CompactStall,
    VmEvent::CompactFail,
    VmEvent::CompactSuccess,
];

/// A counter of kernels before 4.8, and the counters that are its parts since.
const STALLS: (&str, [VmEvent; 2]) = ("allocstall", [VmEvent::AllocstallNormal, VmEvent::AllocstallMovable]);

/// Frames of the kernel's own that a recording without marks of compound pages may count less than
/// the engine: the most tail pages in the zone in any recording of 6.1 with marks (`6.1-thp`: 174).
pub const SLAB_TAILS: u64 = 174;
/// End of the kernel's own pages, in frames from the start of the zone.
pub const KERNEL_PAGES: u32 = 0xc00;

/// Whether the counts of a scan that starts at this frame of the zone may differ, in a recording
/// without marks of the kernel's compound pages ([`Recording::tells_compound_pages`]).
///
/// The migration scanner skips the tail pages of a slab without counting them. In these recordings
/// its counts are compared where the zone has user pages, which is everywhere but in its first six
/// pageblocks, and the counter of all scanned frames may exceed the kernel's by the number of tail
/// pages there. In all other recordings both must be equal.
pub(super) fn is_slab_country(frames_into_zone: u32) -> bool {
    frames_into_zone < KERNEL_PAGES
}

/// Compares counters and final state with the recording's, if it has them.
pub(super) fn compare(rec: &Recording, part: Part, m: &Memory, care: Care) -> Result<Replayed, BadRecording> {
    if let (Some(_), Err(e)) = (care.check_every, m.check()) {
        return Ok(Err(contradiction(0, e)));
    }
    let mut compared = Compared::default();
    let needed = part == Part::Reclaim;
    if needed || rec.has(&part.before("vmstat")) && rec.has(&part.after("vmstat")) {
        match counters(rec, part, m)? {
            Ok((n, beyond)) => (compared.counters, compared.scanned_beyond) = (n, beyond),
            Err(d) => return Ok(Err(d)),
        }
    }
    // Under memory pressure every zone's state has been compared already.
    if part != Part::Reclaim && rec.has(&part.after("snap")) {
        let want = rec.snapshot(&part.after("snap"))?.to_string();
        let got = ZoneSnapshot::of(m, ZONE).to_string();
        if let Some(d) = states(&want, &got, At::FinalState) {
            return Ok(Err(d));
        }
        compared.add(final_state(&want));
    }
    Ok(Ok(compared))
}

/// Counts the items of a final state that is equal.
pub(super) fn final_state(state: &str) -> Compared {
    let lists = || state.lines().filter(|l| l.starts_with("FL ") || l.starts_with("PL "));
    // The first three words identify the list.
    let listed = lists().map(|l| l.split_ascii_whitespace().skip(3).count() as u64).sum();
    Compared { lists: lists().count() as u64, listed, final_states: 1, ..Compared::default() }
}

/// The difference for an error of the engine's checker.
pub(super) fn contradiction(op: usize, e: String) -> Box<Difference> {
    let kernel = "(not involved)".into();
    Box::new(Difference { at: At::Checker(op), asked: None, kernel, engine: e, around: Vec::new() })
}

/// Compares the growth of the counters. Returns their number and the surplus of scanned frames.
fn counters(rec: &Recording, part: Part, m: &Memory) -> Result<Result<(u64, u64), Box<Difference>>, BadRecording> {
    let (before, after) = (rec.counters(&part.before("vmstat"))?, rec.counters(&part.after("vmstat"))?);
    let grown = |name: &str| -> Result<u64, BadRecording> {
        let of = |file: String, counters: &VmStat| {
            let none = || BadRecording::whole(rec.path(&file), format!("has no '{name}'"));
            counters.get(name).ok_or_else(none)
        };
        let (a, b) = (of(part.before("vmstat"), &before)?, of(part.after("vmstat"), &after)?);
        let fell = || BadRecording::whole(rec.path(&part.after("vmstat")), format!("'{name}' fell"));
        b.checked_sub(a).ok_or_else(fell)
    };
    let differs = |name: &str, kernel: u64, engine: u64| {
        let (kernel, engine) = (kernel.to_string(), engine.to_string());
        Box::new(Difference { at: At::Counter(name.into()), asked: None, kernel, engine, around: Vec::new() })
    };
    let (sum, parts) = STALLS;
    let as_one = before.get(sum).is_some();
    // There a request of another node wakes the daemons of all nodes, too, once its own zones have
    // given their shares: that of the shell that reads the counters.
    let wakes_all = m.profile().zonelist.fills_up_on_slow_path;
    let of_others = |e: &VmEvent| wakes_all && matches!(e, VmEvent::Pageoutrun | VmEvent::KswapdLowWmarkHitQuickly);
    let own = COUNTERS.iter().filter(|e| !(as_one && parts.contains(e) || of_others(e)));
    let mut compared: Vec<(&str, u64)> = own.map(|e| (e.name(), m.vmstat().get(*e))).collect();
    if as_one {
        compared.insert(0, (sum, parts.iter().map(|e| m.vmstat().get(*e)).sum()));
    }
    for (name, engine) in &compared {
        let want = grown(name)?;
        if *engine != want {
            return Ok(Err(differs(name, want, *engine)));
        }
    }
    let scanned = VmEvent::CompactMigrateScanned;
    let want = grown(scanned.name())?;
    let allowed = if rec.tells_compound_pages(part)? { 0 } else { SLAB_TAILS };
    if !(want..=want + allowed).contains(&m.vmstat().get(scanned)) {
        return Ok(Err(differs(scanned.name(), want, m.vmstat().get(scanned))));
    }
    Ok(Ok((compared.len() as u64 + 1, m.vmstat().get(scanned) - want)))
}

/// Differing lines that are shown.
const LINES_SHOWN: usize = 8;

/// The first line in which two states differ, identified by its first words, and those after it.
pub(super) fn states(want: &str, got: &str, at: impl FnOnce(String) -> At) -> Option<Box<Difference>> {
    let mut differing = Vec::new();
    let keys = |text: &str| -> Vec<String> { text.lines().map(key).collect() };
    let (want_keys, got_keys) = (keys(want), keys(got));
    let find = |text: &'_ str, k: &str| text.lines().find(|l| key(l) == k).map(str::to_string);
    // Lines are matched by their first words, because a list may be missing on one side.
    let all = want_keys.iter().chain(got_keys.iter().filter(|k| !want_keys.contains(k)));
    for k in all {
        let (w, g) = (find(want, k), find(got, k));
        if w != g {
            let absent = || "(no such list)".to_string();
            differing.push((k.clone(), w.unwrap_or_else(absent), g.unwrap_or_else(absent)));
        }
    }
    let (first, w, g) = differing.first()?.clone();
    let (kernel, engine) = around_first_difference(&w, &g);
    let rest = differing[1..].iter().take(LINES_SHOWN).flat_map(|(_, w, g)| {
        let (w, g) = around_first_difference(w, g);
        [format!("kernel  {w}"), format!("engine  {g}")]
    });
    let mut around = vec![Section::new(format!("{} more lines differ", differing.len() - 1), rest.collect())];
    around.retain(|s| !s.lines.is_empty());
    Some(Box::new(Difference { at: at(first), asked: None, kernel, engine, around }))
}

/// The words that identify a line of a state.
fn key(line: &str) -> String {
    let words = match line.split(' ').next() {
        Some("FL" | "PL" | "PCP") => 3,
        _ => 1,
    };
    line.split(' ').take(words).collect::<Vec<_>>().join(" ")
}

/// Shortens two lines to the part around their first difference.
fn around_first_difference(a: &str, b: &str) -> (String, String) {
    const BEFORE: usize = 30;
    const SHOWN: usize = 100;
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    // Whole words, so that a pfn is not cut in two.
    let from = a[..same.saturating_sub(BEFORE)].rfind(' ').map_or(0, |at| at + 1);
    let cut = |s: &str| {
        let tail = &s[from.min(s.len())..];
        let end = tail.char_indices().nth(SHOWN).map_or(tail.len(), |(at, _)| at);
        let (head, more) = (if from > 0 { "… " } else { "" }, if end < tail.len() { " …" } else { "" });
        format!("{head}{}{more}", &tail[..end])
    };
    let place = if from > 0 { format!("[column {same}] ") } else { String::new() };
    (format!("{place}{}", cut(a)), format!("{place}{}", cut(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_first_difference() {
        let list = |last: &str| format!("FL 0 1{} {last}", " abc".repeat(100));
        let state = |last| format!("{}\nEND\n", list(last));
        let d = states(&state("d"), &state("e"), At::FinalState).expect("they differ");
        assert_eq!(d.at, At::FinalState("FL 0 1".into()));
        assert!(d.kernel.ends_with("abc abc d") && d.engine.ends_with("abc abc e"), "{d}");
        assert!(d.kernel.len() < 150, "{d}");
    }

    #[test]
    fn a_list_one_side_does_not_have_is_a_difference() {
        let d = states("FL 0 1 a\nFL 1 1 b\nEND\n", "FL 0 1 a\nEND\n", At::FinalState).expect("they differ");
        assert_eq!((d.kernel.as_str(), d.engine.as_str()), ("FL 1 1 b", "(no such list)"));
        assert!(states("FL 0 1 a\n", "FL 0 1 a\n", At::FinalState).is_none());
    }

    #[test]
    fn a_state_counts_its_lists_and_the_blocks_on_them() {
        let c = final_state("ZONE 1 2\nPL 0 3\nFL 0 1 a b\nFL 9 1 c\nPB uum\nEND\n");
        assert_eq!((c.final_states, c.lists, c.listed), (1, 3, 3));
    }
}
