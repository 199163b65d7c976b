//! Finds out what a host lacks for making recordings, and prints the command that installs it.
//!
//! Both the host, which runs the emulator, and the place the kernel comes from matter; the latter
//! is the host itself or a Debian root. Installed packages are read from dpkg's status file.

use super::image::BUILT;
use super::kernel::{Kernel, Package, Series, images};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Packages the host always needs.
const FOR_THE_MACHINE: &[&str] = &["qemu-system-x86", "busybox-static"];
/// Packages the build needs, in the root if there is one.
const FOR_BUILDING: &[&str] = &["gcc", "make", "libc6-dev"];

/// Packages that the disk of a guest that builds is made of, on the host whatever kernel it has,
/// before the kernel's headers.
const FOR_A_BUILD: &[&str] =
    &["gcc", "make", "binutils", "dash", "e2fsprogs", "xz-utils", "linux-kbuild-6.1", "linux-source-6.1"];

/// Result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Fine,
    /// A package that is not installed.
    Missing,
    /// Installed, but not as recording needs it.
    Wrong,
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub health: Health,
    pub what: String,
}

/// All checks, and the commands that install what is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// Shell commands to run as root, in order.
    pub remedies: Vec<String>,
}

impl Diagnosis {
    /// Whether a recording can be made.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|f| f.health == Health::Fine)
    }

    /// Whether every package is installed, fine or not.
    pub fn has_all_packages(&self) -> bool {
        self.findings.iter().all(|f| f.health != Health::Missing)
    }

    /// The checks that failed, in one line.
    pub fn obstacles(&self) -> String {
        let obstacles = self.findings.iter().filter(|f| f.health != Health::Fine);
        obstacles.map(|f| f.what.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn fine(&mut self, what: String) {
        self.findings.push(Finding { health: Health::Fine, what });
    }
    fn missing(&mut self, what: String) {
        self.findings.push(Finding { health: Health::Missing, what });
    }
    fn wrong(&mut self, what: String) {
        self.findings.push(Finding { health: Health::Wrong, what });
    }
}

/// Checks the host and, if given, the root the kernel comes from.
pub fn examine(series: Series, root: Option<&Path>) -> Diagnosis {
    examine_host(Path::new("/"), series, root)
}

/// Checks as well what `guest-build` needs on the host.
pub fn examine_for_a_build(series: Series, root: Option<&Path>) -> Diagnosis {
    let host = Path::new("/");
    with_a_build(host, examine_host(host, series, root))
}

fn with_a_build(host: &Path, mut d: Diagnosis) -> Diagnosis {
    let Some(on_host) = Installed::read(host) else { return d };
    let headers = format!("linux-headers-{}", BUILT.package().release);
    let all: Vec<&str> = FOR_A_BUILD.iter().copied().chain([headers.as_str()]).collect();
    let wanted = on_host.check(&all, "guest-build: ", &mut d);
    install(&wanted, "", &mut d);
    if wanted.iter().any(|package| package.starts_with("linux-source")) {
        d.remedies.push("# or leave linux-source out, and name an unpacked kernel 6.1 with --sources DIR".into());
    }
    d
}

fn examine_host(host: &Path, series: Series, root: Option<&Path>) -> Diagnosis {
    let mut d = Diagnosis::default();
    let Some(on_host) = Installed::read(host) else {
        d.missing("the host is not a Debian: there is no /var/lib/dpkg/status".into());
        d.remedies
            .push("# recordings are made on Debian 12 or later, in a container or a virtual machine if need be".into());
        return d;
    };
    if series.is_of_ubuntu() {
        let wanted = on_host.check(&[FOR_THE_MACHINE, FOR_BUILDING].concat(), "", &mut d);
        install(&wanted, "", &mut d);
        return examine_unpacked(root, series, d);
    }
    if let Some(root) = root {
        let wanted = on_host.check(FOR_THE_MACHINE, "", &mut d);
        install(&wanted, "", &mut d);
        return examine_root(root, series, d);
    }
    let own = codename(host);
    if own.as_deref() == Some(series.debian()) {
        let mut wanted = on_host.check(&[FOR_THE_MACHINE, FOR_BUILDING].concat(), "", &mut d);
        wanted.extend(check_kernel(host, series, &on_host, false, &mut d));
        install(&wanted, "", &mut d);
        return d;
    }
    // Another Debian release's headers need that release's compiler: the kernel gets a root.
    let wanted = on_host.check(FOR_THE_MACHINE, "", &mut d);
    install(&wanted, "", &mut d);
    let own = own.unwrap_or_else(|| "unknown".into());
    d.missing(format!("kernel {series} belongs to Debian {}; the host is {own}: a root for it", series.debian()));
    if !on_host.has("debootstrap") {
        d.remedies.push("apt-get install debootstrap".into());
    }
    // One root per series, since Debian 13 has several.
    d.remedies.push(format!("oracle/make-root /var/lib/kontig/{series} {series}"));
    d.remedies.push(format!("kontig oracle doctor --kernel {series} --root /var/lib/kontig/{series}"));
    d
}

/// Checks a folder of Ubuntu's packages, unpacked.
fn examine_unpacked(root: Option<&Path>, series: Series, mut d: Diagnosis) -> Diagnosis {
    let Some(root) = root else {
        d.missing(format!("kernel {series} is Ubuntu's: a folder with its packages"));
        d.remedies.push(format!("oracle/make-root /var/lib/kontig/{series} {series}"));
        d.remedies.push(format!("kontig oracle doctor --kernel {series} --root /var/lib/kontig/{series}"));
        return d;
    };
    match Kernel::find(series, Some(root)) {
        Ok(kernel) => d.fine(format!("kernel {}, image and headers {}", kernel.release, series.package().version)),
        Err(_) => {
            d.missing(format!("{}: image and headers of kernel {}", root.display(), series.package().release));
            d.remedies.push(format!("oracle/make-root {} {series}", root.display()));
        }
    }
    d
}

fn examine_root(root: &Path, series: Series, mut d: Diagnosis) -> Diagnosis {
    let shown = root.display();
    let Some(installed) = Installed::read(root) else {
        d.missing(format!("{shown} is not a Debian root: there is no var/lib/dpkg/status in it"));
        d.remedies.push(format!("oracle/make-root {shown} {series}"));
        return d;
    };
    let mut wanted = installed.check(FOR_BUILDING, &format!("{shown}: "), &mut d);
    wanted.extend(check_kernel(root, series, &installed, true, &mut d));
    install(&wanted, &format!("chroot {shown} "), &mut d);
    d
}

/// Looks for an image of the series and headers of the same release. Returns the packages to
/// install.
fn check_kernel(place: &Path, series: Series, installed: &Installed, in_root: bool, d: &mut Diagnosis) -> Vec<String> {
    let found = match images(place, series) {
        Ok(found) => found,
        Err(e) => {
            d.wrong(e.to_string());
            return Vec::new();
        }
    };
    let Some(newest) = found.last() else {
        d.missing(format!("a {series} kernel of the cloud flavour"));
        if in_root {
            d.remedies.push(format!("oracle/make-root {} {series}", place.display()));
            return Vec::new();
        }
        let Package { release, version, .. } = series.package();
        return ["image", "headers"].map(|what| format!("linux-{what}-{release}={version}")).to_vec();
    };
    let version = |package: &str| installed.version(&format!("{package}-{newest}"));
    match (version("linux-image"), version("linux-headers")) {
        (Some(image), Some(headers)) if image == headers => {
            let recorded = series.package().version;
            let other =
                if image == recorded { String::new() } else { format!(" (the project's recordings: {recorded})") };
            d.fine(format!("kernel {newest}, image and headers {image}{other}"));
            Vec::new()
        }
        (Some(image), Some(headers)) => {
            d.wrong(format!("kernel {newest}: the image is {image}, but the headers are {headers}"));
            vec![format!("linux-image-{newest}"), format!("linux-headers-{newest}")]
        }
        (image, headers) => {
            let have = |v: &Option<&str>| v.map_or("not installed".to_string(), str::to_string);
            d.missing(format!("kernel {newest}: image {}, headers {}", have(&image), have(&headers)));
            let missing = [("linux-image", image), ("linux-headers", headers)];
            missing.iter().filter(|(_, v)| v.is_none()).map(|(p, _)| format!("{p}-{newest}")).collect()
        }
    }
}

/// Adds one command that installs these packages.
fn install(packages: &[String], before: &str, d: &mut Diagnosis) {
    if !packages.is_empty() {
        d.remedies.push(format!("{before}apt-get install {}", packages.join(" ")));
    }
}

/// Installed packages and their versions.
struct Installed(BTreeMap<String, String>);

impl Installed {
    fn read(place: &Path) -> Option<Installed> {
        let path: PathBuf = place.join("var/lib/dpkg/status");
        // Descriptions may be in any encoding; names and versions are ASCII.
        let bytes = std::fs::read(path).ok()?;
        Some(Installed::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Paragraphs of `Name: value` lines; continued lines begin with a space.
    fn parse(status: &str) -> Installed {
        let paragraph = |text: &str| -> Option<(String, String)> {
            let field = |name: &str| {
                text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_string())
            };
            let installed = field("Status")?.split(' ').next_back() == Some("installed");
            installed.then_some((field("Package")?, field("Version")?))
        };
        Installed(status.split("\n\n").filter_map(paragraph).collect())
    }

    fn version(&self, package: &str) -> Option<&str> {
        self.0.get(package).map(String::as_str)
    }

    fn has(&self, package: &str) -> bool {
        self.0.contains_key(package)
    }

    /// Checks packages. Returns those that are missing.
    fn check(&self, packages: &[&str], place: &str, d: &mut Diagnosis) -> Vec<String> {
        for p in packages {
            match self.version(p) {
                Some(version) => d.fine(format!("{place}{p} {version}")),
                None => d.missing(format!("{place}{p}")),
            }
        }
        packages.iter().filter(|p| !self.has(p)).map(|p| p.to_string()).collect()
    }
}

/// Codename of the Debian release in this root: `bookworm`.
fn codename(place: &Path) -> Option<String> {
    let text = std::fs::read_to_string(place.join("etc/os-release")).ok()?;
    let value = text.lines().find_map(|l| l.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim_matches('"').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(packages: &[(&str, &str)]) -> String {
        let one = |(p, v): &(&str, &str)| {
            format!("Package: {p}\nStatus: install ok installed\nVersion: {v}\nDescription: x\n Status: y\n\n")
        };
        packages.iter().map(one).collect()
    }

    /// A place that looks like a Debian.
    fn debian(codename: &str, packages: &[(&str, &str)], kernel: Option<&str>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["var/lib/dpkg", "etc", "boot"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        let write = |path: &str, text: String| std::fs::write(dir.path().join(path), text).expect("written");
        write("var/lib/dpkg/status", status(packages));
        write("etc/os-release", format!("ID=debian\nVERSION_CODENAME={codename}\n"));
        if let Some(release) = kernel {
            write(&format!("boot/vmlinuz-{release}"), String::new());
        }
        dir
    }

    const RELEASE: &str = "6.1.0-56-cloud-amd64";
    const TOOLS: [(&str, &str); 5] =
        [("qemu-system-x86", "1"), ("busybox-static", "1"), ("gcc", "1"), ("make", "1"), ("libc6-dev", "1")];

    fn with_kernel(image: &'static str, headers: &'static str) -> Vec<(&'static str, &'static str)> {
        let mut packages = TOOLS.to_vec();
        packages.push(("linux-image-6.1.0-56-cloud-amd64", image));
        packages.push(("linux-headers-6.1.0-56-cloud-amd64", headers));
        packages
    }

    #[test]
    fn dpkgs_list_tells_installed_from_removed() {
        let text = "Package: a\nStatus: install ok installed\nVersion: 1:2-3\n\n\
                    Package: b\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                    Package: c\nStatus: install ok half-installed\nVersion: 1\n\nPackage: d\n";
        let i = Installed::parse(text);
        assert_eq!((i.version("a"), i.has("b"), i.has("c"), i.has("d")), (Some("1:2-3"), false, false, false));
    }

    #[test]
    fn a_complete_host_is_healthy() {
        let host = debian("bookworm", &with_kernel("6.1.192-2", "6.1.192-2"), Some(RELEASE));
        let d = examine_host(host.path(), Series::V6_1, None);
        assert!(d.is_healthy() && d.remedies.is_empty(), "{d:?}");
    }

    #[test]
    fn one_line_installs_all_that_is_missing() {
        let host = debian("bookworm", &[("gcc", "1"), ("make", "1")], None);
        let d = examine_host(host.path(), Series::V6_1, None);
        let line = "apt-get install qemu-system-x86 busybox-static libc6-dev \
                    linux-image-6.1.0-56-cloud-amd64=6.1.192-2 linux-headers-6.1.0-56-cloud-amd64=6.1.192-2";
        assert_eq!(d.remedies, [line]);
        assert!(!d.is_healthy());
    }

    #[test]
    fn a_build_needs_more_on_the_host() {
        let host = debian("bookworm", &with_kernel("6.1.192-2", "6.1.192-2"), Some(RELEASE));
        let d = with_a_build(host.path(), examine_host(host.path(), Series::V6_1, None));
        let line = "apt-get install binutils dash e2fsprogs xz-utils linux-kbuild-6.1 linux-source-6.1";
        assert_eq!(d.remedies[0], line);
        assert!(d.remedies[1].contains("--sources DIR") && !d.is_healthy(), "{d:?}");
    }

    #[test]
    fn headers_of_another_version_are_told() {
        let host = debian("bookworm", &with_kernel("6.1.192-2", "6.1.180-1"), Some(RELEASE));
        let d = examine_host(host.path(), Series::V6_1, None);
        assert!(
            d.findings.iter().any(|f| f.health == Health::Wrong && f.what.contains("headers are 6.1.180-1")),
            "{d:?}"
        );
        assert_eq!(d.remedies, [format!("apt-get install linux-image-{RELEASE} linux-headers-{RELEASE}")]);
    }

    #[test]
    fn another_debians_kernel_needs_a_root() {
        let host = debian("bookworm", &TOOLS, None);
        let d = examine_host(host.path(), Series::V7_2, None);
        assert_eq!(d.remedies[0], "apt-get install debootstrap");
        assert_eq!(d.remedies[1], "oracle/make-root /var/lib/kontig/7.2 7.2");
        let root = debian("trixie", &TOOLS[2..], None);
        let d = examine_host(host.path(), Series::V7_2, Some(root.path()));
        let shown = root.path().display();
        assert_eq!(d.remedies, [format!("oracle/make-root {shown} 7.2")], "no other series' kernel is installed");
    }

    #[test]
    fn an_old_kernel_needs_a_folder_of_packages() {
        let host = debian("bookworm", &TOOLS, None);
        let d = examine_host(host.path(), Series::V4_4, None);
        assert_eq!(d.remedies[0], "oracle/make-root /var/lib/kontig/4.4 4.4");
        let folder = tempfile::tempdir().expect("a folder");
        let d = examine_host(host.path(), Series::V4_4, Some(folder.path()));
        let shown = folder.path().display();
        assert_eq!(d.remedies, [format!("oracle/make-root {shown} 4.4")]);
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("boot/vmlinuz-4.4.0-21-generic", "");
        write("boot/config-4.4.0-21-generic", "CONFIG_VERSION_SIGNATURE=\"Ubuntu 4.4.0-21.37-generic 4.4.6\"\n");
        write("usr/src/linux-headers-4.4.0-21-generic/Makefile", "");
        let d = examine_host(host.path(), Series::V4_4, Some(folder.path()));
        assert!(d.is_healthy() && d.remedies.is_empty(), "{d:?}");
    }

    #[test]
    fn a_host_without_debian_is_recognized() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(!examine_host(dir.path(), Series::V6_1, None).is_healthy());
        let host = debian("bookworm", &TOOLS, None);
        let d = examine_host(host.path(), Series::V6_1, Some(dir.path()));
        assert!(d.findings.iter().any(|f| f.what.contains("is not a Debian root")), "{d:?}");
    }
}
