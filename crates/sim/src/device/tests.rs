//! Every device performs as its machine file says, within two per cent.

use super::bio::Bio;
use super::block_device::Device;
use super::*;

fn entry(kind: Kind) -> DiskEntry {
    let flash = |value| (kind != Kind::Hdd).then_some(value);
    let platters = |value| (kind == Kind::Hdd).then_some(value);
    let nvme = kind == Kind::Nvme;
    DiskEntry {
        name: "disk".into(),
        kind,
        size: "256 GiB".into(),
        filesystem: Default::default(),
        queue_depth: if nvme { 64 } else { 32 },
        nr_requests: None,
        max_sectors_kb: None,
        read_mb_s: if nvme { 3500.0 } else { 550.0 },
        write_mb_s: if nvme { 2300.0 } else { 520.0 },
        read_us: flash(90.0),
        write_us: flash(30.0),
        read_iops: flash(if nvme { 480_000.0 } else { 95_000.0 }),
        write_iops: flash(if nvme { 400_000.0 } else { 85_000.0 }),
        rpm: platters(7200.0),
        seek_ms: platters(8.5),
        track_ms: platters(1.0),
        source: "a test".into(),
    }
}

fn device(kind: Kind) -> Device {
    let entry = DiskEntry { read_mb_s: if kind == Kind::Hdd { 150.0 } else { entry(kind).read_mb_s }, ..entry(kind) };
    Device::new(entry.parameters().expect("such a disk can be"), kontig_profiles::linux("6.1").block)
}

/// Keeps this many requests in flight; the number completed per second.
fn load(mut d: Device, depth: u32, mut next: impl FnMut() -> Bio) -> f64 {
    let seconds = if d.is_flash() { 1 } else { 40 };
    d.submit(0, (0..depth).map(|_| next()));
    let (mut through, mut done) = (0, Vec::new());
    while let Some(now) = d.next_completion().filter(|at| *at <= seconds * 1_000_000_000) {
        d.complete(now, &mut done);
        through += done.len();
        d.submit(now, done.drain(..).map(|_| next()));
    }
    through as f64 / seconds as f64
}

fn close(what: &str, got: f64, said: f64) {
    assert!((got / said - 1.0).abs() < 0.02, "{what}: {got:.0}, and {said:.0} was said");
}

/// Single blocks far apart, from a fixed sequence.
fn at_random(write: bool, blocks: u32) -> impl FnMut() -> Bio {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Bio { first: (((state >> 32) * u64::from(blocks)) >> 32) as u32, blocks: 1, write, tag: 0 }
    }
}

/// Consecutive runs of a megabyte.
fn in_order(write: bool) -> impl FnMut() -> Bio {
    let mut first = 0;
    move || {
        first += 256;
        Bio { first: first - 256, blocks: 256, write, tag: 0 }
    }
}

#[test]
fn long_runs_are_read_and_written_at_the_bandwidth() {
    for kind in [Kind::Nvme, Kind::Ssd, Kind::Hdd] {
        let d = device(kind);
        for (write, block_ps) in [(false, d.parameters.block_ps[0]), (true, d.parameters.block_ps[1])] {
            let mb_s = load(d.clone(), 4, in_order(write)) * 256.0 * 4096.0 / 1e6;
            close(&format!("{kind:?}, write {write}"), mb_s, 4096.0 * 1e6 / block_ps as f64);
        }
    }
}

#[test]
fn single_blocks_take_the_latency_alone_and_reach_the_rate_together() {
    for kind in [Kind::Nvme, Kind::Ssd] {
        let (d, e) = (device(kind), entry(kind));
        let said = [(false, e.read_us, e.read_iops), (true, e.write_us, e.write_iops)];
        for (write, alone, iops) in said {
            let each = |depth| load(d.clone(), depth, at_random(write, d.parameters.blocks));
            close(&format!("{kind:?}, one at a time, write {write}"), each(1), 1e6 / alone.expect("said"));
            close(&format!("{kind:?}, a full queue, write {write}"), each(e.queue_depth), iops.expect("said"));
        }
    }
}

#[test]
fn a_disk_seeks_and_waits_for_half_a_turn_and_orders_what_it_can() {
    let d = device(Kind::Hdd);
    let each = |depth| load(d.clone(), depth, at_random(false, d.parameters.blocks));
    let alone = 1e3 / (8.5 + 0.5 * 60e3 / 7200.0 + 4096.0 / 150e6 * 1e3);
    close("one at a time", each(1), alone);
    assert!(each(32) > 2.0 * alone, "{} with a full queue", each(32));
}

#[test]
fn no_request_waits_for_ever_while_others_are_nearer() {
    let mut d = device(Kind::Hdd);
    let far = Bio { first: d.parameters.blocks - 1, blocks: 1, write: false, tag: 1 };
    d.submit(0, [Bio { first: 0, blocks: 1, write: false, tag: 0 }, far]);
    let (mut done, mut near) = (Vec::new(), 0);
    while !done.contains(&far) {
        let now = d.next_completion().expect("it is at work");
        done.clear();
        d.complete(now, &mut done);
        near += 1;
        d.submit(now, [Bio { first: 2 * (near % 64), blocks: 1, write: false, tag: 2 }]);
        assert!(near < 1000, "the far one is never served");
    }
}

#[test]
fn adjacent_bios_complete_together() {
    let mut d = device(Kind::Hdd);
    d.submit(0, [Bio { first: 9, blocks: 1, write: true, tag: 0 }]);
    d.submit(10, (0..8).map(|i| Bio { first: 5000 + i, blocks: 1, write: true, tag: i }));
    let mut done = Vec::new();
    d.complete(d.next_completion().expect("the first"), &mut done);
    assert_eq!(done.len(), 1);
    d.complete(d.next_completion().expect("the rest"), &mut done);
    assert_eq!((done.len(), d.next_completion()), (9, None));
}

#[test]
fn impossible_disks_are_refused_with_the_key() {
    let wrong = |change: fn(&mut DiskEntry), kind| {
        let mut e = entry(kind);
        change(&mut e);
        e.parameters().expect_err("it cannot be")
    };
    let (key, said) = wrong(|e| e.read_mb_s = 0.0, Kind::Ssd);
    assert_eq!(key, "read_mb_s");
    assert!(said.starts_with("read_mb_s = 0:"), "{said}");
    assert_eq!(wrong(|e| e.read_us = None, Kind::Nvme).1, "read_us is missing");
    assert_eq!(wrong(|e| e.rpm = Some(1.0), Kind::Nvme).1, "rpm: a disk without platters has none");
    assert_eq!(wrong(|e| e.write_iops = Some(1.0), Kind::Hdd).1, "write_iops: a disk with platters has none");
    let said = wrong(|e| e.queue_depth = 1, Kind::Nvme).1;
    assert_eq!(said, "read_iops cannot be reached: 1 requests at once make 11111 a second");
    assert_eq!(wrong(|e| e.size = "lots".into(), Kind::Hdd).0, "size");
}
