//! Builds what runs inside the machine: the kernel module, and the program for what needs a process.
//!
//! The module is built by the kernel's own headers, in the root they are installed in: an older compiler or C library
//! than theirs does not do. Sources are part of this program; they are written to a work folder, built and read back.

use super::kernel::Kernel;
use crate::control::Control;
use crate::error::{RecordError, about_file};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The module's sources: the only part of the project under the GPL, and only text to this program.
const MODULE: [(&str, &str); 16] = [
    ("Makefile", include_str!("../../../oracle/module/Makefile")),
    ("kontig.h", include_str!("../../../oracle/module/kontig.h")),
    ("main.c", include_str!("../../../oracle/module/main.c")),
    ("zone.c", include_str!("../../../oracle/module/zone.c")),
    ("trace.c", include_str!("../../../oracle/module/trace.c")),
    ("state.c", include_str!("../../../oracle/module/state.c")),
    ("daemons.c", include_str!("../../../oracle/module/daemons.c")),
    ("lru.c", include_str!("../../../oracle/module/lru.c")),
    ("cache.c", include_str!("../../../oracle/module/cache.c")),
    ("process.c", include_str!("../../../oracle/module/process.c")),
    ("objects.c", include_str!("../../../oracle/module/objects.c")),
    ("hidden.c", include_str!("../../../oracle/module/hidden.c")),
    ("watch.c", include_str!("../../../oracle/module/watch.c")),
    ("disk.c", include_str!("../../../oracle/module/disk.c")),
    ("extfrag.c", include_str!("../../../oracle/module/extfrag.c")),
    ("out.c", include_str!("../../../oracle/module/out.c")),
];
/// What needs a process of its own, each a file in C.
const PROGRAMS: [(&str, &str); 3] = [
    ("fragmenter", include_str!("../../../oracle/guest/fragmenter.c")),
    ("player", include_str!("../../../oracle/guest/player.c")),
    ("runner", include_str!("../../../oracle/guest/runner.c")),
];

/// The folder that a module names as the one it was built in. The kernel's build adds a file of its own (`kontig.mod.c`) with debug
/// information; with the real folder's name the module would have another size wherever it is built, and that is one of the things
/// that move what a guest's kernel allocates.
const NAMED_FOLDER: &str = "/kontig";

/// Lines of a failed build that are shown.
const SHOWN_LINES: usize = 5;

/// What has been built.
pub(super) struct Built {
    pub(super) module: Vec<u8>,
    /// Programs by name.
    pub(super) programs: Vec<(&'static str, Vec<u8>)>,
}

/// Builds all of it for a kernel.
pub(super) fn build(kernel: &Kernel, work: &Path, control: &Control<'_>) -> Result<Built, RecordError> {
    let site = Site::new(kernel, work)?;
    let sources = MODULE.map(|(name, text)| (name.to_string(), text)).into_iter();
    for (name, text) in sources.chain(PROGRAMS.map(|(name, text)| (format!("{name}.c"), text))) {
        let path = site.outside.join(name);
        std::fs::write(&path, text).map_err(about_file(&path, "write"))?;
    }
    control.check()?;
    let headers = kernel.build_folder().display().to_string();
    let modules = format!("M={}", site.inside);
    let flags = format!("KCFLAGS=-fdebug-prefix-map={}={NAMED_FOLDER}", site.inside);
    site.run("the module", &["make", "-s", "-C", &headers, &modules, &flags, "modules"])?;
    control.check()?;
    for (name, _) in PROGRAMS {
        let program = format!("{}/{name}", site.inside);
        site.run(&format!("the {name}"), &["gcc", "-O2", "-static", "-s", "-o", &program, &format!("{program}.c")])?;
    }
    let read = |name: &str| {
        let path = site.outside.join(name);
        std::fs::read(&path).map_err(about_file(&path, "read what was built"))
    };
    let programs = PROGRAMS.iter().map(|(name, _)| Ok((*name, read(name)?)));
    Ok(Built { module: read("kontig.ko")?, programs: programs.collect::<Result<_, RecordError>>()? })
}

/// A folder to build in, in a root or on the host; gone when it is dropped.
struct Site<'a> {
    /// As the host sees it.
    outside: PathBuf,
    /// As the build sees it.
    inside: String,
    root: Option<&'a Path>,
}

impl<'a> Site<'a> {
    fn new(kernel: &'a Kernel, work: &Path) -> Result<Site<'a>, RecordError> {
        let root = kernel.root.as_deref();
        let (outside, inside) = match root {
            None => (work.join("module"), work.join("module").display().to_string()),
            Some(root) => {
                let inside = format!("/tmp/kontig-module-{}", std::process::id());
                (root.join(inside.trim_start_matches('/')), inside)
            }
        };
        std::fs::create_dir(&outside).map_err(about_file(&outside, "make"))?;
        Ok(Site { outside, inside, root })
    }

    /// Runs a command of the build, in the root if there is one.
    fn run(&self, what: &str, words: &[&str]) -> Result<(), RecordError> {
        let mut command = match self.root {
            None => {
                let mut c = Command::new(words[0]);
                c.args(&words[1..]);
                c
            }
            Some(root) => {
                // The build reads /proc: mounted for it alone, gone with it.
                let script = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";
                let mut c = Command::new("unshare");
                if !is_root() {
                    c.arg("--map-root-user");
                }
                c.args(["--mount", "--pid", "--fork", "sh", "-c", script]).arg(root).args(words);
                c
            }
        };
        let out = command.env("LC_ALL", "C").env("PATH", path()).stdin(Stdio::null()).output();
        let out = out.map_err(|e| RecordError::Failed(format!("cannot build {what}: {}: {e}", words[0])))?;
        if out.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).take(SHOWN_LINES).collect();
        Err(RecordError::Failed(format!("cannot build {what} with {}: {}", words[0], lines.join(" | "))))
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for things that may be lost.
        let _ = std::fs::remove_dir_all(&self.outside);
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Where programs are looked for: also where a root's administrator keeps them.
fn path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/sbin:/usr/bin:/sbin:/bin")
}
