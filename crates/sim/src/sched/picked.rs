//! The running task as its turn began.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Picked {
    pub(crate) vruntime: i64,
    pub(crate) weight: u32,
    /// The CPU's own time.
    pub(crate) at: u64,
}
