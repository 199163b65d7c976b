//! A measurement of a host.

use super::loops::THETA;
use super::memory::Pages;
use kontig_program::{Hot, Pattern};
use kontig_translation::Processor;

/// The share of the time that huge pages save, %, of the times on small pages and on huge ones.
pub fn gain([small, huge]: [f64; 2]) -> f64 {
    100.0 * (1.0 - huge / small)
}

/// A predicted gain holds within these percentage points of the measured one, or within this share
/// of it; and how that is said.
const POINTS: f64 = 5.0;
const SHARE: f64 = 0.25;
pub const NEAR: &str = "within 5 points or a quarter of it";

/// Whether a predicted gain is near enough to the measured one, both in %.
pub fn holds(predicted: f64, measured: f64) -> bool {
    (predicted - measured).abs() <= within(measured)
}

/// How far a gain of this size may be off, points.
pub(super) fn within(measured: f64) -> f64 {
    POINTS.max(SHARE * measured.abs())
}

/// The loops that the model tells of. The constants are fitted to the first two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    Chase,
    LineAPage,
    Skewed(Hot),
}

/// The time of an access in a loop over this much memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    pub of: Loop,
    pub bytes: usize,
    /// The pages that are held against small ones.
    pub larger: Pages,
    /// On small pages, and on larger ones.
    pub ns: [f64; 2],
    /// The small pages to a group of frames ([`per_group`](kontig_translation::Mapped::per_group)).
    pub per_group: f64,
}

impl Point {
    /// Takes the lesser of both times of each kind of pages.
    pub(super) fn take_less(&mut self, other: &Point) {
        if other.ns[0] < self.ns[0] {
            (self.ns[0], self.per_group) = (other.ns[0], other.per_group);
        }
        self.ns[1] = self.ns[1].min(other.ns[1]);
    }

    /// The same times as the model gives them.
    pub fn modelled(&self, cpu: &Processor) -> [f64; 2] {
        let pages = (self.bytes / 4096) as u64;
        [Pages::Small, self.larger].map(|kind| kind.mapped(pages, self.per_group)).map(|mapped| match self.of {
            Loop::Chase => cpu.access_ns(Pattern::Chase, mapped),
            Loop::LineAPage => cpu.line_a_page_ns(mapped),
            Loop::Skewed(hot) => cpu.access_ns(Pattern::Skewed { theta: THETA, hot }, mapped),
        })
    }
}

/// The first touch of memory, ns for 2 MiB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FirstTouch {
    /// On 512 small pages, and on a huge one.
    pub ns: [f64; 2],
    /// The same of memory that was just given back.
    pub again_ns: [f64; 2],
}

/// A host, as it was measured.
pub struct Measured {
    pub processor: Processor,
    /// The loops that the constants are fitted to.
    pub points: Vec<Point>,
    /// Skewed accesses, and chases on pages of other sizes or why there are none: the constants are
    /// not fitted to these.
    pub skewed: Vec<Point>,
    pub other_sizes: Vec<(Pages, Result<Vec<Point>, String>)>,
    pub first_touch: FirstTouch,
    /// Small pages to a group of frames, over all memory of the loops, and whether the kernel
    /// showed them: where it does not, what fits best.
    pub per_group: f64,
    pub frames_seen: bool,
    /// How far the middle turn was from the best one, %; of all loops the middle one.
    pub spread_percent: f64,
    /// CPUs that others used meanwhile.
    pub others: Option<f64>,
}

impl Measured {
    /// Whether the model tells the gain of a loop near enough.
    pub fn holds(&self, point: &Point) -> bool {
        holds(gain(point.modelled(&self.processor)), gain(point.ns))
    }

    pub fn chases(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.of == Loop::Chase)
    }

    /// Of all chases and skewed loops, those whose gain one gain for all of them would tell near
    /// enough: what a model must do better than.
    pub fn that_hold_at(&self, gain_of_all: f64) -> usize {
        self.chases().chain(&self.skewed).filter(|point| holds(gain_of_all, gain(point.ns))).count()
    }

    /// The middle gain of all chases and skewed loops, %.
    pub fn middle_gain(&self) -> f64 {
        let mut gains: Vec<f64> = self.chases().chain(&self.skewed).map(|point| gain(point.ns)).collect();
        gains.sort_by(f64::total_cmp);
        gains.get(gains.len() / 2).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_holds_within_five_points_or_a_quarter() {
        assert!(holds(4.0, 1.0) && !holds(7.0, 1.0));
        assert!(holds(31.0, 40.0) && !holds(29.0, 40.0));
    }
}
