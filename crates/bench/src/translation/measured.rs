//! A measurement of a host.

use kontig_program::Pattern;
use kontig_translation::{Mapped, Processor};

/// The loops that the constants are fitted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    Chase,
    LineAPage,
}

/// The time of an access in a loop over this much memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    pub of: Loop,
    pub bytes: usize,
    /// On small pages, and on huge ones.
    pub ns: [f64; 2],
}

impl Point {
    /// The same times as the model gives them.
    pub fn modelled(&self, cpu: &Processor) -> [f64; 2] {
        let pages = (self.bytes / 4096) as u64;
        [Mapped::all_small(pages), Mapped::all_huge(pages)].map(|mapped| match self.of {
            Loop::Chase => cpu.access_ns(Pattern::Chase, mapped),
            Loop::LineAPage => cpu.line_a_page_ns(mapped),
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
    pub points: Vec<Point>,
    pub first_touch: FirstTouch,
    /// How far the middle turn was from the best one, %; of all loops the middle one.
    pub spread_percent: f64,
    /// CPUs that others used meanwhile.
    pub others: Option<f64>,
}
