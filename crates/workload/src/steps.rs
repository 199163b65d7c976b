//! Steps: a process that does what a file says, one thing after the other, as often as it says.
//!
//! ```toml
//! [[phase.task]]
//! run = { kind = "steps", files = [{ file = 1, size = "16 GiB" }], repeat = 5, steps = [
//!     { do = "copy", file = 1, to = 2, piece = "2 MiB", as = "cp" },
//!     { do = "sync" },
//!     { do = "unlink", file = 2 },
//! ] }
//! ```
//!
//! Files have numbers, and lie on the machine's first disk unless `disk` says another. A file that
//! a step reads from its first page to its end, or writes so, is opened before and closed after it,
//! as `cat`, `dd` and `cp` do. What a step with a name (`as`) takes is measured.

use crate::benchmark::{Benchmark, Measured, Start, Written};
use crate::kbuild::{Release, Tree};
use crate::kind::Kind;
use crate::latencies::Latencies;
use crate::limits::{LONGEST_S, within};
use crate::player::{Manner, Player};
use crate::size::pages;
use kontig_program::act::{Act, Files, HEAP, Pages, Random, Starter};
use kontig_program::{Figure, FileName, SplitMix64};
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The steps of one process.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// Files that lie on the disks before anything runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LaidOut>,
    /// Repetitions of all steps; 0 repeats until it is stopped.
    #[serde(default = "once")]
    pub repeat: u32,
    pub steps: Vec<Step>,
}

const fn once() -> u32 {
    1
}

/// A file that is on a disk before anything runs.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LaidOut {
    pub file: u64,
    /// The disk, counted from 0.
    #[serde(default)]
    pub disk: u8,
    pub size: String,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Do {
    /// Read `file`: `size` of it, or all, in pieces of `piece`; at random places of all of it if
    /// `random`.
    Read,
    /// Write `size` to `file`, in pieces of `piece`; at random places if `random`, of all of it if
    /// it was laid out.
    Write,
    /// Truncate `to`, then copy `file` to it piece by piece.
    Copy,
    /// Write the dirty pages of `file` back.
    Fsync,
    /// Write all dirty pages of files back.
    Sync,
    Unlink,
    /// Unpack the source `tree` of a kernel's `release`.
    UnpackTree,
    /// Copy the source `tree` to another one, `to`, file by file.
    CopyTree,
    /// Remove the source `tree`, with all that builds have left there.
    RemoveTree,
    /// Write 3 to `vm.drop_caches`.
    DropCaches,
    /// Write `value` to `sysctl`.
    Sysctl,
    /// Start another program, which does what `run` says, and do not wait for it.
    Start,
    /// Map `size` and write to all of it.
    Fill,
    /// Write to all of what was filled last again.
    Touch,
    /// Tell the kernel that what was filled last is not needed soon: `madvise(MADV_COLD)`.
    Cold,
    /// Unmap what was filled last.
    Free,
    Sleep,
}

/// One step, as a file says it.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(rename = "do")]
    pub what: Do,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u64>,
    /// The file that is written when one is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The disk of the file, or of the copy.
    #[serde(default)]
    pub disk: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// How much at a time; less than a page if a page is a multiple of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<String>,
    /// Whether pieces are taken at random.
    #[serde(default)]
    pub random: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<u8>,
    #[serde(default, skip_serializing_if = "Release::is_default")]
    pub release: Release,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysctl: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<Kind>>,
    /// The name of its figure.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Step {
    fn latencies(&self) -> Latencies {
        let name = self.name.clone().unwrap_or_default();
        Latencies { name: name.into(), ..Latencies::new("step", "it was not done") }
    }

    /// Pages of a piece, and how many pieces a page has.
    fn piece(&self, i: usize) -> Result<(u32, u32), String> {
        let text = self.piece.as_deref().unwrap_or("128 KiB");
        match parse_size(text) {
            Some(bytes @ 1..4096) if 4096 % bytes == 0 => Ok((1, (4096 / bytes) as u32)),
            _ => pages("piece", text)
                .map(|pages| (pages, 1))
                .map_err(|reason| format!("steps = step {}: {reason}", i + 1)),
        }
    }

    /// The program that it starts.
    fn started(&self) -> Option<Arc<dyn crate::benchmark::AnyBenchmark>> {
        let run = self.run.as_ref().filter(|_| self.what == Do::Start)?;
        Some(run.task()?.benchmark())
    }

    /// # Errors
    /// The key that it lacks, or cannot use.
    fn acts(&self, i: usize, laid_out: &[LaidOut], start: &Start) -> Result<Vec<Act>, String> {
        let at = |reason: String| format!("steps = step {}: {reason}", i + 1);
        let lacks = |key: &str, example: &str| at(format!("{:?} needs {key}: {key} = {example}", self.what));
        let needs_file =
            matches!(self.what, Do::Read | Do::Write | Do::Copy | Do::Fsync | Do::Unlink) && self.file.is_none();
        if needs_file {
            return Err(lacks("file", "1"));
        }
        let number = self.file.unwrap_or(0);
        let laid =
            laid_out.iter().find(|laid| laid.file == number && (laid.disk == self.disk || self.what == Do::Copy));
        let file = FileName::new(laid.map_or(self.disk, |laid| laid.disk), number);
        let size = self.size.as_ref().or_else(|| laid.map(|laid| &laid.size));
        let is_sized = matches!(self.what, Do::Read | Do::Write | Do::Copy | Do::Fill);
        let all = match size {
            Some(size) if is_sized => pages("size", size).map_err(&at)?,
            None if is_sized => return Err(lacks("size", "\"1 GiB\"")),
            _ => 0,
        };
        // Random places of a file that was laid out are drawn from all of it, not from the first
        // `size`.
        let range = match laid {
            Some(laid) => pages("size", &laid.size).map_err(&at)?.max(all),
            None => all,
        };
        let (piece, parts) = self.piece(i)?;
        if self.what == Do::Copy && self.to.is_none() {
            return Err(lacks("to", "2"));
        }
        let to = FileName::new(self.disk, self.to.unwrap_or(0));
        let ms = match (self.what, self.ms) {
            (Do::Sleep, None) => return Err(lacks("ms", "10")),
            (_, ms) => ms.unwrap_or(0.0),
        };
        within("ms", ms, LONGEST_S * 1000.0).map_err(&at)?;
        let tree = match self.what {
            Do::UnpackTree | Do::CopyTree | Do::RemoveTree => self.tree.ok_or_else(|| lacks("tree", "1"))?,
            _ => 0,
        };
        let other = match (self.what, self.to) {
            (Do::CopyTree, None) => return Err(lacks("to", "2")),
            (Do::CopyTree, Some(to)) => {
                u8::try_from(to).map_err(|_| at(format!("to = {to}: trees go from 0 to 255")))?
            }
            _ => 0,
        };
        let [tree, other] = [tree, other].map(|number| Tree { release: self.release, number });
        let random = self.random.then_some(Random { range, seed: None });
        let pieces = Pages { random, parts, ..Pages::in_calls(0, all, piece.min(all.max(1))) };
        Ok(match self.what {
            Do::Read => vec![Act::Read(file, pieces)],
            Do::Write => vec![Act::Write(file, pieces)],
            Do::Copy => vec![Act::Copy(file, to, pieces)],
            Do::Fsync => vec![Act::Fsync(file)],
            Do::Sync => vec![Act::Sync],
            Do::Unlink => vec![Act::Unlink(file)],
            Do::UnpackTree => tree.archive().map(Act::WriteAll).into(),
            Do::CopyTree => tree.archive().into_iter().zip(other.archive()).map(|(a, b)| Act::CopyAll(a, b)).collect(),
            Do::RemoveTree => tree.archive().into_iter().chain(tree.output()).map(Act::UnlinkAll).collect(),
            Do::DropCaches => vec![Act::Sysctl("vm.drop_caches".into(), "3".into())],
            Do::Sysctl => {
                let name = self.sysctl.as_deref().ok_or_else(|| lacks("sysctl", "\"vm.min_free_kbytes\""))?;
                let value = self.value.ok_or_else(|| lacks("value", "1024"))?;
                vec![Act::Sysctl(name.into(), value.to_string().into())]
            }
            Do::Start => {
                let started = self.started().ok_or_else(|| lacks("run", "{ kind = \"kbuild\", jobs = 1 }"))?;
                let seed = SplitMix64::new(start.seed ^ (i as u64 + 1)).next_u64();
                let of_it = Start { seed, copies: 1, ..*start };
                started.program(&of_it).map_err(&at)?;
                let start = move || started.program(&of_it).expect("its parameters were read before");
                vec![Act::Start(Starter::new(start))]
            }
            Do::Fill => vec![Act::Map(HEAP, all), Act::Touch(HEAP, Pages::ALL)],
            Do::Touch => vec![Act::Touch(HEAP, Pages::ALL)],
            Do::Cold => vec![Act::AdviseCold(HEAP)],
            Do::Free => vec![Act::Unmap(HEAP)],
            Do::Sleep => vec![Act::Sleep { ns: (ms * 1e6) as u64 }],
        })
    }
}

impl Benchmark for Steps {
    type Program = Player;

    fn program(&self, start: &Start) -> Result<Player, String> {
        let mut acts = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            acts.extend(step.acts(i, &self.files, start)?);
            acts.push(Act::Lap);
        }
        if acts.is_empty() {
            return Err("steps = []: there is nothing to do".into());
        }
        self.laid()?;
        let laps = self.steps.iter().map(Step::latencies).collect();
        Ok(Player::new(acts, Manner::STEPS).repeated(self.repeat, laps, start.seed))
    }

    fn measured(&self, copies: &[&Player]) -> Measured {
        let named = || self.steps.iter().enumerate().filter(|(_, step)| step.name.is_some());
        let of_step = |(i, step): (usize, &Step)| {
            let name = step.name.as_ref()?;
            let all =
                Latencies::of_all(copies.iter().map(|copy| &copy.laps()[i])).filter(|all| all.longest_ns.is_some());
            let mean = all.map(|all| all.histogram.mean() / 1e9);
            Some(Figure::new(name.clone(), "s").lower().read_or(mean, "it was not done"))
        };
        let of_copies = |i: usize| Latencies::of_all(copies.iter().map(|copy| &copy.laps()[i]));
        Measured {
            figures: named().filter_map(of_step).collect(),
            latencies: named().filter_map(|(i, _)| of_copies(i)).collect(),
            ..Measured::default()
        }
    }

    fn is_endless(&self) -> bool {
        self.repeat == 0
    }

    fn files(&self) -> Vec<(FileName, u32)> {
        let of_started = self.steps.iter().filter_map(Step::started).flat_map(|started| started.files());
        self.laid().unwrap_or_default().into_iter().chain(of_started).collect()
    }

    fn written(&self) -> Vec<Written> {
        let laid = self.laid().unwrap_or_default();
        let mut held: BTreeMap<FileName, u32> = laid.iter().copied().collect();
        let mut most: BTreeMap<u8, u64> = BTreeMap::new();
        // The second repetition finds the files that the first one left.
        let times = if self.repeat == 1 { 1 } else { 2 };
        for (i, step) in (0..times).flat_map(|_| self.steps.iter().enumerate()) {
            let Ok(acts) = step.acts(i, &self.files, &Start::default()) else { continue };
            let mut disk = None;
            for act in acts {
                disk = match act {
                    Act::Write(file, of) => {
                        let has = held.entry(file).or_default();
                        *has = of.pages.max(*has);
                        Some(file.disk())
                    }
                    // The copy is truncated first.
                    Act::Copy(_, to, of) => {
                        held.insert(to, of.pages);
                        Some(to.disk())
                    }
                    Act::WriteAll(set) | Act::CopyAll(_, set) => {
                        held.insert(set.first, set.pages());
                        Some(set.first.disk())
                    }
                    Act::Unlink(file) | Act::UnlinkAll(Files { first: file, .. }) => {
                        held.remove(&file);
                        None
                    }
                    _ => None,
                };
            }
            let Some(disk) = disk else { continue };
            let on_disk = |(name, pages): (&FileName, &u32)| u64::from(if name.disk() == disk { *pages } else { 0 });
            let before: u64 = laid.iter().map(|(name, pages)| on_disk((name, pages))).sum();
            let now: u64 = held.iter().map(on_disk).sum();
            let most = most.entry(disk).or_default();
            *most = (*most).max(now.saturating_sub(before));
        }
        most.into_iter().map(|(disk, pages)| Written { key: "steps", disk, pages }).collect()
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let (mut held, mut stack) = (0, Vec::new());
        for (i, step) in self.steps.iter().enumerate() {
            if let Some(started) = step.started() {
                started.fits(pages, copies).map_err(|reason| format!("steps = step {}: {reason}", i + 1))?;
            }
            for act in step.acts(i, &self.files, &Start::default())? {
                match act {
                    Act::Map(_, fills) => {
                        held += u64::from(fills);
                        stack.push(u64::from(fills));
                    }
                    Act::Unmap(_) => held -= stack.pop().unwrap_or(0),
                    _ => {}
                }
            }
            if held * copies > pages {
                let [fills, has] = [held * copies, pages].map(|pages| pages / 256);
                let copies = if copies == 1 { String::new() } else { format!(" in {copies} copies") };
                let fills = format!("steps = step {}{copies}: {fills} MiB are filled by then", i + 1);
                return Err(format!("{fills}, and the machine has {has} MiB: fill less, or choose another machine"));
            }
        }
        Ok(())
    }

    fn last_disk(&self) -> Option<u8> {
        let of_steps = self.steps.iter().filter(|step| step.file.is_some()).map(|step| step.disk);
        let of_trees = self.steps.iter().filter(|step| step.tree.is_some()).map(|_| 0);
        let of_started = self.steps.iter().filter_map(Step::started).filter_map(|started| started.last_disk());
        of_steps.chain(self.files.iter().map(|file| file.disk)).chain(of_trees).chain(of_started).max()
    }

    fn is_random(&self) -> bool {
        self.steps.iter().any(|step| step.random || step.started().is_some_and(|started| started.is_random()))
    }

    fn needs_translation(&self) -> bool {
        self.steps.iter().filter_map(Step::started).any(|started| started.needs_translation())
    }
}

impl Steps {
    fn laid(&self) -> Result<Vec<(FileName, u32)>, String> {
        let of = |of: &LaidOut| Ok((FileName::new(of.disk, of.file), pages("size", &of.size)?));
        self.files.iter().map(of).collect::<Result<_, String>>().map_err(|reason| format!("files = {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::lived;
    use kontig_program::{Batch, Op, OpenFile, Outcome, Program, Region};

    fn steps(text: &str) -> Steps {
        toml::from_str(text).expect("well-formed")
    }

    #[test]
    fn files_that_are_there_at_a_time_take_up_their_disk_together() {
        let written = |steps_of: &str, repeat: u32| {
            let text = format!("repeat = {repeat}\nfiles = [{{ file = 9, size = \"2 MiB\" }}]\nsteps = [{steps_of}]");
            steps(&text).written().iter().map(|written| written.pages / 256).collect::<Vec<_>>()
        };
        let write = |file, mib| format!(r#"{{ do = "write", file = {file}, size = "{mib} MiB" }}, "#);
        let unlink = |file| format!(r#"{{ do = "unlink", file = {file} }}, "#);
        let (one, two) = (write(1, 3), write(2, 4));
        assert_eq!(written(&format!("{one}{two}"), 1), [7]);
        assert_eq!(written(&format!("{one}{one}{two}"), 1), [7], "a file is written over");
        assert_eq!(written(&format!("{one}{}{two}", unlink(1)), 1), [4], "its place is given back");
        assert_eq!(
            written(&format!("{two}{}{one}", unlink(2)), 2),
            [7],
            "the second time finds what the first has left"
        );
        assert_eq!(written(&format!("{}{one}", unlink(9)), 1), [1], "and so is that of one that lay there");
    }

    fn all(text: &str) -> Vec<Op> {
        lived(&mut steps(text).program(&Start::default()).expect("it can be done"))
    }

    #[test]
    fn a_copy_takes_the_place_of_what_was_there_and_reads_and_writes_piece_by_piece() {
        let text = "files = [{ file = 1, size = '12 KiB', disk = 1 }]
            steps = [{ do = 'copy', file = 1, to = 2, piece = '8 KiB' }, { do = 'sync' }]";
        let [one, two] = [1, 2].map(OpenFile::new);
        let ops = [
            Op::Open { name: FileName::new(1, 1), create: false },
            Op::Open { name: FileName::new(0, 2), create: true },
            Op::Truncate { file: two, pages: 0 },
            Op::Read { file: one, first: 0, pages: 2 },
            Op::Write { file: two, first: 0, pages: 2 },
            Op::Read { file: one, first: 2, pages: 1 },
            Op::Write { file: two, first: 2, pages: 1 },
            Op::Close(one),
            Op::Close(two),
            Op::Sync,
        ];
        assert_eq!(all(text), ops);
        assert_eq!(steps(text).files(), [(FileName::new(1, 1), 3)]);
    }

    #[test]
    fn memory_is_filled_touched_and_given_back_as_often_as_the_file_says() {
        let text = "repeat = 2\nsteps = [{ do = 'fill', size = '1 MiB' }, { do = 'sleep', ms = 2 }, { do = 'free' }]";
        let region = Region { mapping: 3, first: 0, pages: 256 };
        let once = [Op::Mmap { pages: 256 }, Op::Touch(region), Op::Sleep(2_000_000), Op::Munmap(region)];
        assert_eq!(all(text), [once.clone(), once].concat());
    }

    #[test]
    fn the_time_of_a_named_step_is_measured_each_time() {
        let steps = steps("repeat = 3\nsteps = [{ do = 'sync' }, { do = 'sleep', ms = 1, as = 'nap' }]");
        let mut program = steps.program(&Start::default()).expect("it can be done");
        let (mut todo, mut now) = (Batch::new(), 0);
        loop {
            program.next(&[Outcome { end_ns: now, ..Outcome::at_start(0) }], &mut todo);
            let Some(op) = todo.pop() else { break };
            now += if op == Op::Sync { 5 } else { 1_000 };
        }
        let measured = steps.measured(&[&program]);
        assert_eq!((measured.figures.len(), measured.latencies.len()), (1, 1));
        assert_eq!((measured.latencies[0].histogram.len(), measured.latencies[0].longest_ns), (3, Some(1_000)));
        assert!(!steps.is_endless() && Steps { repeat: 0, ..steps }.is_endless());
    }

    #[test]
    fn a_tree_that_is_copied_and_built_takes_up_its_disk_until_it_is_removed() {
        let build = "{ do = 'start', run = { kind = 'kbuild', release = '3.0', unpacked = true, units = 9, jobs = 1, \
                     tree = 1 } }";
        let tree = |what: &str| format!("{{ do = '{what}', tree = 0, to = 1, release = '3.0' }}");
        let text = |all: &[&str]| format!("steps = [{}]", all.join(", "));
        let (unpack, copy, remove) = (tree("unpack-tree"), tree("copy-tree"), tree("remove-tree"));
        let written = |all: &[&str]| steps(&text(all)).written()[0].pages.div_ceil(256);
        assert_eq!(written(&[&unpack, &copy]), 2 * 480);
        assert_eq!(written(&[&unpack, &remove, &unpack]), 480);
        let all = steps(&text(&[&unpack, &copy, build]));
        assert!(all.is_random() && all.last_disk() == Some(0));
        assert!(!all.files().is_empty() && all.files().len() < 20, "the programs of the build alone");
        let fits = all.fits(1024, 1).unwrap_err();
        assert!(fits.starts_with("steps = step 3: jobs = 1: as many compilers use "), "{fits}");
        let ops = lived(&mut all.program(&Start::default()).expect("it can be done"));
        assert_eq!(ops.iter().filter(|op| matches!(op, Op::Open { create: true, .. })).count(), 2 * 36_782);
        assert!(matches!(ops.last(), Some(Op::Fork(_))));
    }

    #[test]
    fn a_page_is_written_as_often_as_it_has_pieces() {
        let text = "steps = [{ do = 'write', file = 1, size = '8 KiB', piece = '1024' }]";
        let write = |first| Op::Write { file: OpenFile::new(1), first, pages: 1 };
        assert_eq!(all(text)[1..9], [0, 0, 0, 0, 1, 1, 1, 1].map(write));
        let odd = steps(&text.replace("1024", "1000")).program(&Start::default()).err().expect("refused");
        assert!(odd.starts_with("steps = step 1: piece"), "{odd}");
    }

    #[test]
    fn random_places_of_a_file_that_was_laid_out_are_drawn_from_all_of_it() {
        for what in ["read", "write"] {
            let text = format!(
                "files = [{{ file = 1, size = '1 GiB' }}]
                steps = [{{ do = '{what}', file = 1, size = '1 MiB', piece = '8 KiB', random = true }}]"
            );
            let first = |op: &Op| match op {
                Op::Read { first, .. } | Op::Write { first, .. } => Some(*first),
                _ => None,
            };
            let firsts: Vec<u32> = all(&text).iter().filter_map(first).collect();
            assert_eq!(firsts.len(), 128);
            let quarters = (0..4).map(|i| i * 65_536..(i + 1) * 65_536);
            assert!(quarters.into_iter().all(|quarter| firsts.iter().any(|first| quarter.contains(first))), "{what}");
        }
        let new = "steps = [{ do = 'write', file = 2, size = '64 KiB', piece = '8 KiB', random = true }]";
        assert!(all(new).iter().all(|op| !matches!(op, Op::Write { first: 16.., .. })), "a new one has its size");
    }

    #[test]
    fn a_sysctl_is_written() {
        let sysctl = |name: &str, value: &str| Op::Sysctl { name: name.into(), value: value.into() };
        let text = "steps = [{ do = 'sysctl', sysctl = 'vm.min_free_kbytes', value = 1024 }, { do = 'drop-caches' }]";
        assert_eq!(all(text), [sysctl("vm.min_free_kbytes", "1024"), sysctl("vm.drop_caches", "3")]);
    }

    #[test]
    fn a_steps_missing_key_is_named() {
        let refused = |text: &str| steps(text).program(&Start::default()).err().expect("refused");
        assert_eq!(refused("steps = [{ do = 'sync' }, { do = 'read' }]"), "steps = step 2: Read needs file: file = 1");
        let no_size = refused("steps = [{ do = 'write', file = 3 }]");
        assert_eq!(no_size, "steps = step 1: Write needs size: size = \"1 GiB\"");
        assert!(refused("steps = []").ends_with("there is nothing to do"));
        let lacks = |what: &str| refused(&format!("steps = [{{ do = '{what}' }}]"));
        assert_eq!(lacks("copy-tree"), "steps = step 1: CopyTree needs tree: tree = 1");
        assert!(lacks("sysctl").ends_with("Sysctl needs sysctl: sysctl = \"vm.min_free_kbytes\""));
        assert!(lacks("start").ends_with("Start needs run: run = { kind = \"kbuild\", jobs = 1 }"));
        let of_run = refused("steps = [{ do = 'start', run = { kind = 'kbuild', jobs = 0 } }]");
        assert!(of_run.starts_with("steps = step 1: jobs = 0"), "{of_run}");
    }
}
