//! Hold and resume: a file that says that nothing will be compacted now, and until when.
//!
//! It is looked at with every sample, so it takes effect within half a second and survives a
//! restart. A boot clears `/run`, and with it the hold.

use crate::clock::since_1970;
use crate::error::ReadError;
use crate::roots;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the file is, and the lock that only one guard has.
pub const DEFAULT_DIR: &str = "/run/kontig";

/// The file of a hold.
pub struct Hold(PathBuf);

impl Hold {
    pub fn in_dir(dir: &Path) -> Hold {
        Hold(dir.join("guard.hold"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Holds, for these seconds or until it is resumed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set(&self, seconds: Option<u64>) -> io::Result<()> {
        if let Some(dir) = self.0.parent().filter(|dir| *dir == Path::new(DEFAULT_DIR)) {
            fs::create_dir_all(dir)?;
        }
        let until = seconds.map_or(String::new(), |seconds| format!("{}\n", now_s().saturating_add(seconds)));
        // As a whole or not at all: an empty file would hold for ever.
        let beside = self.0.with_extension("hold.new");
        let done = fs::write(&beside, until).and_then(|()| fs::rename(&beside, &self.0));
        if done.is_err() {
            let _ = fs::remove_file(&beside);
        }
        done
    }

    /// Ends the hold; says whether there was one.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn end(&self) -> io::Result<bool> {
        match fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether it holds now. What cannot be read holds: rest is the safe side.
    pub fn holds(&self) -> bool {
        match roots::read(&self.0) {
            Ok(text) => text.trim().parse::<u64>().map_or(true, |until| now_s() < until),
            Err(e) => !ReadError::is_missing(&e),
        }
    }
}

fn now_s() -> u64 {
    since_1970().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_lasts_until_it_is_ended_or_its_time_is_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let hold = Hold::in_dir(dir.path());
        assert!(!hold.holds() && !hold.end().expect("there is none"));
        hold.set(None).expect("written");
        assert!(hold.holds() && hold.end().expect("removed") && !hold.holds());
        hold.set(Some(3600)).expect("written");
        assert!(hold.holds());
        hold.set(Some(0)).expect("written");
        assert!(!hold.holds());
    }

    #[test]
    fn a_hold_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let hold = Hold::in_dir(dir.path());
        fs::create_dir_all(hold.path().join("in the way")).expect("made");
        hold.set(None).expect_err("a directory is in its place");
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 1);
    }
}
