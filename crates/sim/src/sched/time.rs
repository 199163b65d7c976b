//! CPU time of tasks and of CPUs, as in `/proc/stat`.

/// Time a task has been on a CPU, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl CpuTime {
    /// User and system time together, ns.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    pub(crate) fn add(&mut self, more: CpuTime) {
        self.user_ns += more.user_ns;
        self.system_ns += more.system_ns;
    }
}

/// A CPU's time since the machine started, ns. The four add up to all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuUse {
    pub user_ns: u64,
    /// System time, context switches included.
    pub system_ns: u64,
    /// Idle time while a task that ran here last waited for I/O.
    pub iowait_ns: u64,
    pub idle_ns: u64,
}
