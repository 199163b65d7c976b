//! A program that is idle most of the time: it maps its file and uses a part of it now and then.
//!
//! Reclaim finds such pages unused and takes them; the next time they are used they are read from
//! the disk again, which are major faults. One daemon that uses part after part stands for several
//! that wake up in turn.

use crate::benchmark::{Benchmark, Start};
use crate::limits::{LONGEST_S, within};
use crate::size::pages;
use kontig_program::{Batch, FileName, Op, Outcome, Program, Region, Value};
use serde::{Deserialize, Serialize};

/// A program that is used now and then.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    /// Its file, with the libraries, such as `"8 MiB"`.
    pub program: String,
    /// How much of it is used at a time: the next part each time.
    pub uses: String,
    /// From one use to the next.
    pub every_ms: f64,
    /// The number of its file.
    pub file: u64,
    /// The disk of its file.
    #[serde(default)]
    pub disk: u8,
}

impl Daemon {
    fn name(&self) -> FileName {
        FileName::new(self.disk, self.file)
    }
}

impl Benchmark for Daemon {
    type Program = Idler;

    fn program(&self, _: &Start) -> Result<Idler, String> {
        within("every_ms", self.every_ms, LONGEST_S * 1000.0)?;
        if self.every_ms == 0.0 {
            return Err("every_ms = 0: it would never be idle".into());
        }
        let (program, uses) = (pages("program", &self.program)?, pages("uses", &self.uses)?);
        if uses > program {
            return Err(format!("uses = \"{}\": its program has {}", self.uses, self.program));
        }
        Ok(Idler { file: self.name(), program, uses, pause_ns: (self.every_ms * 1e6) as u64, text: None, at: 0 })
    }

    fn files(&self) -> Vec<(FileName, u32)> {
        pages("program", &self.program).map(|pages| (self.name(), pages)).into_iter().collect()
    }

    fn last_disk(&self) -> Option<u8> {
        Some(self.disk)
    }

    fn is_endless(&self) -> bool {
        true
    }
}

/// A process that sleeps, and uses the next part of its program.
#[derive(Clone)]
pub struct Idler {
    file: FileName,
    /// Pages of the file, and of a part.
    program: u32,
    uses: u32,
    pause_ns: u64,
    /// The mapped file, once it is mapped.
    text: Option<Region>,
    /// Where the next part begins.
    at: u32,
}

impl Program for Idler {
    fn next(&mut self, done: &[Outcome], todo: &mut Batch) {
        match done.last().map(|last| last.value) {
            Some(Value::File(file)) => {
                todo.push(Op::MmapFile { file, first: 0, pages: self.program });
                return;
            }
            Some(Value::Region(text)) => {
                // It begins by using all of it.
                self.text = Some(text);
                todo.push(Op::Load(text));
            }
            _ => {}
        }
        let Some(text) = self.text else {
            todo.push(Op::Open { name: self.file, create: false });
            return;
        };
        let pages = self.uses.min(self.program - self.at);
        todo.extend([Op::Sleep(self.pause_ns), Op::Load(Region { first: text.first + self.at, pages, ..text })]);
        self.at = (self.at + pages) % self.program;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_program::OpenFile;

    fn daemon(program: &str, uses: &str, every_ms: f64) -> Result<Idler, String> {
        let (program, uses) = (program.into(), uses.into());
        Daemon { program, uses, every_ms, file: 7, disk: 0 }.program(&Start::default())
    }

    /// The next operations, after one that gave this.
    fn next(idler: &mut Idler, value: Value) -> Vec<Op> {
        let mut todo = Batch::new();
        idler.next(&[Outcome { value, start_ns: 0, end_ns: 0 }], &mut todo);
        std::iter::from_fn(|| todo.pop()).collect()
    }

    #[test]
    fn a_daemon_uses_all_of_its_program_and_then_part_after_part() {
        let mut idler = daemon("20 KiB", "8 KiB", 5.0).expect("it can be read");
        let open = Op::Open { name: FileName::new(0, 7), create: false };
        assert_eq!(next(&mut idler, Value::Unit), [open]);
        let file = OpenFile::new(3);
        assert_eq!(next(&mut idler, Value::File(file)), [Op::MmapFile { file, first: 0, pages: 5 }]);
        let text = Region { mapping: 4, first: 0, pages: 5 };
        let part = |first, pages| [Op::Sleep(5_000_000), Op::Load(Region { first, pages, ..text })];
        assert_eq!(next(&mut idler, Value::Region(text)), [&[Op::Load(text)][..], &part(0, 2)].concat());
        assert_eq!(next(&mut idler, Value::Unit), part(2, 2));
        assert_eq!(next(&mut idler, Value::Unit), part(4, 1), "what is left");
        assert_eq!(next(&mut idler, Value::Unit), part(0, 2), "and again");
    }

    #[test]
    fn a_daemon_needs_a_pause_and_a_program_that_holds_the_part() {
        assert!(daemon("1 MiB", "4 KiB", 0.0).err().expect("refused").starts_with("every_ms = 0"));
        assert!(daemon("1 MiB", "2 MiB", 1.0).err().expect("refused").starts_with("uses = \"2 MiB\""));
    }
}
