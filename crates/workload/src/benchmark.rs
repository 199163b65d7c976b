//! Benchmarks: a kind of work, its parameters, the programs that do it, and what these measure.
//!
//! A benchmark declares its figures where it measures them. Nothing that runs, compares or shows
//! figures knows any of them by name, so a new benchmark needs no change there.

use crate::latencies::Latencies;
use kontig_program::{Ending, FileName, Program, Reading};
use std::any::Any;

/// The machine's state that a program may know when its phase begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The machine's free memory, pages.
    pub free_pages: u64,
    /// The seed of the program's randomness: another for each copy and each repetition.
    pub seed: u64,
    /// How many copies of the program its task starts.
    pub copies: u64,
    /// Its number among them, from 0.
    pub copy: u64,
}

/// The combined measurements of a program's copies.
#[derive(Clone, Default)]
pub struct Measured {
    /// Figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// Latencies of single operations.
    pub latencies: Vec<Latencies>,
    /// The benchmark's own rule that ended the work early, if one did.
    pub ending: Option<Ending>,
}

/// A kind of work with its parameters.
pub trait Benchmark: Send + Sync + 'static {
    /// The program that does the work.
    type Program: Program;

    /// A program that has not begun.
    ///
    /// # Errors
    /// The parameter that cannot be read, and the remedy. Depends on the parameters alone.
    fn program(&self, start: &Start) -> Result<Self::Program, String>;

    /// The combined measurements of one task's copies so far.
    fn measured(&self, copies: &[&Self::Program]) -> Measured {
        let _ = copies;
        Measured::default()
    }

    /// Checks that the copies together fit on a machine with `pages` of memory, and have work
    /// there.
    ///
    /// # Errors
    /// Why not.
    fn fits(&self, pages: u64, copies: u64) -> Result<(), String> {
        let _ = (pages, copies);
        Ok(())
    }

    /// Files that lie on the machine's disks before anything runs, with their length in pages.
    fn files(&self) -> Vec<(FileName, u32)> {
        Vec::new()
    }

    /// A lower bound of what one program has on each disk at a time, beyond the files laid out.
    fn written(&self) -> Vec<Written> {
        Vec::new()
    }

    /// The last of the machine's disks that it has files on, if it has any.
    fn last_disk(&self) -> Option<u8> {
        None
    }

    /// Whether its programs depend on their seed.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether its programs go on until they are stopped.
    fn is_endless(&self) -> bool {
        false
    }

    /// Whether it needs to know what address translation costs.
    fn needs_translation(&self) -> bool {
        false
    }
}

/// Space that a program takes on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The parameter that says so.
    pub key: &'static str,
    pub disk: u8,
    /// How much, in pages.
    pub pages: u64,
}

/// Makes [`AnyBenchmark`] of [`Benchmark`], whose methods listed here are called as they are.
macro_rules! any_benchmark {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        /// A benchmark with its type of program erased. Only its implementation casts programs
        /// back.
        pub(crate) trait AnyBenchmark: Send + Sync {
            fn program(&self, start: &Start) -> Result<Box<dyn Program>, String>;
            fn measured(&self, copies: &[&dyn Program]) -> Measured;
            $(fn $name(&self $(, $argument: $type)*) -> $result;)*
        }

        impl<B: Benchmark> AnyBenchmark for B {
            fn program(&self, start: &Start) -> Result<Box<dyn Program>, String> {
                Ok(Box::new(Benchmark::program(self, start)?))
            }
            fn measured(&self, copies: &[&dyn Program]) -> Measured {
                let own = copies.iter().map(|program| {
                    let any: &dyn Any = *program;
                    any.downcast_ref::<B::Program>().expect("a task reads the programs it started")
                });
                Benchmark::measured(self, &own.collect::<Vec<_>>())
            }
            $(fn $name(&self $(, $argument: $type)*) -> $result {
                Benchmark::$name(self $(, $argument)*)
            })*
        }
    };
}

any_benchmark! {
    fn fits(&self, pages: u64, copies: u64) -> Result<(), String>;
    fn files(&self) -> Vec<(FileName, u32)>;
    fn written(&self) -> Vec<Written>;
    fn last_disk(&self) -> Option<u8>;
    fn is_random(&self) -> bool;
    fn is_endless(&self) -> bool;
    fn needs_translation(&self) -> bool;
}
