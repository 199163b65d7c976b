//! Makes recordings: boots a Debian kernel under emulation and takes what it did out of it, in the form that
//! `kontig-oracle` replays.
//!
//! The rule: the same experiment recorded twice gives the same bytes. The emulated machine counts instructions instead
//! of time, has one CPU, no disk, no network and no source of chance ([`qemu`]); its file system is put together here
//! from the module and the scripts under `oracle/` (`module`, `initramfs`). What comes out of its debug port is
//! framed and counted, so that nothing missing goes unnoticed (`unpack`). A folder appears under its name only when
//! it is whole.

mod control;
pub mod doctor;
mod error;
pub mod experiment;
mod folder;
pub mod given;
pub mod guest;
mod initramfs;
pub mod kernel;
mod module;
pub mod qemu;
pub mod reclaim;
mod sysctls;
mod unpack;

pub use control::{Control, Stage};
pub use error::RecordError;

use error::about_file;
use experiment::Plan;
use kernel::Kernel;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A recording that has been made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its folder.
    pub folder: PathBuf,
    /// The kernel's release.
    pub kernel: String,
    /// Its files, as large as they were before compression.
    pub files: Vec<(String, u64)>,
    /// How long it took.
    pub took: Duration,
}

/// Makes a recording of `plan` on `kernel` in the folder `out`, which must not be there yet.
///
/// # Errors
/// In one line: what is missing or went wrong, and where to look.
pub fn record(plan: &Plan, kernel: &Kernel, out: &Path, control: &Control<'_>) -> Result<Made, RecordError> {
    let start = Instant::now();
    folder::check(out)?;
    let made = Ready::new(kernel, control)?.record(plan, out, control)?;
    Ok(Made { took: start.elapsed(), ..made })
}

/// A kernel, and what runs inside the machine built for it: for any number of recordings.
pub struct Ready<'a> {
    kernel: &'a Kernel,
    qemu: qemu::Qemu,
    built: module::Built,
}

impl Ready<'_> {
    /// Builds what there is to build.
    ///
    /// # Errors
    /// In one line: what is missing or went wrong, and where to look.
    pub fn new<'a>(kernel: &'a Kernel, control: &Control<'_>) -> Result<Ready<'a>, RecordError> {
        control.at(Stage::Building)?;
        let qemu = qemu::Qemu::find()?;
        let work = folder::Work::new()?;
        Ok(Ready { kernel, qemu, built: module::build(kernel, work.path(), control)? })
    }

    /// Makes a recording of `plan` in the folder `out`, which must not be there yet.
    ///
    /// # Errors
    /// In one line: what is missing or went wrong, and where to look.
    pub fn record(&self, plan: &Plan, out: &Path, control: &Control<'_>) -> Result<Made, RecordError> {
        let start = Instant::now();
        folder::check(out)?;
        let files = self.boot(plan, control)?;
        let about = folder::About::new(plan, self.kernel, &self.qemu);
        folder::write(out, &about, &files, control)?;
        let files = files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
        Ok(Made { folder: out.to_path_buf(), kernel: self.kernel.release.clone(), files, took: start.elapsed() })
    }

    /// Boots once more for a recording that is there; the first of its files that has other bytes, if one has.
    ///
    /// # Errors
    /// In one line: what is missing or went wrong, and where to look.
    pub fn again(&self, plan: &Plan, out: &Path, control: &Control<'_>) -> Result<Option<String>, RecordError> {
        folder::differing(out, &self.boot(plan, control)?)
    }

    /// The files of one boot.
    fn boot(&self, plan: &Plan, control: &Control<'_>) -> Result<Vec<(String, Vec<u8>)>, RecordError> {
        let work = folder::Work::new()?;
        let machine = qemu::Machine {
            kernel: self.kernel.image.clone(),
            initramfs: work.path().join("initramfs"),
            console: work.path().join("console.log"),
            results: work.path().join("results"),
            board: plan.board,
        };
        std::fs::write(&machine.initramfs, initramfs::assemble(plan, &self.built, self.kernel)?)
            .map_err(about_file(&machine.initramfs, "write"))?;

        let sent = run_to_the_end(&self.qemu, &machine, plan, control)?;

        control.at(Stage::Writing)?;
        plan.files(sent.files)
    }
}

/// Runs the machine; whatever keeps it from sending everything is told with its console's last word.
fn run_to_the_end(
    qemu: &qemu::Qemu,
    machine: &qemu::Machine,
    plan: &Plan,
    control: &Control<'_>,
) -> Result<unpack::Sent, RecordError> {
    let told = |reason: String| {
        let console = std::fs::read(&machine.console).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).into_owned();
        let kept = folder::keep_console(&plan.name, &console);
        let last = qemu::last_word(&console).unwrap_or("the console is empty");
        RecordError::Failed(format!("{reason}; the machine's last word: {last} (console: {kept})"))
    };
    qemu.run(machine, control).map_err(|e| match e {
        RecordError::Failed(reason) => told(reason),
        other => other,
    })?;
    let stream = std::fs::read(&machine.results).map_err(about_file(&machine.results, "read"))?;
    let sent = unpack::unpack(&stream).map_err(|e| told(e.to_string()))?;
    let expected = plan.expected();
    let missing: Vec<&str> =
        expected.iter().map(String::as_str).filter(|name| !sent.files.iter().any(|(n, _)| n == name)).collect();
    if missing.is_empty() { Ok(sent) } else { Err(told(format!("results are missing: {}", missing.join(", ")))) }
}
