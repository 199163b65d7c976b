//! The files of a recording: compressed or plain, in its folder, or in another folder that
//! `recording.toml` names because the bytes are the same.

use crate::error::BadRecording;
use lzma_rust2::XzReader;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The ends of the names of a recording's files.
const KINDS: [&str; 9] =
    [".bin", ".snap", ".pages", ".lru", ".txt", ".vmstat", ".zoneinfo", ".buddyinfo", ".pagetypeinfo"];

/// Limit on an unpacked file. No recorder makes larger ones.
const LARGEST: u64 = 1 << 30;

/// A folder of files, each `NAME` or `NAME.xz`.
pub struct Folder {
    dir: PathBuf,
    /// Paths of files kept in another folder.
    elsewhere: BTreeMap<String, PathBuf>,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn open(dir: &Path) -> Result<Folder, BadRecording> {
        match std::fs::metadata(dir) {
            Ok(m) if m.is_dir() => Ok(Folder { dir: dir.to_path_buf(), elsewhere: BTreeMap::new() }),
            Ok(_) => Err(BadRecording::whole(dir, "is not a folder")),
            Err(e) => Err(BadRecording::whole(dir, format!("no such recording: {}", plain(&e)))),
        }
    }

    /// Adds files kept in another folder: each name with the path from this folder, without `.xz`.
    ///
    /// # Errors
    /// If such a file does not exist, or this folder has one of that name.
    pub(crate) fn refer(&mut self, files: &BTreeMap<String, String>) -> Result<(), BadRecording> {
        for (file, path) in files {
            let bad = |reason: String| BadRecording::whole(self.dir.join("recording.toml"), reason);
            if !KINDS.iter().any(|kind| file.ends_with(kind)) {
                let kinds = KINDS.join(", ");
                return Err(bad(format!("[files] names {file}; a recording's files end in {kinds}, without .xz")));
            }
            if self.has(file) {
                return Err(bad(format!("says that {file} is {path}, but the folder has a {file}, too: remove one")));
            }
            let found = existing(&self.dir, path).ok_or_else(|| {
                bad(format!(
                    "says that {file} is {path}, and no such file is there: name the folder that holds it itself"
                ))
            })?;
            self.elsewhere.insert(file.clone(), found);
        }
        Ok(())
    }

    /// Name of the folder.
    pub fn name(&self) -> String {
        let real = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        real.file_name().map_or_else(|| real.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    /// Whether there is a file of this name.
    pub fn has(&self, file: &str) -> bool {
        self.elsewhere.contains_key(file) || existing(&self.dir, file).is_some()
    }

    /// Path of a file, which may not exist.
    pub fn path(&self, file: &str) -> PathBuf {
        let elsewhere = || self.elsewhere.get(file).cloned();
        existing(&self.dir, file).or_else(elsewhere).unwrap_or_else(|| self.dir.join(file))
    }

    /// A file's contents, unpacked.
    ///
    /// # Errors
    /// If it is missing, cannot be read, or is cut short or damaged.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, BadRecording> {
        let path = self.path(file);
        let bad = |reason: String| BadRecording::whole(&path, reason);
        if !path.is_file() {
            return Err(bad("is missing".into()));
        }
        let input = BufReader::new(File::open(&path).map_err(|e| bad(plain(&e)))?);
        let mut out = Vec::new();
        let read = if path.extension().is_some_and(|e| e == "xz") {
            XzReader::new(input, true).take(LARGEST + 1).read_to_end(&mut out).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => "the xz file is cut short".into(),
                _ => format!("the xz file is damaged: {}", plain(&e)),
            })
        } else {
            input.take(LARGEST + 1).read_to_end(&mut out).map_err(|e| plain(&e))
        };
        match read {
            Err(reason) => Err(bad(reason)),
            Ok(n) if n as u64 > LARGEST => Err(bad(format!("holds more than {LARGEST} bytes"))),
            Ok(_) => Ok(out),
        }
    }

    /// Unpacks every file, so that one that no replay needs is known to be whole.
    ///
    /// # Errors
    /// The first by name that cannot be read, or is cut short or damaged.
    pub(crate) fn check(&self) -> Result<(), BadRecording> {
        let entries = std::fs::read_dir(&self.dir).map_err(|e| BadRecording::whole(&self.dir, plain(&e)))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".xz")?.to_string())).collect();
        names.sort_unstable();
        names.iter().chain(self.elsewhere.keys()).try_for_each(|name| self.bytes(name).map(drop))
    }

    /// A file as text.
    ///
    /// # Errors
    /// As [`Folder::bytes`], or if it is not text.
    pub fn text(&self, file: &str) -> Result<String, BadRecording> {
        String::from_utf8(self.bytes(file)?).map_err(|_| BadRecording::whole(self.path(file), "is not text"))
    }
}

/// The file of this name, compressed or plain.
fn existing(dir: &Path, file: &str) -> Option<PathBuf> {
    [format!("{file}.xz"), file.to_string()].iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

/// The text of an error without its number.
fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
