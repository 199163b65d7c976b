//! Builds the kernel module and the user programs that run inside the machine.
//!
//! The module is built in the root that has the kernel's headers, because they need a compiler and
//! C library at least as new as their own; for Ubuntu's old kernels, by the host. The sources are
//! embedded in this program; they are written to a work folder, built and read back.

use super::kernel::Kernel;
use super::relocate;
use crate::control::Control;
use crate::error::{RecordError, about_file};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The module's sources, the only part of the project under the GPL; here they are only text.
const MODULE: [(&str, &str); 22] = [
    ("Makefile", include_str!("../../../oracle/module/Makefile")),
    ("kontig.h", include_str!("../../../oracle/module/kontig.h")),
    ("old.h", include_str!("../../../oracle/module/old.h")),
    ("old.c", include_str!("../../../oracle/module/old.c")),
    ("main.c", include_str!("../../../oracle/module/main.c")),
    ("zone.c", include_str!("../../../oracle/module/zone.c")),
    ("trace.c", include_str!("../../../oracle/module/trace.c")),
    ("nodes.c", include_str!("../../../oracle/module/nodes.c")),
    ("cpus.c", include_str!("../../../oracle/module/cpus.c")),
    ("state.c", include_str!("../../../oracle/module/state.c")),
    ("daemons.c", include_str!("../../../oracle/module/daemons.c")),
    ("lru.c", include_str!("../../../oracle/module/lru.c")),
    ("groups.c", include_str!("../../../oracle/module/groups.c")),
    ("lru_gen.c", include_str!("../../../oracle/module/lru_gen.c")),
    ("cache.c", include_str!("../../../oracle/module/cache.c")),
    ("process.c", include_str!("../../../oracle/module/process.c")),
    ("objects.c", include_str!("../../../oracle/module/objects.c")),
    ("hidden.c", include_str!("../../../oracle/module/hidden.c")),
    ("watch.c", include_str!("../../../oracle/module/watch.c")),
    ("disk.c", include_str!("../../../oracle/module/disk.c")),
    ("extfrag.c", include_str!("../../../oracle/module/extfrag.c")),
    ("out.c", include_str!("../../../oracle/module/out.c")),
];
/// The user programs, one C file each.
const PROGRAMS: [(&str, &str); 4] = [
    ("fragmenter", include_str!("../../../oracle/guest/fragmenter.c")),
    ("player", include_str!("../../../oracle/guest/player.c")),
    ("runner", include_str!("../../../oracle/guest/runner.c")),
    ("sampler", include_str!("../../../oracle/guest/sampler.c")),
];

/// Build folder recorded in the module. The kernel's build adds a file (`kontig.mod.c`) with debug
/// information; with the real path the module's size would depend on where it was built, and so
/// would the allocations of a guest's kernel.
const NAMED_FOLDER: &str = "/kontig";

/// Flags for headers older than the compiler, which know nothing of its defaults, nor of its
/// warnings.
const FOR_OLD_HEADERS: &str = "-fno-pie -fcf-protection=none -fno-stack-protector -mfentry -std=gnu89 -w";

/// Lines shown of a failed build's output.
const SHOWN_LINES: usize = 5;

/// The module and the programs, built.
pub(super) struct Built {
    pub(super) module: Vec<u8>,
    pub(super) programs: Vec<(&'static str, Vec<u8>)>,
}

/// Builds the module and the programs for a kernel.
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
    let old = if kernel.series.is_of_ubuntu() { format!(" {FOR_OLD_HEADERS}") } else { String::new() };
    let flags = format!("KCFLAGS=-fdebug-prefix-map={}={NAMED_FOLDER}{old}", site.inside);
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
    let mut module = read("kontig.ko")?;
    if !kernel.series.loads_plt_calls() {
        let none = || RecordError::Failed("cannot build the module: what was built is no object file".into());
        relocate::without_plt(&mut module).ok_or_else(none)?;
    }
    Ok(Built { module, programs: programs.collect::<Result<_, RecordError>>()? })
}

/// A build folder in a root or on the host, removed on drop.
struct Site<'a> {
    /// Its path on the host.
    outside: PathBuf,
    /// Its path in the root.
    inside: String,
    root: Option<&'a Path>,
}

impl<'a> Site<'a> {
    fn new(kernel: &'a Kernel, work: &Path) -> Result<Site<'a>, RecordError> {
        let root = kernel.built_in();
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

    /// Runs a build command, in the root if there is one.
    fn run(&self, what: &str, words: &[&str]) -> Result<(), RecordError> {
        let mut command = match self.root {
            None => {
                let mut c = Command::new(words[0]);
                c.args(&words[1..]);
                c
            }
            Some(root) => {
                // The build reads /proc, so it gets one in its own mount namespace.
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
        // It is a temporary folder: a failure to remove it does no harm.
        let _ = std::fs::remove_dir_all(&self.outside);
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// PATH with the system's folders added.
fn path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("{own}:/usr/sbin:/usr/bin:/sbin:/bin")
}
