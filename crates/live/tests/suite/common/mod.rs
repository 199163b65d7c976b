//! Recorded hosts as trees of files.
#![allow(dead_code)] // the command's tests take a part of it

use kontig_live::Roots;
use std::io::{Seek, SeekFrom, Write};
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
            let path = path.replace("proc/self/", "proc/4242/");
            match path.contains("kpage") || path.ends_with("pagemap") {
                true => tree.write_words(&path, text),
                false => tree.write(&path, text),
            }
        }
        tree
    }

    /// A small host of this kernel, recorded with what a look at every frame takes.
    pub fn with_frames(kernel: &str) -> Tree {
        Tree::of(&format!("frames-{kernel}"))
    }

    /// Writes words that are recorded as `COUNT WORD`, a run a line, and `@INDEX` where those of a
    /// later page follow.
    fn write_words(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        let mut file = std::fs::File::create(&path).expect("made");
        for line in text.lines() {
            if let Some(index) = line.strip_prefix('@') {
                let index: u64 = index.parse().expect("an index");
                file.seek(SeekFrom::Start(index * 8)).expect("sought");
                continue;
            }
            let (count, word) = line.split_once(' ').expect("a run");
            let word = u64::from_str_radix(word, 16).expect("a word").to_ne_bytes();
            file.write_all(&word.repeat(count.parse().expect("a count"))).expect("written");
        }
    }

    /// Replaces a file, as `proc/buddyinfo`.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// The text of a file.
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
