//! The emulated machine: one that does the same, instruction by instruction, every time it is switched on.
//!
//! One instruction takes one nanosecond of its time (`-icount`), its clock starts at the same moment, its processor
//! has no source of randomness, and its board is of a fixed version. Node 0 is 1 GiB with the only CPU; node 1, the
//! observed one, has none: 2 GiB from 4 GiB on, or what an experiment asks for ([`Board`]). A guest has one node only.

use crate::control::{Control, Stage};
use crate::error::{RecordError, about_file};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "qemu-system-x86_64";
/// Far more than any experiment needs, on a host with much else to do, too.
const LIMIT: Duration = Duration::from_secs(90 * 60);
const POLL: Duration = Duration::from_millis(50);

/// What the kernel is told.
const COMMAND_LINE: &str = "console=ttyS0 quiet rdinit=/init panic=-1 oops=panic nowatchdog audit=0 nokaslr \
    random.trust_cpu=off random.trust_bootloader=off mitigations=off numa_balancing=disable \
    transparent_hugepage=never init_on_alloc=0";

/// What reclaim is recorded with: no groups of processes, each with lists of its own, and a clock that always ticks, since
/// a CPU that falls asleep without it folds its counters.
const FOR_RECLAIM: &str = " cgroup_disable=memory nohz=off";

/// What guests run with: no groups of processes.
const FOR_GUESTS: &str = " cgroup_disable=memory";

/// How a machine differs from experiment to experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// A node with the CPU, and another one that is observed.
    Observed {
        /// MiB of the observed node.
        node_mib: u32,
        /// Whether half of it is below 4 GiB, in zone DMA32.
        two_zones: bool,
        /// Whether reclaim is recorded.
        reclaim: bool,
    },
    /// One node, and memory from 4 GiB on that the kernel leaves to the guest's disks.
    Guest {
        /// MiB of the node.
        memory_mib: u32,
        /// MiB of the disks.
        disks_mib: u32,
    },
}

impl Board {
    /// What most recordings are made on.
    pub const USUAL: Board = Board::Observed { node_mib: 2048, two_zones: false, reclaim: false };
    const NODE_0_MIB: u32 = 1024;

    /// MiB below 4 GiB.
    const fn low_mib(self) -> u32 {
        match self {
            Board::Observed { node_mib, two_zones: true, .. } => Board::NODE_0_MIB + node_mib / 2,
            Board::Observed { .. } => Board::NODE_0_MIB,
            Board::Guest { memory_mib, .. } => memory_mib,
        }
    }

    /// MiB of all.
    const fn all_mib(self) -> u32 {
        match self {
            Board::Observed { node_mib, .. } => Board::NODE_0_MIB + node_mib,
            Board::Guest { memory_mib, disks_mib } => memory_mib + disks_mib,
        }
    }

    /// What the kernel is told besides.
    fn told(self) -> String {
        match self {
            Board::Observed { reclaim: false, .. } => String::new(),
            Board::Observed { reclaim: true, .. } => FOR_RECLAIM.into(),
            Board::Guest { disks_mib, .. } => format!("{FOR_GUESTS} memmap={disks_mib}M$4G"),
        }
    }

    /// The nodes, where there is more than one.
    fn nodes(self) -> Vec<(&'static str, String)> {
        let Board::Observed { node_mib, .. } = self else { return Vec::new() };
        vec![
            ("-object", "memory-backend-ram,id=node0,size=1G".into()),
            ("-object", format!("memory-backend-ram,id=node1,size={}", mib(node_mib))),
            ("-numa", "node,nodeid=0,cpus=0,memdev=node0".into()),
            ("-numa", "node,nodeid=1,memdev=node1".into()),
        ]
    }
}

/// The emulator on this host.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// Its version, such as `7.2.22`.
    pub version: String,
}

/// Where a machine finds what it boots, and leaves what it says.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Its file system.
    pub initramfs: PathBuf,
    /// What it writes to its console.
    pub console: PathBuf,
    /// What it writes to its debug port.
    pub results: PathBuf,
    /// What it has.
    pub board: Board,
}

impl Qemu {
    /// Asks the emulator who it is.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn find() -> Result<Qemu, RecordError> {
        let out = Command::new(PROGRAM).arg("--version").output().map_err(|e| {
            RecordError::Failed(format!("{PROGRAM}: {e}; 'kontig oracle doctor' shows how to install it"))
        })?;
        let text = String::from_utf8_lossy(&out.stdout);
        let version = version_in(&text).ok_or_else(|| {
            RecordError::Failed(format!("{PROGRAM} --version: does not say its version: {}", text.trim()))
        })?;
        Ok(Qemu { version })
    }

    /// Boots the machine and waits until it stops by itself.
    pub(super) fn run(&self, machine: &Machine, control: &Control<'_>) -> Result<(), RecordError> {
        let complaints = machine.console.with_extension("qemu");
        let errors = std::fs::File::create(&complaints).map_err(about_file(&complaints, "write"))?;
        let child = Command::new(PROGRAM)
            .args(machine.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|e| RecordError::Failed(format!("{PROGRAM}: {e}")))?;
        let status = Running(child).wait(machine, control)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(&complaints).unwrap_or_default();
        let said = said.lines().find(|l| !l.contains("warning:")).unwrap_or("no reason given");
        Err(RecordError::Failed(format!("{PROGRAM} ended with {status}: {said}")))
    }
}

/// A process that does not outlive this one's interest in it.
struct Running(Child);

impl Running {
    fn wait(&mut self, machine: &Machine, control: &Control<'_>) -> Result<ExitStatus, RecordError> {
        let start = Instant::now();
        loop {
            let sent = std::fs::metadata(&machine.results).map_or(0, |m| m.len());
            control.at(Stage::Running(sent))?;
            let over = self.0.try_wait().map_err(|e| RecordError::Failed(format!("{PROGRAM}: {e}")))?;
            if let Some(status) = over {
                return Ok(status);
            }
            if start.elapsed() > LIMIT {
                return Err(RecordError::Failed(format!("the machine was still running after {} s", LIMIT.as_secs())));
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both only fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    /// The emulator's command line.
    pub fn arguments(&self) -> Vec<String> {
        let file = |p: &Path| p.display().to_string();
        let command_line = format!("{COMMAND_LINE}{}", self.board.told());
        let machine = vec![
            ("-machine", format!("pc-i440fx-7.1,max-ram-below-4g={},hpet=off", mib(self.board.low_mib()))),
            ("-accel", "tcg".into()),
            ("-icount", "shift=0,sleep=off".into()),
            ("-cpu", "qemu64-v1,-rdrand,-rdseed".into()),
            ("-smp", "1".into()),
            ("-m", mib(self.board.all_mib())),
        ];
        let rest = [
            ("-rtc", "base=2024-01-01T00:00:00,clock=vm".into()),
            ("-display", "none".into()),
            ("-vga", "none".into()),
            ("-monitor", "none".into()),
            ("-net", "none".into()),
            ("-serial", format!("file:{}", file(&self.console))),
            ("-chardev", format!("file,id=results,path={}", in_list(&file(&self.results)))),
            ("-device", "isa-debugcon,iobase=0xe9,chardev=results".into()),
            ("-kernel", file(&self.kernel)),
            ("-initrd", in_list(&file(&self.initramfs))),
            ("-append", command_line),
        ];
        let switches = ["-nodefaults", "-no-user-config", "-no-reboot"].map(String::from);
        let all = machine.into_iter().chain(self.board.nodes()).chain(rest);
        switches.into_iter().chain(all.flat_map(|(name, value)| [name.to_string(), value])).collect()
    }

    /// The command line with the files' names alone: the same wherever they were.
    pub(super) fn shown_command_line(board: Board) -> String {
        let named = |name: &str| PathBuf::from(name);
        let machine = Machine {
            kernel: named("vmlinuz"),
            initramfs: named("initramfs"),
            console: named("console.log"),
            results: named("results"),
            board,
        };
        let quoted = |w: String| if w.contains(' ') { format!("'{w}'") } else { w };
        let words = machine.arguments().into_iter().map(quoted);
        std::iter::once(PROGRAM.to_string()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// A size, as the emulator reads it.
fn mib(n: u32) -> String {
    if n.is_multiple_of(1024) { format!("{}G", n / 1024) } else { format!("{n}M") }
}

/// A comma in a value of a list of options is written twice.
fn in_list(value: &str) -> String {
    value.replace(',', ",,")
}

/// `7.2.22` of "QEMU emulator version 7.2.22 (Debian …)".
fn version_in(text: &str) -> Option<String> {
    let after = text.split_once("version ")?.1;
    after.split_whitespace().next().map(str::to_string)
}

/// The line of a console that says best why a machine stopped: its own complaint, the kernel's, or the last one.
pub(super) fn last_word(console: &str) -> Option<&str> {
    let lines = || console.lines().map(str::trim).filter(|l| !l.is_empty());
    let complaint = |what: &'static str| lines().rfind(move |l| l.contains(what));
    // What the module or a program complained of comes before the script's giving up, and says more.
    let first = lines().find(|l| l.contains("kontig: ") && !l.contains("kontig: failed"));
    first
        .or_else(|| complaint("kontig: failed"))
        .or_else(|| complaint("Kernel panic"))
        .or_else(|| lines().rfind(|l| !l.contains("reboot: Restarting")))
        .or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_pins_what_could_differ() {
        let line = Machine::shown_command_line(Board::USUAL);
        for part in
            ["-machine pc-i440fx-7.1,", "-icount shift=0,sleep=off", "-rdrand,-rdseed", "clock=vm", "-smp 1", "nokaslr"]
        {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(line.starts_with("qemu-system-x86_64 -nodefaults") && line.contains("-kernel vmlinuz"));
    }

    #[test]
    fn the_observed_node_has_the_zones_it_is_to_have() {
        let line = |two_zones| Machine::shown_command_line(Board::Observed { node_mib: 256, two_zones, reclaim: true });
        assert!(line(false).contains("below-4g=1G,") && line(false).contains("-m 1280M "), "{}", line(false));
        assert!(line(true).contains("below-4g=1152M,") && line(true).contains("id=node1,size=256M"), "{}", line(true));
        assert!(line(true).ends_with("cgroup_disable=memory nohz=off'"));
        let usual = Machine::shown_command_line(Board::USUAL);
        assert!(usual.contains("below-4g=1G,") && usual.contains("-m 3G ") && usual.contains("id=node1,size=2G"));
    }

    #[test]
    fn a_guest_has_one_node_and_memory_that_is_not_the_kernels() {
        let line = Machine::shown_command_line(Board::Guest { memory_mib: 512, disks_mib: 2048 });
        assert!(line.contains("below-4g=512M,") && line.contains("-m 2560M ") && !line.contains("-numa"), "{line}");
        assert!(line.ends_with("cgroup_disable=memory memmap=2048M$4G'"), "{line}");
    }

    #[test]
    fn a_comma_in_a_path_stays_in_it() {
        let at = |p: &str| PathBuf::from(p);
        let m = Machine {
            kernel: at("k"),
            initramfs: at("/a,b/i"),
            console: at("c"),
            results: at("/a,b/r"),
            board: Board::USUAL,
        };
        let arguments = m.arguments();
        assert!(arguments.contains(&"file,id=results,path=/a,,b/r".to_string()));
        assert!(arguments.contains(&"/a,,b/i".to_string()));
    }

    #[test]
    fn an_emulator_says_its_version() {
        assert_eq!(version_in("QEMU emulator version 7.2.22 (Debian 1:7.2)\n").as_deref(), Some("7.2.22"));
        assert_eq!(version_in("something else"), None);
    }

    #[test]
    fn the_last_word_is_the_one_that_explains() {
        let console = "boot\r\nkontig: 'snap' failed: -28\r\nkontig: failed: x\r\n[ 1.0] reboot: Restarting system\r\n";
        assert_eq!(last_word(console), Some("kontig: 'snap' failed: -28"));
        assert_eq!(last_word("a\nKernel panic - not syncing\nb\n"), Some("Kernel panic - not syncing"));
        assert_eq!(last_word("a\nb\n[ 1.0] reboot: Restarting system\n"), Some("b"));
        assert_eq!(last_word(" \n"), None);
    }
}
