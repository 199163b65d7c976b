//! What long work says after a step, and whom it wakes.

/// Daemons to wake, a bit for each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Nodes whose kswapd has been woken.
    pub kswapd: u64,
    /// Nodes whose kcompactd has been woken.
    pub kcompactd: u64,
}

/// What a daemon wants after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DaemonStep {
    /// To run on.
    Working,
    /// To sleep until woken, or for so many nanoseconds.
    Sleep(Option<u64>),
}
