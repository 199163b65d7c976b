//! Row 9: host memory per page frame, as declared and as resident.

use crate::measure::Samples;
use crate::options::{Options, size};
use crate::subject::{Kontig, Subject};
use crate::table::{Row, Target, Unit};
use kontig_mm::state::{Frames, Lru};
use kontig_procfs::Smaps;

/// The kernel keeps one `struct page` for a frame.
pub(crate) const STRUCT_PAGE: f64 = 64.0;

/// The resident bytes of this process's own memory: mapped pages of its program, which the host
/// maps sixteen at a time, are not counted.
pub(crate) fn in_memory() -> f64 {
    let path = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let all = Smaps::parse(path, &text).ok().and_then(|mut smaps| smaps.mappings.pop());
    all.and_then(|all| all.kb("Anonymous")).map_or(f64::NAN, |kb| kb as f64 * 1024.0)
}

/// Measures bytes as declared, after init, and with every frame allocated singly.
pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(1024);
    let at = size(frames);
    let before = in_memory();
    let mut machine = Kontig::new(frames);
    let after_init = in_memory();
    while let Some(pfn) = machine.alloc_last(9) {
        machine.split(pfn, 9);
    }
    let touched = in_memory();
    let row = |number, what, bytes, target| Row {
        number,
        what,
        unit: Unit::Bytes,
        ours: Samples::new(vec![bytes]),
        yardsticks: vec![("struct page".into(), Samples::new(vec![STRUCT_PAGE]))],
        target,
    };
    // Declared bytes do not depend on the size.
    let (declared, resident) = (|most| Some(Target::AtMost(most)), |most| o.target(Target::AtMost(most)));
    let bytes_on = |lru: usize| Frames::BYTES_PER_FRAME + lru;
    let each = |bytes: f64| bytes / f64::from(frames);
    vec![
        row("9", "metadata a frame, as declared".into(), Frames::BYTES_PER_FRAME as f64, declared(16.0)),
        row(
            "9c",
            format!("the same at most on an ordered LRU; {} if its lists are dense", bytes_on(Lru::BYTES_PER_FRAME)),
            bytes_on(Lru::MOST_BYTES_PER_FRAME) as f64,
            declared(18.0),
        ),
        row("9a", format!("resident a frame after init of {at}"), each(after_init - before), resident(1.0)),
        row(
            "9b",
            format!("resident a frame with all of {at} split into frames"),
            each(touched - before),
            resident(16.0),
        ),
    ]
}
