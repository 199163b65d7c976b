//! Dirty pages written ahead of a run, as `sync` does it, where the policy allows that.
//!
//! From Linux 6.9 on, a compaction of a whole node ends at the first large folio of a file that is
//! dirty. Until the kernel has written that folio, which takes half a minute, each further run ends
//! at the same place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Seconds between two writes: as often as the kernel looks for dirty pages by itself.
const EVERY_S: f64 = 5.0;
/// A slow disk does not keep guard from watching.
const LONGEST: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(10);

/// Writes dirty pages, not more often than the kernel would.
#[derive(Default)]
pub struct Dirty {
    /// When the last write began.
    begun_s: Option<f64>,
    writes: Option<JoinHandle<()>>,
}

impl Dirty {
    /// Writes the host's dirty pages if the last write was long enough ago, and waits for it for a
    /// while; `alive` is called meanwhile.
    pub fn write(&mut self, now_s: f64, stop: &AtomicBool, mut alive: impl FnMut()) {
        if self.writes.as_ref().is_some_and(|thread| !thread.is_finished())
            || self.begun_s.is_some_and(|begun| now_s - begun < EVERY_S)
        {
            return;
        }
        self.begun_s = Some(now_s);
        let (thread, began) = (std::thread::spawn(rustix::fs::sync), Instant::now());
        while !thread.is_finished() && began.elapsed() < LONGEST && !stop.load(Ordering::Relaxed) {
            alive();
            std::thread::sleep(INTERVAL);
        }
        self.writes = Some(thread);
    }
}
