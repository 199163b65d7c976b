//! Admission of runs: they go side by side while the host has memory for them.

use kontig_live::Roots;
use kontig_live::cgroup::{Limit, Limits};
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

/// Memory that runs can have.
pub(crate) struct Available {
    pub(crate) bytes: u64,
    /// The control group's limit, where that is tighter than the host's memory.
    pub(crate) limit: Option<Limit>,
}

impl Available {
    /// Memory the host can give without swapping, as far as this process's control groups allow;
    /// unlimited if the host does not say.
    pub(crate) fn read(roots: &Roots) -> Available {
        let text = roots.read_proc("meminfo").unwrap_or_default();
        let kib = kontig_procfs::MemInfo::parse("meminfo", &text).ok().and_then(|info| info.kb("MemAvailable"));
        let of_host = kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024));
        match Limits::read(roots).memory.filter(|limit| limit.room_bytes() < of_host) {
            // Above its limit a process is killed, or hardly goes on.
            Some(limit) => Available { bytes: limit.room_bytes(), limit: Some(limit) },
            None => Available { bytes: of_host, limit: None },
        }
    }
}

/// Locks. A thread that panicked with the lock held left a consistent value behind.
pub(crate) fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_groups_limit_is_all_that_is_available_if_it_is_less_than_the_host_has() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        let write = |path: std::path::PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let available = || {
            let Available { bytes, limit } = Available::read(&roots);
            (bytes >> 20, limit.map(|limit| limit.group))
        };
        write(roots.proc("meminfo"), "MemTotal: 8388608 kB\nMemFree: 1024 kB\nMemAvailable: 4194304 kB\n");
        assert_eq!(available(), (4096, None));
        write(roots.proc("self/cgroup"), "0::/a\n");
        write(roots.proc("self/mountinfo"), "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let group = roots.sys("fs/cgroup/a");
        write(group.join("memory.current"), "104857600\n");
        write(group.join("memory.max"), "536870912\n");
        assert_eq!(available(), (412, Some("/a".into())));
        write(group.join("memory.max"), "8589934592\n");
        assert_eq!(available(), (4096, None));
    }
}
