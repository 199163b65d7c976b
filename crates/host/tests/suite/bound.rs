//! `kontig bound`, on a host made of files and on snapshots of it.

use crate::common::frames::{ANON, FREE, SLAB, host};
use crate::common::{of_host, streams};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// 32 blocks: eight free, eight with a page of slab, eight with few users' pages, eight half full
/// of them.
fn mixed() -> TempDir {
    host(|pfn| match (pfn / 512 / 8, pfn % 512) {
        (0, _) => FREE,
        (1, 0) => SLAB,
        (2, 0..10) => ANON,
        (3, n) if n % 2 == 0 => ANON,
        _ => FREE,
    })
}

/// The text before it was wrapped.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_fewest_moves_stand_beside_those_of_compaction() {
    let tree = mixed();
    let (json, _) = streams(&tree, &of_host(&["bound", "--more", "9", "--json"]), 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "kontig.bound/2");
    let counts =
        ["blocks", "free", "emptiable", "poisoned", "never"].map(|name| json["counts"][name].as_u64().unwrap());
    assert_eq!(counts, [32, 8, 16, 8, 0]);
    assert_eq!(json["ranges"][0]["emptiable"], 16);
    assert_eq!(json["ranges"][0].get("more_at_most"), None, "a range alone has no such number");
    let gain = &json["gains"][0];
    assert_eq!(gain["fewest_moves"], 8 * 10 + 256);
    assert!(gain["compaction"]["pages_moved"].as_u64().unwrap() >= 336, "{gain}");
    let placement = &json["placement"];
    assert_eq!((&placement["staying_pages"], &placement["least"]), (&8.into(), &1.into()));
    let (text, _) = streams(&tree, &of_host(&["bound", "--map"]), 0);
    assert!(text.ends_with("  .#--\n"), "eight blocks to a place: {text}");
    assert!(one_line(&text).contains("perfect placement would save 7"), "{text}");
}

#[test]
fn a_snapshot_is_as_good_as_the_host() {
    let tree = mixed();
    streams(&tree, &of_host(&["snapshot", "host.snap"]), 0);
    let of_file = streams(&tree, &["bound", "--snapshot", "host.snap", "--json"], 0).0;
    assert_eq!(of_file, streams(&tree, &of_host(&["bound", "--json"]), 0).0);
}

#[test]
fn free_pages_on_cpus_lists_are_told_where_they_are_many() {
    let tree = mixed();
    let (none, _) = streams(&tree, &of_host(&["bound"]), 0);
    assert!(!none.contains("CPUs' lists"), "{none}");
    // Two of the free blocks, as they look on a CPU's lists: no flag.
    let flags = fs::read(tree.path().join("proc/kpageflags")).unwrap();
    fs::write(tree.path().join("proc/kpageflags"), [vec![0; 8 * 1024], flags[8 * 1024..].to_vec()].concat()).unwrap();
    let zoneinfo = fs::read_to_string(tree.path().join("proc/zoneinfo")).unwrap();
    fs::write(tree.path().join("proc/zoneinfo"), zoneinfo.replace("count: 0", "count: 1024")).unwrap();
    let (json, _) = streams(&tree, &of_host(&["bound", "--json"]), 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["on_cpus_lists"]["pages"], 1024, "{json}");
    fs::write(tree.path().join("proc/meminfo"), "MemTotal: 65536 kB\nMemFree: 57000 kB\n").unwrap();
    for args in [&["bound"][..], &["status", "--frames", "--block", "2M"]] {
        let text = one_line(&streams(&tree, &of_host(args), 0).0);
        assert!(text.contains("1,024 free pages (4 MiB, "), "{text}");
        assert!(text.contains("lie on CPUs' lists, where compaction neither finds nor joins them"), "{text}");
    }
}

#[test]
fn status_and_check_say_the_number_that_matters() {
    let tree = mixed();
    fs::write(tree.path().join("proc/meminfo"), "MemTotal: 65536 kB\nMemFree: 57000 kB\n").unwrap();
    let (text, _) = streams(&tree, &of_host(&["status", "--frames", "--block", "2M"]), 0);
    let text = one_line(&text);
    // All free pages outside free blocks: 8 · 511, 8 · 502 and 8 · 256, which is 19 blocks.
    assert!(text.contains("16 more blocks of 2 MiB can be made at most, for 2,128 page moves at least"), "{text}");
    assert!(text.contains("poison 8 blocks, of which perfect placement would save 7"), "{text}");
    let (text, _) = streams(&tree, &of_host(&["check", "--need", "17x2M"]), 4);
    let text = one_line(&text);
    assert!(text.contains("the fewest page moves for the 9 that are lacking, however they are chosen: 336"), "{text}");
}

#[test]
fn a_mistake_is_one_line_and_exit_code_2() {
    let tree = mixed();
    fs::write(tree.path().join("bad.snap"), "no snapshot\n").unwrap();
    let cases = [
        (&["bound", "--snapshot", "bad.snap"][..], "bad.snap:1: no header of a snapshot"),
        (&["bound", "--snapshot", "none.snap"], "none.snap"),
        (&["bound", "--block", "4K"], "--block: a single page needs no other to be moved"),
        (&["bound", "--block", "3M"], "--block: 3M is no power of two times the page of 4 KiB"),
        (&["bound", "--node", "7"], "--node: node 7 has no memory; nodes with memory: 0"),
    ];
    for (args, why) in cases {
        let args = if args[1] == "--snapshot" { args.to_vec() } else { of_host(args) };
        let (_, error) = streams(&tree, &args, 2);
        assert!(error.contains(why) && error.lines().count() == 1, "{args:?}: {error}");
    }
}
