//! The files with a 64-bit word for each page: `/proc/kpageflags` (a word a frame, from frame 0 on)
//! and `/proc/PID/pagemap` (a word a page of the address space).
//!
//! The kernel hands out whole words only, in this machine's byte order. All but a process's own
//! pagemap need root.

use crate::error::ReadError;
use crate::roots;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Words read at a time: large enough that calls do not count, small enough for a cache.
const CHUNK: usize = 1 << 15;

/// A file of words that is being read.
pub struct PageWords {
    path: PathBuf,
    file: std::fs::File,
}

impl PageWords {
    /// Opens the file.
    ///
    /// # Errors
    /// If it is missing or not permitted.
    pub fn open(path: &Path) -> Result<PageWords, ReadError> {
        Ok(PageWords { path: path.into(), file: roots::open(path)? })
    }

    /// Reads all words from this index to `end`, or to the end of the file if that comes first, and
    /// hands them on in pieces, each with the index of its first.
    ///
    /// # Errors
    /// If the kernel refuses, or the file ends within a word.
    pub fn read(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, &[u64])) -> Result<(), ReadError> {
        let failed = |path: &Path, e: std::io::Error| ReadError::io(path, &e);
        self.file.seek(SeekFrom::Start(start * 8)).map_err(|e| failed(&self.path, e))?;
        let mut bytes = vec![0; CHUNK * 8];
        let mut words = vec![0; CHUNK];
        let mut at = start;
        while at < end {
            let wanted = usize::try_from(end - at).map_or(CHUNK, |n| n.min(CHUNK)) * 8;
            let got = fill(&mut self.file, &mut bytes[..wanted]).map_err(|e| failed(&self.path, e))?;
            if !got.is_multiple_of(8) {
                return Err(ReadError::malformed(&self.path, 0, "the file ends within a word of 8 bytes"));
            }
            let (whole, _) = bytes[..got].as_chunks::<8>();
            words.iter_mut().zip(whole).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
            if !whole.is_empty() {
                each(at, &words[..whole.len()]);
            }
            at += whole.len() as u64;
            if got < wanted {
                break;
            }
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// A word of `/proc/PID/pagemap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageMapEntry(pub u64);

impl PageMapEntry {
    /// Whether the page is in memory.
    pub fn is_present(self) -> bool {
        self.0 >> 63 != 0
    }
    /// Whether it is in swap.
    pub fn is_swapped(self) -> bool {
        self.0 >> 62 & 1 != 0
    }
    /// Its frame; `None` where the page is not in memory, or where the kernel shows frame numbers
    /// to root only, which it does by showing 0.
    pub fn pfn(self) -> Option<u64> {
        let pfn = self.0 & ((1 << 55) - 1);
        (self.is_present() && pfn != 0).then_some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    #[test]
    fn words_come_in_order_from_the_first_asked_for_to_the_end() {
        let words: Vec<u64> = (0..100_000).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let file = file(&bytes);
        let mut read = Vec::new();
        let mut open = PageWords::open(file.path()).expect("it is there");
        open.read(10, 70_000, |at, words| {
            assert_eq!(at, 10 + read.len() as u64);
            read.extend_from_slice(words);
        })
        .expect("read");
        assert_eq!(read, words[10..70_000]);
        let mut rest = 0;
        open.read(99_000, u64::MAX, |_, words| rest += words.len()).expect("read");
        assert_eq!(rest, 1000);
    }

    #[test]
    fn a_file_that_ends_within_a_word_is_malformed() {
        let file = file(&[0; 20]);
        let error = PageWords::open(file.path()).expect("it is there").read(0, 9, |_, _| {}).expect_err("cut short");
        assert_eq!(error, ReadError::malformed(file.path(), 0, "the file ends within a word of 8 bytes"));
    }

    #[test]
    fn a_page_in_memory_whose_frame_is_hidden_has_none() {
        assert_eq!(PageMapEntry(1 << 63 | 5).pfn(), Some(5));
        assert_eq!(PageMapEntry(1 << 63).pfn(), None);
        assert_eq!(PageMapEntry(1 << 62 | 5).pfn(), None);
    }
}
