//! The cost of address translation on this host, in half a minute and without root.
//!
//! The same loops run over memory on small pages and on huge ones, by turns, over more and more of
//! it, in rounds that each map their memory anew. What they take gives a [`Processor`]: some of its
//! constants are read from the processor or measured by themselves, four are fitted to the loops,
//! and how far the model then is from each loop is part of the result.

mod fit;
mod host;
pub mod loops;
pub mod measured;
pub mod memory;
mod other_sizes;
mod pages;
pub mod programs;
mod round;

use crate::quiet::Watch;
use kontig_text::size;
use kontig_translation::{Backing, Independent, Processor};
use loops::cycle_ns;
use measured::{FirstTouch, Measured, Point};
use memory::{Memory, Pages};
pub use round::ROUNDS;
use round::{LEAST, MIB, Round, SIZES_MIB};

/// Cycles that a translation takes from the second level of the TLB; makers' manuals say 7 to 9.
const CYCLES_OF_TLB2: f64 = 7.0;

/// Measures this host, in a quarter of this many bytes of memory.
///
/// # Errors
/// What is missing, and the remedy.
pub fn measure(available: u64, mut begins: impl FnMut(&str)) -> Result<Measured, String> {
    let watch = Watch::start();
    let host = host::Host::read()?;
    let room = (available / 4) as usize;
    let most = SIZES_MIB.map(|mib| mib * MIB).into_iter().filter(|bytes| *bytes <= room).max().unwrap_or(0);
    if most < LEAST {
        let has = size(available);
        return Err(format!("{has} of memory are available; the measurement needs {}", size(4 * LEAST as u64)));
    }
    begins("first touch of memory");
    let first_touch = first_touch(LEAST)?;
    let cycle_ns = cycle_ns();
    let mut best = Round::run(most, &host, |what| begins(&format!("round 1 of {ROUNDS}: {what}")))?;
    for number in 2..=ROUNDS {
        best.take_less(Round::run(most, &host, |what| begins(&format!("round {number} of {ROUNDS}: {what}")))?);
    }
    let other_sizes = other_sizes::measure(most, &mut begins);
    begins("fit");
    let fresh_ns = host.is_guest.then_some(first_touch.ns.map(f64::round));
    let unfitted = Processor { fresh_ns, ..unfitted(host, cycle_ns, &best) };
    let backings: &[Backing] =
        if unfitted.backing == Backing::Native { &[Backing::Native] } else { &[Backing::Small, Backing::Huge] };
    let (mut processor, points) = fit::fit(&unfitted, backings, best.points, best.frames_seen)?;
    let spread_percent = middle(best.spreads);
    let others = watch.others();
    processor.source = source(&processor, spread_percent, others);
    let per_group: f64 = points.iter().max_by_key(|point| point.bytes).map_or(1.0, |point| point.per_group);
    // Where frames were not seen, they lie as fits the other loops best.
    let seen = |point: Point| if best.frames_seen { point } else { Point { per_group, ..point } };
    let all_seen = |points: Vec<Point>| points.into_iter().map(seen).collect();
    Ok(Measured {
        processor,
        points,
        skewed: best.skewed.into_iter().map(seen).collect(),
        other_sizes: other_sizes.into_iter().map(|(pages, points)| (pages, points.map(all_seen))).collect(),
        first_touch,
        per_group,
        frames_seen: best.frames_seen,
        spread_percent,
        others,
    })
}

/// A processor before the fit, with all of the last level of caches; of a guest the backing is
/// open.
fn unfitted(host: host::Host, cycle_ns: f64, round: &Round) -> Processor {
    let independent = round.independent.iter().map(|(bytes, ns)| {
        let [small_ns, huge_ns] = ns.map(tenths);
        Independent { size: size(*bytes as u64), small_ns, huge_ns }
    });
    Processor {
        processor: host.name,
        source: String::new(),
        backing: if host.is_guest { Backing::Small } else { Backing::Native },
        tlb1: host.tlb1,
        tlb2: host.tlb2,
        l2: size(host.l2 as u64),
        l3: size(host.l3 as u64),
        work_ns: tenths(round.work_ns),
        tlb2_ns: tenths(CYCLES_OF_TLB2 * cycle_ns),
        walk_ns: 0.0,
        l2_ns: tenths((round.l2_ns - round.work_ns).max(cycle_ns)),
        l3_ns: 0.0,
        memory_ns: 0.0,
        sequential_ns: tenths(round.sequential_ns),
        fresh_ns: None,
        independent: independent.collect(),
        error_percent: 0.0,
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Where the constants come from.
fn source(cpu: &Processor, spread_percent: f64, others: Option<f64>) -> String {
    let backing = match cpu.backing {
        Backing::Native => "no virtual machine",
        Backing::Small => "a guest, which fits best as one on small pages of its host",
        Backing::Huge => "a guest, which fits best as one on huge pages of its host",
    };
    let others = others.map_or(String::new(), |others| format!("; other programs used {others:.2} CPUs"));
    format!(
        "kontig bench translation, kontig {}, {}; {backing}; fitted: l3, walk_ns, l3_ns, memory_ns, {:.0} % off; turns \
         differ by {spread_percent:.0} %{others}",
        env!("CARGO_PKG_VERSION"),
        host::kernel(),
        cpu.error_percent
    )
}

fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Times the first touch of memory, and the least that it takes of memory that was just given back.
fn first_touch(bytes: usize) -> Result<FirstTouch, String> {
    let each = |pages| Ok::<_, String>(Memory::new(bytes, pages)?.fill_ns / (bytes / (2 * MIB)) as f64);
    let both = || Ok::<_, String>([each(Pages::Small)?, each(Pages::Huge)?]);
    let (ns, mut again_ns) = (both()?, both()?);
    for _ in 1..ROUNDS {
        let more = both()?;
        again_ns = [again_ns[0].min(more[0]), again_ns[1].min(more[1])];
    }
    Ok(FirstTouch { ns, again_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_say_where_they_come_from() {
        let cpu = fit::tests::zen4();
        let said = source(&cpu, 3.2, Some(0.25));
        assert!(said.contains("on small pages of its host") && said.contains(" % off"), "{said}");
        assert!(said.ends_with("turns differ by 3 %; other programs used 0.25 CPUs"), "{said}");
    }
}
