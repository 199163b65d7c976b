//! The cost of address translation on this host, in ten seconds and without root.
//!
//! The same loops run over memory on small pages and on huge ones, by turns, over more and more of
//! it. What they take gives a [`Processor`]: some of its constants are read from the processor or
//! measured by themselves, four are fitted to the loops, and how far the model then is from each
//! loop is part of the result.

mod fit;
mod host;
mod loops;
pub mod measured;
mod memory;
pub mod programs;

use crate::quiet::Watch;
use kontig_program::SplitMix64;
use kontig_text::size;
use kontig_translation::{Backing, Independent, Processor};
use loops::{chase_ns, cycle_ns, independent_ns, least_of_turns, line_a_page_ns, sequential_ns};
use measured::{FirstTouch, Loop, Measured, Point};
use memory::{Memory, Pages};

const MIB: usize = 1 << 20;
/// Memory that the loops go over, if there is room.
const SIZES_MIB: [usize; 8] = [4, 16, 64, 128, 256, 512, 1024, 2048];
/// With less than this, the TLB holds too much.
const LEAST: usize = 256 * MIB;
/// Cycles that a translation takes from the second level of the TLB; makers' manuals say 7 to 9.
const CYCLES_OF_TLB2: f64 = 7.0;

/// Measures this host, in a quarter of this many bytes of memory.
///
/// # Errors
/// What is missing, and the remedy.
pub fn measure(available: u64, mut begins: impl FnMut(&str)) -> Result<Measured, String> {
    let watch = Watch::start();
    let known = host::Host::read()?;
    let room = (available / 4) as usize;
    let most = SIZES_MIB.map(|mib| mib * MIB).into_iter().filter(|bytes| *bytes <= room).max().unwrap_or(0);
    if most < LEAST {
        let has = size(available);
        return Err(format!("{has} of memory are available; the measurement needs {}", size(4 * LEAST as u64)));
    }
    begins("first touch of memory");
    let first_touch = first_touch(LEAST)?;
    begins("huge pages");
    let huge = Memory::all_huge(most, LEAST)?;
    let most = huge.bytes().len();
    begins("small pages");
    let small = Memory::new(most, Pages::Small)?;
    let mut spreads = Vec::new();
    let mut both = |f: &dyn Fn(&[u8], &mut SplitMix64) -> f64, bytes: usize| {
        let (ns, spread) = least_of_turns([&small.bytes()[..bytes], &huge.bytes()[..bytes]], f);
        spreads.push(spread);
        ns
    };
    begins("caches");
    let cycle_ns = cycle_ns();
    let work_ns = both(&chase_ns, 16 << 10)[1];
    let l2_ns = (both(&chase_ns, (known.l2 / 2).next_power_of_two())[1] - work_ns).max(cycle_ns);
    let sequential = both(&sequential_ns, most.min(512 * MIB))[1];
    let mut points = Vec::new();
    for bytes in SIZES_MIB.map(|mib| mib * MIB).into_iter().filter(|bytes| *bytes <= most) {
        begins(&format!("chase over {}", size(bytes as u64)));
        points.push(Point { of: Loop::Chase, bytes, ns: both(&chase_ns, bytes) });
    }
    let tlb_bytes = (known.tlb2.entries as usize * 4096).next_power_of_two();
    for bytes in [tlb_bytes, 2 * tlb_bytes, 4 * tlb_bytes, 8 * tlb_bytes].into_iter().filter(|bytes| *bytes <= most) {
        begins(&format!("a line of each page of {}", size(bytes as u64)));
        points.push(Point { of: Loop::LineAPage, bytes, ns: both(&line_a_page_ns, bytes) });
    }
    let mut independent = Vec::new();
    for bytes in SIZES_MIB[1..].iter().map(|mib| mib * MIB).filter(|bytes| *bytes <= most) {
        begins(&format!("independent accesses to {}", size(bytes as u64)));
        let [small_ns, huge_ns] = both(&independent_ns, bytes).map(tenths);
        independent.push(Independent { size: size(bytes as u64), small_ns, huge_ns });
    }
    begins("fit");
    let unfitted = Processor {
        processor: known.name,
        source: String::new(),
        backing: Backing::Native,
        tlb1: known.tlb1,
        tlb2: known.tlb2,
        l2: size(known.l2 as u64),
        // The most that the fit may take.
        l3: size(known.l3 as u64),
        work_ns: tenths(work_ns),
        tlb2_ns: tenths(CYCLES_OF_TLB2 * cycle_ns),
        walk_ns: 0.0,
        l2_ns: tenths(l2_ns),
        l3_ns: 0.0,
        memory_ns: 0.0,
        sequential_ns: tenths(sequential),
        independent,
        error_percent: 0.0,
    };
    let backings: &[Backing] = if known.is_guest { &[Backing::Small, Backing::Huge] } else { &[Backing::Native] };
    let mut processor = fit::fit(&unfitted, backings, &points)?;
    spreads.sort_by(f64::total_cmp);
    let spread_percent = spreads[spreads.len() / 2];
    let others = watch.others();
    processor.source = source(&processor, spread_percent, others);
    Ok(Measured { processor, points, first_touch, spread_percent, others })
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

fn first_touch(bytes: usize) -> Result<FirstTouch, String> {
    let each = |pages| Ok::<_, String>(Memory::new(bytes, pages)?.fill_ns / (bytes / (2 * MIB)) as f64);
    let both = || Ok::<_, String>([each(Pages::Small)?, each(Pages::Huge)?]);
    Ok(FirstTouch { ns: both()?, again_ns: both()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_say_where_they_come_from() {
        let cpu = fit::tests::zen4();
        let said = source(&cpu, 3.2, Some(0.25));
        assert!(said.contains("on small pages of its host") && said.contains("10 % off"), "{said}");
        assert!(said.ends_with("turns differ by 3 %; other programs used 0.25 CPUs"), "{said}");
    }
}
