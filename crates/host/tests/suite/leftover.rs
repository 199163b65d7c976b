//! Messages before anything is done: about the journal of a killed run, unwritable files,
//! unavailable blocks, and numbers out of range.

use crate::common::frames::{FREE, SLAB, host};
use crate::common::{files, fragmented, of_host, streams};
use std::fs;

#[test]
fn a_journal_that_was_left_is_named_by_status_explain_and_the_plan() {
    let tree = fragmented();
    let limit = tree.path().join("proc/sys/vm/percpu_pagelist_high_fraction");
    fs::write(&limit, "2147483647\n").unwrap();
    let write = |file: &str, text: &str| fs::write(tree.path().join(file), text).unwrap();
    write(
        "proc/meminfo",
        "MemTotal: 65536 kB\nMemFree: 32768 kB\nKernelStack: 64 kB\nPageTables: 400 kB\nAnonPages: 32768 kB\n\
            Mapped: 4000 kB\n",
    );
    write(
        "proc/vmstat",
        "nr_free_pages 8192\nnr_page_table_pages 100\nnr_anon_pages 8192\nnr_mapped 1000\npgmigrate_success 0\n",
    );
    let journal = concat!(
        r#"{"schema":"kontig.journal/1","pid":1,"started":"never","#,
        r#""settings":[{"path":"proc/sys/vm/percpu_pagelist_high_fraction","was":"8"}]}"#,
    );
    fs::write(tree.path().join("j"), journal).unwrap();
    let commands = [
        (&["status"][..], 0),
        (&["explain"], 0),
        (&["prepare", "--need", "10x2M"], 4),
        (&["prepare", "--need", "1xorder0"], 0),
    ];
    for (command, code) in commands {
        let (text, _) = streams(&tree, &of_host(&[command, &["--journal", "j"]].concat()), code);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let names = "what it changed is not restored: proc/sys/vm/percpu_pagelist_high_fraction was 8 (journal j)";
        assert!(text.contains(names), "{command:?}: {text}");
        let (json, _) = streams(&tree, &of_host(&[command, &["--journal", "j", "--json"]].concat()), code);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["leftover"]["pid"], &json["leftover"]["at_work"]), (&1.into(), &false.into()), "{command:?}");
    }
    assert_eq!(fs::read_to_string(&limit).unwrap(), "2147483647\n", "it is named, and left alone");
    // The command that it names does restore the setting.
    streams(&tree, &of_host(&["prepare", "--need", "1xorder0", "--execute", "--journal", "j"]), 0);
    assert_eq!((fs::read_to_string(&limit).unwrap().trim(), tree.path().join("j").exists()), ("8", false));
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_done() {
    let tree = fragmented();
    fs::write(tree.path().join("file"), "").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(tree.path().join("pipe")).status().unwrap().success());
    let found = files(tree.path());
    let prepare = ["prepare", "--need", "10x2M", "--execute", "--journal"];
    let trial = ["trial", "--execute", "--gib", "0.004", "--more", "10", "--journal"];
    for (args, file, why) in [
        (
            &[&prepare[..], &["j", "--receipt", "none/r"]].concat()[..],
            "none/r",
            "there is no directory none: make it first",
        ),
        (&[&prepare[..], &["j", "--receipt", "file/r"]].concat(), "file/r", "file is no directory"),
        (&[&prepare[..], &["j", "--receipt", "proc"]].concat(), "proc", "Is a directory"),
        (&[&prepare[..], &["j", "--receipt", "pipe"]].concat(), "pipe", "this is no regular file"),
        (&[&prepare[..], &["none/j"]].concat(), "none/j", "there is no directory none: make it first"),
        (&[&prepare[..], &["proc"]].concat(), "proc", "is a directory"),
        (&[&trial[..], &["none/j"]].concat(), "none/j", "there is no directory none: make it first"),
        (&["snapshot", "none/s"], "none/s", "there is no directory none: make it first"),
    ] {
        let (text, error) = streams(&tree, &of_host(args), 1);
        assert!(error.contains(&format!("{file}: cannot be written: {why}")) && error.lines().count() == 1, "{error}");
        assert_eq!((text.as_str(), files(tree.path())), ("", found.clone()), "{args:?}");
    }
    let compact = fs::read_to_string(tree.path().join("sys/devices/system/node/node0/compact")).unwrap();
    assert_eq!(compact, "", "nothing was compacted");
}

#[test]
fn of_what_cannot_be_reached_nothing_would_be_done_and_it_is_said_why() {
    let tree = host(|pfn| if pfn % 512 == 7 { SLAB } else { FREE });
    let (text, _) = streams(&tree, &of_host(&["prepare", "--need", "10x2M"]), 6);
    assert!(text.contains("\nnothing would be done: no compaction reaches it"), "{text}");
    assert!(!text.contains("there is nothing to do"), "{text}");
    let (text, _) = streams(&host(|_| FREE), &of_host(&["prepare", "--need", "2x2M"]), 0);
    assert!(text.ends_with("=> met now\nthere is nothing to do\n"), "{text}");
}

#[test]
fn numbers_out_of_range_are_refused_with_the_option_and_the_range() {
    let tree = fragmented();
    let most = u32::MAX;
    for (args, option, range) in [
        (&["trial", "--tries"][..], "--tries <N>", format!("a whole number from 0 to {most}")),
        (&["trial", "--more"], "--more <N>", format!("a whole number from 1 to {most}")),
        (&["prepare", "--need", "1x2M", "--time"], "--time <TIME>", "a time of 1s or more".into()),
        (&["status", "--pid"], "--pid <PID>", format!("a whole number from 1 to {most}")),
        (&["status", "--interval"], "--interval <TIME>", "a time from 10ms to 1day".into()),
        (&["age", "--gib"], "--gib <N>", "a number of GiB from 0.001 to 65536".into()),
    ] {
        for number in ["0", "-1", ""].into_iter().filter(|number| *number != "0" || !range.contains("from 0 to")) {
            let (_, error) = streams(&tree, &[args, &[number]].concat(), 2);
            assert!(
                error.starts_with(&format!("error: invalid value '{number}' for '{option}': expected {range}")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_kernel_without_a_profile_is_told_its_neighbours() {
    let tree = fragmented();
    let (_, error) = streams(&tree, &of_host(&["check", "--need", "1x2M", "--profile", "6.18"]), 2);
    let known = kontig_profiles::names().collect::<Vec<_>>().join(", ");
    assert_eq!(error, format!("kontig: unknown profile '6.18': it is between 6.15 and 7.2; known: {known}\n"));
    // This program has no 'list'.
    let (_, error) = streams(&tree, &of_host(&["check", "--need", "1x2M", "--profile", "6.15-post"]), 2);
    assert_eq!(error, format!("kontig: unknown profile '6.15-post': did you mean '6.15-posted'? known: {known}\n"));
}
