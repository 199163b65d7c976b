//! Carries out the steps of a plan, one at a time.
//!
//! The kernel compacts on behalf of the process that writes to the file, and gives up when it is
//! killed. So a child writes, and is killed as soon as `/proc/buddyinfo` shows the blocks.

use super::execution::{EXIT_NOT_PERMITTED, Execution, counters};
use super::journal::{Journal, NoJournal};
use super::plan::PlanStep;
use super::receipt::Ended;
use super::{pool, release};
use crate::error::ReadError;
use crate::need::Need;
use crate::roots;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// Time between two looks at the free blocks: some hundred pages are moved meanwhile.
const INTERVAL: Duration = Duration::from_millis(2);
/// Passes in a row that move nothing before it gives up.
const IDLE_PASSES: u32 = 8;

/// Why a step was not carried out.
pub(super) struct NotDone {
    pub(super) text: String,
    pub(super) is_permission: bool,
}

impl NotDone {
    fn because(text: impl Into<String>) -> NotDone {
        NotDone { text: text.into(), is_permission: false }
    }
}

impl From<NoJournal> for NotDone {
    fn from(e: NoJournal) -> NotDone {
        NotDone { text: e.to_string(), is_permission: e.is_permission() }
    }
}

impl From<ReadError> for NotDone {
    fn from(e: ReadError) -> NotDone {
        NoJournal::Unread(e).into()
    }
}

/// One step that is being carried out.
pub(super) struct StepRunner<'a> {
    needs: &'a [Need],
    execution: &'a Execution<'a>,
    began: Instant,
    /// Nanoseconds of a CPU for the writing processes; `None` where the kernel does not say.
    cpu_ns: Option<u64>,
}

impl<'a> StepRunner<'a> {
    pub(super) fn new(needs: &'a [Need], execution: &'a Execution<'a>, began: Instant) -> StepRunner<'a> {
        StepRunner { needs, execution, began, cpu_ns: None }
    }

    /// Seconds of a CPU for the writing processes.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        self.cpu_ns.map(|ns| ns as f64 / 1e9)
    }

    fn over(&self) -> Option<Ended> {
        self.execution.over(self.began)
    }

    fn is_met(&self) -> bool {
        self.execution.is_met(self.needs)
    }

    /// Carries out a step. Returns whether it was ended early as the needs were met.
    pub(super) fn carry_out(&mut self, step: &PlanStep, journal: &mut Journal) -> Result<bool, NotDone> {
        match step {
            PlanStep::Release { path, limit } => {
                limit.as_ref().map(|limit| journal.change(limit, release::LEAST)).transpose()?;
                release::all(self.execution.roots, path, || self.over().is_some())?;
                Ok(self.is_met())
            }
            PlanStep::Compact { path, sync, .. } => self.compact(path, *sync),
            PlanStep::DropCaches { path } => self.write_and_watch(path, true, |_| false),
            PlanStep::Reserve { path, pages } => {
                let Some(wanted) = pool::larger(path, *pages)? else { return Ok(false) };
                journal.change(path, &wanted.to_string())?;
                let got = pool::number(path)?;
                let short = || NotDone::because(format!("the pool has {got} huge pages instead of {wanted}"));
                if got >= wanted { Ok(false) } else { Err(short()) }
            }
        }
    }

    /// Compacts a node, in as many passes as it takes. A pass ends early at a large dirty folio:
    /// dirty pages are written before the next pass, and those dirtied by then are elsewhere.
    fn compact(&mut self, path: &Path, sync: bool) -> Result<bool, NotDone> {
        let roots = self.execution.roots;
        let (mut sync, mut idle) = (sync, 0);
        while idle < IDLE_PASSES {
            let before = counters(roots).moved;
            if self.write_and_watch(path, sync, StepRunner::is_met)? {
                return Ok(true);
            }
            // The last pages that the pass freed are on CPUs' lists. A kernel without the file
            // keeps few there.
            if let Some(path) = release::refresh(roots) {
                let _ = release::all(roots, &path, || false);
            }
            if self.is_met() {
                return Ok(false);
            }
            idle = if counters(roots).moved > before { 0 } else { idle + 1 };
            sync = true;
        }
        Ok(false)
    }

    /// Starts a process that writes 1 to a file, and kills it once that is enough, the time is
    /// over, or it is stopped.
    fn write_and_watch(&mut self, path: &Path, sync: bool, enough: impl Fn(&Self) -> bool) -> Result<bool, NotDone> {
        let failed = |e: std::io::Error| NotDone::because(format!("{}: {e}", path.display()));
        let mut writer = Running((self.execution.writer)(path, sync).map_err(failed)?);
        let before = self.cpu_ns.unwrap_or(0);
        loop {
            // The kernel keeps the time of a process that has ended until it is waited for.
            self.cpu_ns = on_cpu(writer.0.id()).map(|ns| before + ns).or(self.cpu_ns);
            if let Some(status) = writer.0.try_wait().map_err(failed)? {
                return match status.code() {
                    Some(0) => Ok(false),
                    Some(EXIT_NOT_PERMITTED) => {
                        Err(NoJournal::Unwritten(path.into(), ErrorKind::PermissionDenied.into()).into())
                    }
                    _ => Err(NotDone::because(format!("{}: it could not be written", path.display()))),
                };
            }
            if enough(self) {
                return Ok(true);
            }
            if let Some(why) = self.over() {
                return Err(NotDone::because(why.words()));
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

/// Nanoseconds that a process of this host has had a CPU.
fn on_cpu(pid: u32) -> Option<u64> {
    let text = roots::read(Path::new(&format!("/proc/{pid}/schedstat"))).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// A process that does not outlive this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
