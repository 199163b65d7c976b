//! Writes the page as Markdown: a few sentences on the words used, then tables.

use super::page::{Outcome, Page, Replayed, Row, Standing, Unnoticed};
use crate::replay::Compared;
use crate::replay::faults::{Closeness, Figure, TOLERANCE};
use crate::replay::outcome::{KERNEL_PAGES, SLAB_TAILS};
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_text::grouped;
use kontig_text::markdown::{self, Align};
use std::iter::once;

/// Path of the page, below the project's folder.
pub const FILE: &str = "docs/generated/fidelity.md";
/// The command that makes the page.
pub const MAKE: &str = "kontig oracle fidelity --out docs/generated/fidelity.md";

/// Writes all sections of the page.
pub fn page(p: &Page) -> String {
    let sections =
        [intro(p), mechanisms(p), carried(p), differing(p), not_verified(p), recordings(p), close(p), tolerance(p)];
    let text = sections.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("\n");
    markdown::wrapped(text.trim_end())
}

fn intro(p: &Page) -> String {
    let all = p.recordings.len() + p.differing.len();
    let close = p.recordings.iter().filter_map(closeness).count();
    let equal = p.recordings.iter().filter(|r| matches!(r.outcome, Outcome::Reproduced(_))).count() - close;
    let others = all - equal - close;
    let kernels: Vec<&str> = p.kernels.iter().map(|k| k.version.as_str()).collect();
    format!(
        "# Fidelity\n\n\
         Kontig's engine is checked against {all} recordings of real kernels ({kernels}, as \
         built by Debian, and those before 5.10 by Ubuntu). It starts from the recorded state, gets the same \
         operations, and must return the same pfns, go through the same compaction events (begin, end, finished, \
         pages isolated and migrated; under memory pressure reclaim's as \
         well) and end with the same lists in the same order. {equal} recordings are equal; {close} are within \
         {TOLERANCE} %; {others} are not reproduced. To test whether the recordings would notice a mistake, {planted} \
         rules are broken, one at a time: {noticed} of these mistakes are noticed. \
         No mistake is planted in code that only kernels without recordings run.\n\n\
         **The multi-generational LRU is modelled for 6.12 and 7.2 alone**; the laboratory uses it where \
         `lru_gen.enabled` is not 0. Debian 13, Ubuntu since 23.10 and Fedora enable it with walks of page tables. \
         Recordings named `gen` have it on (`/sys/kernel/mm/lru_gen/enabled` is 1, of `gen-walk` 3 or 7), all others \
         off. Statements below on the LRU, reclaim and refaults are about active and inactive lists, unless they name \
         generations.\n\n\
         `{MAKE}` generates this page from the replays, and a test fails if the page differs from them. `kontig \
         oracle verify all` replays the recordings one by one.\n",
        kernels = list(&kernels),
        planted = p.mistakes,
        noticed = p.mistakes - p.unnoticed.len(),
    )
}

/// `a, b and c`.
fn list(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn mechanisms(p: &Page) -> String {
    let mut text = format!(
        "## Mechanisms\n\n\
         * **exact** *r / m*: *r* recordings run through it and are equal, and they notice *m* mistakes planted in \
         it.\n\
         * **equal** *r*: the same, but this kernel's recordings notice no planted mistake: trust it less.\n\
         * **within {TOLERANCE} %**, *r / m*: only recordings that no replay can equal run through it; their totals \
         agree.\n\
         * **not verified**: no recording runs through it. **–**: the kernel does not have it.\n\n\
         § refers to [kernel-behaviour](../kernel/kernel-behaviour/README.md), files are in \
         [`crates/mm/src`](../../crates/mm/src).\n\n"
    );
    let kernels: Vec<&str> = p.kernels.iter().map(|k| k.version.as_str()).collect();
    let columns = ["mechanism"].into_iter().chain(kernels.iter().copied()).chain(["§", "engine"]);
    text += &markdown::head(columns.map(|name| (name, Align::Left)));
    text.extend(p.rows.iter().map(mechanism));
    text
}

fn mechanism(row: &Row) -> String {
    let standings: Vec<String> = row.standings.iter().map(standing).collect();
    let engine: Vec<String> = row.mechanism.engine.iter().map(|f| format!("`{f}`")).collect();
    let (name, rules, engine) = (row.mechanism.name.as_ref(), &row.mechanism.rules, engine.join(" "));
    markdown::row(
        [name.as_str()].into_iter().chain(standings.iter().map(String::as_str)).chain([rules.as_str(), &engine]),
    )
}

fn standing(s: &Standing) -> String {
    match s {
        Standing::Exact { recordings, mistakes } => format!("**exact** {recordings} / {mistakes}"),
        Standing::Equal { recordings } => format!("equal {recordings}"),
        Standing::Close { recordings, mistakes } => format!("within {TOLERANCE} %, {recordings} / {mistakes}"),
        Standing::Differs { recording } => format!("**differs**: {recording}"),
        Standing::Unverified => "not verified".into(),
        Standing::Absent => "–".into(),
    }
}

/// How a kernel without a profile of its own fares with the profile of the kernel before it.
fn carried(p: &Page) -> String {
    let Some(c) = &p.carried else {
        return String::new();
    };
    let mut text = format!(
        "## How far a profile carries\n\n\
         The recordings of {} kept here, replayed by the profile of {}, the kernel before it: {} of {} are equal.\n",
        c.kernel.version,
        c.by.version,
        c.equal,
        c.equal + c.different.len()
    );
    if !c.different.is_empty() {
        let different: Vec<String> = c.different.iter().map(|(name, at)| format!("{name} at {at}")).collect();
        text += &format!(
            "The others differ first: {}. `kontig profile diff {} {}` lists the rules that make them equal.\n",
            different.join("; "),
            c.by.series,
            c.kernel.series
        );
    }
    text
}

fn differing(p: &Page) -> String {
    if p.differing.is_empty() {
        return String::new();
    }
    let mut text = "## Differences\n\nThe recordings under `oracle/differing` are not reproduced.\n\n".to_string();
    for (r, why) in &p.differing {
        let result = match &r.outcome {
            Outcome::Different(d) => format!("differs at {}: the kernel {}, the engine {}", d.at, d.kernel, d.engine),
            Outcome::Reproduced(_) => "is reproduced now: it belongs under `oracle/golden`".into(),
            Outcome::NotReplayed(why) => format!("is not replayed: {why}"),
        };
        let why = why.as_deref().unwrap_or("The missing rule is not known.");
        text += &format!("* {} ({}) {result}. {why}\n", r.name, r.what);
    }
    text
}

fn not_verified(p: &Page) -> String {
    let mut text = "## Not verified\n\n".to_string();
    for limit in &p.limits {
        text += &format!("* {}: {}.\n", limit.what, limit.why);
    }
    for row in &p.rows {
        let open = row.standings.iter().zip(&p.kernels).filter(|(s, _)| **s == Standing::Unverified);
        let kernels: Vec<&str> = open.map(|(_, k)| k.series.as_str()).collect();
        if !kernels.is_empty() {
            let why = &row.mechanism.unverified;
            let why = if why.is_empty() { "no recording runs through it" } else { why };
            text += &format!("* {} ({}): {why}.\n", row.mechanism.name.as_ref(), kernels.join(", "));
        }
    }
    for Unnoticed { mistake, mechanism, why } in &p.unnoticed {
        let why = why.as_deref().unwrap_or("no recording notices it");
        text += &format!("* The planted mistake `{mistake}` ({mechanism}): {why}.\n");
    }
    text
}

const NUMBERS: [&str; 8] = ["ops", "pfns", "events", "moves", "counters", "LRU pages", "lists", "blocks"];

fn recordings(p: &Page) -> String {
    let mut text = "## Recordings\n\n\
         The columns count what was compared: results of operations, pfns among them, tracepoints, migrations by \
         source and destination, and counters; under memory pressure the pages on the LRU lists, in order, in all \
         recorded states; at the end the free lists and per-CPU lists, with the blocks on them in order.\n\n"
        .to_string();
    let words = |name| (name, Align::Left);
    let columns = ["recording", "experiment"].map(words).into_iter();
    text += &markdown::head(columns.chain(NUMBERS.map(|name| (name, Align::Right))).chain([words("result")]));
    text.extend(p.recordings.iter().map(recording));
    text
}

fn recording(r: &Replayed) -> String {
    let nothing = Compared::default();
    let (c, result) = match &r.outcome {
        Outcome::Reproduced(c @ Compared { close: Some(_), .. }) => (c, format!("within {TOLERANCE} %")),
        Outcome::Reproduced(c) => (c, "equal".into()),
        Outcome::Different(d) => (&nothing, format!("**differs** at {}", d.at)),
        Outcome::NotReplayed(why) => (&nothing, format!("not replayed: {why}")),
    };
    let numbers =
        [c.operations, c.pfns, c.events, c.migrations, c.counters, c.lru_pages, c.lists, c.listed].map(grouped_or_none);
    markdown::row([r.name.clone(), r.what.clone()].into_iter().chain(numbers).chain([result]))
}

/// The recordings that are only close, with all figures.
fn close(p: &Page) -> String {
    let close: Vec<(&str, &Closeness)> = p.recordings.iter().filter_map(closeness).collect();
    let Some((_, first)) = close.first() else {
        return String::new();
    };
    let mut text = format!(
        "### Huge page faults, within {TOLERANCE} %\n\n\
         The scheduler decides when kcompactd runs, and the engine has none: kcompactd's share of the CPU is taken \
         from the recording. Kernel and engine therefore diverge after some faults, and their totals are compared: \
         kernel / engine.\n\n"
    );
    text += &markdown::head(once(("", Align::Left)).chain(close.iter().map(|(name, _)| (*name, Align::Right))));
    let of = |same: u64, all: u64| format!("{} of {}", grouped(same), grouped(all));
    text += &row("faults, the same from the first on", close.iter().map(|(_, c)| of(c.faults_same, c.faults)));
    text += &row("compaction events, likewise", close.iter().map(|(_, c)| of(c.events_same, c.events)));
    for f in &first.figures {
        let same = |c: &Closeness| c.figures.iter().find(|g| g.name == f.name).map_or(String::new(), figure);
        text += &row(f.name, close.iter().map(|(_, c)| same(c)));
    }
    text
}

fn closeness(r: &Replayed) -> Option<(&str, &Closeness)> {
    match &r.outcome {
        Outcome::Reproduced(c) => c.close.as_ref().map(|close| (r.name.as_str(), close)),
        _ => None,
    }
}

fn row(head: &str, cells: impl Iterator<Item = String>) -> String {
    markdown::row(once(head.to_string()).chain(cells))
}

fn figure(f: &Figure) -> String {
    format!("{} / {}, {}", grouped(f.kernel), grouped(f.engine), off_by(f))
}

fn off_by(f: &Figure) -> String {
    let off = if f.kernel == 0 { 0.0 } else { 100.0 * f.kernel.abs_diff(f.engine) as f64 / f.kernel as f64 };
    format!("{off:.1} % off{}", if f.held { "" } else { " (not held)" })
}

/// The tolerance in recordings that count as equal.
fn tolerance(p: &Page) -> String {
    let beyond = |r: &Replayed| match &r.outcome {
        Outcome::Reproduced(c) if c.scanned_beyond > 0 => Some(format!("{} by {}", r.name, grouped(c.scanned_beyond))),
        _ => None,
    };
    let beyond: Vec<String> = p.recordings.iter().filter_map(beyond).collect();
    if beyond.is_empty() {
        return String::new();
    }
    format!(
        "### The one tolerance\n\n\
         Recordings that do not mark the kernel's compound pages leave open how many of them the migration scanner \
         counts. For these recordings, in the zone's first {} pageblocks, where such pages are, `nr_scanned` of a \
         single range is not compared, and the sum `compact_migrate_scanned` may exceed the kernel's by up to \
         {SLAB_TAILS}; it does in {}. All other recordings must be equal in these as well. There is no other \
         tolerance.\n",
        KERNEL_PAGES / PAGEBLOCK_PAGES,
        beyond.join(", ")
    )
}

fn grouped_or_none(n: u64) -> String {
    if n == 0 { String::new() } else { grouped(n) }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::{Limit, Mechanisms};
    use super::super::page::{Carried, Kernel};
    use super::*;

    fn small(standings: Vec<Standing>, outcome: Outcome) -> Page {
        let text = "[[mechanism]]\nname = \"Capture\"\nengine = [\"compact/run.rs\"]\nrules = \"5.3\"\nbegins = []\n\
                    unverified = \"nobody captured\"\n";
        let mechanisms: Mechanisms = toml::from_str(text).expect("well-formed");
        let kernels = ["6.1", "7.2"].map(|s| Kernel { series: s.into(), version: format!("{s}.9") }).to_vec();
        let rows = mechanisms.mechanism.into_iter().map(|m| Row { mechanism: m, standings: standings.clone() });
        let (series, version) = ("6.1".into(), "6.1.9".into());
        let recording = Replayed { name: "6.1-a".into(), series, version, what: "something".into(), outcome };
        let limits = vec![Limit { what: "Swap".into(), why: "not modelled".into() }];
        let why = Some("nobody takes a page meanwhile".into());
        let unnoticed = vec![Unnoticed { mistake: "no-capture".into(), mechanism: "Capture".into(), why }];
        let recordings = vec![recording];
        let carried = Carried {
            kernel: kernels[1].clone(),
            by: kernels[0].clone(),
            equal: 2,
            different: vec![("7.2-a".into(), "operation 7".into())],
        };
        let (rows, carried, differing) = (rows.collect(), Some(carried), Vec::new());
        Page { kernels, rows, recordings, carried, differing, limits, mistakes: 3, unnoticed }
    }

    #[test]
    fn every_mechanism_says_how_it_stands_and_why_not() {
        let standings = vec![Standing::Exact { recordings: 4, mistakes: 2 }, Standing::Unverified];
        let text = page(&small(standings, Outcome::Reproduced(Compared::default())));
        assert!(text.contains("| Capture | **exact** 4 / 2 | not verified | 5.3 | `compact/run.rs` |\n"), "{text}");
        assert!(text.contains("\n* Capture (7.2): nobody captured.\n"), "{text}");
        assert!(text.contains("\n* Swap: not modelled.\n"), "{text}");
        assert!(text.contains("3 rules are broken, one at a time: 2 of these mistakes are noticed"), "{text}");
    }

    #[test]
    fn a_difference_is_on_the_page() {
        use crate::difference::{At, Difference};
        let (kernel, engine) = (String::new(), String::new());
        let d = Difference { at: At::Operation(7), asked: None, kernel, engine, around: Vec::new() };
        let standings = vec![Standing::Differs { recording: "6.1-a".into() }, Standing::Absent];
        let text = page(&small(standings, Outcome::Different(Box::new(d))));
        assert!(text.contains("| Capture | **differs**: 6.1-a | – |"), "{text}");
        assert!(text.contains("| 6.1-a | something |  |  |  |  |  |  |  |  | **differs** at operation 7 |"), "{text}");
    }

    #[test]
    fn how_far_the_profile_before_the_newest_carries_is_counted() {
        let text = page(&small(vec![Standing::Unverified; 2], Outcome::Reproduced(Compared::default())));
        assert!(text.contains(
            "The recordings of 7.2.9 kept here, replayed by the profile of 6.1.9, the kernel before it: \
             2 of 3 are equal.\n"
        ));
        assert!(
            text.contains("\nThe others differ first: 7.2-a at operation 7. `kontig profile diff 6.1 7.2` lists"),
            "{text}"
        );
    }

    #[test]
    fn totals_are_given_with_their_distance() {
        let figures = vec![Figure { name: "huge pages", kernel: 1000, engine: 985, held: true }];
        let close = Closeness { faults: 4000, faults_same: 3, events: 2, events_same: 1, figures };
        let outcome = Outcome::Reproduced(Compared { close: Some(close), ..Compared::default() });
        let text = page(&small(vec![Standing::Close { recordings: 1, mistakes: 0 }, Standing::Absent], outcome));
        assert!(text.contains("| huge pages | 1,000 / 985, 1.5 % off |"), "{text}");
        assert!(text.contains("| faults, the same from the first on | 3 of 4,000 |"), "{text}");
    }

    #[test]
    fn the_tolerance_is_named_only_where_it_was_needed() {
        let beyond = |n| Outcome::Reproduced(Compared { scanned_beyond: n, ..Compared::default() });
        let text = |n| page(&small(vec![Standing::Unverified; 2], beyond(n)));
        assert!(text(12).contains(&format!("by up to {SLAB_TAILS}; it does in 6.1-a by 12.")));
        assert!(!text(0).contains("tolerance"));
    }
}
