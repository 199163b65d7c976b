//! Four constants from the loops: the part of the last level of caches that a program gets, what a
//! read takes there and in memory, and what a walk takes beside its reads.

use super::measured::Point;
use cobyla::{RhoBeg, StopTols, minimize};
use kontig_text::parse_size;
use kontig_translation::{Backing, Processor};

/// Where the search begins: 4 MiB, and 40, 120 and 10 ns.
const BEGIN: [f64; 4] = [4.0 * 1024.0 * 1024.0, 40.0, 120.0, 10.0];
/// The range of each: an eighth of a MiB to a GiB, a tenth of a nanosecond to ten microseconds.
const RANGES: [(f64, f64); 4] = [(131_072.0, 1_073_741_824.0), (0.1, 1e4), (0.1, 1e4), (0.1, 1e4)];
const STEPS: usize = 2000;

/// Small pages to a group of frames, where these are not shown.
const PER_GROUP: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// The processor with the constants that fit best, on the backing that fits best; and the points,
/// with pages that lie as fits best where frames were not seen.
///
/// # Errors
/// If the search fails.
pub(super) fn fit(
    unfitted: &Processor,
    backings: &[Backing],
    points: Vec<Point>,
    frames_seen: bool,
) -> Result<(Processor, Vec<Point>), String> {
    let lying = |per_group| points.iter().map(|point| Point { per_group, ..*point }).collect::<Vec<_>>();
    let all_points = if frames_seen { vec![points.clone()] } else { PER_GROUP.map(lying).into() };
    let mut best: Option<(Processor, Vec<Point>)> = None;
    for backing in backings {
        for points in &all_points {
            let problem = Problem { unfitted: Processor { backing: *backing, ..unfitted.clone() }, points };
            let cpu = problem.solve().map_err(|e| format!("the constants cannot be fitted: {e}"))?;
            if best.as_ref().is_none_or(|(best, _)| cpu.error_percent < best.error_percent) {
                best = Some((cpu, points.clone()));
            }
        }
    }
    best.ok_or_else(|| "no backing to fit".into())
}

struct Problem<'a> {
    unfitted: Processor,
    points: &'a [Point],
}

impl Problem<'_> {
    /// The processor with these constants, which are logarithms: none can be below 0.
    fn with(&self, logs: &[f64]) -> Processor {
        let [l3, l3_ns, memory_ns, walk_ns] = std::array::from_fn(|i| logs[i].exp());
        // Nobody gets more than there is.
        let l3 = l3.min(parse_size(&self.unfitted.l3).unwrap_or(u64::MAX) as f64);
        Processor {
            l3: format!("{} KiB", ((l3 / 1024.0).round() as u64).max(1)),
            l3_ns,
            // Memory is behind the last level.
            memory_ns: memory_ns + l3_ns,
            walk_ns,
            ..self.unfitted.clone()
        }
    }

    /// The root mean square of the logarithms of model over measurement.
    fn error(&self, cpu: &Processor) -> f64 {
        let logs = self.points.iter().flat_map(|point| {
            let modelled = point.modelled(cpu);
            (0..2).map(move |i| (modelled[i] / point.ns[i]).ln())
        });
        let (sum, count) = logs.fold((0.0, 0.0), |(sum, count), log| (sum + log * log, count + 1.0));
        f64::sqrt(sum / f64::max(count, 1.0))
    }

    fn solve(&self) -> Result<Processor, String> {
        let begin = BEGIN.map(f64::ln);
        let ranges = RANGES.map(|(low, high)| (low.ln(), high.ln()));
        let error = |logs: &[f64], (): &mut ()| self.error(&self.with(logs));
        let free: &[fn(&[f64], &mut ()) -> f64] = &[];
        let near = StopTols { ftol_rel: 1e-6, ..StopTols::default() };
        let found = minimize(error, &begin, &ranges, free, (), STEPS, RhoBeg::All(0.5), Some(near));
        let (_, best, _) = found.map_err(|(status, ..)| format!("{status:?}"))?;
        let rounded = |ns: f64| (ns * 10.0).round() / 10.0;
        let cpu = self.with(&best);
        let cpu = Processor {
            l3_ns: rounded(cpu.l3_ns),
            memory_ns: rounded(cpu.memory_ns),
            walk_ns: rounded(cpu.walk_ns),
            ..cpu
        };
        let error_percent = rounded(100.0 * self.error(&cpu));
        Ok(Processor { error_percent, ..cpu })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::measured::Loop;
    use super::super::memory::Pages;
    use super::*;

    /// The processor of a machine file.
    pub(in super::super) fn zen4() -> Processor {
        let file = include_str!("../../../../machines/zen4-guest-16g.toml");
        let mut file: toml::Table = file.parse().expect("a machine file");
        file.remove("translation").and_then(|of| of.try_into().ok()).expect("it says what translation costs")
    }

    #[test]
    fn a_processor_is_found_again_from_what_it_takes() {
        let cpu = zen4();
        let at = |of, mib: usize| Point { of, bytes: mib << 20, larger: Pages::Huge, ns: [0.0; 2], per_group: 2.0 };
        let sizes = [4, 16, 64, 256, 1024, 2048];
        let points = sizes.map(|mib| at(Loop::Chase, mib)).into_iter();
        let points = points.chain([16, 32, 64].map(|mib| at(Loop::LineAPage, mib)));
        let points: Vec<Point> = points.map(|point| Point { ns: point.modelled(&cpu), ..point }).collect();
        let of = zen4();
        let unfitted = Processor { l3: "32 MiB".into(), ..cpu };
        let (found, _) = fit(&unfitted, &[Backing::Huge, Backing::Small], points, true).expect("it can be fitted");
        assert_eq!(found.backing, Backing::Small);
        // Turns of a quiet host differ by 3 % and more: what explains the loops better is as good.
        assert!(found.error_percent < 2.0, "{}", found.error_percent);
        // The size of the last level and its latency can stand for each other in part.
        assert!((found.memory_ns / of.memory_ns - 1.0).abs() < 0.1, "{} for {}", found.memory_ns, of.memory_ns);
    }
}
