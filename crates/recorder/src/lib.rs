//! Boots Debian kernels under emulation and records what they do, in the form that `kontig-oracle`
//! replays.
//!
//! Recording an experiment twice gives the same bytes. The emulated machine counts instructions
//! instead of time; its CPUs, mostly one, take turns, and it has no disk, no network and no source
//! of randomness ([`qemu`]). Its initramfs is built from the module and the scripts under `oracle/`
//! (`module`, `initramfs`).
//! Results leave through the debug port in counted frames, so that a missing one is noticed
//! (`unpack`). A recording's folder gets its name only when it is complete.

mod control;
pub mod doctor;
mod error;
pub mod experiment;
mod folder;
pub mod given;
pub mod guest;
mod image;
mod initramfs;
pub mod kernel;
mod module;
pub mod qemu;
pub mod reclaim;
mod relocate;
mod sysctls;
mod unpack;

pub use control::{Control, Progress};
pub use error::RecordError;

use error::about_file;
use experiment::Plan;
use guest::Guest;
use kernel::Kernel;
use kontig_oracle::build::BuiltFrom;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files of a recording, each with its name.
type Files = Vec<(String, Vec<u8>)>;

/// A recording that was made.
#[derive(Clone, Debug)]
pub struct Made {
    pub folder: PathBuf,
    pub kernel: String,
    /// Its files and their sizes before compression.
    pub files: Vec<(String, u64)>,
    pub took: Duration,
}

/// Records `plan` on `kernel` into the folder `out`, which must not exist.
///
/// # Errors
/// One line: what is missing or failed, and where to look.
pub fn record(plan: &Plan, kernel: &Kernel, out: &Path, control: &Control<'_>) -> Result<Made, RecordError> {
    let start = Instant::now();
    folder::check(out)?;
    plan.check_host()?;
    let made = Ready::new(kernel, control)?.record(plan, out, control)?;
    Ok(Made { took: start.elapsed(), ..made })
}

/// A kernel and the programs built for it, ready for any number of recordings.
pub struct Ready<'a> {
    kernel: &'a Kernel,
    built: module::Built,
}

impl Ready<'_> {
    /// Builds the module and the programs.
    ///
    /// # Errors
    /// One line: what is missing or failed, and where to look.
    pub fn new<'a>(kernel: &'a Kernel, control: &Control<'_>) -> Result<Ready<'a>, RecordError> {
        control.at(Progress::Building)?;
        let work = folder::Work::new()?;
        Ok(Ready { kernel, built: module::build(kernel, work.path(), control)? })
    }

    /// Records `plan` into the folder `out`, which must not exist.
    ///
    /// # Errors
    /// One line: what is missing or failed, and where to look.
    pub fn record(&self, plan: &Plan, out: &Path, control: &Control<'_>) -> Result<Made, RecordError> {
        let start = Instant::now();
        folder::check(out)?;
        let qemu = plan.qemu()?;
        let (files, built) = self.boot(plan, &qemu, control)?;
        let about = folder::About::new(plan, self.kernel, &qemu, built);
        folder::write(out, &about, &files, control)?;
        let files = files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
        Ok(Made { folder: out.to_path_buf(), kernel: self.kernel.release.clone(), files, took: start.elapsed() })
    }

    /// Boots once more and compares with an existing recording. Returns the first file that
    /// differs.
    ///
    /// # Errors
    /// One line: what is missing or failed, and where to look.
    pub fn again(&self, plan: &Plan, out: &Path, control: &Control<'_>) -> Result<Option<String>, RecordError> {
        folder::differing(out, &self.boot(plan, &plan.qemu()?, control)?.0)
    }

    /// Boots once. Returns the files of the recording, and what the guest has built.
    fn boot(
        &self,
        plan: &Plan,
        qemu: &qemu::Qemu,
        control: &Control<'_>,
    ) -> Result<(Files, Option<BuiltFrom>), RecordError> {
        let work = folder::Work::new()?;
        let machine = qemu::Machine {
            kernel: self.kernel.image.clone(),
            initramfs: work.path().join("initramfs"),
            console: work.path().join("console.log"),
            results: work.path().join("results"),
            disk: work.path().join("disk.ext4"),
            board: plan.board,
        };
        std::fs::write(&machine.initramfs, initramfs::assemble(plan, &self.built, self.kernel)?)
            .map_err(about_file(&machine.initramfs, "write"))?;

        let built = match &plan.guest {
            Some(Guest::Build(build)) => {
                let parts = image::Parts::find(Path::new("/"), build.sources.as_deref())?;
                Some(parts.make(&machine.disk, work.path(), control)?)
            }
            _ => None,
        };

        let sent = run_to_the_end(qemu, &machine, plan, control)?;

        control.at(Progress::Writing)?;
        Ok((plan.files(sent.files)?, built))
    }
}

/// Runs the machine. If results are missing, the error quotes the last line of its console.
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
