//! Finds a kernel image and its headers on the host or in a Debian root.

use crate::error::{RecordError, about_file};
use lzma_rust2::XzReader;
use std::cmp::Ordering;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The recorded packages, one a line; `oracle/make-root` installs the same.
const KERNELS: &str = include_str!("../../../oracle/kernels");

macro_rules! series {
    ($($(#[$doc:meta])* $Series:ident = $name:literal;)+) => {
        /// A series of kernels that is recorded, named as its profile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Series {
            $($(#[$doc])* $Series,)+
        }

        impl Series {
            /// Every series that is recorded, the oldest first.
            pub const ALL: [Series; [$($name),+].len()] = [$(Series::$Series),+];

            /// The name of the series and of its profile.
            pub const fn name(self) -> &'static str {
                match self { $(Series::$Series => $name),+ }
            }

            /// The names under `/proc/sys/vm`, a line each.
            pub(crate) const fn sysctl_lines(self) -> &'static str {
                match self {
                    $(Series::$Series => include_str!(concat!("../../procfs/kernels/", $name, "/sysctls"))),+
                }
            }
        }
    };
}

series! {
    /// From Ubuntu's pool: the kernel of Ubuntu 14.04.
    V3_13 = "3.13";
    /// From Ubuntu's pool: the kernel of Ubuntu 16.04.
    V4_4 = "4.4";
    /// From Ubuntu's pool: a later kernel for Ubuntu 18.04.
    V5_0 = "5.0";
    /// The kernel of Debian 11.
    V5_10 = "5.10";
    /// The kernel of Debian 12.
    V6_1 = "6.1";
    /// The kernel of Debian 13.
    V6_12 = "6.12";
    /// From Debian 13's backports.
    V7_2 = "7.2";
    /// From Debian 13's backports.
    V7_3 = "7.3";
}

/// Stands in `oracle/kernels` in place of a Debian release.
const UBUNTU: &str = "ubuntu";

/// A line of `oracle/kernels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Codename of the Debian release, or `ubuntu`.
    pub debian: &'static str,
    /// Release as `uname -r` prints it: `6.1.0-56-cloud-amd64`.
    pub release: &'static str,
    /// Version of the image and headers packages: `6.1.192-2`.
    pub version: &'static str,
}

impl Series {
    /// The names of all series in words, for help texts: `6.1, 6.12 or 7.2`.
    pub fn known() -> String {
        let [others @ .., newest] = &Series::ALL.map(Series::name);
        format!("{} or {newest}", others.join(", "))
    }

    /// The package that the project's recordings were made with.
    ///
    /// # Panics
    /// If `oracle/kernels`, which is part of this program, has no line for it.
    pub fn package(self) -> Package {
        let line = |line: &'static str| -> Option<Package> {
            let mut words = line.split_ascii_whitespace();
            let is_own = words.next()? == self.name();
            let (debian, _archive, release, version) = (words.next()?, words.next()?, words.next()?, words.next()?);
            is_own.then_some(Package { debian, release, version })
        };
        KERNELS.lines().find_map(line).expect("every series has a line in oracle/kernels")
    }

    /// Whether a module can own pages that compaction moves; since 6.17 only built-in code can.
    pub const fn lets_modules_own(self) -> bool {
        matches!(self, Series::V5_0 | Series::V5_10 | Series::V6_1 | Series::V6_12)
    }

    /// Whether it is older than any kernel Debian still has: its packages are Ubuntu's, and lie
    /// unpacked in a folder that is no root. The host's compiler builds for it.
    pub fn is_of_ubuntu(self) -> bool {
        self.package().debian == UBUNTU
    }

    /// Whether its loader knows the calls that today's assembler makes.
    pub(crate) const fn loads_plt_calls(self) -> bool {
        !matches!(self, Series::V3_13 | Series::V4_4)
    }

    /// The end of its images' releases.
    fn flavour(self) -> &'static str {
        if self.is_of_ubuntu() { "-generic" } else { "-cloud-amd64" }
    }

    /// Codename of the Debian release that has it.
    pub fn debian(self) -> &'static str {
        self.package().debian
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Series {
    type Err = String;
    fn from_str(s: &str) -> Result<Series, String> {
        Series::ALL
            .into_iter()
            .find(|k| k.name() == s)
            .ok_or_else(|| format!("no kernel '{s}' is recorded; known: {}", Series::ALL.map(Series::name).join(", ")))
    }
}

/// A kernel image with its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub series: Series,
    /// Release as `uname -r` prints it: `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The upstream version: `6.1.192`.
    pub version: String,
    pub image: PathBuf,
    /// The root it was found in, where modules are built; `None` for the host.
    pub root: Option<PathBuf>,
}

impl Kernel {
    /// Finds the newest kernel of a series whose headers are installed.
    ///
    /// # Errors
    /// If image or headers are missing, with the command that shows how to get them.
    pub fn find(series: Series, root: Option<&Path>) -> Result<Kernel, RecordError> {
        let place = root.unwrap_or(Path::new("/"));
        if !place.is_dir() {
            return Err(RecordError::Asked(format!("{}: no such root; oracle/make-root makes one", place.display())));
        }
        let images = images(place, series)?;
        let missing = |what: &str| {
            let again = root.map(|r| format!(" --root {}", r.display())).unwrap_or_default();
            let advice = format!("'kontig oracle doctor --kernel {series}{again}' shows how to get it");
            RecordError::Failed(format!("{}: no {what} of a {series} kernel; {advice}", place.display()))
        };
        let newest = images.last().ok_or_else(|| missing("image"))?;
        let release = images.iter().rev().find(|r| build_folder(place, r).is_dir());
        let release = release.ok_or_else(|| missing(&format!("headers for {newest}")))?;
        let image = place.join("boot").join(format!("vmlinuz-{release}"));
        let (says, version) = if series.is_of_ubuntu() {
            let config = place.join("boot").join(format!("config-{release}"));
            let text = std::fs::read_to_string(&config).map_err(about_file(&config, "read"))?;
            let version = version_in_config(&text);
            (config, version)
        } else {
            let bytes = std::fs::read(&image).map_err(about_file(&image, "read"))?;
            (image.clone(), version_in(&bytes))
        };
        let version = version.ok_or_else(|| {
            let whose = if series.is_of_ubuntu() { "an Ubuntu" } else { "a Debian" };
            RecordError::Failed(format!("{}: is not of {whose} kernel: it does not say its version", says.display()))
        })?;
        Ok(Kernel { series, release: release.clone(), version, image, root: root.map(Path::to_path_buf) })
    }

    /// Reads and unpacks one of its modules, e.g. `drivers/block/brd.ko`.
    pub(super) fn module(&self, name: &str) -> Result<Vec<u8>, RecordError> {
        let place = self.root.as_deref().unwrap_or(Path::new("/"));
        let modules = if self.series.is_of_ubuntu() { "lib/modules" } else { "usr/lib/modules" };
        let plain = place.join(modules).join(&self.release).join("kernel").join(name);
        let packed = plain.with_extension("ko.xz");
        if !packed.is_file() {
            return std::fs::read(&plain).map_err(about_file(&plain, "read"));
        }
        let file = std::fs::File::open(&packed).map_err(about_file(&packed, "read"))?;
        let mut bytes = Vec::new();
        XzReader::new(file, true).read_to_end(&mut bytes).map_err(about_file(&packed, "unpack"))?;
        Ok(bytes)
    }

    /// The root that programs and modules are built in; `None` for the host.
    pub(crate) fn built_in(&self) -> Option<&Path> {
        self.root.as_deref().filter(|_| !self.series.is_of_ubuntu())
    }

    /// Path of its headers where it is built.
    pub fn build_folder(&self) -> PathBuf {
        let place = if self.series.is_of_ubuntu() { self.root.as_deref() } else { None };
        build_folder(place.unwrap_or(Path::new("/")), &self.release)
    }
}

/// Path of the headers as the packages install them. The link in `/lib/modules` is of no use
/// outside the root.
fn build_folder(place: &Path, release: &str) -> PathBuf {
    place.join("usr/src").join(format!("linux-headers-{release}"))
}

/// Installed images of a series, by release, oldest first.
pub(super) fn images(place: &Path, series: Series) -> Result<Vec<String>, RecordError> {
    let boot = place.join("boot");
    let entries = match std::fs::read_dir(&boot) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(about_file(&boot, "read"))?,
    };
    let mut found: Vec<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_string))
        .filter(|release| release.ends_with(series.flavour()) && is_of(release, series))
        .collect();
    found.sort_by(|a, b| compare_releases(a, b));
    Ok(found)
}

/// The newest release of a series whose headers are installed, those of the configuration and those
/// common to all.
pub(super) fn headers(place: &Path, series: Series) -> Option<String> {
    let entries = std::fs::read_dir(place.join("usr/src")).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let releases = names.filter_map(|name| name.strip_prefix("linux-headers-").map(str::to_string));
    let whole = |release: &String| {
        let common = release.strip_suffix("cloud-amd64").map(|start| format!("linux-headers-{start}common"));
        is_of(release, series) && common.is_some_and(|common| place.join("usr/src").join(common).is_dir())
    };
    releases.filter(whole).max_by(|a, b| compare_releases(a, b))
}

fn is_of(release: &str, series: Series) -> bool {
    release.strip_prefix(series.name()).is_some_and(|rest| rest.starts_with('.'))
}

/// Compares two releases number by number.
fn compare_releases(a: &str, b: &str) -> Ordering {
    let numbers =
        |s: &str| -> Vec<u64> { s.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect() };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

/// The upstream version in an image's banner. The setup header has the banner's offset, two bytes,
/// counted from the second sector.
fn version_in(image: &[u8]) -> Option<String> {
    const HEAD: usize = 0x202;
    const OFFSET_AT: usize = 0x20e;
    const SECTOR: usize = 0x200;
    if image.get(HEAD..HEAD + 4)? != b"HdrS" {
        return None;
    }
    let at = SECTOR + usize::from(u16::from_le_bytes(image.get(OFFSET_AT..OFFSET_AT + 2)?.try_into().ok()?));
    let text = image.get(at..)?.split(|b| *b == 0).next()?;
    let (_, after) = std::str::from_utf8(text).ok()?.split_once(" Debian ")?;
    let version = after.split(['-', ' ']).next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_string())
}

/// The upstream version in the configuration of an Ubuntu kernel: the last word of its signature,
/// `Ubuntu 5.0.0-23.24~18.04.1-generic 5.0.15`.
fn version_in_config(config: &str) -> Option<String> {
    let signature = config.lines().find_map(|line| line.strip_prefix("CONFIG_VERSION_SIGNATURE="))?;
    let version = signature.trim_matches('"').rsplit(' ').next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_recorded_from_a_package_of_its_own() {
        for series in Series::ALL {
            let package = series.package();
            assert!(is_of(package.release, series), "{series}: {package:?}");
            let upstream = package.version.split('-').next().unwrap_or_default();
            assert!(is_of(upstream, series), "{series}: {package:?}");
        }
        assert_eq!((Series::V5_10.debian(), Series::V6_12.debian()), ("bullseye", "trixie"));
    }

    #[test]
    fn a_release_belongs_to_its_series_and_no_other() {
        assert!(is_of("6.1.0-56-cloud-amd64", Series::V6_1));
        assert!(!is_of("6.12.0-1-cloud-amd64", Series::V6_1));
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let mut r = ["6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64", "6.1.0-10-cloud-amd64"];
        r.sort_by(|a, b| compare_releases(a, b));
        assert_eq!(r, ["6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64", "6.1.0-56-cloud-amd64"]);
    }

    #[test]
    fn an_ubuntu_kernels_configuration_says_its_version() {
        let config = "CONFIG_X=y\nCONFIG_VERSION_SIGNATURE=\"Ubuntu 4.4.0-21.37-generic 4.4.6\"\n";
        assert_eq!(version_in_config(config).as_deref(), Some("4.4.6"));
        assert_eq!(version_in_config("CONFIG_VERSION_SIGNATURE=\"\"\n"), None);
        assert_eq!(version_in_config("CONFIG_X=y\n"), None);
    }

    #[test]
    fn an_image_says_its_version() {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image.extend(b"x");
        let text = b"6.1.0-56-cloud-amd64 (d@d) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-01-01)\0";
        image.splice(0x300..0x300 + text.len(), text.iter().copied());
        assert_eq!(version_in(&image).as_deref(), Some("6.1.192"));
        assert_eq!(version_in(&image[..0x310]), None);
        assert_eq!(version_in(b"no image"), None);
        image[0x202] = b'X';
        assert_eq!(version_in(&image), None);
    }
}
