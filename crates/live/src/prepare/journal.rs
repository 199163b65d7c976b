//! The values of settings from before they were changed, on disk before the change: the next
//! process that finds the journal of one that is gone restores them.
//!
//! The journal is one file, replaced as a whole (written beside it, flushed, renamed), so that it
//! is whole at every moment.

use super::preparer::Preparer;
use crate::error::{ReadError, remedy};
use crate::roots::{self, Roots};
use rustix::fs::{Access, FlockOperation, access, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// A setting and its value from before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    pub path: PathBuf,
    pub was: String,
    /// The values it was set to. Any other one is somebody else's, and stays. Empty where the
    /// kernel need not keep what is written, as for the size of a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The value of somebody else's that has stayed, once all is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// A sentence about a setting that somebody else has set while it was changed.
pub fn stays(path: &str, at: &str, was: &str) -> String {
    format!("{path} stays at {at}, as somebody else has set it meanwhile; it was {was}")
}

impl Setting {
    /// A sentence about the end of it.
    pub fn words(&self) -> String {
        let (path, was) = (self.path.display(), &self.was);
        match &self.left {
            Some(left) => stays(&path.to_string(), left, was),
            None => format!("restored {path} to {was}"),
        }
    }

    /// Restores it, unless somebody else has set it.
    fn restore(&mut self) -> io::Result<()> {
        let is = roots::read(&self.path).ok().map(|is| is.trim().to_string());
        match is {
            // Somebody may have restored it by hand where this process may not write it.
            Some(is) if is == self.was => Ok(()),
            Some(is) if !self.set.is_empty() && !self.set.contains(&is) => {
                self.left = Some(is);
                Ok(())
            }
            _ => fs::write(&self.path, &self.was),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Entry {
    schema: String,
    #[serde(flatten)]
    preparer: Preparer,
    settings: Vec<Setting>,
}

const SCHEMA: &str = "kontig.journal/1";

/// Where the journal is kept unless somebody says otherwise.
pub const DEFAULT_JOURNAL: &str = "/run/kontig/prepare.journal";

/// A journal that exists: its process is at work, or was killed before its settings were restored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Leftover {
    pub journal: PathBuf,
    /// The process; `None` where the journal cannot be read.
    pub pid: Option<u32>,
    /// Whether it still is at work.
    pub at_work: bool,
    /// The settings it changed.
    pub settings: Vec<Setting>,
    /// Why the journal cannot be read, if it cannot.
    pub unread: Option<String>,
}

impl Leftover {
    /// Looks for a journal without touching it.
    pub fn find(journal: &Path) -> Option<Leftover> {
        let none = Leftover { journal: journal.into(), pid: None, at_work: false, settings: vec![], unread: None };
        let read = open(journal).and_then(|mut file| text_of(&mut file)).map_err(|e| ReadError::io(journal, &e));
        let read = read.and_then(|text| Entry::parse(journal, &text));
        match read {
            Ok(Entry { preparer, settings, .. }) => {
                Some(Leftover { pid: Some(preparer.pid), at_work: preparer.is_at_work(), settings, ..none })
            }
            Err(e) if e.is_missing() => None,
            Err(e) => Some(Leftover { unread: Some(e.to_string()), ..none }),
        }
    }

    /// A sentence with the command that restores the settings.
    pub fn words(&self) -> String {
        let journal = self.journal.display();
        let by = self.pid.map_or("a process".into(), |pid| format!("process {pid}"));
        if self.at_work {
            return format!("{by} is preparing this host now (journal {journal})");
        }
        let settings: Vec<String> =
            self.settings.iter().map(|s| format!("{} was {}", s.path.display(), s.was)).collect();
        if let Some(why) = &self.unread {
            return format!(
                "the journal of an earlier 'kontig prepare' cannot be read: {why}; 'kontig prepare --execute' \
                 refuses to start until it can be, or is removed"
            );
        }
        let what = match settings.is_empty() {
            true => format!("it has changed nothing (journal {journal})"),
            false => format!("{} (journal {journal})", settings.join(", ")),
        };
        let option =
            if self.journal == Path::new(DEFAULT_JOURNAL) { String::new() } else { format!(" --journal {journal}") };
        format!(
            "an earlier 'kontig prepare' ({by}) was killed, and what it changed is not restored: {what}; the next \
             'kontig prepare \
             --execute{option}' restores it, such as: kontig prepare --need 1xorder0 --execute{option}"
        )
    }
}

impl Entry {
    fn parse(file: &Path, text: &str) -> Result<Entry, ReadError> {
        serde_json::from_str(text).map_err(|e| ReadError::malformed(file, e.line(), e.to_string()))
    }
}

/// The journal of this process.
pub struct Journal {
    file: PathBuf,
    entry: Entry,
}

/// Why there is no journal.
#[derive(Debug)]
pub enum NoJournal {
    /// Another process is at work with it.
    Busy(Preparer),
    /// A file could not be read.
    Unread(ReadError),
    /// A file could not be written.
    Unwritten(PathBuf, io::Error),
}

impl Journal {
    /// Begins a journal in this file. Settings that a killed process left in it are restored first,
    /// and returned.
    ///
    /// # Errors
    /// If another process is at work with it, or a file cannot be read or written; a journal that
    /// is found stays then.
    pub fn begin(file: &Path, roots: &Roots) -> Result<(Journal, Vec<Setting>), NoJournal> {
        check(file)?;
        // Of two processes that begin at once, the second finds the journal of the first.
        let _alone = BeginLock::alone(file)?;
        let restored = restore_found(file, roots)?.unwrap_or_default();
        let entry = Entry { schema: SCHEMA.into(), preparer: Preparer::this(), settings: vec![] };
        let journal = Journal { file: file.into(), entry };
        journal.write()?;
        Ok((journal, restored))
    }

    /// Changes a setting once its old value is on disk.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn change(&mut self, path: &Path, to: &str) -> Result<(), NoJournal> {
        let was = roots::read(path).map_err(NoJournal::Unread)?.trim().to_string();
        self.entry.settings.push(Setting { path: path.into(), was: was.clone(), set: Vec::new(), left: None });
        self.write()?;
        let done = fs::write(path, to);
        let is = roots::read(path).map(|is| is.trim().to_string());
        let Err(e) = done else {
            return if is.is_ok_and(|is| is == to) { self.note_set(path, to) } else { Ok(()) };
        };
        // The write failed and the setting is unchanged: there is nothing to restore.
        if is.is_ok_and(|is| is == was) {
            self.entry.settings.pop();
            self.write()?;
        }
        Err(NoJournal::Unwritten(path.into(), e))
    }

    /// Changes a setting again. Its value from before the first change is in the journal.
    ///
    /// # Errors
    /// If it or the journal cannot be written.
    pub fn change_again(&mut self, path: &Path, to: &str) -> Result<(), NoJournal> {
        self.note_set(path, to)?;
        fs::write(path, to).map_err(|e| NoJournal::Unwritten(path.into(), e))
    }

    fn note_set(&mut self, path: &Path, to: &str) -> Result<(), NoJournal> {
        let settings = self.entry.settings.iter_mut().filter(|setting| setting.path == path);
        settings.for_each(|setting| setting.set.push(to.into()));
        self.write()
    }

    /// Keeps this setting as it is now. Returns its old value if it was changed.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn keep(&mut self, path: &Path) -> Result<Option<Setting>, NoJournal> {
        let place = self.entry.settings.iter().position(|s| s.path == path);
        let was = place.map(|place| self.entry.settings.remove(place));
        self.write()?;
        Ok(was)
    }

    /// Restores all settings, the last one first, and removes the journal. Returns them.
    ///
    /// # Errors
    /// If one cannot be written; the journal stays then, so that the next run tries again.
    pub fn end(mut self) -> Result<Vec<Setting>, NoJournal> {
        restore(&mut self.entry.settings)?;
        fs::remove_file(&self.file).map_err(|e| NoJournal::Unwritten(self.file.clone(), e))?;
        Ok(self.entry.settings)
    }

    fn write(&self) -> Result<(), NoJournal> {
        let failed = |e| NoJournal::Unwritten(self.file.clone(), e);
        let beside = beside(&self.file);
        let text = serde_json::to_string(&self.entry).expect("strings and numbers are JSON");
        let mut file = File::create(&beside).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&beside, &self.file).map_err(failed)
    }
}

/// Checks that a journal can be written in this file, before anything is done. Makes the directory
/// of the default one, which is gone after a boot.
///
/// # Errors
/// Why it cannot.
pub fn check(file: &Path) -> Result<(), NoJournal> {
    let failed = |e: io::Error| NoJournal::Unwritten(file.into(), e);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file == Path::new(DEFAULT_JOURNAL) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if !folder.is_dir() {
        let reason = format!("there is no directory {}: make it first", folder.display());
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, reason)));
    }
    if file.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|e| failed(e.into()))
}

impl NoJournal {
    /// Whether another user could do it, or root on the host itself.
    pub fn is_permission(&self) -> bool {
        match self {
            NoJournal::Busy(_) => false,
            NoJournal::Unread(e) => e.is_permission(),
            // In a container, the host's settings are often mounted so that nobody can write them.
            NoJournal::Unwritten(_, e) => {
                matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
            }
        }
    }
}

/// Restores the settings that a killed process left in the journal, and removes it. Returns them.
///
/// # Errors
/// As [`Journal::begin`].
pub fn restore_left(file: &Path, roots: &Roots) -> Result<Vec<Setting>, NoJournal> {
    let restored = restore_found(file, roots)?;
    // Left where a process was killed before or at its first write.
    if restored.is_none() && (beside(file).exists() || lock_of(file).exists()) {
        let _alone = BeginLock::alone(file)?;
        let _ = fs::remove_file(beside(file));
    }
    Ok(restored.unwrap_or_default())
}

/// Restores what the journal says; `None` if there is none.
fn restore_found(file: &Path, roots: &Roots) -> Result<Option<Vec<Setting>>, NoJournal> {
    let found = read_locked(file).map_err(|e| NoJournal::Unread(ReadError::io(file, &e)))?;
    let Some((journal, text)) = found else { return Ok(None) };
    let mut entry = Entry::parse(file, &text).map_err(NoJournal::Unread)?;
    if entry.preparer.is_at_work() {
        return Err(NoJournal::Busy(entry.preparer));
    }
    // A journal is no licence to write anywhere: who may write one may not write all of /proc,
    // where /proc/self/root is every file, and /proc/sys/kernel/core_pattern a program.
    let of_memory = [roots.proc("sys/vm"), roots.sys("kernel/mm"), roots.sys("devices/system/node")];
    let is_setting = |s: &&Setting| {
        let straight = !s.path.components().any(|c| c == Component::ParentDir);
        straight && of_memory.iter().any(|dir| s.path.starts_with(dir))
    };
    if let Some(other) = entry.settings.iter().find(|s| !is_setting(s)) {
        let reason = format!("{} is no setting of this host", other.path.display());
        return Err(NoJournal::Unread(ReadError::malformed(file, 0, reason)));
    }
    restore(&mut entry.settings)?;
    // The journal goes last: a process that is at work by then has one of its own.
    let _ = fs::remove_file(beside(file));
    fs::remove_file(file).map_err(|e| NoJournal::Unwritten(file.into(), e))?;
    drop(journal);
    Ok(Some(entry.settings))
}

/// The lock of a process that begins a journal: a file beside it that no other user may open.
struct BeginLock {
    path: PathBuf,
    _locked: File,
}

impl BeginLock {
    fn alone(journal: &Path) -> Result<BeginLock, NoJournal> {
        let path = lock_of(journal);
        let failed = |e| NoJournal::Unwritten(journal.into(), e);
        loop {
            let file =
                File::options().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
            flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
            // Its last holder may have removed it meanwhile.
            if fs::metadata(&path).is_ok_and(|now| file.metadata().is_ok_and(|locked| now.ino() == locked.ino())) {
                return Ok(BeginLock { path, _locked: file });
            }
        }
    }
}

impl Drop for BeginLock {
    fn drop(&mut self) {
        // The next process makes a new one.
        let _ = fs::remove_file(&self.path);
    }
}

/// The lock of who begins a journal.
fn lock_of(file: &Path) -> PathBuf {
    file.with_extension("lock")
}

/// Where a journal is written before it is renamed.
fn beside(file: &Path) -> PathBuf {
    file.with_extension("new")
}

/// How long to wait for a lock. Restoring takes milliseconds, and any user who can read the journal
/// can lock it: that must keep nobody from restoring.
const LOCK_TRIES: u32 = 500;
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// Opens a journal. A pipe may have no writer, and a device no end.
fn open(file: &Path) -> io::Result<File> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("this is no regular file"));
    }
    File::open(file)
}

/// A journal's text: that of a long file is cut, and then malformed.
fn text_of(journal: &mut File) -> io::Result<String> {
    const MOST_BYTES: u64 = 1 << 20;
    let mut text = String::new();
    journal.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The journal and its text, locked until the file is dropped; `None` if there is none. Of two
/// processes that find a journal, one restores: the other would write to settings and to a journal
/// that belong to the next process by then.
fn read_locked(file: &Path) -> io::Result<Option<(File, String)>> {
    let found = |e: io::Error| if e.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(e) };
    loop {
        let mut journal = match open(file) {
            Ok(journal) => journal,
            Err(e) => return found(e),
        };
        for _ in 0..LOCK_TRIES {
            if flock(&journal, FlockOperation::NonBlockingLockExclusive).is_ok() {
                break;
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
        // Meanwhile it may have been removed or replaced.
        let is_current = match fs::metadata(file) {
            Ok(now) => now.ino() == journal.metadata()?.ino(),
            Err(e) => return found(e),
        };
        if is_current {
            let text = text_of(&mut journal)?;
            return Ok(Some((journal, text)));
        }
    }
}

fn restore(settings: &mut [Setting]) -> Result<(), NoJournal> {
    let each = |s: &mut Setting| s.restore().map_err(|e| NoJournal::Unwritten(s.path.clone(), e));
    settings.iter_mut().rev().try_for_each(each)
}

impl std::fmt::Display for NoJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoJournal::Busy(by) => write!(f, "process {} is preparing this host already: wait for it to end", by.pid),
            NoJournal::Unread(e) => write!(f, "{e}"),
            NoJournal::Unwritten(path, e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, "{}: it is mounted read-only: run this where it can be written", path.display())
            }
            NoJournal::Unwritten(path, _) if self.is_permission() => {
                write!(f, "{}: no permission to write it: {}", path.display(), remedy())
            }
            NoJournal::Unwritten(path, e) => write!(f, "{}: cannot be written: {e}", path.display()),
        }
    }
}

impl std::error::Error for NoJournal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Roots, PathBuf, PathBuf) {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().join("proc"), sysfs: tree.path().join("sys") };
        let setting = roots.proc("sys/vm/setting");
        fs::create_dir_all(roots.proc("sys/vm")).expect("made");
        fs::write(&setting, "20\n").expect("written");
        let file = tree.path().join("journal");
        (tree, roots, setting, file)
    }

    #[test]
    fn changed_settings_are_restored_and_kept_ones_are_not() {
        let (_tree, roots, setting, file) = tree();
        let other = roots.proc("sys/vm/other");
        fs::write(&other, "0\n").expect("written");
        let (mut journal, restored) = Journal::begin(&file, &roots).expect("begun");
        assert!(restored.is_empty());
        journal.change(&setting, "0").expect("changed");
        journal.change(&other, "7").expect("changed");
        journal.keep(&other).expect("kept");
        assert_eq!(fs::read_to_string(&setting).expect("read"), "0");
        journal.end().expect("restored");
        assert_eq!((roots::read(&setting), roots::read(&other)), (Ok("20".into()), Ok("7".into())));
        assert!(!file.exists());
    }

    #[test]
    fn the_settings_of_a_process_that_is_gone_are_restored_at_the_next_start() {
        let (_tree, roots, setting, file) = tree();
        let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
        journal.change(&setting, "0").expect("changed");
        // As after a kill: the journal stays, and its process is one that started at another time.
        journal.entry.preparer.started = "1".into();
        journal.write().expect("written");
        let (journal, restored) = Journal::begin(&file, &roots).expect("begun");
        let [only] = restored.as_slice() else { panic!("{restored:?}") };
        assert_eq!((&only.path, only.was.as_str(), &only.left), (&setting, "20", &None));
        assert_eq!(roots::read(&setting), Ok("20".into()));
        journal.end().expect("ended");
    }

    #[test]
    fn a_setting_that_somebody_has_restored_by_hand_is_not_written() {
        let (_tree, roots, setting, file) = tree();
        let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
        journal.change(&setting, "0").expect("changed");
        // Not even root may write this one.
        let fixed = Path::new("/proc/sys/kernel/ostype");
        fs::remove_file(&setting).expect("removed");
        std::os::unix::fs::symlink(fixed, &setting).expect("linked");
        journal.entry.preparer.started = "1".into();
        journal.entry.settings[0].set.clear();
        journal.write().expect("written");
        restore_left(&file, &roots).expect_err("it cannot be written");
        assert!(file.exists(), "the journal stays");
        journal.entry.settings[0].was = roots::read(fixed).expect("read").trim().into();
        journal.write().expect("written");
        restore_left(&file, &roots).expect("it is as it was");
        assert!(!file.exists());
    }

    #[test]
    fn a_value_that_somebody_else_has_set_meanwhile_stays_and_is_told() {
        let (_tree, roots, setting, file) = tree();
        for (by_others, stays) in [("0", true), ("50", false), ("70", false), ("20", false)] {
            fs::write(&setting, "20\n").expect("written");
            let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
            journal.change(&setting, "50").expect("changed");
            journal.change_again(&setting, "70").expect("changed again");
            fs::write(&setting, by_others).expect("written");
            let [end] = &journal.end().expect("ended")[..] else { panic!("one setting") };
            let now = roots::read(&setting).expect("read");
            assert_eq!((end.left.is_some(), now.trim()), (stays, if stays { by_others } else { "20" }));
            assert_eq!(end.words().contains("stays at 0, as somebody else has set it"), stays, "{}", end.words());
        }
    }

    #[test]
    fn the_size_of_a_pool_is_restored_though_the_kernel_gave_less_than_was_written() {
        let (_tree, roots, _, file) = tree();
        let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
        // A pool that the kernel fills to 5 says 5 when 9 were written: a file that keeps its text
        // stands for it.
        let pool = roots.proc("sys/vm/nr_hugepages");
        fs::write(&pool, "1\n").expect("written");
        journal.change(&pool, "9").expect("changed");
        journal.entry.settings[0].set.clear();
        fs::write(&pool, "5\n").expect("written");
        journal.end().expect("ended");
        assert_eq!(roots::read(&pool).expect("read").trim(), "1");
    }

    #[test]
    fn a_journal_of_a_process_at_work_is_left_alone() {
        let (_tree, roots, setting, file) = tree();
        let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
        journal.change(&setting, "0").expect("changed");
        let busy = Journal::begin(&file, &roots).err().expect("busy").to_string();
        assert_eq!(busy, format!("process {} is preparing this host already: wait for it to end", std::process::id()));
        assert_eq!(roots::read(&setting), Ok("0".into()));
    }

    #[test]
    fn of_many_that_begin_at_once_one_does_and_the_others_find_its_journal() {
        let (_tree, roots, setting, file) = tree();
        for _ in 0..50 {
            let begun: Vec<Journal> = std::thread::scope(|scope| {
                let begin = || Journal::begin(&file, &roots).map(|(journal, _)| journal);
                let all: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
                let each = all.into_iter().map(|one| one.join().expect("no panic"));
                each.filter_map(|one| match one {
                    Ok(journal) => Some(journal),
                    Err(NoJournal::Busy(_)) => None,
                    Err(e) => panic!("{e}"),
                })
                .collect()
            });
            let [journal] = <[Journal; 1]>::try_from(begun).unwrap_or_else(|all| panic!("{} have begun", all.len()));
            journal.end().expect("ended");
        }
        assert_eq!(roots::read(&setting), Ok("20\n".into()));
        let left = fs::read_dir(file.parent().expect("a directory")).expect("read").count();
        assert_eq!(left, 1, "the host alone");
    }

    #[test]
    fn a_journal_that_names_other_files_is_refused() {
        let (tree, roots, _, file) = tree();
        fs::create_dir_all(roots.proc("sys/kernel")).expect("made");
        for victim in [tree.path().join("victim"), roots.proc("sys/kernel/core_pattern"), roots.proc("self")] {
            fs::write(&victim, "whole").expect("written");
            let settings = vec![Setting { path: victim.clone(), was: "gone".into(), set: Vec::new(), left: None }];
            let preparer = Preparer { pid: 1, started: "never".into() };
            let entry = Entry { schema: SCHEMA.into(), preparer, settings };
            Journal { file: file.clone(), entry }.write().expect("written");
            let refused = Journal::begin(&file, &roots).err().expect("refused").to_string();
            assert!(refused.ends_with(&format!("{} is no setting of this host", victim.display())), "{refused}");
            assert_eq!(roots::read(&victim), Ok("whole".into()));
        }
    }

    #[test]
    fn a_place_without_a_directory_or_that_is_one_is_refused_and_nothing_is_made() {
        let (tree, roots, setting, _) = tree();
        let refused = |file: &Path| Journal::begin(file, &roots).err().expect("refused").to_string();
        let below = tree.path().join("run/journal");
        let said = format!(
            "{}: cannot be written: there is no directory {}: make it first",
            below.display(),
            tree.path().join("run").display()
        );
        assert_eq!(refused(&below), said);
        assert!(refused(tree.path()).ends_with("cannot be written: is a directory"), "{}", refused(tree.path()));
        assert!(!tree.path().join("run").exists());
        assert_eq!(roots::read(&setting), Ok("20\n".into()));
    }

    #[test]
    fn a_journal_that_was_left_is_found_and_left_alone() {
        let (_tree, roots, setting, file) = tree();
        assert_eq!(Leftover::find(&file), None);
        let (mut journal, _) = Journal::begin(&file, &roots).expect("begun");
        journal.change(&setting, "0").expect("changed");
        let at_work = Leftover::find(&file).expect("a journal");
        assert_eq!(
            at_work.words(),
            format!("process {} is preparing this host now (journal {})", std::process::id(), file.display())
        );
        journal.entry.preparer.started = "1".into();
        journal.write().expect("written");
        let left = Leftover::find(&file).expect("a journal");
        assert_eq!((left.at_work, left.settings.len()), (false, 1));
        let words = left.words();
        assert!(words.contains(&format!("is not restored: {} was 20 (journal ", setting.display())), "{words}");
        assert!(
            words.ends_with(&format!("kontig prepare --need 1xorder0 --execute --journal {}", file.display())),
            "{words}"
        );
        fs::write(&file, "{").expect("written");
        let damaged = Leftover::find(&file).expect("a journal").words();
        assert!(damaged.contains("cannot be read: ") && damaged.contains("line 1"), "{damaged}");
        let endless = Leftover::find(Path::new("/dev/zero")).expect("it is there").words();
        assert!(endless.contains("/dev/zero: this is no regular file"), "{endless}");
        assert_eq!(roots::read(&setting), Ok("0".into()));
    }
}
