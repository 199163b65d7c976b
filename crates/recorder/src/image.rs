//! The disk of a guest that builds: an ext4 file system with compiler, headers and sources.
//!
//! All of it is this host's: none of it belongs to the project. `mke2fs -d` fills the file system
//! without root, in the order of the names, and the times are fixed: the same packages give the
//! same disk.

use crate::control::Control;
use crate::error::{RecordError, about_file};
use crate::kernel::{Series, headers};
use kontig_oracle::build::{self, BuiltFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Size of the disk.
pub(super) const MIB: u32 = 320;
/// The kernel whose sources and headers are built, whatever kernel the guest has.
pub(super) const BUILT: Series = Series::V6_1;

const MAKEFILE: &str = include_str!("../../../oracle/guest/build/Makefile");
const FLAGS: &str = include_str!("../../../oracle/guest/build/flags");
/// Folders of a kernel's tree whose own headers the files include.
const FOLDERS: [&str; 8] = ["block", "fs", "kernel", "kernel/sched", "kernel/time", "lib", "mm", "net/core"];
/// Time of all that is on the disk, before the guests' clock begins.
const WRITTEN: Duration = Duration::from_secs(1_700_000_000);
/// Numbers that mke2fs would draw by lot.
const UUID: &str = "6b6f6e74-6967-4000-8000-000000000001";
const HASH_SEED: &str = "6b6f6e74-6967-4000-8000-000000000002";

/// Programs of the host: the name, the package that has it, and its place on the disk.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("dash", "dash", "bin/sh"),
    ("rm", "coreutils", "bin/rm"),
    ("make", "make", "usr/bin/make"),
    ("gcc", "gcc", "usr/bin/gcc"),
    ("as", "binutils", "usr/bin/as"),
    ("nm", "binutils", "usr/bin/nm"),
    ("ld.bfd", "binutils", "usr/bin/ld"),
];
/// Programs of the kernel's own build, below the folder of [`BUILT`]'s `linux-kbuild`.
const KBUILD: [(&str, &str); 2] =
    [("tools/objtool/objtool", "usr/bin/objtool"), ("scripts/basic/fixdep", "usr/bin/fixdep")];

/// The parts of the disk, as found on the host.
pub(super) struct Parts {
    /// Programs: where they are, and their place on the disk.
    programs: Vec<(PathBuf, String)>,
    /// Folders of the headers' packages: the common one and the configuration's.
    headers: [PathBuf; 2],
    release: String,
    sources: Sources,
    mke2fs: PathBuf,
    compiler: String,
}

/// Where the sources are.
enum Sources {
    Tree(PathBuf),
    /// The archive in Debian's package.
    Packed(PathBuf),
}

/// Refuses a host that lacks a part, before anything is built.
pub(super) fn check(sources: Option<&Path>) -> Result<(), RecordError> {
    Parts::find(Path::new("/"), sources).map(drop)
}

impl Parts {
    /// Finds the parts below a place: the host's root, but in tests.
    pub(super) fn find(place: &Path, sources: Option<&Path>) -> Result<Parts, RecordError> {
        let sources = Sources::find(place, sources)?;
        let mke2fs = program(place, "mke2fs", "e2fsprogs")?;
        let mut programs = Vec::new();
        for (name, package, at) in PROGRAMS {
            programs.push((program(place, name, package)?, at.to_string()));
        }
        let kbuild = place.join(format!("usr/lib/linux-kbuild-{BUILT}"));
        for (name, at) in KBUILD {
            let path = kbuild.join(name);
            if !path.is_file() {
                return Err(missing(&path, &format!("linux-kbuild-{BUILT}")));
            }
            programs.push((path, at.into()));
        }
        let release = headers(place, BUILT)
            .ok_or_else(|| missing(&place.join("usr/src"), &format!("linux-headers-{}", BUILT.package().release)))?;
        let of =
            |end: &str| place.join(format!("usr/src/linux-headers-{}{end}", release.trim_end_matches("cloud-amd64")));
        let headers = [of("common"), of("cloud-amd64")];
        let driver = program(place, "gcc", "gcc")?;
        let gcc = |question: &str| said(Command::new(&driver).arg(question));
        let compiler = PathBuf::from(gcc("-print-prog-name=cc1")?);
        let at = compiler.to_string_lossy().trim_start_matches('/').to_string();
        programs.push((compiler, at));
        let compiler = gcc("-dumpfullversion")?;
        Ok(Parts { programs, headers, release, sources, mke2fs, compiler })
    }

    /// Makes the disk at `disk`, with a folder `work` to gather its contents in.
    pub(super) fn make(&self, disk: &Path, work: &Path, control: &Control<'_>) -> Result<BuiltFrom, RecordError> {
        let root = work.join("disk");
        for folder in ["dev", "proc", "tmp"] {
            make_folder(&root.join(folder))?;
        }
        for (from, at) in &self.programs {
            copy(from, &root.join(at))?;
            for library in libraries(from)? {
                // The loader is where programs name it, the others where it looks first.
                let name = library.file_name().unwrap_or_default();
                let is_loader = name.to_string_lossy().starts_with("ld-linux");
                let folder = if is_loader { "lib64" } else { "lib/x86_64-linux-gnu" };
                copy(&library, &root.join(folder).join(name))?;
            }
        }
        control.check()?;
        for (folder, at) in self.headers.iter().zip(["h/c", "h/a"]) {
            for part in ["include", "arch/x86/include"] {
                copy_folder(&folder.join(part), &root.join(at).join(part))?;
            }
        }
        control.check()?;
        let sources = self.sources.take(&root.join("s"), work)?;
        for (name, text) in [("Makefile", MAKEFILE), ("flags", FLAGS)] {
            let path = root.join("s").join(name);
            std::fs::write(&path, text).map_err(about_file(&path, "write"))?;
        }
        settle_times(&root)?;
        control.check()?;
        let options = format!("hash_seed={HASH_SEED},root_owner=0:0");
        let mut mke2fs = Command::new(&self.mke2fs);
        mke2fs.args(["-q", "-t", "ext4", "-O", "^has_journal", "-b", "4096", "-m", "0", "-N", "20000"]);
        mke2fs.args(["-U", UUID, "-E", &options, "-d"]).arg(&root).arg(disk).arg(format!("{MIB}m"));
        said(mke2fs.env("E2FSPROGS_FAKE_TIME", WRITTEN.as_secs().to_string()))?;
        Ok(BuiltFrom { sources, headers: self.release.clone(), compiler: self.compiler.clone() })
    }
}

impl Sources {
    /// Those given, or those of Debian's package, unpacked or not.
    fn find(place: &Path, given: Option<&Path>) -> Result<Sources, RecordError> {
        if let Some(tree) = given {
            let lacks = std::iter::once("Makefile").chain(build::FILES).find(|file| !tree.join(file).is_file());
            return match lacks {
                None => Ok(Sources::Tree(tree.to_path_buf())),
                Some(file) => Err(RecordError::Asked(format!(
                    "--sources {}: has no {file}: name the top of an unpacked kernel {BUILT}",
                    tree.display()
                ))),
            };
        }
        let package = format!("linux-source-{BUILT}");
        let packed = place.join(format!("usr/src/{package}.tar.xz"));
        if packed.is_file() {
            return Ok(Sources::Packed(packed));
        }
        Err(RecordError::Failed(format!(
            "{}: is missing: apt-get install {package}, or name an unpacked kernel with --sources DIR",
            packed.display()
        )))
    }

    /// Copies the files and their folders' headers to `to`. Returns the version.
    fn take(&self, to: &Path, work: &Path) -> Result<String, RecordError> {
        let tree = match self {
            Sources::Tree(tree) => tree.clone(),
            Sources::Packed(archive) => {
                let top = format!("linux-source-{BUILT}");
                // A folder comes with those below it, and is found once.
                let is_below = |folder: &&str| FOLDERS.iter().any(|other| folder.starts_with(&format!("{other}/")));
                let folders = FOLDERS.into_iter().filter(|folder| !is_below(folder));
                let wanted = ["Makefile"].into_iter().chain(folders).map(|name| format!("{top}/{name}"));
                let tar = &mut Command::new("tar");
                said(tar.args(["-xJf"]).arg(archive).arg("-C").arg(work).args(wanted))?;
                work.join(top)
            }
        };
        for folder in FOLDERS {
            let place = tree.join(folder);
            for entry in entries(&place)?.into_iter().filter(|entry| entry.extension().is_some_and(|e| e == "h")) {
                copy(&entry, &to.join(folder).join(entry.file_name().unwrap_or_default()))?;
            }
        }
        for file in build::FILES {
            copy(&tree.join(file), &to.join(file))?;
        }
        let makefile = tree.join("Makefile");
        let text = std::fs::read_to_string(&makefile).map_err(about_file(&makefile, "read"))?;
        version_in(&text).ok_or_else(|| RecordError::Failed(format!("{}: says no version", makefile.display())))
    }
}

/// The version that a kernel's `Makefile` begins with: `6.1.192`.
fn version_in(makefile: &str) -> Option<String> {
    let field = |name: &str| {
        let line = makefile.lines().find(|line| line.split(' ').next() == Some(name))?;
        Some(line.split_once('=')?.1.trim().to_string())
    };
    let [version, patch, sub] = ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(field);
    Some([version?, patch?, sub?].join("."))
}

fn missing(path: &Path, package: &str) -> RecordError {
    RecordError::Failed(format!("{}: is missing: apt-get install {package}", path.display()))
}

/// A program of the host, links followed.
fn program(place: &Path, name: &str, package: &str) -> Result<PathBuf, RecordError> {
    let folders = ["usr/sbin", "usr/bin", "sbin", "bin"];
    let found = folders.iter().find_map(|folder| place.join(folder).join(name).canonicalize().ok());
    found.ok_or_else(|| missing(&place.join("usr/bin").join(name), package))
}

/// The output of a program that succeeds, without the line's end.
fn said(command: &mut Command) -> Result<String, RecordError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let out = out.map_err(|e| RecordError::Failed(format!("{name}: {e}; 'kontig oracle doctor --build' shows why")))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_string());
    }
    let why = String::from_utf8_lossy(&out.stderr).lines().next().unwrap_or("no reason given").to_string();
    Err(RecordError::Failed(format!("cannot make the guest's disk: {name} ended with {}: {why}", out.status)))
}

/// Libraries that a program is linked with, its loader included.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(said(Command::new("ldd").arg(program))?.lines().filter_map(path).collect())
}

fn make_folder(path: &Path) -> Result<(), RecordError> {
    std::fs::create_dir_all(path).map_err(about_file(path, "make"))
}

fn copy(from: &Path, to: &Path) -> Result<(), RecordError> {
    make_folder(to.parent().unwrap_or(to))?;
    std::fs::copy(from, to).map(drop).map_err(about_file(from, "copy"))
}

/// A folder's contents, in the order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let read = std::fs::read_dir(folder).map_err(about_file(folder, "read"))?;
    let mut all: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.sort();
    Ok(all)
}

/// Copies a folder and all below it, links followed.
fn copy_folder(from: &Path, to: &Path) -> Result<(), RecordError> {
    make_folder(to)?;
    for entry in entries(from)? {
        let to = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() { copy_folder(&entry, &to)? } else { copy(&entry, &to)? }
    }
    Ok(())
}

/// Gives a folder and all below it the same time, folders after their contents.
fn settle_times(path: &Path) -> Result<(), RecordError> {
    if path.is_dir() {
        entries(path)?.iter().try_for_each(|entry| settle_times(entry))?;
    }
    let file = std::fs::File::open(path).map_err(about_file(path, "open"))?;
    file.set_modified(SystemTime::UNIX_EPOCH + WRITTEN).map_err(about_file(path, "set the time of"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(place: &Path, sources: Option<&Path>) -> String {
        let line = Parts::find(place, sources).err().expect("refused").to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    }

    fn file(place: &Path, name: &str) {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "").expect("written");
    }

    #[test]
    fn a_missing_part_is_named_with_its_package() {
        let host = tempfile::tempdir().expect("a folder");
        let at = host.path();
        let line = refused(at, None);
        assert!(line.contains("apt-get install linux-source-6.1, or name an unpacked kernel with --sources"), "{line}");
        file(at, "usr/src/linux-source-6.1.tar.xz");
        assert!(refused(at, None).ends_with("mke2fs: is missing: apt-get install e2fsprogs"));
        file(at, "usr/sbin/mke2fs");
        assert!(refused(at, None).ends_with("dash: is missing: apt-get install dash"));
        PROGRAMS.iter().for_each(|(name, ..)| file(at, &format!("usr/bin/{name}")));
        assert!(refused(at, None).ends_with("objtool: is missing: apt-get install linux-kbuild-6.1"));
        KBUILD.iter().for_each(|(name, _)| file(at, &format!("usr/lib/linux-kbuild-6.1/{name}")));
        assert!(refused(at, None).ends_with("apt-get install linux-headers-6.1.0-56-cloud-amd64"));
    }

    #[test]
    fn given_sources_are_a_kernels_tree() {
        let host = tempfile::tempdir().expect("a folder");
        let tree = host.path().join("tree");
        let line = refused(host.path(), Some(&tree));
        assert!(line.ends_with("tree: has no Makefile: name the top of an unpacked kernel 6.1"), "{line}");
        file(&tree, "Makefile");
        assert!(refused(host.path(), Some(&tree)).contains("has no block/blk-integrity.c"));
    }

    #[test]
    fn a_kernels_makefile_says_its_version() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n";
        assert_eq!(version_in(text).as_deref(), Some("6.1.192"));
        assert_eq!(version_in("all:\n"), None);
    }

    #[test]
    fn every_file_is_in_a_folder_whose_headers_are_copied() {
        for file in build::FILES {
            let folder = file.rsplit_once('/').map(|(folder, _)| folder);
            assert!(folder.is_some_and(|folder| FOLDERS.contains(&folder)), "{file}");
        }
    }
}
