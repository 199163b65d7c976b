//! What tasks do to XFS's metadata.

mod change;

pub(crate) use change::{Change, Make};
