//! Recorded allocations, replayed: each process takes and gives back memory when it did so in the
//! recording.
//!
//! `kontig workload` writes such workloads from traces of `kmem:mm_page_alloc` and from copies of
//! `/proc/PID/smaps`; [`recording`] has their lines.
//!
//! Allocations and frees of a process follow one another, so that one that waits delays the next:
//! how far behind the recording it is, is measured.

pub mod recording;
mod replayer;

use crate::benchmark::{Benchmark, Measured, Start};
use crate::latencies::Latencies;
use kontig_program::{Figure, Gfp};
use recording::Recorded;
pub use replayer::Replayer;
use serde::{Deserialize, Serialize};

/// Allocations as they were recorded.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Sets of flags by the kernel's names.
    pub flags: Vec<String>,
    /// The processes, one for each copy of the task.
    pub process: Vec<Recorded>,
}

impl Trace {
    fn sets(&self) -> Result<Vec<Gfp>, String> {
        let set = |text: &String| {
            Gfp::parse(text).ok_or_else(|| {
                format!("flags = \"{text}\": flags are kernel names joined by |, such as GFP_KERNEL|__GFP_COMP")
            })
        };
        self.flags.iter().map(set).collect()
    }

    /// The most pages in use at a time.
    fn most_pages(&self) -> u64 {
        let mut changes = Vec::new();
        for allocation in self.process.iter().flat_map(|process| process.allocations.iter()) {
            changes.push((allocation.at_us, i64::from(allocation.pages())));
            changes.extend(allocation.frees().map(|(at, _, pages)| (at, -i64::from(pages))));
        }
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, pages) in changes {
            now += pages;
            most = most.max(now);
        }
        most as u64
    }
}

impl Benchmark for Trace {
    type Program = Replayer;

    fn program(&self, start: &Start) -> Result<Replayer, String> {
        let process = self.process.get(start.copy as usize);
        let process = process.ok_or_else(|| format!("process = {} of them: one for each copy", self.process.len()))?;
        let sets = self.sets()?;
        if let Some(wrong) = process.allocations.iter().find(|allocation| allocation.flags >= sets.len()) {
            return Err(format!("process = '{wrong}' of '{}': flags has {} sets, from 0", process.name, sets.len()));
        }
        Ok(Replayer::new(&process.allocations, &sets))
    }

    fn measured(&self, copies: &[&Replayer]) -> Measured {
        let sum = |of: fn(&Replayer) -> u64| copies.iter().map(|copy| of(copy)).sum::<u64>() as f64;
        let figures = vec![
            Figure::new("allocations replayed", "allocations").read(sum(|copy| copy.replayed)),
            Figure::new("huge pages that came as small ones", "allocations").lower().read(sum(|copy| copy.came_small)),
            Figure::new("allocations that failed", "allocations").lower().read(sum(|copy| copy.failed)),
        ];
        let of = |of: fn(&Replayer) -> &Latencies| Latencies::of_all(copies.iter().map(|copy| of(copy)));
        let latencies = [of(|copy| &copy.touches), of(|copy| &copy.kernel), of(|copy| &copy.behind)];
        Measured { figures, latencies: latencies.into_iter().flatten().collect(), ..Measured::default() }
    }

    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let processes = self.process.len() as u64;
        if processes != copies {
            return Err(format!("process = {processes} of them, in {copies} copies: copies = {processes}"));
        }
        match self.most_pages() {
            most if most <= pages => Ok(()),
            most => {
                let [most, has] = [most, pages].map(|pages| pages / 256);
                Err(format!("process = {most} MiB in use at a time: the machine has {has} MiB: choose another machine"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &str) -> Trace {
        let process = format!("name = 'cat 7'\nallocations = \"\"\"\n{lines}\"\"\"");
        let process = toml::from_str(&process).unwrap_or_else(|e| panic!("{e}"));
        let flags = ["GFP_KERNEL", "GFP_HIGHUSER_MOVABLE", "GFP_TRANSHUGE_LIGHT"].map(String::from);
        Trace { flags: flags.into(), process: vec![process] }
    }

    #[test]
    fn figures_are_those_of_all_processes() {
        let program = |came_small| {
            let mut program = trace("5 9 2 10\n").program(&Start::default()).expect("it can be read");
            program.came_small = came_small;
            program
        };
        let measured = trace("").measured(&[&program(1), &program(2)]);
        let figure = measured.figures.iter().find(|read| read.figure.name == "huge pages that came as small ones");
        assert_eq!(figure.and_then(|figure| figure.value), Some(3.0));
    }

    #[test]
    fn each_copy_of_the_task_is_a_process_of_the_recording() {
        let mut two = trace("0 0 1 -\n");
        two.process.extend(trace("0 1 1 -\n0 0 1 -\n").process);
        let acts = |copy| two.program(&Start { copy, ..Start::default() }).map(|program| program.acts.len());
        assert_eq!((acts(0), acts(1)), (Ok(1), Ok(2)));
        assert_eq!(two.fits(4, 2), Ok(()));
        assert_eq!(two.fits(4, 1), Err("process = 2 of them, in 1 copies: copies = 2".into()));
        let said = two.fits(3, 2).expect_err("refused");
        assert!(said.starts_with("process = 0 MiB in use at a time: the machine has 0 MiB"), "{said}");
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let said = |text: &str| toml::from_str::<Recorded>(text).expect_err("refused").to_string();
        let wrong = said("name = 'cat 7'\nallocations = \"0 0 1 -\\n0 11 1 -\\n\"");
        assert!(wrong.contains("process = line 2 of 'cat 7': '0 11 1 -' is not 'MICROSECONDS ORDER FLAGS"), "{wrong}");
        let refused = |trace: Trace| trace.program(&Start::default()).err().expect("refused");
        let flags = "process = '0 0 3 -' of 'cat 7': flags has 3 sets, from 0";
        assert_eq!(refused(trace("0 0 1 -\n0 0 3 -\n")), flags);
        assert!(refused(Trace { flags: vec!["GFP_X".into()], ..trace("") }).starts_with("flags = \"GFP_X\""));
    }
}
