//! A history's file gives back what was written, as far as it is whole: cut off anywhere, damaged
//! in the middle, or continued behind a part of a sample.

use crate::common::{KERNELS, Tree};
use kontig_live::history::file::Damage;
use kontig_live::history::{At, Collector, History, Item, Period, Sample, Stored, Writer};
use kontig_live::{Host, Status};
use std::path::Path;

/// Samples of a small host whose counters and lists go on.
fn samples(count: i64) -> Vec<Sample> {
    let sample = |i: i64| {
        let text = |text: String| Stored::Text(text.into());
        let vmstat = (0..40).map(|name| format!("counter_{name} {}\n", 1000 * name + i * (name % 7))).collect();
        let files = [
            ("proc/vmstat".into(), text(vmstat)),
            ("proc/uptime".into(), text(format!("{}.25 7.00\n", 100 + 10 * i))),
            ("proc/buddyinfo".into(), text(format!("Node 0, zone   Normal {:>6} {:>6} \n", 90 + i, 1200 - i))),
            ("proc/sys/kernel/random/boot_id".into(), text("aaaa-bbbb\n".into())),
            ("proc/slabinfo".into(), Stored::NoPermission),
        ];
        Sample { unix_ms: 1_795_700_000_000 + 10_000 * i, files: files.into_iter().collect() }
    };
    (0..count).map(sample).collect()
}

fn write(path: &Path, samples: &[Sample]) {
    let mut writer = Writer::append(path).expect("a new file");
    for sample in samples {
        writer.sample(sample).expect("there is room");
    }
}

fn read(path: &Path) -> (Vec<Sample>, Damage) {
    let history = History::open(path).expect("a history");
    let mut items = history.items();
    let samples = items.by_ref().filter_map(|item| match item {
        Item::Sample(sample) => Some(sample),
        Item::Snapshot(..) => None,
    });
    (samples.collect(), items.damage())
}

#[test]
fn cut_off_at_any_byte_it_has_all_samples_that_are_whole_and_goes_on_behind_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    let all = samples(6);
    write(&path, &all);
    let bytes = std::fs::read(&path).expect("written");
    // Where each sample ends, as the file is when it has just been written.
    let ends: Vec<usize> = (1..=all.len())
        .map(|n| {
            let part = dir.path().join(n.to_string());
            write(&part, &all[..n]);
            std::fs::read(&part).expect("written").len()
        })
        .collect();
    assert_eq!(ends.last(), Some(&bytes.len()));
    for len in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..len]).expect("written");
        let whole = ends.iter().filter(|end| **end <= len).count();
        let later = samples(8).split_off(7);
        write(&cut, &later);
        let (found, damage) = read(&cut);
        assert_eq!(found, [&all[..whole], &later].concat(), "cut off behind {len} bytes");
        let part = len - ends.iter().rfind(|end| **end <= len).copied().unwrap_or(len.min(17));
        assert_eq!(damage, Damage { bytes: part as u64, samples: 0 }, "cut off behind {len} bytes");
    }
}

#[test]
fn where_only_differences_are_left_the_damage_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, path) = (dir.path().join("one"), dir.path().join("all"));
    let all = samples(6);
    write(&one, &all[..1]);
    write(&path, &all);
    let mut bytes = std::fs::read(&path).expect("written");
    let first = std::fs::read(&one).expect("written").len();
    bytes[first - 1] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let history = History::open(&path).expect("a history");
    let said = [
        history.span().expect_err("no sample").to_string(),
        history.moment(At::Last).expect_err("no sample").to_string(),
        Period::of(&history, At::First, At::Last).expect_err("no sample").to_string(),
    ];
    for said in said {
        assert!(said.contains("no sample can be read: ") && said.contains(" and 5 samples that build on"), "{said}");
    }
}

#[test]
fn damage_in_the_middle_costs_no_more_than_the_samples_up_to_the_next_that_stands_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("h");
    let all = samples(150);
    write(&path, &all);
    let mut bytes = std::fs::read(&path).expect("written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&path, bytes).expect("written");
    let (found, damage) = read(&path);
    assert!(found.len() >= 150 - 61 && found.len() < 150, "{} are left", found.len());
    assert_eq!(found.len() as u64 + damage.samples + 1, 150, "one is damaged, those that build on it are counted");
    assert!(found.iter().all(|sample| all.contains(sample)));
}

#[test]
fn a_second_writer_is_refused_while_the_first_writes_and_appends_afterwards() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("h");
    let all = samples(4);
    let mut first = Writer::append(&path).expect("a new file");
    first.sample(&all[0]).expect("there is room");
    let refused = Writer::append(&path).expect_err("the first one writes").to_string();
    assert!(refused.contains("another 'kontig history record' writes it"), "{refused}");
    drop(first);
    write(&path, &all[1..]);
    assert_eq!(read(&path), (all, Damage::default()));
}

#[test]
fn another_file_is_neither_read_nor_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notes.txt");
    std::fs::write(&path, "my notes\n").expect("written");
    for said in [
        History::open(&path).expect_err("no history").to_string(),
        Writer::append(&path).expect_err("no history").to_string(),
        Writer::append(dir.path()).expect_err("a directory").to_string(),
        Writer::append(Path::new("/dev/null")).expect_err("a device").to_string(),
    ] {
        assert!(said.contains("this is no history"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "my notes\n");
}

#[test]
fn a_moment_is_read_as_the_host_was() {
    for kernel in KERNELS {
        let host = Tree::of(kernel);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        let sample = Collector::of(host.roots.clone(), 10.0).take();
        write(&path, std::slice::from_ref(&sample));
        let moment = History::open(&path).and_then(|h| h.moment(At::Last)).expect("one sample");
        assert_eq!(moment.sample, sample, "{kernel}");
        let tree = kontig_live::history::Tree::of(moment.sample).expect("there is room");
        let (then, now) = (tree.status(None, None), Status::of(&Host::read(&host.roots), None, None));
        let (then, now) = (then.expect("all is there"), now.expect("all is there"));
        assert_eq!((then.nodes, then.events, then.settings), (now.nodes, now.events, now.settings), "{kernel}");
        assert_eq!((then.pools, then.caches, then.page_bytes), (now.pools, now.caches, now.page_bytes), "{kernel}");
        assert!(then.not_read.iter().all(|n| n.path.starts_with("/proc") || n.path.starts_with("/sys")), "{kernel}");
    }
}

#[test]
fn an_unreadable_file_is_named_as_the_file_of_the_host() {
    let host = Tree::of("6.12");
    let mut sample = Collector::of(host.roots.clone(), 10.0).take();
    sample.files.insert("proc/slabinfo".into(), Stored::NoPermission);
    sample.files.remove("proc/pressure/memory");
    let tree = kontig_live::history::Tree::of(sample).expect("there is room");
    let status = tree.status(None, None).expect("the lists are there");
    let why = |path: &str| status.not_read.iter().find(|n| n.path == path).map(|n| (n.why, n.text.as_str()));
    let said = "/proc/slabinfo: its recorder had no permission to read it";
    assert_eq!(why("/proc/slabinfo"), Some(("no permission", said)));
    assert_eq!(why("/proc/pressure/memory"), Some(("missing", "/proc/pressure/memory: it is not in the history")));
}

#[test]
fn a_moment_before_the_first_sample_or_behind_the_last_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("h");
    write(&path, &samples(3));
    let history = History::open(&path).expect("a history");
    let moment = |text: &str| history.moment(At::parse(text).expect(text));
    assert_eq!(moment("-15s").map(|m| (m.sample.unix_ms, m.behind_ms)).ok(), Some((1_795_700_000_000, 5_000)));
    for (text, why) in [("-1h", "it begins at 2026-11-26"), ("2027-01-01 00:00", "before 2027-01-01 00:00:00")] {
        let said = moment(text).expect_err(text).to_string();
        assert!(said.contains(why), "{said}");
    }
}
