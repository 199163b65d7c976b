//! Kernel threads: the engine's daemons as tasks of the machine, one of each kind for every node.

pub(crate) mod flusher;
pub(crate) mod kcompactd;
pub(crate) mod khugepaged;
pub(crate) mod kswapd;
pub(crate) mod xfs;
