//! A look at every frame, for why a run gained nothing. It takes a CPU a second for 24 GiB, so a
//! child takes it, as one compacts: guard goes on saying that it is alive, and ends the child for a
//! stop or a hold. The CPU share is asked before, and charged with what the child has taken.

use super::reason::NoGain;
use super::runner::{Running, on_cpu};
use std::io::{self, Read};
use std::process::Child;
use std::time::Duration;

/// Seconds of a CPU for each frame, for an estimate before the first look. Measured on Linux 6.18
/// with two virtual CPUs of an EPYC: 0.95 to 1.09 s for 6.29 million frames.
const OF_FRAME_S: f64 = 165e-9;
/// The part of the CPU share that looks may take in the long run: the rest is for what they
/// explain. Chosen.
const PART: f64 = 0.25;
/// Seconds for which a look answers. Chosen.
const FRESH_S: f64 = 60.0;
/// Time between two looks at the child.
const INTERVAL: Duration = Duration::from_millis(5);
/// An answer is one short line.
const MOST_BYTES: u64 = 4096;

/// Starts a process that looks at every frame and prints, as JSON, why the blocks of this order
/// cannot be made on this node, or null.
pub type Looker<'a> = dyn Fn(u32, u32) -> io::Result<Child> + 'a;

/// All looks of a guard.
#[derive(Default)]
pub struct Looks {
    last_s: Option<f64>,
    /// CPU time of all of them.
    pub cpu_s: f64,
}

/// The last look for one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Looked {
    pub at_s: f64,
    pub found: Option<NoGain>,
}

impl Looked {
    /// Whether it still answers.
    pub fn is_fresh(&self, now_s: f64) -> bool {
        now_s - self.at_s < FRESH_S
    }

    /// Whether a look that takes `needs_s` seconds of a CPU may follow, where compactions have this
    /// share of one.
    pub fn may_follow(&self, now_s: f64, needs_s: f64, cpu_share: f64) -> bool {
        !self.is_fresh(now_s) && needs_s <= (now_s - self.at_s) * cpu_share * PART
    }
}

impl Looks {
    /// Seconds of a CPU that a look takes: those of the last one, before that by the frames.
    pub fn needs_s(&self, frames: u64) -> f64 {
        self.last_s.unwrap_or(frames as f64 * OF_FRAME_S)
    }

    /// Looks, until it is found or `goes_on` says no, which is asked every few milliseconds.
    /// Returns the CPU time as well.
    pub fn look(&mut self, child: io::Result<Child>, mut goes_on: impl FnMut() -> bool) -> (Option<NoGain>, f64) {
        let Ok(child) = child else { return (None, 0.0) };
        let mut child = Running(child);
        let mut cpu_s = 0.0;
        let found = loop {
            cpu_s = on_cpu(child.0.id()).unwrap_or(cpu_s);
            match child.0.try_wait() {
                Ok(Some(status)) => {
                    self.last_s = Some(cpu_s);
                    break status.success().then(|| answer(&mut child.0)).flatten();
                }
                Ok(None) if goes_on() => std::thread::sleep(INTERVAL),
                // What an ended one has taken says nothing about a whole one.
                Ok(None) | Err(_) => {
                    cpu_s = child.end(|| _ = goes_on()).unwrap_or(cpu_s);
                    break None;
                }
            }
        };
        self.cpu_s += cpu_s;
        (found, cpu_s)
    }
}

fn answer(child: &mut Child) -> Option<NoGain> {
    let mut text = String::new();
    child.stdout.take()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    fn shell(script: &str) -> io::Result<Child> {
        Command::new("/bin/sh").arg("-c").arg(script).stdout(Stdio::piped()).spawn()
    }

    #[test]
    fn a_look_is_ended_when_guard_is_and_its_time_is_charged() {
        let (mut looks, began, mut asked) = (Looks::default(), Instant::now(), 0);
        let (found, cpu_s) = looks.look(shell("while :; do :; done"), || {
            asked += 1;
            asked < 40
        });
        assert!(found.is_none() && asked >= 40 && began.elapsed() < Duration::from_secs(30), "{asked}");
        assert!(cpu_s > 0.0 && looks.cpu_s == cpu_s, "{cpu_s}");
        assert_eq!(looks.needs_s(1_000_000), 0.165, "nothing was learned");
    }

    #[test]
    fn the_answer_is_read_and_its_cost_is_what_the_next_one_needs() {
        let mut looks = Looks::default();
        let (found, _) = looks.look(shell("echo '{\"no_gain\":\"poisoned\",\"blocks\":7}'"), || true);
        assert_eq!(found, Some(NoGain::Poisoned { blocks: 7 }));
        assert!(looks.needs_s(1 << 40) < 5.0);
        for script in ["echo null", "echo x", "exit 1", "cat /dev/zero | head -c 10000"] {
            assert_eq!(looks.look(shell(script), || true).0, None, "{script}");
        }
    }

    #[test]
    fn looks_take_a_quarter_of_the_share_at_most_and_answer_for_a_minute() {
        let looked = Looked { at_s: 100.0, found: None };
        assert!(looked.is_fresh(159.0) && !looked.is_fresh(160.0));
        assert!(!looked.may_follow(159.0, 0.01, 0.05) && looked.may_follow(160.0, 0.01, 0.05));
        // A second, of a quarter of 1 %, is 400 s.
        assert!(!looked.may_follow(499.0, 1.0, 0.01) && looked.may_follow(501.0, 1.0, 0.01));
    }
}
