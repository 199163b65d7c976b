//! Processes: mapping, touching and unmapping memory, small pages and huge ones.

use crate::support::*;
use kontig_mm::VmEvent;
use kontig_program::{Op, Region};
use kontig_sim::{Machine, SimError, UserPage};
use proptest::prelude::*;
use proptest::test_runner::Config;

fn prompt(blocks: u32) -> Prompt {
    Prompt::new(machine(2, blocks, linux("6.1")), 2)
}

#[test]
fn a_touched_page_takes_one_page_and_one_page_table_for_each_2_mib() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 1100);
    assert_eq!(free_pages(&p.m), before, "mapping takes nothing");
    p.call(0, Op::Touch(r)).unwrap();
    assert_eq!(before - free_pages(&p.m), 1100 + 3);
    assert_eq!(event(&p.m, VmEvent::Pgfault), 1100);
    assert_eq!(user_pages(&p.m).len(), 1100);
}

#[test]
fn touching_a_range_twice_costs_no_new_pages_and_no_faults() {
    let mut p = prompt(16);
    let r = p.mmap(0, 700);
    p.call(0, Op::Touch(r)).unwrap();
    let (free, faults) = (free_pages(&p.m), event(&p.m, VmEvent::Pgfault));
    p.call(0, Op::Touch(r)).unwrap();
    assert_eq!((free_pages(&p.m), event(&p.m, VmEvent::Pgfault)), (free, faults));
}

#[test]
fn unmapping_everything_gives_every_page_and_page_table_back() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 1100);
    p.call(0, Op::Touch(r)).unwrap();
    p.call(0, Op::Munmap(r)).unwrap();
    assert_eq!(free_pages(&p.m), before);
    p.m.memory().check().unwrap();
}

#[test]
fn a_page_table_is_freed_with_its_last_page_however_the_range_is_cut() {
    for cuts in [&[0, 256, 512][..], &[0, 1, 511, 512], &[0, 100, 200, 300, 400, 500, 512]] {
        let mut p = prompt(16);
        let before = free_pages(&p.m);
        let r = p.mmap(0, 512);
        p.call(0, Op::Touch(r)).unwrap();
        for w in cuts.windows(2) {
            assert_eq!(kernel_pages(&p.m), 1, "the table stays while a page is mapped");
            p.call(0, Op::Munmap(part(r, w[0], w[1] - w[0]))).unwrap();
        }
        assert_eq!(free_pages(&p.m), before, "cut at {cuts:?}");
    }
}

#[test]
fn unmapping_what_is_not_mapped_is_harmless() {
    let mut p = prompt(16);
    let r = p.mmap(0, 1500);
    let before = free_pages(&p.m);
    p.call(0, Op::Munmap(part(r, 1, 1499))).unwrap();
    p.call(0, Op::Touch(part(r, 600, 10))).unwrap();
    p.call(0, Op::Munmap(part(r, 590, 30))).unwrap();
    p.call(0, Op::Munmap(part(r, 590, 30))).unwrap();
    p.call(0, Op::Munmap(r)).unwrap();
    assert_eq!(free_pages(&p.m), before);
    p.m.memory().check().unwrap();
}

#[test]
fn a_mapping_is_gone_once_all_of_it_is_unmapped_at_once_and_the_next_has_its_number() {
    let mut p = prompt(16);
    let [a, b] = [p.mmap(0, 1500), p.mmap(0, 20)];
    p.call(0, Op::Munmap(a)).unwrap();
    for op in [Op::Touch, Op::Munmap] {
        let got = Prompt::call(&mut p, 0, op(a));
        assert!(matches!(got, Err(SimError::BadAddress { .. })), "{got:?}");
        // A program that asked for something impossible is done.
        let mut anew = prompt(16);
        let again = [anew.mmap(0, 1500), anew.mmap(0, 20)];
        assert_eq!(again, [a, b]);
        anew.call(0, Op::Munmap(a)).unwrap();
        p = anew;
    }
    assert_eq!(p.mmap(0, 7).mapping, a.mapping);
    assert_ne!(a.mapping, b.mapping);
}

#[test]
fn unmapped_memory_leaves_room_for_more() {
    let mut p = prompt(8);
    // 2³³ pages one after the other, of 2³² that there may be at a time.
    for _ in 0..8 {
        let r = p.mmap(0, 1 << 30);
        p.call(0, Op::Touch(part(r, 512 * 77, 1))).unwrap();
        p.call(0, Op::Munmap(r)).unwrap();
    }
    let got = p.call(0, Op::Mmap { pages: u32::MAX });
    assert_eq!(got, Err(SimError::NoAddressSpace { pages: u32::MAX }));
}

#[test]
fn an_empty_region_can_be_mapped_touched_and_unmapped() {
    let mut p = prompt(8);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 0);
    for op in [Op::AdviseHuge(r), Op::Touch(r), Op::Munmap(r)] {
        p.call(0, op).unwrap();
    }
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn memory_of_another_process_or_beyond_the_mapping_is_a_bad_address() {
    let ops: [fn(Region) -> Op; 3] = [Op::Touch, Op::Munmap, Op::AdviseHuge];
    for op in ops {
        let mut p = prompt(8);
        let r = p.mmap(0, 20);
        let beyond = [part(r, 0, 21), part(r, 20, 1), Region { first: u32::MAX, ..r }, Region { mapping: 7, ..r }];
        for (who, region) in [(1, r), (0, beyond[0]), (0, beyond[1]), (0, beyond[2]), (0, beyond[3])] {
            let mut p = prompt(8);
            assert_eq!(p.mmap(0, 20), r);
            let got = p.call(who, op(region));
            assert!(matches!(got, Err(SimError::BadAddress { .. })), "{:?} by {who}: {got:?}", op(region));
        }
    }
}

#[test]
fn an_advised_aligned_2_mib_range_takes_one_huge_page() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 1024);
    p.call(0, Op::AdviseHuge(r)).unwrap();
    p.call(0, Op::Touch(part(r, 700, 1))).unwrap();
    assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 1);
    assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0);
    assert_eq!(event(&p.m, VmEvent::Pgfault), 1);
    assert_eq!(before - free_pages(&p.m), 512 + 1, "a huge page and the page table kept for its split");
    let pages = user_pages(&p.m);
    assert_eq!(pages.len(), 1);
    let (at, &(pfn, order)) = pages.first_key_value().unwrap();
    assert_eq!((at.page, order), (512, HUGE), "the whole range is mapped by one order-9 block");
    assert!(pfn.is_pageblock_aligned());
    p.m.memory().check().unwrap();
    p.call(0, Op::Munmap(r)).unwrap();
    assert_eq!(free_pages(&p.m), before);
}

#[test]
fn a_range_that_was_not_advised_takes_small_pages() {
    let mut p = prompt(16);
    let r = p.mmap(0, 512);
    p.call(0, Op::Touch(r)).unwrap();
    assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 0);
    assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0);
    assert!(user_pages(&p.m).values().all(|(_, order)| order.get() == 0));
}

#[test]
fn the_unaligned_end_of_an_advised_mapping_takes_small_pages() {
    let mut p = prompt(16);
    let r = p.mmap(0, 512 + 100);
    p.call(0, Op::AdviseHuge(r)).unwrap();
    p.call(0, Op::Touch(r)).unwrap();
    assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 1);
    assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0, "where none fits, none is wanted");
    assert_eq!(user_pages(&p.m).len(), 1 + 100);
}

#[test]
fn without_a_free_block_a_huge_fault_falls_back_to_small_pages() {
    // Kernel pages in every pageblock, so that compaction can gain nothing.
    for profile in [linux("5.6"), linux("6.1")] {
        let mut m = machine(2, 16, profile);
        fill_unmovable(&mut m, 256);
        let mut p = Prompt::new(m, 1);
        let r = p.mmap(0, 512);
        p.call(0, Op::AdviseHuge(r)).unwrap();
        p.call(0, Op::Touch(r)).unwrap();
        assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 0);
        assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 1, "once for the 2 MiB range");
        assert_eq!(user_pages(&p.m).len(), 512);
        p.m.memory().check().unwrap();
    }
}

#[test]
fn unmapping_a_part_of_a_huge_page_splits_it_and_frees_that_part_alone() {
    let mut p = prompt(16);
    let before = free_pages(&p.m);
    let r = p.mmap(0, 512);
    p.call(0, Op::AdviseHuge(r)).unwrap();
    p.call(0, Op::Touch(r)).unwrap();
    let block = user_pages(&p.m)[&UserPage { process: 0, mapping: r.mapping, page: 0 }].0;
    p.call(0, Op::Munmap(part(r, 100, 300))).unwrap();
    assert_eq!(event(&p.m, VmEvent::ThpSplitPmd), 1);
    assert_eq!(event(&p.m, VmEvent::ThpSplitPage), 1);
    assert_eq!(before - free_pages(&p.m), 212 + 1);
    let pages = user_pages(&p.m);
    let kept: Vec<u32> = (0..100).chain(400..512).collect();
    assert_eq!(pages.keys().map(|at| at.page).collect::<Vec<_>>(), kept);
    for (at, (pfn, order)) in pages {
        assert_eq!((pfn, order.get()), (block.plus(at.page), 0), "each page stays where it was");
    }
    p.m.memory().check().unwrap();
    // Small pages fill the hole again: its table exists.
    p.call(0, Op::Touch(r)).unwrap();
    assert_eq!(user_pages(&p.m).len(), 512);
    assert_eq!(event(&p.m, VmEvent::ThpFaultAlloc), 1);
    p.call(0, Op::Munmap(r)).unwrap();
    assert_eq!(free_pages(&p.m), before);
    p.m.memory().check().unwrap();
}

#[test]
fn a_fault_when_memory_is_used_up_says_so() {
    let mut p = prompt(4);
    let r = p.mmap(0, 4 * 512);
    let got = p.call(0, Op::Touch(r));
    assert!(matches!(got, Err(SimError::OutOfMemory { .. })), "{got:?}");
    p.m.memory().check().unwrap();
}

/// One operation on one of the mappings, in permille of its length.
#[derive(Clone, Debug)]
enum Act {
    Mmap { who: usize, pages: u32 },
    Advise { map: usize },
    Touch { map: usize, from: u32, to: u32 },
    Munmap { map: usize, from: u32, to: u32 },
    Compact,
}

fn act() -> impl Strategy<Value = Act> {
    let range = || (0u32..=1000, 0u32..=1000).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        2 => (0usize..2, 0u32..1600).prop_map(|(who, pages)| Act::Mmap { who, pages }),
        2 => (0usize..6).prop_map(|map| Act::Advise { map }),
        5 => (0usize..6, range()).prop_map(|(map, (from, to))| Act::Touch { map, from, to }),
        5 => (0usize..6, range()).prop_map(|(map, (from, to))| Act::Munmap { map, from, to }),
        1 => Just(Act::Compact),
    ]
}

/// The plain model: the pages of a mapping that are mapped, and their blocks.
struct Model {
    who: usize,
    region: Region,
    advised: bool,
    mapped: Vec<bool>,
}

impl Model {
    fn table(&self, page: usize) -> std::ops::Range<usize> {
        let start = page / 512 * 512;
        start..(start + 512).min(self.mapped.len())
    }
    fn touch(&mut self, from: usize, to: usize) {
        for page in from..to {
            let table = self.table(page);
            let huge = self.advised && table.len() == 512 && !self.mapped[table.clone()].contains(&true);
            let range = if huge { table } else { page..page + 1 };
            self.mapped[range].fill(true);
        }
    }
    fn tables(&self) -> u64 {
        self.mapped.chunks(512).filter(|t| t.contains(&true)).count() as u64
    }
    /// The pages that the machine's frames say are mapped.
    fn seen(&self, m: &Machine) -> Vec<bool> {
        let mut seen = vec![false; self.mapped.len()];
        for (UserPage { process, mapping, page }, (_, order)) in user_pages(m) {
            if (process as usize, mapping) == (self.who, self.region.mapping) {
                seen[page as usize..(page + order.pages()) as usize].fill(true);
            }
        }
        seen
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn the_machine_agrees_with_a_plain_model_of_what_is_mapped(acts in proptest::collection::vec(act(), 1..40)) {
        let mut p = prompt(48);
        let mut maps: Vec<Model> = Vec::new();
        let managed: u64 = p.m.memory().zones().iter().map(|z| z.managed).sum();
        for act in acts {
            match act {
                Act::Mmap { who, pages } if maps.len() < 6 => {
                    let region = p.mmap(who, pages);
                    maps.push(Model { who, region, advised: false, mapped: vec![false; pages as usize] });
                }
                Act::Advise { map } if map < maps.len() => {
                    let x = &mut maps[map];
                    x.advised = true;
                    p.call(x.who, Op::AdviseHuge(x.region)).unwrap();
                }
                Act::Touch { map, from, to } | Act::Munmap { map, from, to } if map < maps.len() => {
                    let x = &mut maps[map];
                    let (from, to) = (x.region.pages * from / 1000, x.region.pages * to / 1000);
                    let range = part(x.region, from, to - from);
                    if matches!(act, Act::Touch { .. }) {
                        x.touch(from as usize, to as usize);
                        p.call(x.who, Op::Touch(range)).unwrap();
                    } else {
                        x.mapped[from as usize..to as usize].fill(false);
                        p.call(x.who, Op::Munmap(range)).unwrap();
                        if range.pages == x.region.pages {
                            maps.remove(map);
                        }
                    }
                }
                Act::Compact => {
                    p.call(0, Op::Sysctl { name: "vm.compact_memory".into(), value: "1".into() }).unwrap();
                }
                _ => {}
            }
            p.m.memory().check().unwrap();
            let mapped: u64 = maps.iter().map(|x| x.mapped.iter().filter(|b| **b).count() as u64).sum();
            let tables: u64 = maps.iter().map(Model::tables).sum();
            prop_assert_eq!(event(&p.m, VmEvent::ThpFaultFallback), 0, "the machine is large enough");
            prop_assert_eq!(kernel_pages(&p.m), tables, "page tables");
            prop_assert_eq!(mapped + tables + free_pages(&p.m), managed, "every page is somewhere");
            for x in &maps {
                prop_assert!(x.seen(&p.m) == x.mapped, "mapping {:?}", x.region);
            }
        }
        for x in &maps {
            p.call(x.who, Op::Munmap(x.region)).unwrap();
        }
        prop_assert_eq!(free_pages(&p.m), managed);
    }
}
