//! Recorded hosts as trees of files.
#![allow(dead_code)] // each test file is a program of its own and uses a part

use kontig_live::Roots;
use std::path::Path;
use tempfile::TempDir;

/// The kernels of the recorded hosts.
pub const KERNELS: [&str; 5] = ["5.10", "6.1", "6.12", "6.18", "7.2"];

/// A recorded host, below a directory of its own.
pub struct Tree {
    dir: TempDir,
    /// Where its files are.
    pub roots: Roots,
}

impl Tree {
    /// A kernel's host. Its process `self` is found as 4242.
    pub fn of(kernel: &str) -> Tree {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/hosts").join(format!("{kernel}.txt"));
        let texts = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let dir = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: dir.path().join("proc"), sysfs: dir.path().join("sys") };
        let tree = Tree { dir, roots };
        for (path, text) in texts.split("=== /").filter_map(|part| part.split_once('\n')) {
            tree.write(&path.replace("proc/self/", "proc/4242/"), text);
        }
        tree
    }

    /// Replaces a file, as `proc/buddyinfo`.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// What a file holds.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(path)).expect(path)
    }

    /// Removes a file or a directory.
    pub fn remove(&self, path: &str) {
        let path = self.dir.path().join(path);
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}
