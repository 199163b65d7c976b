//! Rows 11 and 12: invariants of any history, tried on a random one.
//!
//! The property tests of the engine try many short histories; this is
//! a long one on a large machine.

use crate::measure::Samples;
use crate::options::{Options, size};
use crate::subject::{Kontig, Subject};
use crate::table::{Row, Target, Unit};
use kontig_mm::{Order, ZoneId};
use kontig_program::SplitMix64;

const STEPS: u32 = 2_000_000;

/// Runs a random history. Returns whether every request succeeded for which a block was free, and
/// whether every huge block can be allocated once everything is freed.
fn try_history(frames: u32) -> (bool, bool) {
    let mut machine = Kontig::new(frames);
    let mut random = SplitMix64::new(11);
    let mut held: Vec<(u32, u8)> = Vec::new();
    let mut never_failed = true;
    for step in 0..STEPS {
        // Alternately fill and empty memory.
        let filling = (step / 100_000) % 2 == 0;
        if random.below(10) < if filling { 7 } else { 3 } || held.is_empty() {
            let order = random.below(11).min(random.below(11)) as u8;
            match machine.alloc(order) {
                Some(pfn) => held.push((pfn, order)),
                None => {
                    machine.settle();
                    let zone = machine.memory.zone(ZoneId::new(0));
                    let fitting = (order..=10).any(|o| zone.nr_free(Order::new(o)) > 0);
                    never_failed &= !fitting || machine.alloc(order).map(|pfn| held.push((pfn, order))).is_some();
                }
            }
        } else {
            let (pfn, order) = held.swap_remove(random.below(held.len() as u32) as usize);
            machine.free(pfn, order);
        }
    }
    random.shuffle(&mut held);
    held.drain(..).for_each(|(pfn, order)| machine.free(pfn, order));
    machine.settle();
    let mut huge = 0;
    while machine.alloc_last(9).is_some() {
        huge += 1;
    }
    (never_failed, huge == frames / 512 && machine.memory.check().is_ok())
}

pub fn rows(o: &Options) -> Vec<Row> {
    let frames = o.frames(4);
    let (never_failed, all_huge) = try_history(frames);
    let row = |number, what: &str, yes: bool| Row {
        number,
        what: format!("{what}, {STEPS} random steps, {}", size(frames)),
        unit: Unit::YesNo,
        ours: Samples::new(vec![f64::from(u8::from(yes))]),
        yardsticks: Vec::new(),
        target: Some(Target::Yes),
    };
    vec![
        row("11", "all freed: every huge block can be allocated", all_huge),
        row("12", "no failure with a fitting block free", never_failed),
    ]
}
