//! The host to read: this one, or another tree of the same files.

use clap::Args;
use kontig_error::{AskedWrongly, Error};
use kontig_live::Roots;
use std::path::PathBuf;

/// Where the host's files are; the options have node_exporter's names.
#[derive(Args)]
pub struct HostArgs {
    /// Where procfs is mounted: in a container, the host's
    #[arg(long = "path.procfs", value_name = "DIR", default_value = "/proc")]
    procfs: PathBuf,
    /// Where sysfs is mounted
    #[arg(long = "path.sysfs", value_name = "DIR", default_value = "/sys")]
    sysfs: PathBuf,
}

impl HostArgs {
    /// The two directories, both of which must exist.
    pub fn roots(&self) -> Result<Roots, Error> {
        for (option, dir) in [("--path.procfs", &self.procfs), ("--path.sysfs", &self.sysfs)] {
            if !dir.is_dir() {
                let text = format!("{option}: {}: there is no such directory", dir.display());
                return Err(AskedWrongly::Value(text).into());
            }
        }
        Ok(Roots { procfs: self.procfs.clone(), sysfs: self.sysfs.clone() })
    }
}
