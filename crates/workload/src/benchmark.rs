//! Benchmarks: a kind of work, its parameters, the programs that do it, and what these measure.
//!
//! A benchmark declares its figures where it measures them. Nothing that runs, compares or shows figures knows any of
//! them by name, so a new benchmark needs no change there.

use crate::latencies::Latencies;
use kontig_program::{Ending, FileName, Program, Reading};
use std::any::Any;

/// What a program is told when its phase begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The machine's free memory, pages.
    pub free_pages: u64,
    /// The seed of the program's randomness: another for each copy and each repetition.
    pub seed: u64,
    /// How many copies of the program its task starts.
    pub copies: u64,
}

/// What the copies of a program have measured together.
#[derive(Clone, Default)]
pub struct Measured {
    /// Figures, in the order they are shown.
    pub figures: Vec<Reading>,
    /// Latencies of single operations.
    pub latencies: Vec<Latencies>,
    /// What ended the work, if that was a rule of its own and not its end.
    pub ending: Option<Ending>,
}

/// A kind of work with its parameters.
pub trait Benchmark: Send + Sync + 'static {
    /// What does the work.
    type Program: Program;

    /// A program that has not begun.
    ///
    /// # Errors
    /// Which parameter cannot be read, and what would be right. That depends on the parameters alone.
    fn program(&self, start: &Start) -> Result<Self::Program, String>;

    /// What the copies of one task have measured so far, together.
    fn measured(&self, copies: &[&Self::Program]) -> Measured {
        let _ = copies;
        Measured::default()
    }

    /// Whether so many copies together have room, and anything to do, on a machine with so many pages.
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

    /// What one of its programs has written to each disk at a time, at least, beyond what lies there.
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
}

/// What is written to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The parameter that says so.
    pub key: &'static str,
    /// The disk.
    pub disk: u8,
    /// How much, in pages.
    pub pages: u64,
}

/// Makes [`AnyBenchmark`] of [`Benchmark`], whose methods listed here are called as they are.
macro_rules! any_benchmark {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        /// A benchmark whose type of program is not known. Its programs find back to it here and nowhere else.
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
}
