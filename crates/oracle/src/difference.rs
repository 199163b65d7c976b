//! The first difference between engine and kernel: the operation, both results and the state
//! around.
//!
//! Later differences mean nothing, because the machines have diverged by then. The report is for
//! the developer who looks for the wrong rule. It has the operations before and the engine's state
//! just before the difference; a replay can be repeated up to any operation to get it.

use std::fmt;

/// Position of a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum At {
    /// Operation of the trace, counted from 0.
    Operation(usize),
    /// Compared tracepoint, counted from 0.
    Event(usize),
    /// Migrated page, counted from 0.
    Migration(usize),
    /// Name of an event counter.
    Counter(String),
    /// Line of the final state, by its first words.
    FinalState(String),
    /// Item of an LRU state, with the state's name: `d0` on the way, `t1` at the end.
    State(String),
    /// The engine's checker failed after this operation.
    Checker(usize),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Operation(n) => write!(f, "operation {n}"),
            At::Event(n) => write!(f, "event {n}"),
            At::Migration(n) => write!(f, "migration {n}"),
            At::Counter(name) => write!(f, "counter {name}"),
            At::FinalState(line) => write!(f, "final state, {line}"),
            At::State(what) => write!(f, "state {what}"),
            At::Checker(n) => write!(f, "the engine contradicts itself after operation {n}"),
        }
    }
}

/// A titled part of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    pub title: String,
    pub lines: Vec<String>,
}

impl Section {
    /// A part with this title and these lines.
    pub fn new(title: impl Into<String>, lines: Vec<String>) -> Section {
        Section { title: title.into(), lines }
    }
}

/// The first difference between a recording and its replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub at: At,
    /// The operation in words, if the position is one.
    pub asked: Option<String>,
    pub kernel: String,
    pub engine: String,
    /// Operations, events and state before it.
    pub around: Vec<Section>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        if let Some(asked) = &self.asked {
            write!(f, ": {asked}")?;
        }
        writeln!(f, "\n  the kernel: {}\n  the engine: {}", self.kernel, self.engine)?;
        for section in &self.around {
            writeln!(f, "  {}:", section.title)?;
            section.lines.iter().try_for_each(|l| writeln!(f, "    {l}"))?;
        }
        Ok(())
    }
}
