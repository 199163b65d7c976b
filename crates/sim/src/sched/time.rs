//! What time went into, of tasks and of CPUs, as `/proc/stat` has it.

/// Time a task has been on a CPU, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// In its own code.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

impl CpuTime {
    /// Both.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    pub(crate) fn add(&mut self, more: CpuTime) {
        self.user_ns += more.user_ns;
        self.system_ns += more.system_ns;
    }
}

/// What a CPU's time went into since the machine started, ns. The four make up all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuUse {
    /// Code of programs.
    pub user_ns: u64,
    /// The kernel, switches between tasks included.
    pub system_ns: u64,
    /// Nothing, while a task that ran here last waited for I/O.
    pub iowait_ns: u64,
    /// Nothing.
    pub idle_ns: u64,
}
