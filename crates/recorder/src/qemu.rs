//! The emulated machine, which executes the same instructions every time it is switched on.
//!
//! An instruction takes one nanosecond (`-icount`), the clock starts at a fixed date, the processor
//! has no source of randomness, and the board's version is fixed. Node 0 has 1 GiB and the only
//! CPU. Node 1, the observed one, has no CPU and 2 GiB from 4 GiB on, unless an experiment asks
//! otherwise ([`Board`]); where several are observed, the others follow it. A guest has a single
//! node. Several CPUs take turns in one thread of the emulator, after numbers of instructions.

use crate::control::{Control, Progress};
use crate::error::{RecordError, about_file};
use kontig_text::short_size;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "qemu-system-x86_64";
/// Far longer than any experiment takes, even on a busy host.
const LIMIT: Duration = Duration::from_secs(90 * 60);
/// The version that shares time among CPUs, so that each gets a turn before the next timer.
const SEVERAL_CPUS: [u32; 2] = [8, 1];
const POLL: Duration = Duration::from_millis(50);

/// Where a guest's first disk begins.
const DISKS_AT: u64 = 4 << 30;

/// The kernel's command line.
const COMMAND_LINE: &str = "console=ttyS0 quiet rdinit=/init panic=-1 oops=panic nowatchdog audit=0 nokaslr \
    random.trust_cpu=off random.trust_bootloader=off mitigations=off numa_balancing=disable \
    transparent_hugepage=never init_on_alloc=0";

/// Options for recordings of reclaim: no memory cgroups, each of which would have its own LRU
/// lists, and no tickless idle, because a CPU that goes idle without a tick folds its counters.
const FOR_RECLAIM: &str = " cgroup_disable=memory nohz=off";

/// Options for recordings of reclaim by memory control groups: only pages of processes and files
/// are charged.
const FOR_GROUPS: &str = " cgroup.memory=nokmem,nosocket,nobpf nohz=off";

/// Options for guests: no memory cgroups.
const FOR_GUESTS: &str = " cgroup_disable=memory";

/// The parts of a machine that experiments choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// A node with the CPU, and those that are observed.
    Observed {
        /// How many nodes are observed.
        nodes: u8,
        /// Size of an observed node.
        node_mib: u32,
        /// Whether half of the first lies below 4 GiB, in zone DMA32.
        two_zones: bool,
        /// Whether reclaim is recorded.
        reclaim: bool,
        /// Whether memory control groups are: without them, reclaim is recorded with one set of
        /// lists a node.
        groups: bool,
        /// Number of CPUs, all of node 0.
        cpus: u8,
    },
    /// One node, and memory from 4 GiB on that the kernel leaves to the guest's disks.
    Guest {
        memory_mib: u32,
        disks_mib: u32,
        /// Whether the first disk has contents from the start.
        filled: bool,
    },
}

impl Board {
    /// The machine of most recordings.
    pub const USUAL: Board =
        Board::Observed { nodes: 1, node_mib: 2048, two_zones: false, reclaim: false, groups: false, cpus: 1 };
    const NODE_0_MIB: u32 = 1024;

    /// MiB below 4 GiB.
    const fn low_mib(self) -> u32 {
        match self {
            Board::Observed { node_mib, two_zones: true, .. } => Board::NODE_0_MIB + node_mib / 2,
            Board::Observed { .. } => Board::NODE_0_MIB,
            Board::Guest { memory_mib, .. } => memory_mib,
        }
    }

    const fn all_mib(self) -> u32 {
        match self {
            Board::Observed { nodes, node_mib, .. } => Board::NODE_0_MIB + nodes as u32 * node_mib,
            Board::Guest { memory_mib, disks_mib, .. } => memory_mib + disks_mib,
        }
    }

    /// Further options on the kernel's command line.
    fn told(self) -> String {
        match self {
            Board::Observed { reclaim: false, .. } => String::new(),
            Board::Observed { reclaim: true, groups: true, .. } => FOR_GROUPS.into(),
            Board::Observed { reclaim: true, cpus: 1, .. } => FOR_RECLAIM.into(),
            // The other CPUs do only what the trace has them do.
            Board::Observed { reclaim: true, cpus, .. } => format!("{FOR_RECLAIM} isolcpus=1-{}", cpus - 1),
            Board::Guest { disks_mib, .. } => format!("{FOR_GUESTS} memmap={disks_mib}M$4G"),
        }
    }

    const fn cpus(self) -> u8 {
        match self {
            Board::Observed { cpus, .. } => cpus,
            Board::Guest { .. } => 1,
        }
    }

    /// Options for the nodes, if there are several.
    fn nodes(self) -> Vec<(&'static str, String)> {
        let Board::Observed { nodes, node_mib, cpus, .. } = self else { return Vec::new() };
        let cpus = if cpus == 1 { "0".into() } else { format!("0-{}", cpus - 1) };
        let size = short_size(u64::from(node_mib) << 20);
        let mut all = vec![("-object", "memory-backend-ram,id=node0,size=1G".into())];
        all.extend((1..=nodes).map(|n| ("-object", format!("memory-backend-ram,id=node{n},size={size}"))));
        all.push(("-numa", format!("node,nodeid=0,cpus={cpus},memdev=node0")));
        all.extend((1..=nodes).map(|n| ("-numa", format!("node,nodeid={n},memdev=node{n}"))));
        all
    }
}

/// The emulator: this host's, or that of a Debian root, which runs without being entered.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// Version, in the form `7.2.22`.
    pub version: String,
    root: Option<PathBuf>,
}

/// A machine: the files it boots and those it writes.
#[derive(Clone, Debug)]
pub struct Machine {
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    /// Log of its console.
    pub console: PathBuf,
    /// Output of its debug port.
    pub results: PathBuf,
    /// Contents of the first disk, if the board says that there are any.
    pub disk: PathBuf,
    pub board: Board,
}

impl Qemu {
    /// Finds the emulator, in this root if one is given, and its version.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn find(root: Option<&Path>) -> Result<Qemu, RecordError> {
        let mut qemu = Qemu { version: String::new(), root: root.map(Path::to_path_buf) };
        let out = qemu.command().arg("--version").output().map_err(|e| {
            let remedy = match root {
                Some(root) => format!("chroot {} apt-get install qemu-system-x86", root.display()),
                None => "'kontig oracle doctor' shows how to install it".into(),
            };
            RecordError::Failed(format!("{PROGRAM}: {e}; {remedy}"))
        })?;
        let text = String::from_utf8_lossy(&out.stdout);
        qemu.version = version_in(&text).ok_or_else(|| {
            RecordError::Failed(format!("{PROGRAM} --version: does not say its version: {}", text.trim()))
        })?;
        Ok(qemu)
    }

    /// The program. That of a root runs with the root's loader and libraries.
    fn command(&self) -> Command {
        let Some(root) = &self.root else { return Command::new(PROGRAM) };
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
        command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        command.arg("--library-path").arg(libraries).arg(root.join("usr/bin").join(PROGRAM));
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(root.join(firmware));
        }
        command
    }

    /// Whether it can run this board. Before 8.1 a CPU may wait for another one that gets no turn.
    ///
    /// # Errors
    /// If not, with the remedy.
    pub fn suits(&self, board: Board) -> Result<(), RecordError> {
        if board.cpus() == 1 || is_at_least(&self.version, SEVERAL_CPUS) {
            return Ok(());
        }
        let ([major, minor], version) = (SEVERAL_CPUS, &self.version);
        Err(RecordError::Asked(format!(
            "several CPUs need QEMU {major}.{minor} or later, and this is {version}: make a root with \
             'oracle/make-root DIR 6.12', then 'chroot DIR apt-get install qemu-system-x86', and add --qemu DIR"
        )))
    }

    /// Boots the machine and waits until it powers off.
    pub(super) fn run(&self, machine: &Machine, control: &Control<'_>) -> Result<(), RecordError> {
        let complaints = machine.console.with_extension("qemu");
        let errors = std::fs::File::create(&complaints).map_err(about_file(&complaints, "write"))?;
        let child = self
            .command()
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

/// A child process, killed on drop.
struct Running(Child);

impl Running {
    fn wait(&mut self, machine: &Machine, control: &Control<'_>) -> Result<ExitStatus, RecordError> {
        let start = Instant::now();
        loop {
            let sent = std::fs::metadata(&machine.results).map_or(0, |m| m.len());
            control.at(Progress::Running(sent))?;
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
        // Both fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    /// Command line of the emulator.
    pub fn arguments(&self) -> Vec<String> {
        let file = |p: &Path| p.display().to_string();
        let command_line = format!("{COMMAND_LINE}{}", self.board.told());
        let machine = vec![
            (
                "-machine",
                format!(
                    "pc-i440fx-7.1,max-ram-below-4g={},hpet=off",
                    short_size(u64::from(self.board.low_mib()) << 20)
                ),
            ),
            ("-accel", if self.board.cpus() == 1 { "tcg".into() } else { "tcg,thread=single".into() }),
            ("-icount", "shift=0,sleep=off".into()),
            ("-cpu", "qemu64-v1,-rdrand,-rdseed".into()),
            ("-smp", self.board.cpus().to_string()),
            ("-m", short_size(u64::from(self.board.all_mib()) << 20)),
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
        let filled = matches!(self.board, Board::Guest { filled: true, .. });
        let disk = filled.then(|| {
            let disk = in_list(&file(&self.disk));
            ("-device", format!("loader,file={disk},addr={DISKS_AT:#x},force-raw=on"))
        });
        let switches = ["-nodefaults", "-no-user-config", "-no-reboot"].map(String::from);
        let all = machine.into_iter().chain(self.board.nodes()).chain(disk).chain(rest);
        switches.into_iter().chain(all.flat_map(|(name, value)| [name.to_string(), value])).collect()
    }

    /// The command line with bare file names, which does not depend on the host's folders.
    pub(super) fn shown_command_line(board: Board) -> String {
        let named = |name: &str| PathBuf::from(name);
        let machine = Machine {
            kernel: named("vmlinuz"),
            initramfs: named("initramfs"),
            console: named("console.log"),
            results: named("results"),
            disk: named("disk"),
            board,
        };
        let quoted = |w: String| if w.contains(' ') { format!("'{w}'") } else { w };
        let words = machine.arguments().into_iter().map(quoted);
        std::iter::once(PROGRAM.to_string()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Doubles commas, as a value in a list of options needs.
fn in_list(value: &str) -> String {
    value.replace(',', ",,")
}

/// Whether a version is this one or later.
fn is_at_least(version: &str, wanted: [u32; 2]) -> bool {
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= wanted
}

/// `7.2.22` of "QEMU emulator version 7.2.22 (Debian …)".
fn version_in(text: &str) -> Option<String> {
    let after = text.split_once("version ")?.1;
    after.split_whitespace().next().map(str::to_string)
}

/// The console line that explains best why the machine stopped: the module's or a program's
/// message, the kernel's panic, or the last line.
pub(super) fn last_word(console: &str) -> Option<&str> {
    let lines = || console.lines().map(str::trim).filter(|l| !l.is_empty());
    let complaint = |what: &'static str| lines().rfind(move |l| l.contains(what));
    // The first message of the module or a program says more than the script's failure after it.
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
        let board =
            |two_zones, groups| Board::Observed { nodes: 1, node_mib: 256, two_zones, reclaim: true, groups, cpus: 1 };
        let line = |two_zones| Machine::shown_command_line(board(two_zones, false));
        let grouped = Machine::shown_command_line(board(false, true));
        assert!(grouped.contains("cgroup.memory=nokmem,") && !grouped.contains("cgroup_disable"), "{grouped}");
        assert!(line(false).contains("below-4g=1G,") && line(false).contains("-m 1280M "), "{}", line(false));
        assert!(line(true).contains("below-4g=1152M,") && line(true).contains("id=node1,size=256M"), "{}", line(true));
        assert!(line(true).ends_with("cgroup_disable=memory nohz=off'"));
        let usual = Machine::shown_command_line(Board::USUAL);
        assert!(usual.contains("below-4g=1G,") && usual.contains("-m 3G ") && usual.contains("id=node1,size=2G"));
    }

    #[test]
    fn further_nodes_lie_behind_the_first_one_and_have_its_size() {
        let board = Board::Observed { nodes: 2, node_mib: 128, two_zones: true, reclaim: true, groups: false, cpus: 1 };
        let line = Machine::shown_command_line(board);
        for part in ["below-4g=1088M,", "-m 1280M ", "id=node2,size=128M ", "-numa node,nodeid=2,memdev=node2 "] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn several_cpus_take_turns_and_only_one_of_them_has_work_of_its_own() {
        let board =
            Board::Observed { nodes: 1, node_mib: 128, two_zones: false, reclaim: true, groups: false, cpus: 4 };
        let line = Machine::shown_command_line(board);
        for part in ["-accel tcg,thread=single", "-smp 4", "nodeid=0,cpus=0-3,", "nohz=off isolcpus=1-3'"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn a_guest_has_one_node_and_memory_that_is_not_the_kernels() {
        let line = Machine::shown_command_line(Board::Guest { memory_mib: 512, disks_mib: 2048, filled: false });
        assert!(line.contains("below-4g=512M,") && line.contains("-m 2560M ") && !line.contains("-numa"), "{line}");
        assert!(line.ends_with("cgroup_disable=memory memmap=2048M$4G'") && !line.contains("-device loader"), "{line}");
        let line = Machine::shown_command_line(Board::Guest { memory_mib: 620, disks_mib: 832, filled: true });
        assert!(line.contains("-device loader,file=disk,addr=0x100000000,force-raw=on "), "{line}");
    }

    #[test]
    fn a_comma_in_a_path_stays_in_it() {
        let at = |p: &str| PathBuf::from(p);
        let m = Machine {
            kernel: at("k"),
            initramfs: at("/a,b/i"),
            console: at("c"),
            results: at("/a,b/r"),
            disk: at("d"),
            board: Board::USUAL,
        };
        let arguments = m.arguments();
        assert!(arguments.contains(&"file,id=results,path=/a,,b/r".to_string()));
        assert!(arguments.contains(&"/a,,b/i".to_string()));
    }

    #[test]
    fn several_cpus_need_an_emulator_that_gives_each_a_turn() {
        let one = Board::USUAL;
        let two = Board::Observed { nodes: 1, node_mib: 128, two_zones: false, reclaim: true, groups: false, cpus: 2 };
        let suits = |version: &str, board| Qemu { version: version.into(), root: None }.suits(board);
        assert_eq!((suits("7.2.22", one), suits("8.1.0", two), suits("10.0.13", two)), (Ok(()), Ok(()), Ok(())));
        let refused = suits("7.2.22", two).expect_err("refused").to_string();
        assert!(refused.contains("QEMU 8.1 or later") && refused.contains("--qemu DIR"), "{refused}");
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
