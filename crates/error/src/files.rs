//! Files: names as parts of paths, short texts, and writes of files and directories that are whole
//! or not at all.

use crate::error::{AskedWrongly, Error, Failed};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A name made safe as part of a path.
pub fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_=+".contains(c) { c } else { '_' }).collect()
}

/// Whether a name is safe as it is.
pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && file_name(name) == name
}

fn unwritten(path: &Path, reason: String) -> Error {
    Failed::Write { path: path.display().to_string(), reason }.into()
}

/// Writes a file of a result, creating its directory.
///
/// # Errors
/// As [`write_file`].
pub fn write_with_directory(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let dir = directory(path);
    std::fs::create_dir_all(dir).map_err(|e| unwritten(path, e.to_string()))?;
    write_file(path, bytes)
}

/// The directory part of a path.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a file in a directory that does not exist: a misspelled directory is not created. What
/// other programs take for standard output is no name either.
fn has_directory(path: &Path) -> Result<(), Error> {
    if path == Path::new("-") {
        let reason =
            "- is no file name here, as standard output has the tables: name a file, or ./- for one of that name";
        return Err(AskedWrongly::Value(reason.into()).into());
    }
    let dir = directory(path);
    match std::fs::metadata(dir) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(unwritten(path, format!("{} is no directory", dir.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(unwritten(path, format!("there is no directory {}: make it first", dir.display())))
        }
        Err(e) => Err(unwritten(path, e.to_string())),
    }
}

/// Writes a file into an existing directory.
///
/// # Errors
/// The path, and the reason.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, bytes, |_| Ok(()))
}

/// Removes a file, or a directory with all it has, if it is there.
///
/// # Errors
/// The path, and the reason.
pub fn remove(path: &Path) -> Result<(), Error> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(unwritten(path, format!("it cannot be removed: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes a file into an existing directory that other users read, whatever the umask: at no
/// moment is it there and closed to them.
///
/// # Errors
/// As [`write_file`].
pub fn write_file_for_all(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, bytes, |part| std::fs::set_permissions(part, Permissions::from_mode(0o644)))
}

fn written(path: &Path, bytes: &[u8], finish: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Error> {
    let fail = |e: std::io::Error| unwritten(path, e.to_string());
    if is_device(path) {
        // Standard output may lead to a file, which has other text already.
        let open = OpenOptions::new().append(true).open(path);
        return open.and_then(|mut file| file.write_all(bytes)).map_err(fail);
    }
    has_directory(path)?;
    // A full disk never leaves half a file under the final name.
    let part = part_of(path);
    std::fs::write(&part, bytes).and_then(|()| finish(&part)).and_then(|()| std::fs::rename(&part, path)).map_err(|e| {
        let _ = std::fs::remove_file(&part);
        fail(e)
    })
}

/// Bytes of a short text at most.
const SHORT: u64 = 1 << 20;

/// The text of a user's short file, which may be read again later. A pipe may have no writer, and a
/// device no end.
///
/// # Errors
/// If it is no regular file, longer than 1 MiB, or no text.
pub fn read_short(path: &Path) -> Result<String, Error> {
    let unreadable = |reason: String| {
        let path = path.display().to_string();
        Error::from(AskedWrongly::Unreadable { path, reason })
    };
    let failed = |e: std::io::Error| unreadable(e.to_string());
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(unreadable("this is no regular file".into()));
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(SHORT + 1).read_to_string(&mut text));
    // Where it is cut, a letter may be as well.
    if path.metadata().is_ok_and(|now| now.len() > SHORT) || text.len() as u64 > SHORT {
        return Err(unreadable("it is longer than 1 MiB, as no such file is".into()));
    }
    read.map_err(failed)?;
    Ok(text)
}

/// A file that is written piece by piece and has its name once it is whole: until then an earlier
/// file of that name stays as it is, and what is dropped before leaves nothing behind.
pub struct Pieces {
    path: PathBuf,
    /// The name until it is whole; a device has its own from the start.
    part: Option<PathBuf>,
    file: File,
    whole: AtomicBool,
}

impl Pieces {
    /// Begins it in an existing directory.
    ///
    /// # Errors
    /// The path, and the reason.
    pub fn create(path: &Path) -> Result<Pieces, Error> {
        let fail = |e: std::io::Error| unwritten(path, e.to_string());
        let (part, file) = match is_device(path) {
            true => (None, OpenOptions::new().append(true).open(path).map_err(fail)?),
            false => {
                has_directory(path)?;
                let part = part_of(path);
                let file = File::create(&part).map_err(fail)?;
                (Some(part), file)
            }
        };
        Ok(Pieces { path: path.into(), part, file, whole: AtomicBool::new(false) })
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// The path, and the reason.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        (&self.file).write_all(bytes).map_err(|e| unwritten(&self.path, e.to_string()))
    }

    /// Gives it its name, in place of an earlier file.
    ///
    /// # Errors
    /// The path, and the reason.
    pub fn finish(&self) -> Result<(), Error> {
        if let Some(part) = &self.part {
            std::fs::rename(part, &self.path).map_err(|e| unwritten(&self.path, e.to_string()))?;
        }
        self.whole.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(part) = self.part.as_ref().filter(|_| !self.whole.load(Ordering::Relaxed)) {
            let _ = std::fs::remove_file(part);
        }
    }
}

/// Tests whether a file can be written without changing it.
///
/// # Errors
/// The path, and the reason.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let fail = |e: std::io::Error| unwritten(path, e.to_string());
    // Opening a pipe waits for its reader, and closing it ends the reader's input.
    if is_device(path) {
        return Ok(());
    }
    if path.exists() {
        OpenOptions::new().append(true).open(path).map_err(fail)?;
    }
    has_directory(path)?;
    let part = part_of(path);
    std::fs::write(&part, b"").and_then(|()| std::fs::remove_file(&part)).map_err(fail)
}

/// Refuses a file that exists. A device takes any number of writes.
///
/// # Errors
/// If something has that name.
pub fn check_new(path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_err() || is_device(path) {
        return Ok(());
    }
    let reason = format!("{} exists, and nothing is overwritten: name a file that does not", path.display());
    Err(AskedWrongly::Value(reason).into())
}

/// The temporary name a file is written under.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// Whether the path is a pipe or a device such as `/dev/stdout`, which a rename must not replace,
/// even where that leads to a regular file.
fn is_device(path: &Path) -> bool {
    let is_descriptor = || {
        let dir = directory(path).canonicalize().unwrap_or_default();
        dir == Path::new("/dev") || (dir.starts_with("/proc") && dir.ends_with("fd"))
    };
    path.metadata().is_ok_and(|m| !m.is_dir() && (!m.is_file() || is_descriptor()))
}

/// Refuses two outputs in one place, of which the later would replace the earlier. A device takes
/// any number of them.
///
/// # Errors
/// The two options, and the path.
pub fn check_distinct(outputs: &[(&str, Option<&Path>)]) -> Result<(), Error> {
    let named: Vec<(&str, &Path)> = outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    let named: Vec<_> = named.into_iter().filter(|(_, path)| !is_device(path)).collect();
    for (i, (option, path)) in named.iter().enumerate() {
        if let Some((other, _)) = named[..i].iter().find(|(_, other)| place(other) == place(path)) {
            let reason = format!("{other} and {option} both name {}: give each a place of its own", path.display());
            return Err(AskedWrongly::Value(reason).into());
        }
    }
    Ok(())
}

/// Refuses an output in the place of a file that is read.
///
/// # Errors
/// The option, and the path.
pub fn check_not_read(outputs: &[(&str, Option<&Path>)], inputs: &[&str]) -> Result<(), Error> {
    let read: Vec<PathBuf> = inputs.iter().map(Path::new).filter(|input| input.is_file()).map(place).collect();
    let clash = outputs.iter().find(|(_, path)| path.is_some_and(|path| read.contains(&place(path))));
    match clash {
        Some((option, Some(path))) => {
            let reason = format!("{option} would replace {}, which is read: name another file", path.display());
            Err(AskedWrongly::Value(reason).into())
        }
        _ => Ok(()),
    }
}

/// The place that a path leads to, whether or not something is there.
fn place(path: &Path) -> PathBuf {
    let below = || Some(directory(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(below).unwrap_or_else(|| path.into())
}

/// Creates a directory for results and tests it, before anything runs. Its parent must exist, as
/// a file's must.
///
/// # Errors
/// If it cannot be created or written to.
pub fn check_directory(dir: &Path) -> Result<(), Error> {
    has_directory(dir)?;
    if dir.exists() && !dir.is_dir() {
        return Err(unwritten(dir, "this is no directory".into()));
    }
    let probe = dir.join(".kontig");
    write_with_directory(&probe, b"")?;
    let _ = std::fs::remove_file(probe);
    Ok(())
}

/// A new directory of files, which has its name once all of them are written.
pub struct NewDirectory {
    dir: PathBuf,
    part: PathBuf,
    files: Vec<PathBuf>,
    is_whole: bool,
}

impl NewDirectory {
    /// # Errors
    /// If there is something of that name already, or it cannot be made.
    pub fn create(dir: &Path) -> Result<NewDirectory, Error> {
        let taken = |what: &Path| {
            let reason =
                format!("{} exists, and nothing is overwritten: name a directory that does not", what.display());
            Error::from(AskedWrongly::Value(reason))
        };
        if dir.symlink_metadata().is_ok() {
            return Err(taken(dir));
        }
        has_directory(dir)?;
        let part = part_of(dir);
        std::fs::create_dir(&part).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => AskedWrongly::Value(format!(
                "{} is what another command writes for {}, or was left by one that was killed: wait for it, or remove \
                 it",
                part.display(),
                dir.display()
            ))
            .into(),
            _ => unwritten(dir, e.to_string()),
        })?;
        Ok(NewDirectory { dir: dir.into(), part, files: Vec::new(), is_whole: false })
    }

    /// Opens a file in it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn file(&mut self, name: &str) -> Result<std::fs::File, Error> {
        let path = self.part.join(name);
        let file = std::fs::File::create_new(&path).map_err(|e| unwritten(&self.dir.join(name), e.to_string()))?;
        self.files.push(path);
        Ok(file)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// If something has that name by now.
    pub fn finish(mut self) -> Result<(), Error> {
        std::fs::rename(&self.part, &self.dir).map_err(|e| unwritten(&self.dir, e.to_string()))?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for NewDirectory {
    /// Of one that is not whole nothing is left.
    fn drop(&mut self) {
        if !self.is_whole {
            self.files.iter().for_each(|file| drop(std::fs::remove_file(file)));
            let _ = std::fs::remove_dir(&self.part);
        }
    }
}

/// Refuses a directory that is named twice.
///
/// # Errors
/// The one that is.
pub fn check_named_once(dirs: &[PathBuf]) -> Result<(), Error> {
    let real: Vec<Option<PathBuf>> = dirs.iter().map(|dir| dir.canonicalize().ok()).collect();
    let twice = |&i: &usize| real[i].is_some() && real[..i].contains(&real[i]);
    match (1..dirs.len()).find(twice) {
        Some(i) => {
            let reason = format!("{} is given twice: name different results", dirs[i].display());
            Err(AskedWrongly::Value(reason).into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = std::fs::read_dir(dir).expect("a folder").map(name).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn a_file_written_in_pieces_replaces_an_earlier_one_only_when_it_is_whole() {
        let tmp = tempfile::tempdir().expect("a folder");
        let path = tmp.path().join("t.txt");
        std::fs::write(&path, "earlier").expect("written");
        let pieces = Pieces::create(&path).expect("begun");
        pieces.write(b"half").expect("written");
        drop(pieces);
        assert_eq!((read_short(&path), names(tmp.path())), (Ok("earlier".into()), vec!["t.txt".into()]));
        let pieces = Pieces::create(&path).expect("begun");
        pieces.write(b"who").and_then(|()| pieces.write(b"le")).and_then(|()| pieces.finish()).expect("written");
        drop(pieces);
        assert_eq!((read_short(&path), names(tmp.path())), (Ok("whole".into()), vec!["t.txt".into()]));
        let device = Pieces::create(Path::new("/dev/null")).expect("open");
        device.write(b"x").and_then(|()| device.finish()).expect("written");
    }

    #[test]
    fn a_short_text_is_a_regular_file_of_a_megabyte_at_most() {
        let tmp = tempfile::tempdir().expect("a folder");
        let file = tmp.path().join("policy.toml");
        std::fs::write(&file, "keep").expect("written");
        assert_eq!(read_short(&file), Ok("keep".into()));
        let said = |path: &Path| {
            let refused = read_short(path).expect_err("refused");
            assert_eq!(refused.exit_code(), 2);
            refused.to_string()
        };
        for endless in [Path::new("/dev/zero"), tmp.path()] {
            assert!(said(endless).ends_with(": cannot be read: this is no regular file"), "{}", said(endless));
        }
        File::create(&file).and_then(|file| file.set_len(SHORT + 1)).expect("made");
        assert!(said(&file).ends_with(": cannot be read: it is longer than 1 MiB, as no such file is"));
        std::fs::write(&file, [0xff]).expect("written");
        assert!(said(&file).contains("UTF-8"), "{}", said(&file));
    }

    #[test]
    fn a_dash_is_no_file_and_a_descriptor_is_written_to_and_never_replaced() {
        let tmp = tempfile::tempdir().expect("a folder");
        for refused in
            [check_writable(Path::new("-")), write_file(Path::new("-"), b"x"), check_directory(Path::new("-"))]
        {
            let refused = refused.expect_err("it is no name");
            assert_eq!(refused.exit_code(), 2);
            assert!(refused.to_string().ends_with("name a file, or ./- for one of that name"), "{refused}");
        }
        let mut file = File::create(tmp.path().join("out")).expect("made");
        file.write_all(b"first\n").expect("written");
        let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        check_writable(Path::new(&descriptor)).expect("it can be");
        write_file(Path::new(&descriptor), b"second\n").expect("written");
        assert_eq!(std::fs::read(tmp.path().join("out")).expect("there"), b"first\nsecond\n");
        assert_eq!(names(tmp.path()), ["out"]);
    }

    #[test]
    fn a_new_directory_has_its_name_when_it_is_whole_and_leaves_nothing_otherwise() {
        let tmp = tempfile::tempdir().expect("a folder");
        let dir = tmp.path().join("new");
        let mut given_up = NewDirectory::create(&dir).expect("nothing is there");
        given_up.file("a").expect("made").write_all(b"1").expect("written");
        assert_eq!(names(tmp.path()), ["new.part"]);
        let second = NewDirectory::create(&dir).err().expect("refused").to_string();
        assert!(second.ends_with("wait for it, or remove it"), "{second}");
        drop(given_up);
        assert_eq!(names(tmp.path()), [""; 0]);
        let mut whole = NewDirectory::create(&dir).expect("nothing is there");
        whole.file("a").expect("made");
        whole.finish().expect("whole");
        assert_eq!((names(tmp.path()), names(&dir)), (vec!["new".to_string()], vec!["a".to_string()]));
        let refused = NewDirectory::create(&dir).err().expect("refused");
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("nothing is overwritten"), "{refused}");
        let nowhere = NewDirectory::create(&tmp.path().join("x/new")).err().expect("refused").to_string();
        assert!(nowhere.contains("there is no directory"), "{nowhere}");
    }
}
