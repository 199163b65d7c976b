//! Pages of other sizes than those that every kernel has: folios of 64 KiB, and pages of 1 GiB.
//!
//! They are measured where the host gives them as it is set. Nothing is set here.

use super::loops::{chase_ns, least_of_turns};
use super::measured::{Loop, Point};
use super::memory::{Memory, Pages};
use super::round::{LEAST, MIB, ROUNDS, SIZES_MIB, take_less};
use kontig_text::size;

const GIB: usize = 1 << 30;

/// Chases over up to `most` bytes on pages of each other size; or why there are none.
pub(super) fn measure(most: usize, mut begins: impl FnMut(&str)) -> Vec<(Pages, Result<Vec<Point>, String>)> {
    [Pages::Folios, Pages::Gigantic]
        .map(|pages| {
            let mut points = round(most, pages, &mut begins);
            for _ in 1..ROUNDS {
                points = points.and_then(|mut points| {
                    take_less(&mut points, &round(most, pages, &mut begins)?);
                    Ok(points)
                });
            }
            (pages, points)
        })
        .into()
}

fn round(most: usize, larger: Pages, begins: &mut impl FnMut(&str)) -> Result<Vec<Point>, String> {
    begins(larger.name());
    let sizes: Vec<usize> = match larger {
        // As many as the pool has.
        Pages::Gigantic => (1..=most / GIB).rev().map(|pages| pages * GIB).collect(),
        _ => vec![most],
    };
    let too_little = Err("too little memory is available".to_string());
    let large = sizes.into_iter().fold(too_little, |found, bytes| found.or_else(|_| Memory::new(bytes, larger)))?;
    let small = Memory::new(large.bytes().len(), Pages::Small)?;
    let sizes = SIZES_MIB.map(|mib| mib * MIB).into_iter();
    let points = sizes.filter(|bytes| (LEAST..=large.bytes().len()).contains(bytes)).map(|bytes| {
        begins(&format!("chase over {} on {}", size(bytes as u64), larger.name()));
        let (ns, _) = least_of_turns([&small.bytes()[..bytes], &large.bytes()[..bytes]], &chase_ns);
        Point { of: Loop::Chase, bytes, larger, ns, per_group: small.per_group(bytes).unwrap_or(0.0) }
    });
    Ok(points.collect())
}
