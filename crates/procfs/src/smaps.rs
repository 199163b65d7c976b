//! `/proc/PID/smaps`: the mappings of a process, each with its resident memory by kind of page.
//!
//! A mapping is a line of `/proc/PID/maps`, then lines `Name: N kB` or `Name: N`, then its flags of
//! two letters each (`hg`: huge pages are advised; `nh`: they are refused; `ht`: it is a hugetlb
//! mapping). Kernels differ in the lines they print; all are kept. The file is parsed only: its
//! column widths depend on the kernel.

use crate::error::BadText;
use crate::lines::{Line, Lines};

/// The contents of `/proc/PID/smaps`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Smaps {
    /// The mappings in order of address. A process without memory of its own, for example a kernel
    /// thread, has none.
    pub mappings: Vec<Mapping>,
}

/// A mapping of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// The permissions, for example `rw-p`.
    pub permissions: String,
    /// Offset in the mapped file, in bytes.
    pub offset: u64,
    /// The file's device, `major:minor` in hexadecimal; `00:00` without a file.
    pub device: String,
    /// The file's inode; 0 without a file.
    pub inode: u64,
    /// A path, or a name in brackets; empty if it has neither.
    pub name: String,
    /// The fields in KiB.
    pub kb: Vec<(String, u64)>,
    /// The fields without a unit: `THPeligible`, `ProtectionKey`.
    pub numbers: Vec<(String, u64)>,
    /// The flags; empty if the kernel prints none.
    pub flags: Vec<String>,
}

impl Smaps {
    /// Reads the file; `file` is its name in errors.
    ///
    /// # Errors
    /// The first line that is not of this form.
    pub fn parse(file: &str, text: &str) -> Result<Smaps, BadText> {
        let mut mappings: Vec<Mapping> = Vec::new();
        if text.is_empty() {
            return Ok(Smaps { mappings });
        }
        for line in Lines::of(file, text)? {
            if let Some(heading) = heading(&line)? {
                mappings.push(heading);
                continue;
            }
            let Some(mapping) = mappings.last_mut() else { return Err(line.expected("the first mapping's addresses")) };
            mapping.detail(&line)?;
        }
        Ok(Smaps { mappings })
    }
}

impl Mapping {
    /// A field in KiB, if the kernel prints it.
    pub fn kb(&self, name: &str) -> Option<u64> {
        self.kb.iter().find(|(n, _)| n == name).map(|(_, kb)| *kb)
    }

    /// A field without a unit, if the kernel prints it.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers.iter().find(|(n, _)| n == name).map(|(_, number)| *number)
    }

    /// Whether the mapping has this flag.
    pub fn flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    fn detail(&mut self, line: &Line<'_>) -> Result<(), BadText> {
        let Some((name, value)) = line.text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            return Err(line.expected("a name and a value, or the next mapping's addresses,"));
        };
        let value = value.trim();
        if name == "VmFlags" {
            self.flags = value.split_whitespace().map(str::to_string).collect();
        } else if let Some(kb) = value.strip_suffix(" kB") {
            self.kb.push((name.into(), line.number(kb)?));
        } else {
            self.numbers.push((name.into(), line.number(value)?));
        }
        Ok(())
    }
}

/// Parses a mapping's first line; `None` if the line is not one.
fn heading(line: &Line<'_>) -> Result<Option<Mapping>, BadText> {
    let Some((range, rest)) = line.text.split_once(' ') else { return Ok(None) };
    let Some((start, end)) = range.split_once('-') else { return Ok(None) };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (Some(start), Some(end)) = (hex(start), hex(end)) else { return Ok(None) };
    let form = || line.expected("'START-END PERMISSIONS OFFSET DEVICE INODE' of a mapping");
    let mut words = rest.splitn(5, ' ');
    let mut word = || words.next().ok_or_else(form);
    let (permissions, offset, device, inode) = (word()?, word()?, word()?, word()?);
    let name = words.next().unwrap_or_default().trim_start();
    if start > end {
        return Err(line.bad("the mapping ends before it begins"));
    }
    Ok(Some(Mapping {
        start,
        end,
        permissions: permissions.into(),
        offset: hex(offset).ok_or_else(form)?,
        device: device.into(),
        inode: line.number(inode)?,
        name: name.into(),
        kb: Vec::new(),
        numbers: Vec::new(),
        flags: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7f0000000000-7f0000400000 rw-p 00001000 fe:01 42                         /a path: with a colon
Size:               4096 kB
AnonHugePages:      2048 kB
THPeligible:    1
VmFlags: rd wr hg 
ffff0000-ffff1000 --xp 00000000 00:00 0 
Size:                  4 kB
";

    #[test]
    fn a_mapping_has_its_file_its_sizes_and_its_flags() {
        let smaps = Smaps::parse("smaps", TEXT).expect("well-formed");
        let [file, bare] = smaps.mappings.as_slice() else { panic!("{smaps:?}") };
        assert_eq!((file.name.as_str(), file.offset, file.inode), ("/a path: with a colon", 0x1000, 42));
        assert_eq!((file.kb("AnonHugePages"), file.number("THPeligible")), (Some(2048), Some(1)));
        assert_eq!((file.flag("hg"), file.flag("nh")), (true, false));
        assert_eq!((bare.start, bare.name.as_str(), bare.kb("Rss")), (0xffff_0000, "", None), "not said is not 0");
    }

    #[test]
    fn a_line_out_of_place_is_refused_with_its_number() {
        let bad = |text: &str| Smaps::parse("smaps", text).expect_err(text).to_string();
        assert!(bad("Size: 4 kB\n").starts_with("smaps: line 1: 'Size: 4 kB' stands where the first mapping's"));
        assert!(bad(&TEXT.replace("4096 kB", "many kB")).starts_with("smaps: line 2: 'many' is not a number"));
        assert!(bad(&TEXT.replace("fe:01 42 ", "fe:01 ")).starts_with("smaps: line 1: "));
        assert!(bad("2000-1000 rw-p 0 0:0 0\n").contains("ends before it begins"));
        assert_eq!(Smaps::parse("smaps", ""), Ok(Smaps::default()), "a kernel thread has no mappings");
    }
}
