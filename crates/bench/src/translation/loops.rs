//! The loops whose accesses are timed. All memory is zero, so that a value that was read can be
//! added without an effect but the wait for it.

use crate::measure::Stopwatch;
use kontig_program::{Hot, SplitMix64};
use std::hint::black_box;

const LINE: usize = 64;
const PAGE: usize = 4096;
/// Accesses of a turn, and of one whose accesses do not wait. These take a tenth of the time, and
/// 60,000 leave the caches cold: over 2 GiB they took 40 ns each, 30 in turns of 240,000 and 23 in
/// turns of 480,000. Longer turns were not tried.
const ACCESSES: usize = 60_000;
const INDEPENDENT_ACCESSES: usize = 480_000;
/// Turns of each loop on each kind of pages.
pub const TURNS: usize = 11;

/// The least that a loop takes an access on each kind of pages, of several turns each, one after
/// the other; and how far the middle turn is from the least, %.
pub(super) fn least_of_turns(memory: [&[u8]; 2], of: &dyn Fn(&[u8], &mut SplitMix64) -> f64) -> ([f64; 2], f64) {
    let mut random = SplitMix64::new(1);
    let mut all = [Vec::new(), Vec::new()];
    for turn in 0..=TURNS {
        for (memory, all) in memory.iter().zip(&mut all) {
            let ns = of(memory, &mut random);
            // The first fills caches.
            if turn > 0 {
                all.push(ns);
            }
        }
    }
    all.iter_mut().for_each(|all| all.sort_by(f64::total_cmp));
    let spread = |all: &Vec<f64>| 100.0 * (all[TURNS / 2] / all[0] - 1.0);
    (all.each_ref().map(|all| all[0]), all.iter().map(spread).fold(0.0, f64::max))
}

/// Times `ACCESSES` of a step from one state to the next.
fn timed(mut state: u64, step: impl Fn(u64) -> u64) -> f64 {
    let begin = Stopwatch::start();
    for _ in 0..ACCESSES {
        state = step(state);
    }
    black_box(state);
    begin.ns() / ACCESSES as f64
}

/// A linear congruential generator, whose high bits are good. Its factor is hidden from the
/// compiler, which would take several steps at once.
fn next(state: u64) -> u64 {
    state.wrapping_mul(black_box(0x5851_f42d_4c95_7f2d)).wrapping_add(0x1405_7b7e_f767_814f)
}

/// A number below a power of two.
const fn below(state: u64, count: usize) -> usize {
    (state >> 33) as usize & (count - 1)
}

fn read(memory: &[u8], at: usize) -> u64 {
    memory[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Lines at random, each found by what the last one holds.
pub(super) fn chase_ns(memory: &[u8], random: &mut SplitMix64) -> f64 {
    let lines = memory.len() / LINE;
    timed(random.next_u64(), |state| {
        let state = next(state);
        state.wrapping_add(read(memory, below(state, lines) * LINE))
    })
}

/// The same, one line of each page alone; the lines lie in different sets of the caches.
pub(super) fn line_a_page_ns(memory: &[u8], random: &mut SplitMix64) -> f64 {
    let pages = memory.len() / PAGE;
    timed(random.next_u64(), |state| {
        let state = next(state);
        let page = below(state, pages);
        state.wrapping_add(read(memory, page * PAGE + page % (PAGE / LINE) * LINE))
    })
}

/// The skew of skewed accesses, that of the YCSB benchmark.
pub(super) const THETA: f64 = 0.99;

/// Lines at random, the n-th hottest page as often as n to the power of -[`THETA`] says, each
/// access waiting for the one before. Hot pages lie side by side, or scattered over the memory.
pub(super) fn skewed_ns(memory: &[u8], random: &mut SplitMix64, hot: Hot) -> f64 {
    let pages = memory.len() / PAGE;
    let power = 1.0 - THETA;
    let most = ((pages + 1) as f64).powf(power);
    // Drawn beforehand: a logarithm takes as long as an access.
    let mut drawn = || {
        let share = random.next_u64() as f64 / u64::MAX as f64;
        let rank = (1.0 + share * (most - 1.0)).powf(1.0 / power) as usize - 1;
        let page = if hot == Hot::Scattered { rank.wrapping_mul(0x9e37_79b1) } else { rank };
        (page & (pages - 1)) * PAGE + random.index(PAGE / LINE) * LINE
    };
    let drawn: Vec<usize> = (0..ACCESSES).map(|_| drawn()).collect();
    let begin = Stopwatch::start();
    let end = drawn.iter().fold(0, |last, at| read(memory, at + last) as usize);
    black_box(end);
    begin.ns() / ACCESSES as f64
}

/// Lines at random, none waiting for another.
pub(super) fn independent_ns(memory: &[u8], random: &mut SplitMix64) -> f64 {
    let lines = memory.len() / LINE;
    let (mut state, mut sum) = (random.next_u64(), 0u64);
    let begin = Stopwatch::start();
    for _ in 0..INDEPENDENT_ACCESSES {
        state = next(state);
        sum = sum.wrapping_add(read(memory, below(state, lines) * LINE));
    }
    black_box(sum);
    begin.ns() / INDEPENDENT_ACCESSES as f64
}

/// One line after the other, from a random place on.
pub(super) fn sequential_ns(memory: &[u8], random: &mut SplitMix64) -> f64 {
    let lines = memory.len() / LINE;
    let (first, mut sum) = (random.index(lines), 0u64);
    let begin = Stopwatch::start();
    for line in first..first + ACCESSES {
        sum = sum.wrapping_add(read(memory, (line & (lines - 1)) * LINE));
    }
    black_box(sum);
    begin.ns() / ACCESSES as f64
}

/// The time of a cycle: a multiplication and an addition that wait for the ones before take four,
/// on every processor of the last ten years.
pub(super) fn cycle_ns() -> f64 {
    let one = |_| timed(black_box(3), next) / 4.0;
    (0..TURNS).map(one).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_takes_time_and_stays_in_its_memory() {
        let memory = vec![0; 1 << 20];
        let mut random = SplitMix64::new(3);
        let scattered = |memory: &[u8], random: &mut SplitMix64| skewed_ns(memory, random, Hot::Scattered);
        for of in [chase_ns, line_a_page_ns, independent_ns, sequential_ns, scattered] {
            assert!(of(&memory, &mut random) > 0.0);
        }
        assert!(cycle_ns() > 0.0);
    }

    #[test]
    fn turns_go_from_one_kind_of_pages_to_the_other() {
        let memory = [&[0u8; 8][..], &[0u8; 16][..]];
        let (least, spread) = least_of_turns(memory, &|memory, _| memory.len() as f64);
        assert_eq!((least, spread), ([8.0, 16.0], 0.0));
    }
}
