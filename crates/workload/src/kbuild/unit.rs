//! The processes that make an object of a source file, and the one that links them all.

use super::measured::{
    AS, ASSEMBLY, CC1, COLLECTED, DEPENDENCY, FIXDEP, Figures, GCC, HEAP_PERCENT, LD, LIBC, LINKS, Linker, NM, OBJTOOL,
    OBJTOOL_HEAP_PERCENT, OBJTOOL_NS_A_PAGE, PARSER_PERCENT, RM, Release, SH, Size, TABLE_SOONER, TABLE_USED, TABLES,
    TABLES_FROM_KIB, Tool,
};
use kontig_program::act::{Act, Acts, Area, BREAK, CALL, Files, HEAP, Lengths, Pages, TEXT};
use kontig_program::{FileName, SplitMix64};
use std::sync::OnceLock;

/// How often a compiler looks at what it has, and how often its heap grows from one look to the
/// next: far more often than a time slice, so that what others take lies between what it takes. A
/// compiler that took a sixteenth of its heap at once had a huge page whenever one was free.
const LOOKS: u32 = HEAP_PERCENT.len() as u32;
const GROWS: u32 = 32;

/// The pages of a heap after this many of all its steps.
fn heap_after(heap: u32, steps: u32) -> u32 {
    let percent = |looks: u32| looks.checked_sub(1).map_or(0, |last| HEAP_PERCENT[last as usize]);
    let looks = (steps / GROWS).min(LOOKS - 1);
    let (from, to) = (heap * percent(looks) / 100, heap * percent(looks + 1) / 100);
    from + (to - from) * (steps - looks * GROWS) / GROWS
}

/// The areas of a compiler's table, before and after it doubles.
const TABLE_AREAS: [Area; 2] = [3, 4];

/// How often `objtool` goes through all it has read, in half of its time.
const PASSES: u64 = 4;

/// Rounds bytes up to pages.
pub(super) const fn in_pages(bytes: u32) -> u32 {
    bytes.div_ceil(4096)
}

/// A source tree, by number. Its files have numbers of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) release: Release,
    pub(crate) number: u8,
}

impl Tree {
    fn file(self, kind: u64, number: u32) -> FileName {
        FileName::new(0, 1 << 40 | u64::from(self.number) << 32 | kind << 24 | u64::from(number))
    }
    pub(super) fn figures(self) -> &'static Figures {
        self.release.figures()
    }
    /// All its files before a build, as an archive holds them: headers, sources, and those that no
    /// build reads.
    pub(crate) fn archive(self) -> [Files; 3] {
        let (files, pages) = self.figures().tree;
        let [headers, sources] = self.read();
        let others = Files {
            first: self.file(7, 0),
            files: files.saturating_sub(headers.files + sources.files),
            lengths: Lengths::Mean(pages.saturating_sub(headers.pages() + sources.pages())),
        };
        [headers, sources, others]
    }
    /// The files that a build reads of it: headers and sources.
    pub(super) fn read(self) -> [Files; 2] {
        static LENGTHS: [OnceLock<[Vec<u32>; 2]>; Release::COUNT] = [const { OnceLock::new() }; Release::COUNT];
        let Figures { units, headers, .. } = *self.figures();
        let [of_headers, of_sources] = LENGTHS[self.release as usize].get_or_init(|| {
            let sources = (0..units).map(|unit| self.size(unit).source_pages());
            [(0..headers).map(|header| self.header_pages(header)).collect(), sources.collect()]
        });
        [
            Files { first: self.header(0), files: headers, lengths: Lengths::Each(of_headers) },
            Files { first: self.source(0), files: units, lengths: Lengths::Each(of_sources) },
        ]
    }
    /// The files that a build leaves there, finished or not.
    pub(crate) fn output(self) -> [Files; 4] {
        let units = self.figures().units;
        let of = |first, files| Files { first, files, lengths: Lengths::Mean(0) };
        [
            of(self.object(0), units),
            of(self.dependencies(0), units),
            of(self.assembly(0), units),
            of(self.kernel(0), LINKS),
        ]
    }
    pub(super) fn header(self, header: u32) -> FileName {
        self.file(1, header)
    }
    pub(super) fn source(self, unit: u32) -> FileName {
        self.file(2, unit)
    }
    fn assembly(self, unit: u32) -> FileName {
        self.file(3, unit)
    }
    pub(super) fn object(self, unit: u32) -> FileName {
        self.file(4, unit)
    }
    /// The output of `fixdep`: the command and every included file.
    pub(super) fn dependencies(self, unit: u32) -> FileName {
        self.file(6, unit)
    }
    /// The output of one pass of the linker.
    pub(super) fn kernel(self, pass: u32) -> FileName {
        self.file(5, pass)
    }
    /// Headers are all as long as their mean, of 2.06 pages: two, and three of every sixteenth.
    pub(super) fn header_pages(self, header: u32) -> u32 {
        let Figures { headers, header_bytes, .. } = self.figures();
        let at = |header: u32| u64::from(header) * header_bytes / u64::from(*headers) / 4096;
        (at(header + 1) - at(header)) as u32
    }
    /// In a whole kernel, large and small units lie among each other: every unit's place among the
    /// sixteenths is another than its neighbours'. But heaps are larger in some parts of it.
    pub(super) fn size(self, unit: u32) -> Size {
        let Figures { units, sizes, stride, heaps_along, .. } = *self.figures();
        let mut size = self.figures().scaled(&sizes[(unit * stride / 64) as usize % sizes.len()]);
        let percent = heaps_along.get(unit as usize * heaps_along.len() / units as usize).unwrap_or(&100);
        size.heap_kib = size.heap_kib * percent / 100;
        size
    }
}

fn read(file: FileName, pages: u32) -> Act {
    Act::Read(file, Pages::in_calls(0, pages, CALL))
}

fn write(file: FileName, pages: u32) -> Act {
    Act::Write(file, Pages::in_calls(0, pages, CALL))
}

/// The acts of a small program that uses its memory once.
fn small(tool: &Tool, others: Vec<Act>) -> Acts {
    let work = Act::Work { pages: tool.heap_pages(), ns: u64::from(tool.user_us) * 1000 };
    begun(tool, tool.heap_pages()).chain([work]).chain(others).collect()
}

/// How a program begins that comes to have this heap.
fn begun(tool: &Tool, heap: u32) -> impl Iterator<Item = Act> {
    let table = (tool.table_pages > 0).then_some(Act::Map(HEAP, tool.table_pages));
    let own = tool.mapped_pages() - LIBC.mapped_pages();
    begun_with(tool, own).into_iter().chain(table).chain([Act::Grow(BREAK, heap - tool.table_pages)])
}

/// A program's name, and what it maps at first: the C library and so much of its own.
fn begun_with(tool: &Tool, own: u32) -> [Act; 3] {
    let library = Act::MapFile(TEXT, LIBC.file(), 0..LIBC.mapped_pages());
    [Act::Name(tool.name), library, Act::MapFile(TEXT, tool.file(), 0..own)]
}

/// A child that runs another program, and the end of it.
fn run(program: Acts) -> [Act; 2] {
    [Act::Fork([Act::Exec(program)].into()), Act::Wait]
}

/// The shell that compiles a unit, as the child of `make` becomes it.
pub(super) fn compiled(tree: Tree, unit: u32, random: &mut SplitMix64) -> Acts {
    let size = tree.size(unit);
    let (assembly, object) = (in_pages(size.object * ASSEMBLY), in_pages(size.object));
    let read_object = || read(tree.object(unit), object);
    let assembler = small(&AS, vec![read(tree.assembly(unit), assembly), write(tree.object(unit), object)]);
    let driver = [run(compiler(tree, unit, &size, random)).to_vec(), run(assembler).to_vec()].concat();
    let driver = small(&GCC, [driver, vec![Act::Unlink(tree.assembly(unit))]].concat());
    let checks = small(&OBJTOOL, vec![read_object(), write(tree.object(unit), object)]);
    let fixdep = small(&FIXDEP, vec![write(tree.dependencies(unit), size.headers * DEPENDENCY / 4096 + 1)]);
    let checks = tree.figures().has_objtool.then_some(checks);
    let last = [fixdep, small(&NM, vec![read_object()]), small(&RM, vec![])];
    let programs = [driver].into_iter().chain(checks).chain(last);
    [Act::Exec(small(&SH, programs.flat_map(run).collect()))].into()
}

/// `cc1`: it reads the source and what it includes while its heap grows, and writes the assembler's
/// source.
fn compiler(tree: Tree, unit: u32, size: &Size, random: &mut SplitMix64) -> Acts {
    let Figures { headers, common_headers, mapped_percent, .. } = *tree.figures();
    let heap = in_pages(size.heap_kib * 1024);
    let has_tables = size.heap_kib >= TABLES_FROM_KIB && mapped_percent > 0;
    let tables = if has_tables { TABLES } else { [0; 2] };
    let collected = (heap * mapped_percent / 100).saturating_sub(tables.iter().sum());
    let heap = heap - tables.iter().sum::<u32>();
    let text = tree.figures().compiler_pages();
    let [parser, text] = [text * PARSER_PERCENT / 100, text].map(|pages| pages - LIBC.mapped_pages());
    let mut acts = begun_with(&CC1, parser).to_vec();
    acts.extend((collected > 0).then_some(Act::MapPieces(HEAP, collected, COLLECTED)));
    acts.extend([Act::Grow(BREAK, heap - collected), read(tree.source(unit), size.source_pages())]);
    let all = u64::from(size.user_us) * 1000;
    let steps = LOOKS * GROWS;
    let table = has_tables.then(|| Table::of(tree.figures().table_doubles_us(random), size, steps));
    let parses = step_at(tree.figures().parses_us(size), size, steps).max(1);
    for step in 0..steps {
        // It reads them as it parses.
        let by = |step: u32| size.headers * step.min(parses) / parses;
        let of_step = by(step)..by(step + 1);
        for header in of_step {
            // The common part comes first.
            let header = match header < common_headers {
                true => header,
                false => common_headers + random.below(headers - common_headers),
            };
            acts.push(read(tree.header(header), tree.header_pages(header)));
        }
        let until = |step: u32| all * u64::from(step) / u64::from(steps);
        let (pages, ns) = (heap_after(heap, step + 1), until(step + 1) - until(step));
        let looks = step % GROWS == 0;
        acts.extend((step == parses).then(|| Act::MapFile(TEXT, CC1.file(), parser..text)));
        acts.extend(table.iter().flat_map(|table| table.used(step, looks)));
        acts.push(if looks { Act::Compile { pages, ns } } else { Act::Extend { pages, ns } });
    }
    acts.push(write(tree.assembly(unit), in_pages(size.object * ASSEMBLY)));
    acts.into()
}

/// The step of a compiler of this size that begins at this time of its, the last at the latest.
fn step_at(us: u32, size: &Size, steps: u32) -> u32 {
    ((u64::from(steps) * u64::from(us) / u64::from(size.user_us)) as u32).min(steps - 1)
}

/// A compiler's table: the steps before which it is made and doubles.
struct Table {
    begins: u32,
    doubles: u32,
}

impl Table {
    /// The table of a compiler of this size, which doubles it after this time.
    fn of(doubles_us: u32, size: &Size, steps: u32) -> Table {
        let doubles = step_at(doubles_us, size, steps).max(1);
        Table { begins: step_at(doubles_us / TABLE_SOONER, size, steps).min(doubles - 1), doubles }
    }

    /// The compiler's use of it before a step. It writes to a new one as a whole, and then reads
    /// the old one for the last time.
    fn used(&self, step: u32, looks: bool) -> Vec<Act> {
        let ([old, new], [small, large]) = (TABLE_AREAS, TABLES);
        let map = |area, pages| Act::MapPieces(area, pages, pages);
        let all = |area, pages| Act::Touch(area, Pages::in_calls(0, pages, pages));
        match step {
            _ if step == self.begins => vec![map(old, small), all(old, small)],
            _ if step == self.doubles => vec![map(new, large), all(old, small), all(new, large)],
            _ if looks && step > self.begins => {
                let area = if step < self.doubles { old } else { new };
                vec![Act::Touch(area, Pages::at_random(0, small, TABLE_USED, u64::from(step)))]
            }
            _ => vec![],
        }
    }
}

/// The kernel is linked: all objects into one, which is checked; then that twice to come to the
/// size of the table of symbols, which is a part of the kernel, and once more with the table.
pub(super) fn linked(tree: Tree, units: &[u32]) -> Acts {
    let objects: Vec<(FileName, u32)> =
        units.iter().map(|unit| (tree.object(*unit), in_pages(tree.size(*unit).object))).collect();
    let all = objects.iter().map(|(_, pages)| pages).sum();
    let Figures { linker, checks_whole, .. } = *tree.figures();
    let bare = (u64::from(all) * u64::from(linker.bare_permille)).div_ceil(1000) as u32;
    let again = |pass, read, written| link(&[(tree.kernel(0), read)], (tree.kernel(pass), written), linker);
    let mut passes = vec![link(&objects, (tree.kernel(0), all), linker)];
    passes.extend(checks_whole.then(|| check((tree.kernel(0), all))));
    passes.extend((1..LINKS - 1).map(|trial| again(trial, bare, bare)));
    passes.push(again(LINKS - 1, all, all));
    [Act::Exec(small(&SH, passes.into_iter().flat_map(run).collect()))].into()
}

/// `objtool` over all of the kernel: it comes to have many times as much in memory as it reads, and
/// writes the object again.
fn check((object, pages): (FileName, u32)) -> Acts {
    let heap = |read: u32| OBJTOOL.heap_pages() + (u64::from(read) * u64::from(OBJTOOL_HEAP_PERCENT) / 100) as u32;
    let mut acts: Vec<Act> = begun(&OBJTOOL, heap(pages)).chain([read(object, pages)]).collect();
    let ns = u64::from(pages) * OBJTOOL_NS_A_PAGE / 2;
    acts.extend((1..=pages).map(|page| Act::Extend { pages: heap(page), ns: ns / u64::from(pages) }));
    acts.extend((0..PASSES).map(|_| Act::Work { pages: heap(pages), ns: ns / PASSES }));
    acts.push(write(object, pages));
    acts.into()
}

/// `ld`: it reads these files, comes to have some times as much in memory, and writes another.
fn link(files: &[(FileName, u32)], (to, pages): (FileName, u32), linker: Linker) -> Acts {
    let heap = |read: u32| LD.heap_pages() + read * linker.heap_percent / 100;
    let all: u32 = files.iter().map(|(_, pages)| pages).sum();
    let mut acts: Vec<Act> = begun(&LD, heap(all)).collect();
    let mut so_far = 0;
    for some in files.chunks(64) {
        let of_some: u32 = some.iter().map(|(_, pages)| pages).sum();
        so_far += of_some;
        acts.extend(some.iter().map(|(file, pages)| read(*file, *pages)));
        acts.push(Act::Work { pages: heap(so_far), ns: u64::from(of_some) * linker.ns_a_page });
    }
    acts.push(write(to, pages));
    acts.into()
}
