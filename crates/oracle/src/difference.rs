//! The first thing in which the engine is not the kernel: what was asked, what each returned, and the state around.
//!
//! Only the first is of interest: after it the two are different machines. The report is for the developer who has to
//! find the rule: it holds what led there and the engine's state just before, because a replay can always be run again
//! up to any operation.

use std::fmt;

/// Where a replay stopped being the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum At {
    /// An operation of the trace, from 0.
    Operation(usize),
    /// A tracepoint that is compared, from 0.
    Event(usize),
    /// A migrated page, from 0.
    Migration(usize),
    /// An event counter.
    Counter(String),
    /// A line of the state at the end, by its first words.
    FinalState(String),
    /// Something of a state of memory under pressure, and of which: `d0` on the way, `t1` at the end.
    State(String),
    /// The engine's own checker, after so many operations.
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

/// A heading with lines below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// What the lines are.
    pub title: String,
    /// The lines.
    pub lines: Vec<String>,
}

impl Section {
    /// A heading with lines below it.
    pub fn new(title: impl Into<String>, lines: Vec<String>) -> Section {
        Section { title: title.into(), lines }
    }
}

/// The first difference between a recording and its replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Where.
    pub at: At,
    /// What was asked for, if it was a request.
    pub asked: Option<String>,
    /// What the kernel did.
    pub kernel: String,
    /// What the engine did.
    pub engine: String,
    /// What was around it.
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
