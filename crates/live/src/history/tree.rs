//! A sample's texts as files again, below a directory: so all that reads a host reads a moment of
//! its history.

use super::sample::{PAGE_SIZE, Sample, Stored};
use crate::host::Host;
use crate::host::page_size::vector_with;
use crate::roots::Roots;
use crate::status::{NotRead, Status};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

/// A sample's files, which go away with this value.
#[derive(Debug)]
pub struct Tree {
    dir: TempDir,
    sample: Sample,
    /// Where the files are.
    pub roots: Roots,
}

impl Tree {
    /// Writes the files below a directory of their own.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub fn of(sample: Sample) -> io::Result<Tree> {
        let dir = tempfile::Builder::new().prefix("kontig-").tempdir()?;
        let roots = lay(&sample, dir.path())?;
        Ok(Tree { dir, sample, roots })
    }

    /// The sample's state for blocks of `order`, as `kontig status` has it of a host; `before` is
    /// an earlier sample's host, and the seconds since then.
    ///
    /// # Errors
    /// If free lists or zones are not in the sample, or not understood.
    pub fn status(&self, order: Option<u32>, before: Option<(&Host, f64)>) -> Result<Status, crate::ReadError> {
        let mut status = Status::of(&Host::read(&self.roots), order, before)?;
        status.not_read.iter_mut().for_each(|not_read| self.as_recorded(not_read));
        Ok(status)
    }

    /// Names the host's file instead of the temporary one, and the reason that it had then.
    fn as_recorded(&self, not_read: &mut NotRead) {
        let dir = self.dir.path().display().to_string();
        not_read.path = not_read.path.replace(&dir, "");
        not_read.text = not_read.text.replace(&dir, "");
        let why = match self.sample.files.get(not_read.path.trim_start_matches('/')) {
            Some(Stored::NoPermission) => Some(("no permission", "its recorder had no permission to read it".into())),
            Some(Stored::Failed(why)) => Some(("failed", why.to_string())),
            None if not_read.why == "missing" => Some(("missing", "it is not in the history".into())),
            _ => None,
        };
        if let Some((word, text)) = why {
            not_read.why = word;
            not_read.text = format!("{}: {text}", not_read.path);
        }
    }

    /// A text about the moment, without the temporary directory's name.
    pub fn without_place(&self, text: &str) -> String {
        text.replace(&self.dir.path().display().to_string(), "")
    }
}

/// Writes a sample's texts as files below a directory, as `DIR/proc/buddyinfo`, and returns where
/// a command finds them.
///
/// # Errors
/// If one cannot be written.
pub fn lay(sample: &Sample, dir: &Path) -> io::Result<Roots> {
    let roots = Roots { procfs: dir.join("proc"), sysfs: dir.join("sys") };
    fs::create_dir_all(&roots.procfs)?;
    fs::create_dir_all(&roots.sysfs)?;
    for (path, stored) in &sample.files {
        let (Some(path), Some(text)) = (below(dir, path), stored.text()) else { continue };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    if let Some(bytes) = sample.text(PAGE_SIZE).and_then(|text| text.trim().parse().ok()) {
        fs::create_dir_all(roots.proc("self"))?;
        fs::write(roots.proc("self/auxv"), vector_with(bytes))?;
    }
    Ok(roots)
}

/// The place of a file below a directory; `None` of a path that leads out of it.
fn below(dir: &Path, path: &str) -> Option<PathBuf> {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_))).then(|| dir.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_directory() {
        let dir = Path::new("/tmp/x");
        assert_eq!(below(dir, "proc/vmstat"), Some("/tmp/x/proc/vmstat".into()));
        assert_eq!((below(dir, "../etc/passwd"), below(dir, "/etc/passwd")), (None, None));
    }
}
