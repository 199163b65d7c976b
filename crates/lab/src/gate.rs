//! Admission of runs: they go side by side while the host has memory for them.

use std::sync::{Condvar, Mutex};

/// Admits runs while their memory fits.
pub(crate) struct Gate {
    free: Mutex<u64>,
    changed: Condvar,
    total: u64,
}

/// A run's memory; given back when dropped.
pub(crate) struct Ticket<'a>(&'a Gate, u64);

impl Gate {
    pub(crate) fn new(total: u64) -> Gate {
        Gate { free: Mutex::new(total), changed: Condvar::new(), total }
    }

    /// Waits until a run of this size fits.
    pub(crate) fn enter(&self, bytes: u64) -> Ticket<'_> {
        // A run that needs more than the budget gets it all, alone.
        let bytes = bytes.min(self.total);
        let mut free = lock(&self.free);
        while *free < bytes {
            free = self.changed.wait(free).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *free -= bytes;
        Ticket(self, bytes)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += self.1;
        self.0.changed.notify_all();
    }
}

/// Bytes of memory the host can give without swapping; unlimited if the host does not say.
pub(crate) fn available_memory() -> u64 {
    let file = "/proc/meminfo";
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let kib = kontig_procfs::MemInfo::parse(file, &text).ok().and_then(|info| info.kb("MemAvailable"));
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// Locks. A thread that panicked with the lock held left a consistent value behind.
pub(crate) fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
