//! The unit of I/O that is submitted to a device.

/// A read or write of a run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bio {
    pub(crate) first: u32,
    /// Number of blocks, at least one.
    pub(crate) blocks: u32,
    pub(crate) write: bool,
    /// The submitter's name for it.
    pub(crate) tag: u32,
}
