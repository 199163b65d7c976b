//! Snapshots of hosts that say nonsense, and files of snapshots that are damaged: what comes of
//! them is refused in a line, or is a consistent machine. Nothing panics, and no number is believed
//! that the others contradict.

use kontig_live::iomem::IoMem;
use kontig_live::need::Need;
use kontig_live::{Roots, Snapshot};
use proptest::prelude::*;
use std::fs;
use tempfile::TempDir;

const FRAMES: u64 = 2048;

/// Words as kernels show them, and some that none has shown.
fn word() -> impl Strategy<Value = u64> {
    let known =
        [0, 0x400, 0x408, 0x4_0000_5828, 0x6_0000_5008, 0x80, 0x10080, 0x8_0000_0028, 0x8_0000_0038, 0x400_0000];
    let compound =
        [0x1_8000, 0x2_0000, 0x1_0000, 0x8000, 0x2_5828 | 0x8000, 0x5828 | 0x1_0000, 0x1_0000_0000, 0x10_0000];
    prop_oneof![
        8 => prop::sample::select(known.to_vec()),
        4 => prop::sample::select(compound.to_vec()),
        1 => any::<u64>(),
    ]
}

/// Runs of frames with the same word.
fn words() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((word(), 1usize..300), 1..40).prop_map(|runs| {
        runs.into_iter().flat_map(|(word, n)| std::iter::repeat_n(word, n)).take(FRAMES as usize).collect()
    })
}

/// Sizes of a zone, mostly such as can be.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(FRAMES), 3 => 0..=FRAMES, 1 => 0..4 * FRAMES, 1 => any::<u64>()]
}

fn tree(words: &[u64], zone: [u64; 6], free: &[u64], types: Option<&[u64]>) -> (TempDir, Roots) {
    let tree = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(tree.path().join("sys/kernel")).expect("made");
    let write = |name: &str, text: &[u8]| fs::write(tree.path().join(name), text).expect("written");
    let [start, spanned, present, managed, low, cached] = zone;
    let zoneinfo = format!(
        "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n  pages free     \
            100\n        min      10\n        low      {low}\n        \
         high     150\n        spanned  {spanned}\n        present  {present}\n        managed  \
         {managed}\n        protection: (0)\n      \
         nr_free_pages 100\n  pagesets\n    cpu: 0\n              count: {cached}\n  node_unreclaimable:  \
         0\n  start_pfn:           {start}\n"
    );
    let columns: String = free.iter().map(|n| format!("{n:>6} ")).collect();
    write("zoneinfo", zoneinfo.as_bytes());
    write("buddyinfo", format!("Node 0, zone   Normal {columns}\n").as_bytes());
    if let Some(types) = types {
        let row: String = types.iter().map(|n| format!("{n:>12} ")).collect();
        let text = format!(
            "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0 \n\n\
             Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic \nNode 0, zone   Normal {row}\n"
        );
        write("pagetypeinfo", text.as_bytes());
    }
    write("vmstat", b"nr_foll_pin_acquired 5\nnr_foll_pin_released 9\n");
    write("iomem", b"00000000-007fffff : System RAM\n");
    write("sys/kernel/osrelease", b"6.12.9\n");
    write("kpageflags", &words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>());
    let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
    (tree, roots)
}

/// Everything that can be done with any snapshot.
fn is_consistent(snapshot: &Snapshot) -> Result<(), TestCaseError> {
    prop_assert!((0.0..=1.0).contains(&snapshot.agreement()), "{}", snapshot.agreement());
    for profile in ["6.1", "6.12"].map(kontig_profiles::linux) {
        for lru in [false, true] {
            let machines = [snapshot.machine(&profile, lru), snapshot.machine_of_pages(&profile, lru)];
            for machine in machines.into_iter().flatten() {
                machine.check().map_err(|e| TestCaseError::fail(e.to_string()))?;
            }
        }
    }
    Ok(())
}

/// A file of a snapshot with all that one has.
fn text() -> String {
    let header = concat!(
        r#"{"schema":"kontig.snapshot/1","host":{"kernel":"6.12.9","page_size":4096,"block_order":9,"cpus":2,"#,
        r#""pinned":0,"swap_pages":9,"sysctls":[["swappiness","60"],["thp.enabled","madvise"]]},"#,
        r#""zones":[{"node":0,"name":"DMA32","start":0,"spanned":1024,"present":1000,"managed":900,"#,
        r#""marks":[1,2,3,4],"boost":5,"protection":[6,7],"cached":3,"free":[0,0,0,0,0,0,0,0,0,0,0],"#,
        r#""blocks":null},{"node":0,"name":"Normal","start":1024,"spanned":2048,"present":2048,"managed":2000,"#,
        r#""marks":[20,25,30,35],"boost":0,"protection":[0,0],"cached":0,"free":[8,0,0,0,0,0,0,0,0,2,0],"#,
        r#""blocks":[1,2,1,0]}]}"#,
    );
    format!(
        "{header}\n0 M r8 x16 a100 f4^2 F372\n200 M a1^9\n400 U s3 u1 F508\n600 R s8^2 k4^3 t1 c1 F446\n800 M d512 *2\n"
    )
}

/// A change of one place.
fn damage() -> impl Strategy<Value = (usize, usize, String)> {
    (any::<prop::sample::Index>(), 0usize..6, "[ -~äF0-9^*\\n]{0,6}")
        .prop_map(|(at, gone, put)| (at.index(text().len()), gone, put))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_host_that_says_anything_is_refused_or_is_a_machine(
        words in words(),
        zone in [
            prop_oneof![4 => Just(0), 1 => 0..4 * FRAMES, 1 => any::<u64>()].boxed(),
            size().boxed(),
            size().boxed(),
            size().boxed(),
            (0..500u64).boxed(),
            (0..600u64).boxed(),
        ],
        free in prop::collection::vec(prop_oneof![5 => 0..9u64, 1 => any::<u64>()], 11),
        types in prop::option::of(prop::collection::vec(prop_oneof![5 => 0..6u64, 1 => any::<u64>()], 4)),
    ) {
        // Snapshots that would take more memory than the test has are left to the reading of zones.
        prop_assume!(zone[0].checked_add(zone[1]).is_none_or(|end| !(64 * FRAMES..=1 << 40).contains(&end)));
        let (_tree, roots) = tree(&words, zone, &free, types.as_deref());
        match Snapshot::take(&roots, 4096) {
            Err(e) => prop_assert_eq!(e.to_string().lines().count(), 1),
            Ok(snapshot) => {
                let again = Snapshot::parse(&snapshot.to_text());
                prop_assert_eq!(again.as_ref(), Ok(&snapshot));
                is_consistent(&snapshot)?;
            }
        }
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_line_or_is_another_snapshot((at, gone, put) in damage()) {
        let whole = text();
        let mut bytes = whole.clone().into_bytes();
        bytes.splice(at..(at + gone).min(whole.len()), put.bytes());
        let Ok(damaged) = String::from_utf8(bytes) else { return Ok(()) };
        match Snapshot::parse(&damaged) {
            Err(e) => {
                prop_assert!((1..=damaged.lines().count().max(1)).contains(&e.line), "{e}");
                prop_assert_eq!(e.to_string().lines().count(), 1);
            }
            Ok(snapshot) => {
                prop_assert_eq!(Snapshot::parse(&snapshot.to_text()), Ok(snapshot.clone()));
                is_consistent(&snapshot)?;
            }
        }
    }

    #[test]
    fn any_text_is_a_map_of_memory_or_refused(
        text in "([0-9a-f]{1,17}-[0-9a-f]{1,17} : (System RAM|Reserved)\n|[ -~]{0,20}\n){0,6}",
    ) {
        let tree = tempfile::tempdir().expect("a directory");
        fs::write(tree.path().join("iomem"), &text).expect("written");
        let roots = Roots { procfs: tree.path().into(), sysfs: tree.path().into() };
        if let Ok(io) = IoMem::read(&roots) {
            prop_assert!(io.frames(4096).all(|range| range.start < range.end));
        }
    }

    #[test]
    fn any_text_is_a_need_or_refused_in_a_line(
        text in prop_oneof![
            "[0-9]{0,21}x[0-9]{0,21}[KMGT]?(@[0-9a-z]{0,12})?(:(un)?movable)?",
            "[ -~|]{0,24}",
            "[0-9]{1,3}xorder[0-9]{1,11}",
        ],
        page_size in prop::sample::select(vec![4096u64, 16384, 65536]),
    ) {
        match Need::parse_ladder(&text, page_size) {
            Err(e) => prop_assert_eq!(e.lines().count(), 1),
            Ok(ladder) => for need in ladder {
                prop_assert_eq!(Need::parse_ladder(&need.text(page_size), page_size), Ok(vec![need]));
            }
        }
    }
}

#[test]
fn a_schema_with_a_line_break_in_its_name_is_refused_in_one_line() {
    let refused =
        Snapshot::parse(&text().replace("kontig.snapshot/1", r"kontig\nsnapshot")).expect_err("no such schema");
    assert!(refused.to_string().contains("kontig\\nsnapshot"), "{refused}");
    assert_eq!(refused.to_string().lines().count(), 1);
}

#[test]
fn the_file_that_is_damaged_here_is_whole() {
    let snapshot = Snapshot::parse(&text()).expect("it is a snapshot");
    is_consistent(&snapshot).expect("it is consistent");
    assert!(snapshot.machine_of_pages(&kontig_profiles::linux("6.12"), true).is_ok());
}
