//! A trace of this program's own: an instance of tracefs, made for it and removed at its end.
//!
//! One that a killed program left goes on filling its small buffer and does nothing else; the next
//! program that makes one removes it. The kernel refuses to remove one that is being read, so none
//! that is in use goes.

use super::sums::EVENTS;
use crate::error::remedy;
use crate::roots::{Roots, names};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the instances of this program begin.
const NAME: &str = "kontig-";
/// Instances that a process has at most.
const MOST: u32 = 16;
/// KiB of the buffer of each CPU: some 5,000 events.
const BUFFER_KB: &str = "256";

/// Why nothing can be traced, in one line with what to do.
#[derive(Debug)]
pub enum NoTrace {
    /// There is no tracefs here.
    NoTracefs(PathBuf),
    /// A file could not be read or written.
    Refused(PathBuf, io::Error),
}

impl std::fmt::Display for NoTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoTrace::NoTracefs(dir) => {
                let dir = dir.display();
                write!(
                    f,
                    "{dir}: there is no tracefs: mount it, where the kernel has one: mount -t tracefs nodev {dir}"
                )
            }
            NoTrace::Refused(path, e) if e.kind() == ErrorKind::PermissionDenied => {
                write!(f, "{}: no permission to trace: {}", path.display(), remedy())
            }
            NoTrace::Refused(path, e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                write!(f, "{}: it is mounted read-only: run this where it can be written", path.display())
            }
            NoTrace::Refused(path, e) if e.kind() == ErrorKind::NotFound => {
                write!(f, "{}: this kernel has no such file: it cannot trace this", path.display())
            }
            NoTrace::Refused(path, e) => write!(f, "{}: {e}", path.display()),
        }
    }
}

impl std::error::Error for NoTrace {}

/// An instance, removed when it is dropped.
pub struct Instance {
    dir: PathBuf,
    /// Open for as long as the instance is in use. It never waits: without events, a read fails.
    pipe: Option<File>,
}

impl Instance {
    /// Makes an instance that traces who waits. Those that killed programs left are removed first.
    ///
    /// # Errors
    /// If there is no tracefs, or this user may not trace.
    pub fn make(roots: &Roots) -> Result<Instance, NoTrace> {
        let all = instances(roots)?;
        clean(&all, roots);
        let mut instance = Instance { dir: make_dir(&all)?, pipe: None };
        let dir = instance.dir.clone();
        let pipe = dir.join("trace_pipe");
        let nonblock = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(nonblock).open(&pipe);
        instance.pipe = Some(opened.map_err(|e| NoTrace::Refused(pipe, e))?);
        // One clock for all CPUs: a thread may begin on one and end on another.
        let settings = [("buffer_size_kb".to_string(), BUFFER_KB), ("trace_clock".to_string(), "mono")];
        let events = EVENTS.map(|event| (format!("events/{event}/enable"), "1"));
        for (file, value) in settings.into_iter().chain(events) {
            let path = dir.join(file);
            // Only what is there is written: in no other file system is one made.
            let written = OpenOptions::new().write(true).open(&path);
            let written = written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
            written.map_err(|e| NoTrace::Refused(path, e))?;
        }
        Ok(instance)
    }

    #[cfg(test)]
    pub(super) fn of(dir: PathBuf) -> Instance {
        let pipe = File::open(dir.join("trace_pipe")).ok();
        Instance { dir, pipe }
    }

    /// Its directory below `instances`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its events, as text.
    pub fn pipe(&mut self) -> Option<&mut File> {
        self.pipe.as_mut()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The kernel keeps one that is being read.
        self.pipe = None;
        // Where even this fails, the next program tries again.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The directory of all instances.
fn instances(roots: &Roots) -> Result<PathBuf, NoTrace> {
    let places = ["kernel/tracing", "kernel/debug/tracing"].map(|dir| roots.sys(dir).join("instances"));
    for place in &places {
        match fs::metadata(place) {
            Ok(_) => return Ok(place.clone()),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(e) => return Err(NoTrace::Refused(place.clone(), e)),
        }
    }
    Err(NoTrace::NoTracefs(roots.sys("kernel/tracing")))
}

/// A new instance, named after this process.
fn make_dir(all: &Path) -> Result<PathBuf, NoTrace> {
    let mut refused = None;
    for nr in 0..MOST {
        let dir = all.join(format!("{NAME}{}-{nr}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) => {
                let is_taken = e.kind() == ErrorKind::AlreadyExists;
                refused = Some((dir, e));
                if !is_taken {
                    break;
                }
            }
        }
    }
    let (dir, e) = refused.unwrap_or_else(|| (all.into(), ErrorKind::AlreadyExists.into()));
    Err(NoTrace::Refused(dir, e))
}

/// Age from which an instance that nobody reads is left over: one that is being made is younger.
const LEFT_AFTER: Duration = Duration::from_secs(10);

/// Removes the instances that killed programs left. A process of the same number says nothing: in
/// containers, numbers repeat. The kernel keeps those that are being read.
fn clean(all: &Path, roots: &Roots) {
    for name in names(all).unwrap_or_default() {
        let Some((pid, nr)) = name.strip_prefix(NAME).and_then(|rest| rest.split_once('-')) else { continue };
        if pid.parse::<u32>().is_err() || nr.parse::<u32>().is_err() {
            continue;
        }
        let dir = all.join(&name);
        let is_old = || {
            let made = fs::metadata(&dir).and_then(|found| found.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LEFT_AFTER))
        };
        if !roots.proc(pid).exists() || is_old() {
            // Where it is being read, the kernel refuses.
            let _ = fs::remove_dir(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Roots) {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        (tree, roots)
    }

    fn refused(roots: &Roots) -> String {
        Instance::make(roots).err().expect("nothing to trace").to_string()
    }

    #[test]
    fn without_tracefs_it_says_how_to_mount_it() {
        let (_tree, roots) = tree();
        let dir = roots.sys("kernel/tracing").display().to_string();
        let said =
            format!("{dir}: there is no tracefs: mount it, where the kernel has one: mount -t tracefs nodev {dir}");
        assert_eq!(refused(&roots), said);
    }

    #[test]
    fn a_place_that_is_no_tracefs_is_left_as_it_was_and_older_mounts_are_found() {
        let (_tree, roots) = tree();
        let all = roots.sys("kernel/debug/tracing/instances");
        fs::create_dir_all(&all).expect("made");
        let said = refused(&roots);
        assert!(said.ends_with("-0/trace_pipe: this kernel has no such file: it cannot trace this"), "{said}");
        assert_eq!(fs::read_dir(&all).expect("read").count(), 0, "what was made is removed");
    }

    #[test]
    fn instances_of_killed_programs_are_removed_and_no_others() {
        let (_tree, roots) = tree();
        let all = roots.sys("kernel/tracing/instances");
        fs::create_dir_all(roots.proc("12")).expect("made");
        for name in ["kontig-11-0", "kontig-12-0", "kontig-12-1", "kontig-12-mine", "kontig-mine", "perf"] {
            fs::create_dir_all(all.join(name)).expect("made");
        }
        // Another container's process has the number 12, too.
        let old = std::time::SystemTime::now() - 2 * LEFT_AFTER;
        fs::File::open(all.join("kontig-12-1")).and_then(|dir| dir.set_modified(old)).expect("made older");
        refused(&roots);
        assert_eq!(names(&all), Ok(["kontig-12-0", "kontig-12-mine", "kontig-mine", "perf"].map(String::from).into()));
    }
}
