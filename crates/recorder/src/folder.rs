//! The folder of a recording, written under a temporary name and renamed once it is complete.

use super::experiment::Plan;
use super::kernel::Kernel;
use super::qemu::{Machine, Qemu};
use super::reclaim::Reclaim;
use crate::control::Control;
use crate::error::{RecordError, about_file};
use kontig_oracle::Recording;
use kontig_oracle::build::BuiltFrom;
use kontig_oracle::recording::about::{KCOMPACTD, SCHEMA};
use lzma_rust2::{XzOptions, XzWriter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// xz level: the files are small and written once.
const PRESET: u32 = 6;

/// The fields of `recording.toml`.
#[derive(Serialize)]
pub(super) struct About {
    schema: &'static str,
    experiment: String,
    kernel: String,
    version: String,
    series: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ops: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    real_time: Vec<&'static str>,
    qemu: String,
    command_line: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_mib: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lru_gen: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemons_cpu: Option<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sysctls: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Faults>,
    #[serde(skip_serializing_if = "Option::is_none")]
    built: Option<BuiltFrom>,
}

/// Parameters of a process that faults pages in.
#[derive(Serialize)]
struct Faults {
    /// µs between two faults.
    pause_us: f64,
    /// Pages touched when no huge page was available.
    pages: u32,
}

impl About {
    pub(super) fn new(plan: &Plan, kernel: &Kernel, qemu: &Qemu, built: Option<BuiltFrom>) -> About {
        About {
            schema: SCHEMA,
            experiment: plan.name.clone(),
            kernel: kernel.release.clone(),
            version: kernel.version.clone(),
            series: kernel.series.name(),
            ops: plan.ops(),
            seed: plan.seed,
            order: plan.order,
            // The module makes it so while it executes a trace.
            real_time: plan.trace.iter().map(|_| KCOMPACTD).collect(),
            qemu: qemu.version.clone(),
            command_line: Machine::shown_command_line(plan.board),
            swap_mib: plan.reclaim.as_ref().and_then(Reclaim::swap_mib),
            lru_gen: plan.reclaim.as_ref().and_then(Reclaim::lru_gen),
            groups: plan.reclaim.as_ref().and_then(Reclaim::groups),
            nodes: plan.reclaim.as_ref().and_then(Reclaim::nodes),
            daemons_cpu: plan.reclaim.as_ref().and_then(Reclaim::daemons_cpu),
            sysctls: plan.sysctls.clone(),
            faults: plan.fault_pause_us().map(|us| Faults { pause_us: f64::from(us), pages: 1 }),
            built,
        }
    }
}

/// Checks, before there is anything to write, that the folder can be written.
///
/// # Errors
/// If it cannot, with advice.
pub(super) fn check(out: &Path) -> Result<(), RecordError> {
    let place = out.display();
    if out.symlink_metadata().is_ok() {
        let reason = "is already there; remove it, or name another with --out";
        return Err(RecordError::Asked(format!("{place}: {reason}")));
    }
    unfinished(out).map(drop).map_err(|e| match e {
        RecordError::Failed(reason) => RecordError::Failed(format!(
            "{place}: no recording can be put there; name another folder with --out: {reason}"
        )),
        other => other,
    })
}

/// Creates the folder under its temporary name, beside its final place.
fn unfinished(out: &Path) -> Result<Vanishing, RecordError> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = out.file_name().ok_or_else(|| RecordError::Asked(format!("{}: is no folder's name", out.display())))?;
    // One with a mistake in its name is not made.
    if !parent.is_dir() {
        return Err(RecordError::Failed(format!("there is no directory {}: make it first", parent.display())));
    }
    let path = parent.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    std::fs::create_dir(&path).map_err(about_file(&path, "make"))?;
    Ok(Vanishing(path))
}

/// Writes the folder, or nothing.
pub(super) fn write(
    out: &Path,
    about: &About,
    files: &[(String, Vec<u8>)],
    control: &Control<'_>,
) -> Result<(), RecordError> {
    let unfinished = unfinished(out)?;
    let text = toml::to_string(about).map_err(|e| RecordError::Failed(format!("recording.toml: {e}")))?;
    let path = unfinished.0.join("recording.toml");
    std::fs::write(&path, text).map_err(about_file(&path, "write"))?;
    for (name, bytes) in files {
        control.check()?;
        let path = unfinished.0.join(format!("{name}.xz"));
        let packed = pack(bytes).map_err(about_file(&path, "compress"))?;
        std::fs::write(&path, packed).map_err(about_file(&path, "write"))?;
    }
    control.check()?;
    std::fs::rename(&unfinished.0, out).map_err(about_file(out, "give a finished recording this name"))
}

/// Name of the first file whose bytes differ from the recording's.
pub(super) fn differing(out: &Path, files: &[(String, Vec<u8>)]) -> Result<Option<String>, RecordError> {
    let there = Recording::open(out).map_err(|e| RecordError::Failed(e.to_string()))?;
    for (name, bytes) in files {
        let path = there.path(name);
        let packed = std::fs::read(&path).map_err(about_file(&path, "read"))?;
        if packed != pack(bytes).map_err(about_file(&path, "compress"))? {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(PRESET))?;
    writer.write_all(bytes)?;
    writer.finish()
}

/// A temporary folder for files needed while recording.
pub(super) struct Work(Vanishing);

impl Work {
    pub(super) fn new() -> Result<Work, RecordError> {
        // Tests make two recordings in one process.
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kontig-record-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(about_file(&path, "make"))?;
        Ok(Work(Vanishing(path)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.0
    }
}

/// A folder removed on drop.
struct Vanishing(PathBuf);

impl Drop for Vanishing {
    fn drop(&mut self) {
        // A finished recording has been renamed already; anything else must not stay.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Saves the console of a failed machine. Returns its path.
pub(super) fn keep_console(experiment: &str, console: &str) -> String {
    let path = std::env::temp_dir().join(format!("kontig-{experiment}-{}.console", std::process::id()));
    match std::fs::write(&path, console) {
        Ok(()) => path.display().to_string(),
        Err(e) => format!("not kept: {}: {e}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::Board;
    use std::io::Read;
    use std::sync::atomic::AtomicBool;

    fn about() -> About {
        About {
            schema: SCHEMA,
            experiment: "mixed".into(),
            kernel: "6.1.0-56-cloud-amd64".into(),
            version: "6.1.192".into(),
            series: "6.1",
            ops: Some(3),
            seed: Some(1),
            order: None,
            real_time: Vec::new(),
            qemu: "7.2.22".into(),
            command_line: Machine::shown_command_line(Board::USUAL),
            swap_mib: None,
            lru_gen: None,
            groups: None,
            nodes: None,
            daemons_cpu: None,
            sysctls: BTreeMap::from([("vm.defrag_mode".into(), "1".into())]),
            faults: Some(Faults { pause_us: 2000.0, pages: 1 }),
            built: None,
        }
    }

    fn control(stop: &AtomicBool) -> Control<'_> {
        Control { stop, progress: &|_| {} }
    }

    #[test]
    fn a_folder_is_written_whole_and_can_be_opened() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("a")).expect("made");
        let (out, stop) = (dir.path().join("a/b"), AtomicBool::new(false));
        write(&out, &about(), &[("x.txt".into(), b"hello".to_vec())], &control(&stop)).expect("written");
        let packed = std::fs::read(out.join("x.txt.xz")).expect("there");
        let mut text = String::new();
        lzma_rust2::XzReader::new(packed.as_slice(), true).read_to_string(&mut text).expect("xz");
        assert_eq!(text, "hello");
        let opened = kontig_oracle::Recording::open(&out).expect("a recording");
        assert_eq!((opened.about.version.as_str(), opened.about.seed), ("6.1.192", Some(1)));
        assert_eq!(std::fs::read_dir(dir.path().join("a")).expect("there").count(), 1);
    }

    #[test]
    fn a_second_boot_is_compared_byte_by_byte() {
        let dir = tempfile::tempdir().expect("a folder");
        let (out, stop) = (dir.path().join("r"), AtomicBool::new(false));
        let file = |text: &str| vec![("x.txt".to_string(), text.as_bytes().to_vec())];
        write(&out, &about(), &file("hello"), &control(&stop)).expect("written");
        assert_eq!(differing(&out, &file("hello")), Ok(None));
        assert_eq!(differing(&out, &file("hallo")), Ok(Some("x.txt".into())));
        let gone = differing(&dir.path().join("s"), &file("hello")).expect_err("not there").to_string();
        assert!(gone.contains("no such recording"), "{gone}");
        std::fs::create_dir(dir.path().join("other")).expect("a folder");
        std::fs::rename(out.join("x.txt.xz"), dir.path().join("other/y.xz")).expect("moved");
        let gone = differing(&out, &file("hello")).expect_err("not there").to_string();
        assert!(gone.contains("x.txt: cannot read"), "{gone}");
        let about = std::fs::read_to_string(out.join("recording.toml")).expect("there");
        let refers = format!("{about}\n[files]\n\"x.txt\" = \"../other/y\"\n");
        std::fs::write(out.join("recording.toml"), refers).expect("written");
        assert_eq!(differing(&out, &file("hello")), Ok(None));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_found_out_before_there_is_anything_to_write() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("file"), "").expect("written");
        let refused = |out: &str| check(&dir.path().join(out)).expect_err("refused");
        let asked = |out: &str, says: &str| matches!(refused(out), RecordError::Asked(why) if why.contains(says));
        let failed = |out: &str, says: &str| matches!(refused(out), RecordError::Failed(why) if why.contains(says));
        assert!(asked("file", "/file: is already there; remove it, or name another with --out"));
        assert!(asked("no/..", "/no/..: is no folder's name"));
        assert!(failed("file/r", "/file/r: no recording can be put there; name another folder with --out: "));
        assert!(failed(&"long".repeat(64), "cannot make: "));
        assert!(failed("a/r", "there is no directory"));
        std::fs::create_dir(dir.path().join("a")).expect("made");
        check(&dir.path().join("a/r")).expect("it can be made");
        assert_eq!(std::fs::read_dir(dir.path().join("a")).expect("made").count(), 0, "nothing stays");
    }

    #[test]
    fn an_interrupted_one_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let stop = AtomicBool::new(true);
        let got = write(&dir.path().join("r"), &about(), &[("x".into(), vec![])], &control(&stop));
        assert_eq!(got, Err(RecordError::Interrupted));
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
    }
}
