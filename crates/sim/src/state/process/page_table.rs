//! The page table entries of a mapping: the frame of each page.
//!
//! Pages mapped in one go have consecutive frames. A table of which that holds is stored as a base
//! and a bit per page. When compaction moves a page, the table gets an entry for each page mapped
//! at that time or, when another page is mapped, for every page. So a process that was filled and
//! then had holes punched takes an eighth of a byte per page, and four bytes more for each page
//! left in the tables that compaction has touched.
//!
//! The flags of entries are kept as marks. They exist for mappings that were forked, and on
//! machines that reclaim: half a byte per page.

use crate::state::object::TABLE_PAGES;
use kontig_mm::types::PAGEBLOCK_PAGES;
use kontig_mm::{Pfn, prefetch};

/// Words of a bitmap of a table's pages.
const WORDS: usize = TABLE_PAGES as usize / 32;

/// A bit for each of a table's pages.
type Pages = [u32; WORDS];

/// A flag of a page table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Write-protected in a writable mapping.
    Protected,
    Accessed,
    Dirty,
    /// The entry holds no frame of its own but the zero page, or a slot in swap.
    Elsewhere,
}

/// Contents of a cleared entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The frame, unless it is elsewhere.
    pub(crate) at: Pfn,
    pub(crate) is_elsewhere: bool,
    pub(crate) was_accessed: bool,
}

/// The marks of 32 pages, a word each.
type Marks = [u32; 4];

#[inline(always)]
fn has(pages: &[u32], page: u32) -> bool {
    pages[page as usize / 32] >> (page % 32) & 1 != 0
}

/// The words of a bitmap that cover this many pages from one on, each with a mask of these pages.
#[inline(always)]
fn words(page: u32, pages: u32) -> impl Iterator<Item = (usize, u32)> {
    let end = page + pages;
    (page / 32..end.div_ceil(32)).map(move |word| {
        let (first, last) = (page.max(word * 32) % 32, (end - 1).min(word * 32 + 31) % 32);
        (word as usize, !0 << first & !0 >> (31 - last))
    })
}

/// The pages set in a bitmap.
fn each(pages: &Pages) -> impl Iterator<Item = u32> {
    (0..).step_by(32).zip(pages).flat_map(|(first, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(first + bit)
        })
    })
}

/// Packs the entries of some pages: their bitmap, the number of entries before each of its words,
/// and the frames.
fn pack(pages: &Pages, frame: impl Fn(u32) -> u32) -> Box<[u32]> {
    let mut so_far = 0;
    let ranks = pages.map(|word| {
        so_far += word.count_ones();
        so_far - word.count_ones()
    });
    pages.iter().copied().chain(ranks).chain(each(pages).map(frame)).collect()
}

/// The position of a page's frame in packed entries. The page must have an entry.
#[inline(always)]
fn place(entries: &[u32], page: u32) -> usize {
    let (word, bit) = (page as usize / 32, page % 32);
    2 * WORDS + (entries[WORDS + word] + (entries[word] & ((1 << bit) - 1)).count_ones()) as usize
}

/// The representation of a table's entries.
#[derive(Clone)]
enum Form {
    /// Page `i`, if set in the bitmap, is mapped to frame `base + i`, with wrap-around.
    Linear { base: u32 },
    /// Frames of the pages that have an entry, whether still mapped or not, by [`pack`].
    Packed(Box<[u32]>),
    /// Every page's frame + 1, or 0 if it is not mapped, in [`Full`]. The bitmap is not used.
    Full(u32),
}

/// The entries of full tables, by number. They are accessed at random, so they lie together in
/// large pieces, which a host backs with huge pages.
#[derive(Clone, Default)]
struct Full {
    pieces: Vec<Vec<u32>>,
    unused: Vec<u32>,
}

/// Tables in one piece, unless the mapping has fewer: 32 MiB.
const PIECE: usize = 1 << 14;

impl Full {
    /// Adds entries of which none is mapped, for a mapping with this many tables.
    fn add(&mut self, tables: usize) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.of_mut(number).fill(0);
            return number;
        }
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE * TABLE_PAGES as usize) {
            let left = tables - self.pieces.len() * PIECE;
            self.pieces.push(Vec::with_capacity(left.min(PIECE) * TABLE_PAGES as usize));
        }
        let before = self.pieces.len() - 1;
        let piece = &mut self.pieces[before];
        piece.resize(piece.len() + TABLE_PAGES as usize, 0);
        (before * PIECE + piece.len() / TABLE_PAGES as usize - 1) as u32
    }

    #[inline(always)]
    fn at(number: u32, page: u32) -> (usize, usize) {
        let (piece, table) = (number as usize / PIECE, number as usize % PIECE);
        (piece, table * TABLE_PAGES as usize + page as usize)
    }

    #[inline(always)]
    fn of(&self, number: u32) -> &[u32] {
        let (piece, first) = Full::at(number, 0);
        &self.pieces[piece][first..first + TABLE_PAGES as usize]
    }

    #[inline(always)]
    fn of_mut(&mut self, number: u32) -> &mut [u32] {
        let (piece, first) = Full::at(number, 0);
        &mut self.pieces[piece][first..first + TABLE_PAGES as usize]
    }

    #[inline(always)]
    fn entry(&self, number: u32, page: u32) -> &u32 {
        let (piece, at) = Full::at(number, page);
        &self.pieces[piece][at]
    }

    #[inline(always)]
    fn set(&mut self, number: u32, page: u32, entry: u32) {
        let (piece, at) = Full::at(number, page);
        self.pieces[piece][at] = entry;
    }
}

/// The page table of one 2 MiB range, for small pages.
#[derive(Clone)]
struct Table {
    form: Form,
    mapped: u32,
}

/// All page tables of a mapping.
#[derive(Clone)]
pub(crate) struct PageTables {
    tables: Vec<Table>,
    /// A bitmap of the mapped pages for each table; untouched memory of the host until one is
    /// mapped.
    mapped: Vec<u32>,
    /// The marks of every 32 pages; empty if none are kept.
    marks: Vec<Marks>,
    full: Full,
}

impl Table {
    const EMPTY: Table = Table { form: Form::Linear { base: 0 }, mapped: 0 };

    /// The frame of a page; `mapped` is the table's bitmap.
    #[inline(always)]
    fn get(&self, page: u32, mapped: &[u32], full: &Full) -> Option<u32> {
        match &self.form {
            Form::Full(number) => full.entry(*number, page).checked_sub(1),
            Form::Linear { base } => has(mapped, page).then(|| base.wrapping_add(page)),
            Form::Packed(entries) => has(mapped, page).then(|| entries[place(entries, page)]),
        }
    }

    /// Maps or remaps a page; `mapped` is the table's bitmap, `tables` the number of the mapping's
    /// tables.
    #[inline(always)]
    fn set(&mut self, page: u32, frame: u32, mapped: &mut Pages, full: &mut Full, tables: usize) {
        match &mut self.form {
            Form::Full(number) => return full.set(*number, page, frame + 1),
            Form::Linear { base } if self.mapped == 0 => *base = frame.wrapping_sub(page),
            Form::Linear { base } if base.wrapping_add(page) == frame => {}
            Form::Packed(entries) if has(entries, page) => entries[place(entries, page)] = frame,
            Form::Linear { .. } | Form::Packed(_) => {
                self.spread(mapped, full, page, tables);
                return self.set(page, frame, mapped, full, tables);
            }
        }
        mapped[page as usize / 32] |= 1 << (page % 32);
    }

    /// Gives each mapped page, and `page`, an entry of its own.
    #[cold]
    #[inline(never)]
    fn spread(&mut self, mapped: &mut Pages, full: &mut Full, page: u32, tables: usize) {
        if has(mapped, page) {
            let frame = |page| self.get(page, mapped, full).expect("its bit says that it is mapped");
            self.form = Form::Packed(pack(mapped, frame));
            return;
        }
        let number = full.add(tables);
        for page in each(mapped) {
            let frame = self.get(page, mapped, full).expect("its bit says that it is mapped");
            full.set(number, page, frame + 1);
        }
        *mapped = [0; WORDS];
        self.form = Form::Full(number);
    }
}

impl PageTables {
    /// For a mapping of this many pages, none of which is mapped.
    pub(crate) fn new(pages: u32) -> PageTables {
        let tables = pages.div_ceil(TABLE_PAGES) as usize;
        PageTables {
            tables: vec![Table::EMPTY; tables],
            mapped: vec![0; tables * WORDS],
            marks: Vec::new(),
            full: Full::default(),
        }
    }

    /// Keeps marks from now on.
    pub(crate) fn keep_marks(&mut self) {
        if self.marks.is_empty() {
            self.marks = vec![[0; 4]; self.mapped.len()];
        }
    }

    /// Whether an entry has a mark.
    #[inline(always)]
    pub(crate) fn is(&self, page: u32, mark: Mark) -> bool {
        self.marks.get(page as usize / 32).is_some_and(|marks| marks[mark as usize] >> (page % 32) & 1 != 0)
    }

    /// Sets or clears a mark, if marks are kept.
    #[inline(always)]
    pub(crate) fn mark(&mut self, page: u32, mark: Mark, on: bool) {
        if let Some(marks) = self.marks.get_mut(page as usize / 32) {
            let bit = 1 << (page % 32);
            let word = &mut marks[mark as usize];
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    /// Copies one table from another mapping, write-protects it in both, and clears the accessed
    /// marks of the copy. Calls `shared` for each entry, with whether it is marked as elsewhere.
    pub(crate) fn copy_table(&mut self, from: &mut PageTables, page: u32, mut shared: impl FnMut(Pfn, bool)) {
        let (table, first) = (Self::at(page).0, page & !(TABLE_PAGES - 1));
        debug_assert!(self.tables[table].mapped == 0);
        from.keep_marks();
        self.keep_marks();
        let form = match &from.tables[table].form {
            Form::Linear { base } => Form::Linear { base: *base },
            Form::Packed(entries) => Form::Packed(entries.clone()),
            Form::Full(number) => {
                let copy = self.full.add(self.tables.len());
                self.full.of_mut(copy).copy_from_slice(from.full.of(*number));
                Form::Full(copy)
            }
        };
        self.tables[table] = Table { form, mapped: from.tables[table].mapped };
        let words = table * WORDS..(table + 1) * WORDS;
        self.mapped[words.clone()].copy_from_slice(&from.mapped[words.clone()]);
        for (word, at) in words.zip((first..).step_by(32)) {
            let mut copied = 0;
            let present = match &from.tables[table].form {
                Form::Full(_) => !0,
                Form::Linear { .. } | Form::Packed(_) => from.mapped[word],
            };
            let elsewhere = from.marks[word][Mark::Elsewhere as usize];
            let mut left = present;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if let Some(pfn) = from.get(at + bit) {
                    copied |= 1 << bit;
                    shared(pfn, elsewhere >> bit & 1 != 0);
                }
            }
            from.marks[word][Mark::Protected as usize] |= copied;
            self.marks[word] = from.marks[word];
            self.marks[word][Mark::Accessed as usize] = 0;
        }
    }

    #[inline(always)]
    fn at(page: u32) -> (usize, u32) {
        ((page / TABLE_PAGES) as usize, page % TABLE_PAGES)
    }

    /// A table, its bitmap, and the entries of full tables.
    #[inline(always)]
    fn table(&mut self, table: usize) -> (&mut Table, &mut Pages, &mut Full) {
        let mapped = self.mapped[table * WORDS..].first_chunk_mut().expect("every table has a bitmap");
        (&mut self.tables[table], mapped, &mut self.full)
    }

    /// Sets the frame of a page.
    #[inline(always)]
    fn set(&mut self, page: u32, pfn: Pfn) -> &mut Table {
        let (tables, (table, at)) = (self.tables.len(), Self::at(page));
        let (table, mapped, full) = self.table(table);
        table.set(at, pfn.get(), mapped, full, tables);
        table
    }

    /// Whether no small page of the range is mapped.
    #[inline(always)]
    pub(crate) fn is_empty(&self, page: u32) -> bool {
        self.tables[Self::at(page).0].mapped == 0
    }

    /// A page's frame, unless it is marked as elsewhere.
    #[inline(always)]
    pub(crate) fn get(&self, page: u32) -> Option<Pfn> {
        let (table, at) = Self::at(page);
        self.tables[table].get(at, &self.mapped[table * WORDS..], &self.full).map(Pfn::new)
    }

    /// Number of entries with frames.
    pub(crate) fn frames(&self) -> u64 {
        let all: u64 = self.tables.iter().map(|table| u64::from(table.mapped)).sum();
        all - self.marks.iter().map(|marks| u64::from(marks[Mark::Elsewhere as usize].count_ones())).sum::<u64>()
    }

    /// Number of entries with frames among these of one table.
    pub(crate) fn frames_among(&self, page: u32, pages: u32) -> u32 {
        if self.is_empty(page) {
            return 0;
        }
        let elsewhere = |word: usize| self.marks.get(word).map_or(0, |marks| marks[Mark::Elsewhere as usize]);
        words(page, pages).map(|(word, bits)| (self.present(word) & bits & !elsewhere(word)).count_ones()).sum()
    }

    /// The entries that are not empty, of the 32 of a word.
    #[inline(always)]
    fn present(&self, word: usize) -> u32 {
        match &self.tables[word / WORDS] {
            Table { mapped: TABLE_PAGES, .. } => !0,
            Table { form: Form::Full(number), .. } => {
                let entries = self.full.of(*number)[word % WORDS * 32..].first_chunk::<32>();
                let entries = entries.expect("a table has whole words").iter().zip(0..);
                // Written so that it compiles to vector instructions.
                entries.fold(0, |there, (entry, bit)| there | if *entry != 0 { 1 << bit } else { 0 })
            }
            _ => self.mapped[word],
        }
    }

    /// The entries marked as elsewhere.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = u32> {
        let words = self.marks.iter().map(|marks| marks[Mark::Elsewhere as usize]);
        let pages = words.zip((0..).step_by(32)).filter(|(word, _)| *word != 0);
        let pages =
            pages.flat_map(|(word, first)| (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| first + bit));
        pages.filter_map(|page| self.get(page).map(Pfn::get))
    }

    /// Maps a page that is not mapped.
    #[inline(always)]
    pub(crate) fn map(&mut self, page: u32, pfn: Pfn) {
        debug_assert!(self.get(page).is_none());
        self.set(page, pfn).mapped += 1;
    }

    /// The number of unmapped pages from this one on, among this many of one table.
    #[inline(always)]
    pub(crate) fn unmapped(&self, page: u32, most: u32) -> u32 {
        let (table, at) = Self::at(page);
        match &self.tables[table] {
            Table { mapped: 0, .. } => most,
            Table { form: Form::Full(number), .. } => {
                let entries = &self.full.of(*number)[at as usize..(at + most) as usize];
                let eights = entries.as_chunks::<8>().0.iter();
                let empty = 8 * eights.take_while(|eight| eight.iter().fold(0, |all, entry| all | entry) == 0).count();
                (empty + entries[empty..].iter().take_while(|entry| **entry == 0).count()) as u32
            }
            _ => {
                let there = |(word, bits): &(usize, u32)| self.mapped[*word] & bits != 0;
                match words(page, most).find(there) {
                    None => most,
                    Some((word, bits)) => word as u32 * 32 + (self.mapped[word] & bits).trailing_zeros() - page,
                }
            }
        }
    }

    /// Maps unmapped pages of one table and marks them as written.
    #[inline(always)]
    pub(crate) fn map_written(&mut self, page: u32, frames: &[Pfn]) {
        let (mut next, mut left) = (page, frames);
        // The first may decide the table's form.
        while let [first, others @ ..] = left {
            let (table, at) = Self::at(next);
            if let Table { form: Form::Full(number), mapped } = &mut self.tables[table] {
                let entries = &mut self.full.of_mut(*number)[at as usize..][..left.len()];
                for (entry, frame) in entries.iter_mut().zip(left) {
                    debug_assert!(*entry == 0);
                    *entry = frame.get() + 1;
                }
                *mapped += left.len() as u32;
                break;
            }
            self.map(next, *first);
            (next, left) = (next + 1, others);
        }
        if !self.marks.is_empty() {
            for (word, bits) in words(page, frames.len() as u32) {
                self.marks[word][Mark::Accessed as usize] |= bits;
                self.marks[word][Mark::Dirty as usize] |= bits;
            }
        }
    }

    /// Unmaps pages of one table from this one on, while each is mapped to a frame, and returns the
    /// frames; their number.
    #[inline(always)]
    pub(crate) fn take_frames(&mut self, page: u32, frames: &mut [Pfn]) -> usize {
        let (table, at) = Self::at(page);
        let Form::Full(number) = self.tables[table].form else {
            // One at a time.
            let (mut count, mut page) = (0, page);
            while count < frames.len() && self.get(page).is_some() && !self.is(page, Mark::Elsewhere) {
                frames[count] = self.take(page).expect("it is mapped").at;
                (count, page) = (count + 1, page + 1);
            }
            return count;
        };
        let mut most = frames.len() as u32;
        if !self.marks.is_empty()
            && let Some(elsewhere) = words(page, most).find_map(|(word, bits)| {
                let elsewhere = self.marks[word][Mark::Elsewhere as usize] & bits;
                (elsewhere != 0).then(|| word as u32 * 32 + elsewhere.trailing_zeros())
            })
        {
            most = elsewhere - page;
        }
        let mut count = 0;
        let entries = &mut self.full.of_mut(number)[at as usize..(at + most) as usize];
        for (entry, frame) in entries.iter_mut().zip(frames) {
            let Some(pfn) = std::mem::take(entry).checked_sub(1) else { break };
            *frame = Pfn::new(pfn);
            count += 1;
        }
        if !self.marks.is_empty() {
            for (word, bits) in words(page, count) {
                self.marks[word].iter_mut().for_each(|marks| *marks &= !bits);
            }
        }
        let left = &mut self.tables[table].mapped;
        *left -= count;
        if *left == 0 && count > 0 {
            self.full.unused.push(number);
            self.tables[table] = Table::EMPTY;
        }
        count as usize
    }

    /// Maps a page elsewhere.
    #[inline(always)]
    pub(crate) fn moved(&mut self, page: u32, to: Pfn) {
        debug_assert!(self.get(page).is_some());
        self.set(page, to);
    }

    /// Marks a page as accessed, and as dirty if it was written, if marks are kept.
    #[inline(always)]
    pub(crate) fn used(&mut self, page: u32, written: bool) {
        if let Some(marks) = self.marks.get_mut(page as usize / 32) {
            marks[Mark::Accessed as usize] |= 1 << (page % 32);
            marks[Mark::Dirty as usize] |= u32::from(written) << (page % 32);
        }
    }

    /// Marks the pages from this one on as accessed, and as dirty if they were written, while each
    /// holds a frame and needs no fault; their number, of this many of one table.
    #[inline(always)]
    pub(crate) fn used_while_there(&mut self, page: u32, most: u32, written: bool) -> u32 {
        let mut count = 0;
        for (word, bits) in words(page, most) {
            let there = self.present(word);
            let (first, wanted) = (bits.trailing_zeros(), bits.count_ones());
            let marks = self.marks.get_mut(word);
            let faults = marks.as_ref().map_or(0, |marks| {
                marks[Mark::Elsewhere as usize] | if written { marks[Mark::Protected as usize] } else { 0 }
            });
            let run = (!(there & !faults) >> first).trailing_zeros().min(wanted);
            if let Some(marks) = marks {
                let of_run = (((1u64 << run) - 1) << first) as u32;
                marks[Mark::Accessed as usize] |= of_run;
                marks[Mark::Dirty as usize] |= if written { of_run } else { 0 };
            }
            count += run;
            if run < wanted {
                break;
            }
        }
        count
    }

    /// Calls `found` for the frames of mapped pages of one table, in order, with a first frame and
    /// how many follow it in its pageblock.
    #[inline(always)]
    pub(crate) fn frames_of(&self, page: u32, pages: u32, mut found: impl FnMut(Pfn, u32)) {
        let (table, at) = Self::at(page);
        match &self.tables[table].form {
            Form::Full(number) => {
                let entries = &self.full.of(*number)[at as usize..(at + pages) as usize];
                entries.iter().for_each(|entry| found(Pfn::new(entry - 1), 1));
            }
            Form::Linear { base } => {
                let (mut frame, mut left) = (base.wrapping_add(at), pages);
                while left > 0 {
                    let stretch = left.min(PAGEBLOCK_PAGES - frame % PAGEBLOCK_PAGES);
                    found(Pfn::new(frame), stretch);
                    (frame, left) = (frame + stretch, left - stretch);
                }
            }
            Form::Packed(entries) => (at..at + pages).for_each(|at| found(Pfn::new(entries[place(entries, at)]), 1)),
        }
    }

    /// Unmaps a page, if it is mapped: the contents of its entry.
    #[inline(always)]
    pub(crate) fn take(&mut self, page: u32) -> Option<Taken> {
        let (table, at) = Self::at(page);
        let (table, mapped, full) = self.table(table);
        let at_entry = table.get(at, mapped, full)?;
        match &mut table.form {
            Form::Full(number) => full.set(*number, at, 0),
            Form::Linear { .. } | Form::Packed(_) => mapped[at as usize / 32] &= !(1 << (at % 32)),
        }
        table.mapped -= 1;
        if table.mapped == 0 {
            if let Form::Full(number) = table.form {
                full.unused.push(number);
            }
            *table = Table::EMPTY;
        }
        let mut taken = Taken { at: Pfn::new(at_entry), is_elsewhere: false, was_accessed: false };
        if let Some(marks) = self.marks.get_mut(page as usize / 32) {
            let bit = 1 << (page % 32);
            taken.is_elsewhere = marks[Mark::Elsewhere as usize] & bit != 0;
            taken.was_accessed = marks[Mark::Accessed as usize] & bit != 0;
            for word in marks {
                *word &= !bit;
            }
        }
        Some(taken)
    }

    /// Prefetches the table of a page, which may lie outside the mapping.
    #[inline(always)]
    pub(crate) fn prefetch_table(&self, page: u32) {
        prefetch(self.tables.as_ptr().wrapping_add(Self::at(page).0));
    }

    /// Prefetches a page's entry, or its bit if it has none; the page may lie outside the mapping.
    #[inline(always)]
    pub(crate) fn prefetch_entry(&self, page: u32) {
        let (table, at) = Self::at(page);
        match self.tables.get(table) {
            Some(Table { form: Form::Full(number), .. }) => prefetch(self.full.entry(*number, at)),
            _ => prefetch(self.mapped.as_ptr().wrapping_add(page as usize / 32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Debug)]
    enum Do {
        /// Maps the unmapped pages of a range to consecutive frames.
        Fill {
            first: u32,
            pages: u32,
            frame: u32,
        },
        Unmap {
            first: u32,
            pages: u32,
        },
        Move {
            page: u32,
            to: u32,
        },
        /// Maps scattered frames from a page on, up to the first mapped page or the end of its
        /// table.
        Write {
            first: u32,
            pages: u32,
            frame: u32,
        },
        /// Unmaps frames from a page on, up to the first other entry or the end of its table.
        TakeFrames {
            first: u32,
            pages: u32,
        },
        /// Uses pages from one on, up to the first that faults or the end of its table.
        Use {
            first: u32,
            pages: u32,
            written: bool,
        },
        /// Write-protects a page, so that the next write to it faults.
        Protect {
            page: u32,
        },
        /// Maps a page to a slot in swap.
        Swap {
            page: u32,
        },
    }

    const PAGES: u32 = 3 * TABLE_PAGES;

    fn anything() -> impl Strategy<Value = Do> {
        let page = 0..PAGES;
        prop_oneof![
            (page.clone(), 1..600u32, 0..5000u32).prop_map(|(first, pages, frame)| Do::Fill { first, pages, frame }),
            (page.clone(), 1..600u32).prop_map(|(first, pages)| Do::Unmap { first, pages }),
            (page.clone(), 0..5000u32).prop_map(|(page, to)| Do::Move { page, to }),
            (page.clone(), 1..70u32, 0..5000u32).prop_map(|(first, pages, frame)| Do::Write { first, pages, frame }),
            (page.clone(), 1..70u32).prop_map(|(first, pages)| Do::TakeFrames { first, pages }),
            (page.clone(), 1..70u32, any::<bool>()).prop_map(|(first, pages, written)| Do::Use {
                first,
                pages,
                written
            }),
            page.clone().prop_map(|page| Do::Protect { page }),
            page.prop_map(|page| Do::Swap { page }),
        ]
    }

    proptest! {
        #[test]
        fn they_say_where_each_page_is(all in proptest::collection::vec(anything(), 1..60)) {
            let (mut tables, mut plain) = (PageTables::new(PAGES), BTreeMap::new());
            let mut elsewhere = BTreeSet::new();
            tables.keep_marks();
            for what in all {
                match what {
                    Do::Fill { first, pages, frame } => {
                        let range = (first..PAGES).take(pages as usize);
                        for page in range.filter(|p| !plain.contains_key(p)).collect::<Vec<_>>() {
                            tables.map(page, Pfn::new(frame + page - first));
                            plain.insert(page, frame + page - first);
                        }
                    }
                    Do::Unmap { first, pages } => {
                        for page in first..(first + pages).min(PAGES) {
                            let taken = tables.take(page);
                            prop_assert_eq!(taken.map(|taken| taken.at.get()), plain.remove(&page));
                            prop_assert_eq!(taken.is_some_and(|taken| taken.is_elsewhere), elsewhere.remove(&page));
                        }
                    }
                    Do::Write { first, pages, frame } => {
                        let most = pages.min(TABLE_PAGES - first % TABLE_PAGES);
                        let free = (first..first + most).take_while(|page| !plain.contains_key(page)).count() as u32;
                        prop_assert_eq!(tables.unmapped(first, most), free);
                        let frames: Vec<Pfn> = (0..free).map(|i| Pfn::new((frame + 7 * i) % 5000)).collect();
                        tables.map_written(first, &frames);
                        for (page, frame) in (first..).zip(frames) {
                            prop_assert!(tables.is(page, Mark::Accessed) && tables.is(page, Mark::Dirty));
                            plain.insert(page, frame.get());
                        }
                        let next = first + free;
                        let is_mapped = next == PAGES || plain.contains_key(&next);
                        prop_assert!(is_mapped || !tables.is(next, Mark::Dirty));
                    }
                    Do::TakeFrames { first, pages } => {
                        let most = pages.min(TABLE_PAGES - first % TABLE_PAGES);
                        let mut frames = vec![Pfn::default(); most as usize];
                        let count = tables.take_frames(first, &mut frames);
                        let in_frame = |p: &u32| plain.contains_key(p) && !elsewhere.contains(p);
                        let there: Vec<u32> = (first..first + most).take_while(in_frame).collect();
                        prop_assert_eq!(count, there.len());
                        for (page, frame) in there.iter().zip(frames) {
                            prop_assert_eq!(plain.remove(page), Some(frame.get()));
                            prop_assert!(!tables.is(*page, Mark::Accessed) && !tables.is(*page, Mark::Dirty));
                        }
                    }
                    Do::Use { first, pages, written } => {
                        let most = pages.min(TABLE_PAGES - first % TABLE_PAGES);
                        let faults = |tables: &PageTables, page: &u32| {
                            let is_protected = written && tables.is(*page, Mark::Protected);
                            !plain.contains_key(page) || elsewhere.contains(page) || is_protected
                        };
                        let there = (first..first + most).take_while(|page| !faults(&tables, page)).count() as u32;
                        let mut frames = Vec::new();
                        tables.frames_of(first, there, |pfn, count| {
                            assert_eq!(pfn.pageblock(), Pfn::new(pfn.get() + count - 1).pageblock());
                            frames.extend(pfn.get()..pfn.get() + count);
                        });
                        prop_assert_eq!(frames, (first..first + there).map(|page| plain[&page]).collect::<Vec<_>>());
                        let dirty = |tables: &PageTables, page| tables.is(page, Mark::Dirty);
                        let before: Vec<bool> = (first..first + most).map(|page| dirty(&tables, page)).collect();
                        prop_assert_eq!(tables.used_while_there(first, most, written), there);
                        for (i, was_dirty) in (0..).zip(before) {
                            let is_used = i < there;
                            prop_assert!(!is_used || tables.is(first + i, Mark::Accessed));
                            prop_assert_eq!(dirty(&tables, first + i), was_dirty || is_used && written);
                        }
                    }
                    Do::Protect { page } => {
                        if plain.contains_key(&page) {
                            tables.mark(page, Mark::Protected, true);
                        }
                    }
                    Do::Swap { page } => {
                        if plain.contains_key(&page) {
                            tables.mark(page, Mark::Elsewhere, true);
                            elsewhere.insert(page);
                        }
                    }
                    Do::Move { page, to } => {
                        if let Some(frame) = plain.get_mut(&page) {
                            *frame = to;
                            tables.moved(page, Pfn::new(to));
                        }
                    }
                }
                for page in 0..PAGES {
                    prop_assert_eq!(tables.get(page).map(Pfn::get), plain.get(&page).copied());
                }
                for table in (0..PAGES).step_by(TABLE_PAGES as usize) {
                    prop_assert_eq!(tables.is_empty(table), plain.range(table..table + TABLE_PAGES).next().is_none());
                }
            }
        }
    }
}
