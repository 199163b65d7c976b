//! Where the host's files are found: `/proc` and `/sys`, or other directories that hold the same
//! (`--path.procfs`, `--path.sysfs`, as node_exporter has them): a container's view of its host, or
//! a recorded tree.

use crate::error::ReadError;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The two directories under which everything is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    pub procfs: PathBuf,
    pub sysfs: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { procfs: "/proc".into(), sysfs: "/sys".into() }
    }
}

impl Roots {
    /// The path of a file below `/proc`, as `sys/vm/compact_memory`.
    pub fn proc(&self, file: impl AsRef<Path>) -> PathBuf {
        self.procfs.join(file)
    }

    /// The path of a file below `/sys`, as `kernel/mm/transparent_hugepage/enabled`.
    pub fn sys(&self, file: impl AsRef<Path>) -> PathBuf {
        self.sysfs.join(file)
    }

    /// Reads and parses a file of `/proc`; the error of a malformed one has the path.
    pub(crate) fn parse_proc<T>(
        &self,
        file: &str,
        parser: impl Fn(&str, &str) -> Result<T, kontig_procfs::BadText>,
    ) -> Result<T, ReadError> {
        Ok(parser(&self.proc(file).display().to_string(), &self.read_proc(file)?)?)
    }

    /// The text of a file below `/proc`.
    ///
    /// # Errors
    /// If it is missing, not permitted, or no text.
    pub fn read_proc(&self, file: impl AsRef<Path>) -> Result<String, ReadError> {
        read(&self.proc(file))
    }

    /// The text of a file below `/sys`.
    ///
    /// # Errors
    /// If it is missing, not permitted, or no text.
    pub fn read_sys(&self, file: impl AsRef<Path>) -> Result<String, ReadError> {
        read(&self.sys(file))
    }
}

/// The text of a file.
///
/// # Errors
/// If it is missing, not permitted, or no text.
pub fn read(path: &Path) -> Result<String, ReadError> {
    // The kernel does not say how long such a file is, and may make it anew for each part that is
    // read.
    let mut text = String::with_capacity(64 << 10);
    let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map(|_| text).map_err(|e| ReadError::io(path, &e))
}

/// Opens a file for reading in parts: those with a binary word for each frame or page are large.
///
/// # Errors
/// If it is missing or not permitted.
pub fn open(path: &Path) -> Result<File, ReadError> {
    File::open(path).map_err(|e| ReadError::io(path, &e))
}

/// The names in a directory, in order.
///
/// # Errors
/// If it is missing or not permitted.
pub fn names(path: &Path) -> Result<Vec<String>, ReadError> {
    let entries = fs::read_dir(path).map_err(|e| ReadError::io(path, &e))?;
    let name = |entry: std::io::Result<fs::DirEntry>| entry.map(|e| e.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = entries.map(name).collect::<Result<_, _>>().map_err(|e| ReadError::io(path, &e))?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_tree_is_read_as_the_host_is() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(tree.path().join("proc/sys/vm")).expect("made");
        fs::write(tree.path().join("proc/sys/vm/min_free_kbytes"), "67584\n").expect("written");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        assert_eq!(roots.read_proc("sys/vm/min_free_kbytes"), Ok("67584\n".into()));
        assert!(roots.read_proc("sys/vm/defrag_mode").is_err_and(|e| e.is_missing()));
        assert_eq!(names(&roots.proc("sys")), Ok(vec!["vm".into()]));
    }

    #[test]
    fn a_file_that_is_no_text_is_malformed_and_not_missing() {
        let tree = tempfile::tempdir().expect("a directory");
        let file = tree.path().join("vmstat");
        fs::write(&file, [0xff, 0xfe]).expect("written");
        let error = read(&file).expect_err("no text");
        assert_eq!(error, ReadError::malformed(&file, 0, "this is no text"));
    }
}
