//! `/proc/iomem`: the physical addresses that are memory. Without root every address reads as 0.

use crate::error::{ReadError, Unread};
use crate::roots::Roots;
use std::ops::Range;

/// The ranges of physical addresses that are memory for the kernel, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IoMem {
    ram: Vec<Range<u64>>,
}

const RAM: &str = "System RAM";

impl IoMem {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing, not permitted (which includes that its addresses are hidden), or not of
    /// this form.
    pub fn read(roots: &Roots) -> Result<IoMem, ReadError> {
        let path = roots.proc("iomem");
        let io = IoMem::parse(&roots.read_proc("iomem")?)
            .map_err(|(line, reason)| ReadError::malformed(&path, line, reason))?;
        let hidden = !io.ram.is_empty() && io.ram.iter().all(|r| r.end <= 1);
        if hidden { Err(ReadError { path, why: Unread::NoPermission }) } else { Ok(io) }
    }

    /// Reads the text; an error is a line and what is wrong there.
    fn parse(text: &str) -> Result<IoMem, (usize, String)> {
        let mut ram: Vec<Range<u64>> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let bad = || (number + 1, format!("'{line}' stands where 'START-END : NAME' should"));
            let (range, name) = line.split_once(" : ").ok_or_else(bad)?;
            let (start, end) = range.trim_start().split_once('-').ok_or_else(bad)?;
            let hex = |digits| u64::from_str_radix(digits, 16).map_err(|_| bad());
            let (start, last) = (hex(start)?, hex(end)?);
            let end = last.checked_add(1).filter(|end| *end > start).ok_or_else(bad)?;
            // Resources inside a range are indented. Memory that drivers added is 'System RAM
            // (kmem)'.
            if !line.starts_with(' ') && name.starts_with(RAM) {
                ram.push(start..end);
            }
        }
        ram.sort_by_key(|r| r.start);
        Ok(IoMem { ram })
    }

    /// The frames that are memory as a whole, for pages of this many bytes.
    pub fn frames(&self, page_size: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ram.iter().map(move |r| r.start.div_ceil(page_size)..r.end / page_size).filter(|r| !r.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n\
        00100000-bfffffff : System RAM\n  \
                        01000000-02209987 : Kernel code\n100000000-63fffffff : System RAM (kmem)\n";

    #[test]
    fn memory_is_what_the_outermost_lines_call_so_and_partial_frames_do_not_count() {
        let io = IoMem::parse(TEXT).expect("it is of this form");
        assert_eq!(io.frames(4096).collect::<Vec<_>>(), [1..0x9f, 0x100..0xc0000, 0x100000..0x640000]);
    }

    #[test]
    fn a_line_without_a_range_is_named() {
        let text = "00000000-00000fff : Reserved\n0000f000-00001000 : System RAM\n";
        let said = "'0000f000-00001000 : System RAM' stands where 'START-END : NAME' should";
        assert_eq!(IoMem::parse(text), Err((2, said.into())));
    }

    #[test]
    fn addresses_that_are_hidden_need_permission() {
        let tree = tempfile::tempdir().expect("a directory");
        std::fs::write(tree.path().join("iomem"), "00000000-00000000 : System RAM\n").expect("written");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
        assert!(IoMem::read(&roots).is_err_and(|e| e.is_permission()));
    }
}
