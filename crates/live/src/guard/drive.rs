//! Driving the kernel's own proactive compaction: its setting is raised while blocks are lacking,
//! and is as it was otherwise.
//!
//! The old value is in a journal before it is changed, and a process of its own restores it when
//! this one is killed, as with a preparation.

use super::sample::NodeSample;
use crate::prepare::journal::{Journal, NoJournal, Setting};
use crate::prepare::restorer::Restorer;
use crate::proactive;
use crate::roots::Roots;
use kontig_procfs::VmStat;
use std::path::PathBuf;
use std::process::Command;

/// Seconds after which the setting is given back if nothing was gained. Chosen.
const LONGEST_S: f64 = 30.0;

/// Name of the journal in the directory of the hold.
pub const JOURNAL: &str = "guard.journal";

/// The kernel's setting, and who restores it.
pub struct Drive<'a> {
    pub journal: PathBuf,
    /// Makes the command that restores at the end of this process.
    pub restores: &'a dyn Fn() -> Command,
}

/// The setting while it is changed. It holds for the whole host, so there is one of it.
pub(super) struct Driving {
    journal: Journal,
    _restorer: Restorer,
    since_s: f64,
    value: u64,
    /// The nodes for which it is raised, and their blocks at hand at the beginning.
    pub nodes: Vec<(u32, u64)>,
    /// Pages that compaction had moved at the beginning.
    moved: Option<u64>,
}

/// The file of the setting.
pub(super) fn setting(roots: &Roots) -> PathBuf {
    roots.proc("sys/vm/compaction_proactiveness")
}

impl Driving {
    /// Sets it to this value.
    pub fn begin(drive: &Drive, roots: &Roots, value: u64, since_s: f64) -> Result<Driving, NoJournal> {
        let restorer = Restorer::start((drive.restores)());
        let (mut journal, _) = Journal::begin(&drive.journal, roots)?;
        match journal.change(&setting(roots), &value.to_string()) {
            Ok(()) => {
                Ok(Driving { journal, _restorer: restorer, since_s, value, nodes: Vec::new(), moved: moved(roots) })
            }
            Err(e) => journal.end().and(Err(e)),
        }
    }

    /// Raises it to this value, if that is more. The value from before is in the journal already.
    pub fn raise(&mut self, roots: &Roots, value: u64) -> Result<(), NoJournal> {
        if value > self.value {
            self.journal.change_again(&setting(roots), &value.to_string())?;
            self.value = value;
        }
        Ok(())
    }

    /// The value that is set now.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Whether any page has moved since it was raised; true where the kernel does not count them.
    pub fn has_moved(&self, roots: &Roots) -> bool {
        self.moved.zip(moved(roots)).is_none_or(|(then, now)| now > then)
    }

    /// Whether it has gone on for long.
    pub fn is_long(&self, now_s: f64) -> bool {
        now_s - self.since_s > LONGEST_S
    }

    /// Gives the setting back, unless somebody else has set it meanwhile: then that is returned.
    pub fn end(self) -> Result<Option<Setting>, NoJournal> {
        Ok(self.journal.end()?.into_iter().find(|setting| setting.left.is_some()))
    }
}

/// Pages that were migrated.
fn moved(roots: &Roots) -> Option<u64> {
    roots.parse_proc("vmstat", VmStat::parse).ok()?.get("pgmigrate_success")
}

/// The score above which the host's kernel begins at the highest proactiveness; 0 where its release
/// tells nothing.
pub(super) fn begins_above(roots: &Roots) -> u64 {
    let release = roots.read_proc("sys/kernel/osrelease").unwrap_or_default();
    proactive::scores(release.trim(), 100).map_or(0, |scores| scores.above)
}

/// The proactiveness at which the kernel begins now and ends when `lacks` blocks are made: its
/// lower threshold is the score then, and the upper one, ten more at most, is below the score now.
pub(super) fn proactiveness(node: &NodeSample, lacks: u64, order: u32) -> u64 {
    let free = node.free_pages().max(1);
    let then = (node.too_small(order).saturating_sub(lacks << order) * 100) / free;
    let low = then.min(node.score().saturating_sub(11));
    100 - low.min(99)
}

#[cfg(test)]
mod tests {
    use super::super::sample::ZoneSample;
    use super::*;

    #[test]
    fn the_kernel_is_told_to_begin_now_and_to_end_with_the_blocks() {
        let node = |singles: u64, blocks: u64| NodeSample {
            node: 0,
            huge_order: 9,
            zones: vec![ZoneSample {
                name: "Normal".into(),
                present: 1 << 20,
                kept: 0,
                free: vec![singles, 0, 0, 0, 0, 0, 0, 0, 0, blocks],
                deferred: 0,
            }],
        };
        // 80 % in pieces; with 30 more of 100 blocks' worth, 50 %.
        assert_eq!(proactiveness(&node(80 * 512, 20), 30, 9), 50);
        assert_eq!(proactiveness(&node(80 * 512, 20), 1, 9), 32, "79 % is too near to begin at 79 %");
        assert_eq!(proactiveness(&node(5 * 512, 95), 5, 9), 100);
    }
}
