//! Steps of tasks on XFS's metadata.

mod change;
mod get_buffer;

pub(crate) use change::{Change, Make};
pub(crate) use get_buffer::GetBuffer;
