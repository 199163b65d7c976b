//! Commands that need the source tree: recordings and planted mistakes are not built in.

use kontig_error::{AskedWrongly, Error};
use std::path::Path;

/// Refuses to go on where this path of the source tree is not there.
pub(super) fn at_the_top(path: &str) -> Result<(), Error> {
    if Path::new(path).exists() {
        return Ok(());
    }
    Err(AskedWrongly::Value(format!("{path} is not here: run it at the top of Kontig's source tree")).into())
}
