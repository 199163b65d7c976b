//! The files of a recording's folder: compressed or plain, whichever is there.

use crate::error::BadRecording;
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Nothing a recording holds is larger than this unpacked; a file that is was not made by a recorder.
const LARGEST: u64 = 1 << 30;

/// A folder of files, each `NAME` or `NAME.xz`.
pub struct Folder(PathBuf);

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn open(dir: &Path) -> Result<Folder, BadRecording> {
        match std::fs::metadata(dir) {
            Ok(m) if m.is_dir() => Ok(Folder(dir.to_path_buf())),
            Ok(_) => Err(BadRecording::whole(dir, "is not a folder")),
            Err(e) => Err(BadRecording::whole(dir, format!("no such recording: {}", plain(&e)))),
        }
    }

    /// The folder's own name.
    pub fn name(&self) -> String {
        let real = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        real.file_name().map_or_else(|| real.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    /// Whether there is a file of this name.
    pub fn has(&self, file: &str) -> bool {
        self.0.join(file).is_file() || self.packed(file).is_file()
    }

    /// Where a file is, or would be.
    pub fn path(&self, file: &str) -> PathBuf {
        let packed = self.packed(file);
        if packed.is_file() { packed } else { self.0.join(file) }
    }

    fn packed(&self, file: &str) -> PathBuf {
        self.0.join(format!("{file}.xz"))
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

    /// A file as text.
    ///
    /// # Errors
    /// As [`Folder::bytes`], or if it is not text.
    pub fn text(&self, file: &str) -> Result<String, BadRecording> {
        String::from_utf8(self.bytes(file)?).map_err(|_| BadRecording::whole(self.path(file), "is not text"))
    }
}

/// An error in words, without the system's number.
fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
