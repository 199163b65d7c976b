//! The answer of the measurement, in sentences.

use kontig_bench::translation::ROUNDS;
use kontig_bench::translation::loops::TURNS;
use kontig_bench::translation::measured::{FirstTouch, Measured, NEAR, Point, gain};
use kontig_bench::translation::memory::Pages;
use kontig_text::size;
use kontig_translation::Backing;

/// A gain below this is not shown.
const SHOWN_PERCENT: f64 = 5.0;

fn faster(ns: [f64; 2]) -> String {
    let percent = gain(ns);
    if percent.abs() < SHOWN_PERCENT {
        "as fast on huge pages as on small ones".into()
    } else if percent > 0.0 {
        format!("{percent:.0} % faster on huge pages")
    } else {
        format!("{:.0} % slower on huge pages", -percent)
    }
}

/// The answers, a paragraph each.
pub(super) fn conclusions(m: &Measured) -> Vec<String> {
    let cpu = &m.processor;
    let chases: Vec<&Point> = m.chases().collect();
    let mut paragraphs = Vec::new();
    if let Some(most) = chases.last() {
        let [small, huge] = most.ns;
        paragraphs.push(format!(
            "Accesses that wait for each other (lists, trees, hash maps) over {} are {}: {small:.0} ns on small pages, \
             {huge:.0} ns on huge ones. Over {} they are {}.",
            size(most.bytes as u64),
            faster(most.ns),
            size(chases[chases.len() / 2].bytes as u64),
            faster(chases[chases.len() / 2].ns)
        ));
    }
    if let Some(most) = cpu.independent.last() {
        let ns = [most.small_ns, most.huge_ns];
        paragraphs.push(format!(
            "Accesses that do not wait are {} over {}: {:.1} ns and {:.1} ns. A stream of {:.1} ns a cache line gains \
             nothing.",
            faster(ns),
            most.size,
            ns[0],
            ns[1],
            cpu.sequential_ns
        ));
    }
    paragraphs.push(of_other_sizes(m));
    paragraphs.push(paid(m.first_touch, chases.last().map(|most| most.ns)));
    paragraphs
}

/// The gain of pages of other sizes, or why it was not measured.
fn of_other_sizes(m: &Measured) -> String {
    let of = |(pages, points): &(Pages, Result<Vec<Point>, String>)| {
        let last = points.as_ref().map(|points| points.last());
        match last {
            Ok(Some(most)) => {
                let [small, these] = most.ns;
                let gain = faster(most.ns).replace("huge pages", pages.name());
                format!("Accesses that wait are {gain} over {}: {small:.0} and {these:.0} ns.", size(most.bytes as u64))
            }
            Ok(None) => format!("On {} nothing was measured: each round had others.", pages.name()),
            Err(reason) => format!("On {} nothing was measured: {reason}.", pages.name()),
        }
    };
    m.other_sizes.iter().map(of).collect::<Vec<_>>().join(" ")
}

/// The host, and how far to trust the figures.
pub(super) fn about(m: &Measured) -> String {
    let cpu = &m.processor;
    let (near, all) = (m.chases().filter(|point| m.holds(point)).count(), m.chases().count());
    let near_skewed = m.skewed.iter().filter(|point| m.holds(point)).count();
    format!(
        "{}, {}: {} and {} TLB entries. Times are ns an access, the least of {} rounds of {} turns on each; turns \
         differ by {:.0} %. The model is {:.0} % off; it tells the gain of {near} of {all} chases and of {near_skewed} \
         of {} skewed loops, to which it is not fitted, {NEAR}.{}",
        cpu.processor,
        backing(cpu.backing),
        cpu.tlb1.entries,
        cpu.tlb2.entries,
        ROUNDS,
        TURNS,
        m.spread_percent,
        cpu.error_percent,
        m.skewed.len(),
        lie(m)
    )
}

/// How the small pages lie, where that counts.
fn lie(m: &Measured) -> String {
    if m.processor.backing != Backing::Small {
        return String::new();
    }
    let how = if m.frames_seen { "" } else { ", as fits best: the kernel shows frames to root only" };
    format!(" {:.1} small pages lie in each group of eight frames that has any{how}.", m.per_group)
}

const fn backing(backing: Backing) -> &'static str {
    match backing {
        Backing::Native => "no virtual machine",
        Backing::Small => {
            "a guest whose host seems to have small pages, so that huge pages gain half of what they could"
        }
        Backing::Huge => "a guest whose host seems to have huge pages",
    }
}

/// The time of the first touch, and the accesses after which a huge page is paid for.
fn paid(FirstTouch { ns, again_ns }: FirstTouch, access: Option<[f64; 2]>) -> String {
    let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
    let touch = format!(
        "The first touch of 2 MiB takes {} on 512 small pages and {} on a huge page; {} and {} on memory just given \
         back.",
        ms(ns[0]),
        ms(ns[1]),
        ms(again_ns[0]),
        ms(again_ns[1])
    );
    let saved = access.map_or(0.0, |[small, huge]| small - huge);
    let after = |[small, huge]: [f64; 2]| match (huge - small, saved) {
        (more, _) if more <= 0.0 => "at once".to_string(),
        (more, saved) if saved > 0.0 => format!("after {:.0} accesses that wait", more / saved),
        _ => "never".to_string(),
    };
    format!("{touch} A huge page is paid for {}; of memory just given back, {}.", after(ns), after(again_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_that_costs_more_is_paid_for_by_accesses() {
        let paid = |ns, again_ns, access| paid(FirstTouch { ns, again_ns }, Some(access));
        let dearer = paid([1e6, 5e6], [1e6, 4e5], [330.0, 200.0]);
        assert!(
            dearer.ends_with("paid for after 30769 accesses that wait; of memory just given back, at once."),
            "{dearer}"
        );
        assert!(paid([1e6, 5e6], [1e6; 2], [200.0; 2]).contains("paid for never; of"));
    }
}
