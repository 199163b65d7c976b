//! Memory and time of a kernel build's programs, measured while they built one; and what is taken
//! to be different where another kernel is built.
//!
//! Source: Linux 6.1 (Debian's, `defconfig` of x86-64) built with GCC 12.2 and binutils 2.40 on
//! Debian 12, one file at a time. `make -n` names 2,886 files to compile. 56 of them, taken at
//! random, were compiled with every process telling at its end what `/proc/self/status` and
//! `getrusage` say of it; what they include stands in their `.cmd` files. The mean compiler takes
//! 0.48 s in user mode, so that a whole build takes 1,377 s; seed 001 publishes 1,240 s for one.

use super::unit::in_pages;
use kontig_program::{FileName, SplitMix64};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The kernel that is built.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub enum Release {
    /// 6.1 by GCC 12.2, as measured.
    #[default]
    #[serde(rename = "6.1")]
    V6_1,
    /// The same with debug information (`gcc -g`).
    #[serde(rename = "6.1-debug-info")]
    WithDebugInfo,
    /// 3.0 by a compiler of 2011: 6.1's figures, scaled.
    #[serde(rename = "3.0")]
    V3_0,
    /// 24 files of Debian's 6.1 by GCC 12.2, built in an emulated guest.
    #[serde(rename = "6.1-guest")]
    Guest,
}

/// The figures that differ from one kernel and its compiler to another.
pub(super) struct Figures {
    /// Source files of a whole kernel of `defconfig`.
    pub(super) units: u32,
    /// Files that any unit includes, those that nearly all units include, and their length.
    pub(super) headers: u32,
    pub(super) common_headers: u32,
    pub(super) header_bytes: u64,
    /// Files of the whole tree, and their pages; less than a build reads: there is no more.
    pub(super) tree: (u32, u32),
    /// Of a compiler of 6.1: its heap, its program, the headers it reads, its time, and what it
    /// makes.
    heap_percent: u32,
    text_percent: u32,
    headers_percent: u32,
    user_permille: u32,
    object_percent: u32,
    pub(super) linker: Linker,
    /// Files by which the list begins later with each seed after the first.
    pub(super) turned_by_seed: u32,
    /// How much of a compiler's heap lies in mappings of 2 MiB and more: where the kernel aligns
    /// these (6.7 and later), the first fault in each range may be for a huge page. The rest is the
    /// break's.
    pub(super) mapped_percent: u32,
    /// Whether `objtool` looks through each object (4.6 and later).
    pub(super) has_objtool: bool,
    /// Whether it looks through all of the kernel once more (`CONFIG_NOINSTR_VALIDATION`, or 6.2
    /// and later with `CONFIG_X86_KERNEL_IBT`).
    pub(super) checks_whole: bool,
    /// Sizes of its source files, as many of each, and how far apart in the list the sizes of two
    /// neighbours are, in 64ths of a place.
    pub(super) sizes: &'static [Size],
    pub(super) stride: u32,
    /// Heaps along the list, in equal parts of it: % of the mean. None if they are as large
    /// everywhere.
    pub(super) heaps_along: &'static [u32],
}

/// Memory and time of the linker, by what it reads.
#[derive(Clone, Copy)]
pub(super) struct Linker {
    /// Its heap grows by so much of what it reads.
    pub(super) heap_percent: u32,
    /// Time for a page that it reads.
    pub(super) ns_a_page: u64,
    /// The share of what it reads that is not debug information: the trials for the table of
    /// symbols read and write only that.
    pub(super) bare_permille: u32,
}

impl Release {
    pub(super) const COUNT: usize = Release::Guest as usize + 1;
    /// The tree of 6.1 has 78,579 files, which take 1,417 MiB in whole pages. The 56 compilers of
    /// it, traced on a 6.18, mapped 20.9 aligned ranges of 2 MiB in the mean (1 to 40); their
    /// drivers and assemblers none. So a whole build has 60,300 such faults.
    const OF_6_1: Figures = Figures {
        units: 2886,
        headers: HEADERS,
        common_headers: 292,
        header_bytes: HEADER_BYTES,
        tree: (78_579, 1417 * 256),
        heap_percent: 100,
        text_percent: 100,
        headers_percent: 100,
        user_permille: 1000,
        object_percent: 100,
        linker: Linker { heap_percent: 258, ns_a_page: 45_000, bare_permille: 1000 },
        turned_by_seed: 0,
        mapped_percent: 87,
        has_objtool: true,
        checks_whole: true,
        sizes: &SIZES,
        // 16 divided by the golden ratio: every second or eighth file has all sizes, too.
        stride: 633,
        heaps_along: &HEAPS_ALONG,
    };

    /// 64 files of 6.1, compiled with and without `-g`: the compiler has 11.3 MiB more. It takes
    /// 1.19 times as long, which is left out: seed 001's compilers are faster without that. 160
    /// objects of 4.27 MB have 42.8 MB with it. Linked into one, `ld` had 47.6 MiB for these, and
    /// took 60 ms; without it the result is 0.091 times as large. `objtool` over it had 190 MiB,
    /// which for a whole kernel is more than seed 001's machine has; it is left out.
    const WITH_DEBUG_INFO: Figures = Figures {
        heap_percent: 121,
        object_percent: 1003,
        linker: Linker { heap_percent: 104, ns_a_page: 5_700, bare_permille: 91 },
        checks_whole: false,
        ..Release::OF_6_1
    };

    /// The tree of 3.0 has 36,782 files of 430 MB, some 480 MiB in whole pages. Not measured: 1,800
    /// of them are compiled, and read a third of the headers. Memory and time are those with which
    /// ten builds come to seed 004's 6,438 s of user time and 254 million minor faults. Hardly any
    /// of these were for huge pages, so the heap is the break's alone.
    const OF_3_0: Figures = Figures {
        units: 1800,
        headers: HEADERS / 3,
        common_headers: 292 / 3,
        header_bytes: HEADER_BYTES / 3,
        tree: (36_782, 480 * 256),
        heap_percent: 54,
        text_percent: 54,
        headers_percent: 33,
        user_permille: 720,
        object_percent: 100,
        linker: Release::OF_6_1.linker,
        turned_by_seed: 0,
        mapped_percent: 0,
        has_objtool: false,
        checks_whole: false,
        sizes: &SIZES,
        stride: 7 * 64,
        heaps_along: &[],
    };

    /// Its processor executes an instruction in a nanosecond: all of them took 65.9 s in user mode
    /// there, 4.6 times as long as compiled one by one on the measured machine.
    const OF_GUEST: Figures = Figures {
        units: GUEST_SIZES.len() as u32,
        tree: (0, 0),
        user_permille: 4600,
        checks_whole: false,
        // As `kontig_oracle::build::order` has them in the guest.
        turned_by_seed: 5,
        sizes: &GUEST_SIZES,
        stride: 64,
        heaps_along: &[],
        ..Release::OF_6_1
    };

    /// Whether files need not say it.
    pub(crate) fn is_default(&self) -> bool {
        *self == Release::default()
    }

    pub(super) const fn figures(self) -> &'static Figures {
        match self {
            Release::V6_1 => &Release::OF_6_1,
            Release::WithDebugInfo => &Release::WITH_DEBUG_INFO,
            Release::V3_0 => &Release::OF_3_0,
            Release::Guest => &Release::OF_GUEST,
        }
    }
}

impl Figures {
    /// A unit's figures, scaled from those of 6.1.
    pub(super) fn scaled(&self, size: &Size) -> Size {
        Size {
            heap_kib: size.heap_kib * self.heap_percent / 100,
            object: size.object * self.object_percent / 100,
            user_us: (u64::from(size.user_us) * u64::from(self.user_permille) / 1000) as u32,
            headers: (size.headers * self.headers_percent / 100).min(self.headers),
            ..*size
        }
    }
    /// When a compiler's table doubles, in µs.
    pub(super) fn table_doubles_us(&self, random: &mut SplitMix64) -> u32 {
        let native = TABLE_DOUBLES_US.start + random.below(TABLE_DOUBLES_US.end - TABLE_DOUBLES_US.start);
        (u64::from(native) * u64::from(self.user_permille) / 1000) as u32
    }
    /// How long a compiler of this size parses, in µs, before it uses the rest of its program.
    pub(super) fn parses_us(&self, size: &Size) -> u32 {
        let native = u64::from(PARSES_US) * u64::from(self.user_permille) / 1000;
        native as u32 + size.user_us * PARSES_PERCENT / 100
    }
    /// The mapped pages of the compiler's program.
    pub(super) fn compiler_pages(&self) -> u32 {
        CC1.mapped_pages() * self.text_percent / 100
    }
}

/// A program of the build.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Its place among the programs.
    number: u64,
    file_kib: u32,
    /// Mapped file pages at its end, libraries included.
    pub(super) mapped_kib: u32,
    /// Its heap, at its end.
    pub(super) heap_kib: u32,
    /// Pages of it that are whole ranges of 2 MiB in a table of the program's own data.
    pub(super) table_pages: u32,
    /// Time in user mode.
    pub(super) user_us: u32,
}

impl Tool {
    /// Its program: a name that no file of a scenario has, which are small numbers.
    pub(super) fn file(&self) -> FileName {
        FileName::new(0, 1 << 42 | self.number)
    }
    /// The file is as long as what it has mapped, at the least: libraries but the C
    /// library count as its own.
    pub(super) fn file_pages(&self) -> u32 {
        in_pages(self.file_kib.max(self.mapped_kib) * 1024)
    }
    pub(super) fn mapped_pages(&self) -> u32 {
        in_pages(self.mapped_kib * 1024)
    }
    pub(super) fn heap_pages(&self) -> u32 {
        in_pages(self.heap_kib * 1024)
    }
}

const fn tool(name: &'static str, number: u64, file_kib: u32, mapped_kib: u32, heap_kib: u32, user_us: u32) -> Tool {
    Tool { name, number, file_kib, mapped_kib, heap_kib, table_pages: 0, user_us }
}

/// `dash`; it ends without telling: its pages are those of `rm`, which is as small.
pub(super) const SH: Tool = tool("sh", 1, 123, 1648, 140, 1400);
pub(super) const GCC: Tool = tool("gcc", 2, 1271, 2673, 227, 2500);
/// The compiler; its heap and its time are those of the unit.
pub(super) const CC1: Tool = tool("cc1", 3, 32561, 25077, 0, 0);
pub(super) const AS: Tool = tool("as", 4, 897, 3431, 1018, 3700);
/// `objtool`, which looks through the object. Of its heap 8 MiB are one table in the program's data
/// (`insn_hash`), all of which it writes to first. Wherever the program lies, three whole ranges of
/// 2 MiB are in it: traced in a guest with 6.1, each of 24 had three huge faults, 72 of 108 in all.
pub(super) const OBJTOOL: Tool = Tool { table_pages: 3 * 512, ..tool("objtool", 5, 802, 1558, 8741, 1500) };
/// Where it looks through all of the kernel, its heap grows by so much of what it reads, and it
/// takes so long for a page of that. Debian's of 6.1 had 18.1 to 18.4 MiB for each MB of 30, 41 and
/// 47 MB of modules linked together, and took 36 ms for one of a module.
pub(super) const OBJTOOL_HEAP_PERCENT: u32 = 1910;
pub(super) const OBJTOOL_NS_A_PAGE: u64 = 147_000;
/// `fixdep`, which notes what the unit depends on.
pub(super) const FIXDEP: Tool = tool("fixdep", 6, 16, 1434, 326, 1900);
/// `rm`, once a unit.
pub(super) const RM: Tool = tool("rm", 7, 72, 1648, 140, 1400);
/// `nm`, over the object.
pub(super) const NM: Tool = tool("nm", 8, 47, 2100, 300, 1000);
/// The linker; what it reads comes on top. Without debug information 257 objects of 11.3 MB took
/// 29.7 MiB and 125 ms.
pub(super) const LD: Tool = tool("ld", 9, 1305, 3361, 1991, 4800);
/// `vmlinux.o`, two trials for the table of symbols, and `vmlinux`.
pub(super) const LINKS: u32 = 4;

/// Pages of `make`'s heap, in one directory.
pub(super) const MAKE_PAGES: u32 = in_pages(722 * 1024);

/// The C library and its loader, which all programs map: two files of Debian 13, of which a shell
/// had 1,460 KiB mapped and make 1,630; less here, because fixdep had 1,434 in all.
pub(super) const LIBC: Tool = tool("libc", 10, 2091, 1360, 0, 0);

pub(super) const PROGRAMS: [&Tool; 10] = [&SH, &GCC, &CC1, &AS, &OBJTOOL, &FIXDEP, &RM, &NM, &LD, &LIBC];

/// A sixteenth of the units: the compiler's heap and time, the object, the source file, and how
/// many files are included.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) heap_kib: u32,
    pub(super) user_us: u32,
    pub(super) object: u32,
    source: u32,
    pub(super) headers: u32,
}

impl Size {
    pub(super) const fn source_pages(&self) -> u32 {
        in_pages(self.source)
    }
}

const fn size(heap_kib: u32, user_ms: u32, object: u32, source: u32, headers: u32) -> Size {
    Size { heap_kib, user_us: user_ms * 1000, object, source, headers }
}

/// The sixteenths by the compiler's time. Heap and time are of the same processes; objects, sources
/// and headers are sorted by themselves, as large ones take longest.
pub(super) const SIZES: [Size; 16] = [
    size(27250, 135, 2853, 699, 219),
    size(35817, 185, 3790, 1694, 418),
    size(38653, 226, 4864, 3531, 474),
    size(43827, 258, 6964, 5370, 512),
    size(46961, 280, 8445, 6296, 527),
    size(48685, 312, 9810, 7534, 556),
    size(53485, 338, 11173, 9791, 567),
    size(46680, 373, 13712, 10558, 575),
    size(50924, 395, 17045, 11884, 586),
    size(56178, 415, 22358, 16088, 597),
    size(47637, 442, 24738, 22673, 609),
    size(43618, 501, 27412, 25150, 620),
    size(59687, 538, 34386, 32417, 627),
    size(56680, 650, 47338, 43717, 639),
    size(66604, 957, 73173, 75646, 748),
    size(80878, 1452, 126_242, 134_467, 818),
];

/// The mean heap of every 24 of the 2,664 first files of a whole kernel, in the order in which
/// `make -j2` compiled them, % of the mean of all: the most a compiler had, less its program.
/// Drivers of graphics and the network are compiled side by side, and have the most.
#[rustfmt::skip]
const HEAPS_ALONG: [u32; 111] = [
    111, 90, 87, 78, 81, 70, 78, 84, 89, 82, 85, 88, 96, 96, 91, 104, 85, 107, 80, 93,
    94, 79, 88, 84, 130, 131, 72, 92, 81, 71, 112, 119, 128, 130, 137, 67, 63, 60, 78, 78,
    59, 83, 65, 60, 69, 70, 58, 73, 81, 84, 64, 68, 67, 63, 74, 78, 67, 70, 83, 108,
    99, 98, 95, 102, 105, 108, 116, 107, 116, 112, 114, 136, 139, 122, 141, 132, 133, 116, 140, 140,
    135, 126, 144, 156, 172, 157, 176, 185, 177, 157, 119, 129, 120, 109, 90, 93, 86, 78, 91, 107,
    99, 111, 111, 117, 79, 83, 87, 83, 85, 78, 75,
];

/// The 24 files that a guest built, compiled natively with the headers of Debian's kernel package,
/// in their order there.
#[rustfmt::skip]
const GUEST_SIZES: [Size; 24] = [
    size(54516, 421, 12912, 10537, 594),
    size(53492, 469, 26512, 30693, 539),
    size(34568, 193, 7840, 6105, 406),
    size(43540, 266, 3056, 3436, 484),
    size(58948, 529, 18288, 13164, 593),
    size(85220, 973, 78136, 71895, 618),
    size(98856, 1319, 108_216, 85638, 677),
    size(111_396, 1263, 85176, 86106, 854),
    size(91624, 1359, 78640, 96004, 683),
    size(113_920, 1920, 135_616, 169_484, 694),
    size(46800, 297, 8072, 10615, 524),
    size(86692, 499, 8576, 13870, 775),
    size(56532, 362, 6752, 10570, 596),
    size(50696, 372, 22304, 18330, 568),
    size(71416, 444, 13840, 18035, 609),
    size(58120, 479, 15488, 53719, 613),
    size(52228, 383, 26576, 11253, 559),
    size(36320, 223, 9192, 10505, 420),
    size(53988, 384, 20040, 16954, 602),
    size(85400, 486, 15640, 8249, 767),
    size(28152, 203, 19064, 11087, 340),
    size(41580, 399, 23608, 19597, 425),
    size(45696, 422, 40888, 43588, 461),
    size(54012, 464, 17344, 17052, 564),
];

/// How much of its heap a compiler has after each sixteenth of its time: most of it is made of
/// headers, which come first. The mean of ten compilers, looked at every 3 ms.
pub(super) const HEAP_PERCENT: [u32; 16] = [13, 26, 36, 46, 55, 63, 70, 77, 82, 86, 90, 94, 96, 97, 99, 100];

/// Pages of the mappings that a compiler takes for its heap. Twenty compilers of files of 6.1 had
/// 11 to 43 of these.
pub(super) const COLLECTED: u32 = 512;
/// Pages of a table that the compilers of all files with a heap of 72 MB and more had, and none of
/// those with up to 60 MB, before and after it doubles. Where the kernel aligns no mapping, only
/// these hold whole ranges of 2 MiB: four in both.
pub(super) const TABLES: [u32; 2] = [1024, 2048];
pub(super) const TABLES_FROM_KIB: u32 = 65_536;
/// How much of its program a compiler uses while it parses, and when it has parsed: after a part
/// of its time and a constant, in µs of user mode. Of 13 compiled natively all had 65 to 70 % of
/// their program mapped while they parsed; eleven, of 0.46 to 1.2 s, parsed for 0.43 to 0.8 s, two,
/// of 2.0 and 3.7 s, for 0.6 to 1.0 and 1.1 to 1.9.
pub(super) const PARSER_PERCENT: u32 = 67;
const PARSES_US: u32 = 290_000;
const PARSES_PERCENT: u32 = 30;
/// µs in user mode after which it doubles, by chance in between, how many times sooner the small
/// one is there, and draws of its pages, the first half of the larger one's, with which 40 % are
/// used in each sixteenth. Seven such compilers were watched page by page. When the table doubled,
/// all pages of both were used at once, and those of the small one and of the larger one's second
/// half never again.
const TABLE_DOUBLES_US: Range<u32> = 290_000..550_000;
pub(super) const TABLE_SOONER: u32 = 6;
pub(super) const TABLE_USED: u32 = 523;

/// Size of the assembler's source relative to the object: 1.7 to 4.9 in eight units.
pub(super) const ASSEMBLY: u32 = 3;

/// Bytes a `.cmd` file has for each file that is included: 56,667 in the mean, for 572.
pub(super) const DEPENDENCY: u32 = 99;

/// Files that the 56 units include, all together; all units but the smallest include 292 of them.
const HEADERS: u32 = 1348;
/// Bytes of all of them.
const HEADER_BYTES: u64 = 11_381_673;
