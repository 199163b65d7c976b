//! Dirty pages written ahead of a run, as `sync` does it, where the policy allows that.
//!
//! From Linux 6.9 on, a compaction of a whole node ends at the first large folio of a file that is
//! dirty. Until the kernel has written that folio, which takes half a minute, each further run ends
//! at the same place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Seconds from the first write to the second; each further pause is twice as long, since other
/// programs' writes wait for it. Chosen.
const FIRST_PAUSE_S: f64 = 5.0;
const LONGEST_PAUSE_S: f64 = 60.0;
/// A slow disk does not keep guard from watching.
const LONGEST: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(10);

/// Writes dirty pages, ever more seldom until that has helped.
#[derive(Default)]
pub struct Dirty {
    /// When the last write began.
    begun_s: Option<f64>,
    /// Writes since a run gained something.
    vain: u32,
    writes: Option<JoinHandle<()>>,
}

impl Dirty {
    /// A run has gained something.
    pub fn helped(&mut self) {
        self.vain = 0;
    }

    /// Writes the host's dirty pages if the last write was long enough ago, and waits for it for a
    /// while; `alive` is called meanwhile. Gives the seconds it waited, none if it did not write.
    pub fn write(&mut self, now_s: f64, stop: &AtomicBool, mut alive: impl FnMut()) -> Option<f64> {
        let pause = (FIRST_PAUSE_S * f64::from(1u32 << self.vain.saturating_sub(1).min(16))).min(LONGEST_PAUSE_S);
        if self.writes.as_ref().is_some_and(|thread| !thread.is_finished())
            || self.begun_s.is_some_and(|begun| now_s - begun < pause)
        {
            return None;
        }
        self.begun_s = Some(now_s);
        self.vain += 1;
        let (thread, began) = (std::thread::spawn(rustix::fs::sync), Instant::now());
        while !thread.is_finished() && began.elapsed() < LONGEST && !stop.load(Ordering::Relaxed) {
            alive();
            std::thread::sleep(INTERVAL);
        }
        self.writes = Some(thread);
        Some(began.elapsed().as_secs_f64())
    }
}
