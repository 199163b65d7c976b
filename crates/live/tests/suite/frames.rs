//! A look at every frame of recorded hosts of four kernels: what it says agrees with what the
//! kernel counts elsewhere.

use crate::common::{self, Tree};
use kontig_live::Snapshot;
use kontig_live::caller::Caller;
use kontig_live::check::{Check, Verdict};
use kontig_live::frame::State;
use kontig_live::iomem::IoMem;
use kontig_live::need::Need;
use kontig_live::process::folios;
use kontig_live::status::owners;
use kontig_procfs::Smaps;

/// The kernels of the hosts that were recorded with their frames.
const KERNELS: [&str; 4] = ["5.10", "6.1", "6.12", "7.2"];

fn snapshot(kernel: &str) -> (Tree, Snapshot) {
    let tree = Tree::with_frames(kernel);
    let snapshot = Snapshot::take(&tree.roots, 4096).unwrap_or_else(|e| panic!("{kernel}: {e}"));
    (tree, snapshot)
}

#[test]
fn every_recorded_host_is_listed() {
    let hosts = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/hosts")).expect("a folder");
    let names = hosts.map(|host| host.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned())).collect();
    let with_frames = KERNELS.map(|kernel| format!("frames-{kernel}"));
    let mut listed: Vec<String> = common::KERNELS.map(str::to_owned).into_iter().chain(with_frames).collect();
    names.sort();
    listed.sort();
    assert_eq!(names, listed);
}

#[test]
fn free_blocks_and_managed_pages_are_those_that_the_kernel_counts() {
    for kernel in KERNELS {
        let (_tree, snapshot) = snapshot(kernel);
        assert!(snapshot.host.kernel.starts_with(kernel), "{kernel}");
        assert!(snapshot.agreement() > 0.9, "{kernel}: {}", snapshot.agreement());
        for zone in &snapshot.zones {
            let census = snapshot.census(zone.frames());
            let apart = [State::Hole, State::NotManaged, State::Reserved].map(|state| census[state as usize]);
            let given = census.iter().sum::<u64>() - apart.iter().sum::<u64>();
            assert!(given.abs_diff(zone.managed) * 50 < zone.managed.max(50), "{kernel} {}: {given}", zone.title());
        }
    }
}

#[test]
fn pages_are_in_generations_where_the_host_has_them_on_and_the_engine_knows_them() {
    for kernel in KERNELS {
        let tree = Tree::with_frames(kernel);
        for (mask, on) in [("0x0000\n", false), ("0x0007\n", true)] {
            tree.write("sys/kernel/mm/lru_gen/enabled", mask);
            let snapshot = Snapshot::take(&tree.roots, 4096).unwrap_or_else(|e| panic!("{kernel}: {e}"));
            assert_eq!(snapshot.lru_gen(), if on { 7 } else { 0 });
            let profile = kontig_profiles::of_kernel(&snapshot.host.kernel).expect("a profile");
            let memory = snapshot.machine(&profile, true).expect("a machine");
            memory.check().expect("it is consistent");
            assert_eq!(memory.lru().has_generations(), on && ["6.12", "7.2"].contains(&kernel), "{kernel}");
        }
    }
}

#[test]
fn it_is_a_machine_of_the_engine_and_predicts() {
    for kernel in KERNELS {
        let (_tree, snapshot) = snapshot(kernel);
        let profile = kontig_profiles::of_kernel(&snapshot.host.kernel).expect("a profile");
        for lru in [false, true] {
            snapshot.machine(&profile, lru).expect("a machine").check().expect("it is consistent");
        }
        assert_eq!(Snapshot::parse(&snapshot.to_text()).expect("it was written just now"), snapshot);
        let verdict = |need: &str| {
            let ladder = Need::parse_ladder(need, 4096).expect("a need");
            Check::of_snapshot(&snapshot, &profile, &[ladder], &Caller::default(), |_| {}).verdict
        };
        assert_eq!((verdict("1xorder0"), verdict("100x2M")), (Verdict::Met, Verdict::NotReachable), "{kernel}");
    }
}

#[test]
fn owners_are_told_where_the_kernel_has_control_groups() {
    for kernel in KERNELS {
        let tree = Tree::with_frames(kernel);
        let of = owners::read(&tree.roots, 4096, 9).unwrap_or_else(|e| panic!("{kernel}: {e}"));
        assert!(of.shared_bytes.is_some(), "{kernel}");
        assert!(of.cgroups.is_some(), "{kernel}: Debian's kernels have them");
    }
}

#[test]
fn a_processes_folios_add_up_to_what_it_has_in_memory() {
    for kernel in KERNELS {
        let tree = Tree::with_frames(kernel);
        let smaps = Smaps::parse("smaps", &tree.read("proc/4242/smaps")).expect("understood");
        let of_size = folios::read(&tree.roots, 4242, &smaps, 4096).unwrap_or_else(|e| panic!("{kernel}: {e}"));
        let in_folios: u64 = of_size.iter().map(|of| of.resident_bytes).sum();
        let resident: u64 = smaps.mappings.iter().filter_map(|mapping| mapping.kb("Rss")).sum::<u64>() * 1024;
        // The pages of the kernel's own that every process has are in no count; the shell went on
        // between the two.
        assert!(in_folios.abs_diff(resident) <= 128 << 10, "{kernel}: {in_folios} of {resident}");
    }
}

#[test]
fn addresses_are_those_of_memory() {
    for kernel in KERNELS {
        let tree = Tree::with_frames(kernel);
        let frames: u64 =
            IoMem::read(&tree.roots).expect("read").frames(4096).map(|range| range.end - range.start).sum();
        assert!((50_000..=57_344).contains(&frames), "{kernel}: {frames}");
    }
}

#[test]
fn a_missing_file_is_told_from_a_broken_one() {
    let tree = Tree::with_frames("6.12");
    let taken = || Snapshot::take(&tree.roots, 4096);
    tree.write("proc/kpageflags", "nine bytes");
    assert!(taken().is_err_and(|e| e.to_string().ends_with("kpageflags: the file ends within a word of 8 bytes")));
    tree.write("proc/kpageflags", "");
    assert!(taken().is_err_and(|e| e.to_string().ends_with("kpageflags: it has no word for any frame")));
    tree.remove("proc/kpageflags");
    assert!(taken().is_err_and(|e| e.is_missing()));
    assert!(owners::read(&tree.roots, 4096, 9).is_err_and(|e| e.is_missing()));
}
