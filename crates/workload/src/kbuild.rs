//! A kernel build: `make -j`, which has a shell, a compiler, an assembler and what checks their
//! result run for each source file, and the linker at the end.
//!
//! It has everything that matters to memory: processes that live for half a second and build up
//! tens of MiB of heap; page tables, stacks and slab objects for each of them; the compiler's
//! program, shared by all that run; hundreds of headers read for every file; temporary files,
//! objects, and a last process that reads them all. Sizes and times are those of programs that
//! built a real kernel (`kbuild/measured.rs`). Left out are the subordinate makes and the
//! directories' archives; `make` forks, where a newer one uses vfork.
//!
//! The sources lie on the first disk before anything runs. A build of a part of a kernel takes
//! files from all over the list: one of its halves, thirds ..., by chance. It begins with `make
//! clean` of that part, which is not timed. If the OOM killer takes a file's compiler, the build
//! goes on without that file (`make -k`) and reports no time.

mod measured;
mod unit;

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use crate::player::{Manner, Player};
use kontig_program::act::{Acts, Files};
use kontig_program::{Batch, Figure, FileName, Op, Outcome, Program, SplitMix64, Value};
pub use measured::Release;
use measured::{LINKS, MAKE_PAGES, PROGRAMS};
use serde::{Deserialize, Serialize};
pub(crate) use unit::Tree;
use unit::linked;

/// A kernel is built.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Kbuild {
    /// Source files that are compiled: 2,886 are a whole kernel of `defconfig`, an eighth of them
    /// the default.
    #[serde(default = "an_eighth")]
    pub units: u32,
    /// How many are compiled side by side (`make -j`).
    pub jobs: u32,
    /// The number of the source tree: builds beside each other have one each.
    #[serde(default)]
    pub tree: u8,
    #[serde(default, skip_serializing_if = "Release::is_default")]
    pub release: Release,
    /// Whether something before it unpacks or copies the tree; else it lies on the disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpacked: bool,
}

const fn an_eighth() -> u32 {
    Release::V6_1.figures().units / 8
}

impl Kbuild {
    fn of_tree(&self) -> Tree {
        Tree { release: self.release, number: self.tree }
    }
}

impl Benchmark for Kbuild {
    type Program = Make;

    fn program(&self, start: &Start) -> Result<Make, String> {
        let all = self.release.figures().units;
        if !(1..=all).contains(&self.units) {
            return Err(format!("units = {}: from 1 to the {all} source files of a kernel", self.units));
        }
        if self.jobs == 0 {
            return Err("jobs = 0: at least one is compiled at a time".into());
        }
        let mut random = SplitMix64::new(start.seed);
        let turned = start.seed.saturating_sub(1) % u64::from(all) * u64::from(self.release.figures().turned_by_seed);
        let part = if self.units == all { 0 } else { random.below(all / self.units) };
        Ok(Make {
            tree: self.of_tree(),
            first: part + (turned % u64::from(all)) as u32,
            units: self.units,
            jobs: self.jobs,
            random,
            stage: Stage::Map,
            // A tree as the archive has it needs no cleaning.
            next: if self.unpacked { self.units + 1 } else { 0 },
            running: 0,
            not_built: 0,
            began_ns: 0,
            took: Latencies::new("build", "it was not ended"),
        })
    }

    fn measured(&self, copies: &[&Make]) -> Measured {
        let took = copies.iter().filter_map(|make| make.took.longest_ns).max();
        let not_built: u32 = copies.iter().map(|make| make.not_built).sum();
        let (took, missing) = match not_built {
            0 => (took, "it was not ended"),
            _ => (None, "not all files were built"),
        };
        let figures = vec![
            Figure::new("build time", "s").lower().read_or(took.map(|ns| ns as f64 / 1e9), missing),
            Figure::new("files not built for want of memory", "files").lower().read(f64::from(not_built)),
        ];
        Measured { figures, ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let figures = self.release.figures();
        let heap_kib = |size| u64::from(figures.scaled(size).heap_kib);
        let mean = figures.sizes.iter().map(heap_kib).sum::<u64>() / figures.sizes.len() as u64 / 4;
        let (needed, has) = (mean * u64::from(self.jobs) * copies, pages);
        if needed <= has {
            return Ok(());
        }
        let [needed, has] = [needed, has].map(|pages| pages / 256);
        Err(format!(
            "jobs = {}: as many compilers use {needed} MiB, and the machine has {has} MiB: choose less",
            self.jobs
        ))
    }

    fn files(&self) -> Vec<(FileName, u32)> {
        let tree = self.of_tree();
        let programs = PROGRAMS.iter().map(|program| (program.file(), program.file_pages()));
        if self.unpacked {
            return programs.collect();
        }
        programs.chain(tree.read().into_iter().flat_map(Files::all)).collect()
    }

    fn last_disk(&self) -> Option<u8> {
        Some(0)
    }

    fn is_random(&self) -> bool {
        true
    }
}

/// How far `make` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Map,
    /// Remove the output of the build before this one.
    Clean,
    Compile,
    /// The kernel is linked.
    Link,
    Done,
}

/// The process that is `make`.
#[derive(Clone)]
pub struct Make {
    tree: Tree,
    /// The first unit, and how many: they lie evenly in the tree's list.
    first: u32,
    units: u32,
    jobs: u32,
    random: SplitMix64,
    stage: Stage,
    /// The unit that is next to be cleaned away or compiled.
    next: u32,
    running: u32,
    not_built: u32,
    began_ns: u64,
    took: Latencies,
}

/// Files removed in a batch.
const AT_ONCE: u32 = 64;

impl Make {
    fn fork(&mut self, child: Acts, todo: &mut Batch) {
        self.running += 1;
        todo.push(Op::Fork(Box::new(Player::new(child, Manner::PROGRAM))));
    }

    /// The `i`th unit of the build.
    fn unit(&self, i: u32) -> u32 {
        let all = self.tree.figures().units;
        (self.first + (u64::from(i) * u64::from(all) / u64::from(self.units)) as u32) % all
    }

    fn learn(&mut self, done: &[Outcome]) {
        for outcome in done {
            if let Value::Ended { failed, .. } = outcome.value {
                self.running -= 1;
                self.not_built += u32::from(failed);
            }
        }
    }

    /// Some of what a build before this one has left goes. Of a process that was killed something
    /// may be missing: it is opened first, which makes it.
    fn clean(&mut self, done: &[Outcome], todo: &mut Batch) {
        let end = (self.next + AT_ONCE).min(self.units + 1);
        let object = |i: u32| self.tree.object(self.unit(i));
        let names = (self.next..end).flat_map(|i| match i < self.units {
            true => vec![object(i), self.tree.dependencies(self.unit(i))],
            false => (0..LINKS).map(|pass| self.tree.kernel(pass)).collect(),
        });
        let names: Vec<FileName> = names.collect();
        let opened = done.iter().filter_map(|outcome| match outcome.value {
            Value::File(file) => Some(Op::Close(file)),
            _ => None,
        });
        todo.extend(opened);
        if todo.is_empty() {
            todo.extend(names.into_iter().map(|name| Op::Open { name, create: true }));
        } else {
            todo.extend(names.into_iter().map(Op::Unlink));
            self.next = end;
        }
    }

    /// As many are compiled as may be at once; when one is, the next begins.
    fn compile(&mut self, todo: &mut Batch) {
        while self.running < self.jobs && self.next < self.units {
            let child = unit::compiled(self.tree, self.unit(self.next), &mut self.random);
            self.next += 1;
            self.fork(child, todo);
        }
        if self.running > 0 {
            todo.push(Op::WaitAny);
        }
    }
}

impl Program for Make {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        self.learn(done);
        let Some(last) = done.last() else { return };
        while todo.is_empty() {
            match self.stage {
                Stage::Map => {
                    self.stage = Stage::Clean;
                    todo.push(Op::Mmap { pages: MAKE_PAGES });
                }
                Stage::Clean => {
                    if let Value::Region(region) = last.value {
                        todo.push(Op::Touch(region));
                    } else if self.next > self.units {
                        (self.stage, self.next, self.began_ns) = (Stage::Compile, 0, last.end_ns);
                    } else {
                        self.clean(done, todo);
                    }
                }
                Stage::Compile => {
                    self.compile(todo);
                    if todo.is_empty() {
                        self.stage = Stage::Link;
                        let units: Vec<u32> = (0..self.units).map(|i| self.unit(i)).collect();
                        self.fork(linked(self.tree, &units), todo);
                        todo.push(Op::WaitAny);
                    }
                }
                Stage::Link => {
                    self.took.record(last.end_ns - self.began_ns);
                    self.stage = Stage::Done;
                    return;
                }
                Stage::Done => return,
            }
        }
    }

    fn name(&self) -> Option<&'static str> {
        Some("make")
    }

    fn progress(&self) -> f64 {
        match self.stage {
            Stage::Map | Stage::Clean => 0.0,
            Stage::Compile => f64::from(self.next) / f64::from(self.units) * 0.98,
            Stage::Link => 0.98,
            Stage::Done => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::measured::SIZES;
    use super::*;
    use crate::player::lived;
    use std::collections::{BTreeMap, BTreeSet};

    fn kbuild(units: u32, jobs: u32) -> Kbuild {
        Kbuild { units, jobs, tree: 0, release: Release::V6_1, unpacked: false }
    }

    const TREE: Tree = Tree { release: Release::V6_1, number: 0 };

    /// The operations of `make` if each child lives until the next one starts.
    fn made(units: u32, jobs: u32) -> Vec<Op> {
        lived(&mut kbuild(units, jobs).program(&Start::default()).expect("it can be read"))
    }

    #[test]
    fn no_more_are_compiled_at_once_than_there_are_jobs_and_the_kernel_is_linked_alone() {
        let (mut running, mut most, mut forked) = (0, 0, 0);
        for op in made(5, 2) {
            match op {
                Op::Fork(_) => {
                    (running, forked) = (running + 1, forked + 1);
                    // The last one is the linker.
                    assert!(forked < 6 || running == 1);
                }
                Op::WaitAny => running -= 1,
                _ => {}
            }
            most = most.max(running);
        }
        assert_eq!((most, forked, running), (2, 6, 0));
    }

    #[test]
    fn a_build_begins_by_removing_what_another_has_left() {
        let ops = made(3, 1);
        let first_fork = ops.iter().position(|op| matches!(op, Op::Fork(_))).expect("units are compiled");
        let removed: Vec<&Op> = ops[..first_fork].iter().filter(|op| matches!(op, Op::Unlink(_))).collect();
        let tree = TREE;
        let make = kbuild(3, 1).program(&Start::default()).expect("it can be read");
        let of_unit = |i: u32| [tree.object(make.unit(i)), tree.dependencies(make.unit(i))];
        let expected = (0..3)
            .flat_map(of_unit)
            .chain((0..LINKS).map(|pass| tree.kernel(pass)))
            .map(Op::Unlink)
            .collect::<Vec<_>>();
        assert_eq!(removed, expected.iter().collect::<Vec<_>>());
    }

    /// All that a process and those it starts hand over, as if one waited for the other.
    fn with_children(program: &mut dyn Program) -> Vec<Op> {
        let mut all = Vec::new();
        for op in lived(program) {
            match op {
                Op::Fork(mut child) | Op::Exec(mut child) => all.extend(with_children(child.as_mut())),
                op => all.push(op),
            }
        }
        all
    }

    #[test]
    fn a_unit_takes_the_time_of_its_programs_and_leaves_an_object_and_nothing_temporary() {
        let tree = TREE;
        let ops = with_children(&mut Player::new(unit::compiled(tree, 0, &mut SplitMix64::new(1)), Manner::PROGRAM));
        let compute: u64 = ops.iter().map(|op| if let Op::Compute(ns) = op { *ns } else { 0 }).sum();
        // The compiler's 135 ms, and those of seven small programs.
        assert_eq!(compute / 100_000, 1_350 + 134);
        let created: BTreeSet<FileName> =
            ops.iter().filter_map(|op| if let Op::Open { name, .. } = op { Some(*name) } else { None }).collect();
        let removed = ops.iter().filter_map(|op| if let Op::Unlink(name) = op { Some(*name) } else { None });
        let left: Vec<FileName> = created.difference(&removed.collect()).copied().collect();
        let laid: BTreeSet<FileName> = kbuild(1, 1).files().into_iter().map(|(name, _)| name).collect();
        let new: Vec<FileName> = left.into_iter().filter(|name| !laid.contains(name)).collect();
        assert_eq!(new, [tree.object(0), tree.dependencies(0)]);
    }

    /// Whole ranges of 2 MiB in a compiler's mappings, where the kernel aligns them and where not.
    #[test]
    fn a_compiler_has_whole_huge_pages_in_nearly_all_mappings_or_in_the_largest_two() {
        let (mut all, units) = ([0, 0], 2886 / 13);
        for unit in (0..units).map(|i| i * 13) {
            let mut compiled = Player::new(unit::compiled(TREE, unit, &mut SplitMix64::new(1)), Manner::PROGRAM);
            let ranges = with_children(&mut compiled).into_iter().filter_map(|op| match op {
                Op::MmapAnywhere { pages } => Some(pages / 512),
                _ => None,
            });
            let ranges: Vec<u32> = ranges.collect();
            all[0] += ranges.iter().sum::<u32>();
            all[1] += ranges.iter().map(|ranges| ranges.saturating_sub(1)).sum::<u32>();
        }
        let [aligned, unaligned] = all.map(|ranges| f64::from(ranges) / f64::from(units));
        // Measured on a 6.18: 20.9 a unit.
        assert!((aligned / 20.9 - 1.0).abs() < 0.03, "{aligned}");
        // Only compilers with a heap above 64 MiB have the two tables with four of them.
        assert!((0.5..1.0).contains(&unaligned), "{unaligned}");
    }

    /// One that took a sixteenth at once would leave no room for the others' requests between.
    #[test]
    fn a_compiler_comes_to_its_heap_in_steps_shorter_than_a_time_slice() {
        let compiled = Player::new(unit::compiled(TREE, 0, &mut SplitMix64::new(1)), Manner::PROGRAM);
        let ops = with_children(&mut { compiled });
        let longest = ops.iter().filter_map(|op| if let Op::Compute(ns) = op { Some(*ns) } else { None }).max();
        assert!(longest.is_some_and(|ns| ns < 5_000_000), "{longest:?}");
    }

    #[test]
    fn units_of_all_sizes_lie_among_each_other_in_a_whole_kernel_and_in_parts_of_it() {
        let kinds =
            |from: u32, step: u32| (0..32).map(|i| TREE.size(from + i * step).user_us).collect::<BTreeSet<_>>().len();
        assert_eq!([kinds(0, 1), kinds(1001, 1), kinds(0, 2), kinds(7, 8)], [16; 4]);
        let pages: u32 = (0..TREE.figures().headers).map(|header| TREE.header_pages(header)).sum();
        assert_eq!(u64::from(pages), TREE.figures().header_bytes / 4096);
    }

    #[test]
    fn a_part_of_a_kernel_is_of_files_from_all_over_it() {
        let units = |seed| {
            let of = kbuild(1443, 1).program(&Start { seed, ..Start::default() }).expect("it can be read");
            (0..1443).map(|i| of.unit(i)).collect::<BTreeSet<_>>()
        };
        let (a, b) = (units(1), (2..9).map(units).find(|b| *b != units(1)).expect("another half"));
        assert_eq!((a.len(), a.is_disjoint(&b), a.union(&b).count()), (1443, true, 2886));
    }

    /// The compilers of 96 files in a row have less in some parts of the list than in others.
    #[test]
    fn heaps_are_larger_in_some_parts_of_the_list_and_have_the_mean_in_all() {
        let heap = |units: std::ops::Range<u32>| {
            let of = units.len() as f64;
            units.map(|unit| f64::from(TREE.size(unit).heap_kib)).sum::<f64>() / of
        };
        let all = heap(0..2886);
        let parts = (0..2886 / 96).map(|part| heap(part * 96..part * 96 + 96) / all).collect::<Vec<_>>();
        let (low, high) = parts.iter().fold((9.0_f64, 0.0_f64), |(low, high), of| (low.min(*of), high.max(*of)));
        assert!(low < 0.75 && high > 1.35, "{low} to {high}");
        let mean = SIZES.iter().map(|size| f64::from(size.heap_kib)).sum::<f64>() / 16.0;
        assert!((all / mean - 1.0).abs() < 0.02, "{all} KiB");
    }

    /// As the list of the guest's files is turned: the second seed begins five files later.
    #[test]
    fn a_guest_begins_with_another_file_with_each_seed_and_others_do_not() {
        let first = |release, units, seed| {
            let kbuild = Kbuild { release, ..kbuild(units, 6) };
            let make = kbuild.program(&Start { seed, ..Start::default() }).expect("it can be read");
            let all: BTreeSet<u32> = (0..units).map(|i| make.unit(i)).collect();
            assert_eq!(all.len(), units as usize);
            make.unit(0)
        };
        assert_eq!([1, 2, 6, 25].map(|seed| first(Release::Guest, 24, seed)), [0, 5, 1, 0]);
        assert_eq!([1, 2].map(|seed| first(Release::V6_1, 2886, seed)), [0, 0]);
    }

    #[test]
    fn a_large_compiler_doubles_its_table_at_once_and_leaves_the_old_one_and_half_of_the_new_one() {
        let tree = Tree { release: Release::Guest, number: 0 };
        let compiled = |unit| {
            let acts = unit::compiled(tree, unit, &mut SplitMix64::new(1));
            let mut maps = vec![];
            let mut touched = vec![];
            for op in with_children(&mut Player::new(acts, Manner::PROGRAM)) {
                match op {
                    Op::MmapAnywhere { pages } if pages > 512 => maps.push((pages, touched.len())),
                    Op::Touch(region) => touched.push(region),
                    _ => {}
                }
            }
            (maps, touched)
        };
        assert_eq!(compiled(2).0, [], "34 MiB");
        let (maps, touched) = compiled(9);
        let [(1024, made), (2048, doubled)] = maps[..] else { panic!("{maps:?}") };
        assert_eq!(touched[made].pages, 1024);
        assert_eq!([touched[doubled].pages, touched[doubled + 1].pages], [1024, 2048]);
        let later = &touched[doubled + 2..];
        // Of the programs that follow, objtool has a large table of its own.
        assert!(later.iter().all(|part| ![1024, 2048].contains(&part.pages)), "neither is used as a whole again");
        assert!(later.iter().filter(|part| part.pages == 1).count() > 523);
    }

    #[test]
    fn debug_information_makes_objects_ten_times_as_large_and_trials_of_the_linker_leave_it_out() {
        let written = |release| {
            let tree = Tree { release, number: 0 };
            let mut linked = Player::new(linked(tree, &(0..160).collect::<Vec<_>>()), Manner::PROGRAM);
            let mut pages = vec![];
            for op in with_children(&mut linked) {
                match op {
                    Op::Open { create: true, .. } => pages.push(0),
                    Op::Write { pages: written, .. } => *pages.last_mut().expect("a file is open") += written,
                    _ => {}
                }
            }
            pages.retain(|pages| *pages > 0);
            pages
        };
        let (without, with) = (written(Release::V6_1), written(Release::WithDebugInfo));
        assert_eq!((without.len(), with.len()), (5, 4), "objtool writes one more");
        let times = f64::from(with[0]) / f64::from(without[0]);
        assert!((9.0..10.03).contains(&times), "in whole pages: {times}");
        let bare = |trial: usize| f64::from(with[trial]) / f64::from(without[0]);
        assert!((0.8..1.0).contains(&bare(1)) && with[1] == with[2], "rounded up less often: {}", bare(1));
        assert_eq!(with[3], with[0]);
    }

    #[test]
    fn the_kernel_is_checked_as_a_whole_by_a_process_eighteen_times_its_size() {
        let largest = |release| {
            let tree = Tree { release, number: 0 };
            let mut linked = Player::new(linked(tree, &(0..1017).collect::<Vec<_>>()), Manner::PROGRAM);
            let (mut all, mut heap) = (Vec::new(), 0);
            for op in with_children(&mut linked) {
                match op {
                    Op::MmapFile { .. } => all.push(std::mem::take(&mut heap)),
                    Op::Mmap { pages } => heap += pages,
                    _ => {}
                }
            }
            all.into_iter().max().map_or(0, |pages| pages / 256)
        };
        let [checked, only_linked] = [Release::V6_1, Release::V3_0].map(largest);
        assert!((540..=560).contains(&checked) && only_linked < 100, "{checked} MiB, {only_linked} MiB");
    }

    #[test]
    fn trees_share_programs_and_nothing_else() {
        let files = |tree| Kbuild { tree, ..kbuild(2, 1) }.files().into_iter().collect::<BTreeSet<_>>();
        assert_eq!(files(0).intersection(&files(1)).count(), PROGRAMS.len());
    }

    /// In a guest with 7.2 six compilers had mapped 4,065 pages of files half a second after they
    /// began, and 6,021 when the first of them generated code.
    #[test]
    fn a_compiler_parses_with_two_thirds_of_its_program_and_reads_all_headers_meanwhile() {
        let tree = Tree { release: Release::Guest, number: 0 };
        let compiled = unit::compiled(tree, 0, &mut SplitMix64::new(1));
        let ops: Vec<Op> = with_children(&mut Player::new(compiled, Manner::PROGRAM)).into_iter().collect();
        let generates = ops.iter().position(|op| matches!(op, Op::MmapFile { first: 1.., .. })).expect("it does");
        let maps = |op: &Op| if let Op::MmapFile { pages, .. } = op { *pages } else { 0 };
        let begins = ops[..generates].iter().rposition(|op| maps(op) > 0).expect("it maps its program");
        let library = ops[..begins].iter().map(maps).rfind(|pages| *pages > 0).expect("and the library");
        let [parses, all] = [0, maps(&ops[generates])].map(|more| library + maps(&ops[begins]) + more);
        assert!((65..=70).contains(&(parses * 100 / all)), "{parses} of {all} pages");
        let read = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Open { .. })).count();
        let headers = tree.size(0).headers as usize;
        assert!(read(&ops[begins..generates]) > headers, "{headers} headers and the source are read by then");
    }

    #[test]
    fn all_programs_map_one_c_library() {
        let compiled = unit::compiled(Tree { release: Release::V6_1, number: 0 }, 0, &mut SplitMix64::new(1));
        let library = PROGRAMS.last().expect("programs").file();
        let ops: Vec<Op> = with_children(&mut Player::new(compiled, Manner::PROGRAM)).into_iter().collect();
        let files: BTreeSet<FileName> = PROGRAMS.iter().map(|program| program.file()).collect();
        let opened = |op: &Op| if let Op::Open { name, .. } = op { files.get(name).copied() } else { None };
        let opened: Vec<FileName> = ops.iter().filter_map(opened).collect();
        let programs = opened.iter().filter(|name| **name != library).collect::<BTreeSet<_>>().len();
        assert_eq!(opened.iter().filter(|name| **name == library).count(), programs);
    }

    /// Seed 004's builds: 254 million minor faults and 6,438 s of user time for ten of them.
    #[test]
    fn a_unit_of_3_0_takes_an_1800th_of_640_s_and_25_million_faults_and_no_huge_page() {
        let tree = Tree { release: Release::V3_0, number: 4 };
        let (mut computed, mut faults) = (0, 0);
        for unit in 0..16 {
            let compiled = unit::compiled(tree, unit, &mut SplitMix64::new(1));
            for op in with_children(&mut Player::new(compiled, Manner::PROGRAM)) {
                match op {
                    Op::Compute(ns) => computed += ns,
                    // Every page of memory and of a mapped file is a fault: before 3.15 none maps
                    // those around it.
                    Op::Mmap { pages } => {
                        assert!(pages < 512, "never a whole huge page");
                        faults += pages;
                    }
                    Op::MmapFile { pages, .. } => faults += pages,
                    _ => {}
                }
            }
        }
        let of_build = |of_16: f64| of_16 / 16.0 * 1800.0;
        let (user_s, faults) = (of_build(computed as f64 / 1e9), of_build(f64::from(faults)));
        assert!((600.0..640.0).contains(&user_s), "without what touching pages takes: {user_s} s");
        assert!((24.5e6..25.5e6).contains(&faults), "without copies after forks: {faults}");
    }

    #[test]
    fn a_tree_has_all_its_files_and_what_is_built_of_it_reads_no_other() {
        for (release, files, pages) in [(Release::V6_1, 78_579, 1417 * 256), (Release::V3_0, 36_782, 480 * 256)] {
            let tree = Tree { release, number: 2 };
            let archive = tree.archive();
            let sum = |of: fn(&Files) -> u32| archive.iter().map(of).sum::<u32>();
            assert_eq!(sum(|set| set.files), files);
            assert_eq!(sum(|set| set.pages()), pages);
            let all: BTreeMap<FileName, u32> = archive.iter().flat_map(|set| set.all()).collect();
            assert_eq!(all.len(), files as usize);
            let outputs: BTreeSet<FileName> =
                tree.output().iter().flat_map(|set| (0..set.files).map(|file| set.name(file))).collect();
            let programs: BTreeSet<FileName> = PROGRAMS.iter().map(|program| program.file()).collect();
            let compiled = unit::compiled(tree, 5, &mut SplitMix64::new(1));
            let mut opened = None;
            for op in with_children(&mut Player::new(compiled, Manner::PROGRAM)) {
                match op {
                    Op::Open { name, .. } => {
                        opened = all.get(&name);
                        assert!(opened.is_some() || outputs.contains(&name) || programs.contains(&name), "{name}");
                    }
                    // A read beyond a file's end is cut there.
                    Op::Read { first, pages, .. } => assert!(opened.is_none_or(|length| first + pages <= *length)),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn an_unpacked_tree_is_not_laid_out_and_needs_no_cleaning() {
        let kbuild = Kbuild { unpacked: true, ..kbuild(3, 1) };
        assert_eq!(kbuild.files().len(), PROGRAMS.len());
        let ops = lived(&mut kbuild.program(&Start::default()).expect("it can be read"));
        let first_fork = ops.iter().position(|op| matches!(op, Op::Fork(_))).expect("units are compiled");
        assert!(!ops[..first_fork].iter().any(|op| matches!(op, Op::Unlink(_) | Op::Open { .. })));
    }

    #[test]
    fn impossible_builds_are_refused() {
        let refused = |of: Kbuild| of.program(&Start::default()).err().expect("refused");
        assert!(refused(kbuild(2887, 1)).starts_with("units = 2887: from 1 to the 2886 source files"));
        assert!(refused(kbuild(1, 0)).starts_with("jobs = 0: "));
        let room = kbuild(1, 8).fits(256 * 256, 1).unwrap_err();
        assert_eq!(room, "jobs = 8: as many compilers use 392 MiB, and the machine has 256 MiB: choose less");
    }
}
