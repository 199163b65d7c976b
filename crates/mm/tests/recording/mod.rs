//! Reads a recording of a real kernel: the trace, its results, and the zone before and after.

use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{Gfp, Memory, Order, Profile, ZoneId};
use std::path::{Path, PathBuf};

/// One operation of a trace.
pub enum Op {
    /// Allocate and remember under `id`.
    Alloc { order: Order, gfp: Gfp, id: usize, movable_ops: bool },
    /// Free what `id` holds.
    Free { id: usize },
}

/// A recording, unpacked.
pub struct Recording {
    pub ops: Vec<Op>,
    /// What the kernel returned for each operation.
    pub results: Vec<u32>,
    /// The zone before, as text.
    pub before: String,
    /// The zone after, as text.
    pub after: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/golden")
}

fn unpack(path: PathBuf) -> Vec<u8> {
    let shown = path.display().to_string();
    let packed = std::fs::read(path).unwrap_or_else(|e| panic!("{shown}: {e}"));
    let mut out = Vec::new();
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut out).unwrap_or_else(|e| panic!("{shown}: {e:?}"));
    out
}

impl Recording {
    pub fn open(name: &str) -> Recording {
        let dir = folder().join(name);
        let text = |f: &str| String::from_utf8(unpack(dir.join(f))).expect("snapshots are text");
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("four bytes"));
        let trace = unpack(dir.join("trace.bin.xz"));
        let ops =
            trace.chunks_exact(8).map(|r| op(r[0], r[1], u16::from_le_bytes([r[2], r[3]]), word(&r[4..]))).collect();
        let results = unpack(dir.join("res.bin.xz")).chunks_exact(4).map(word).collect();
        let state = |f: &str| comparable(&ZoneSnapshot::parse(&text(f)).unwrap_or_else(|e| panic!("{name}/{f}: {e}")));
        Recording { ops, results, before: state("t0.snap.xz"), after: state("t1.snap.xz") }
    }

    /// A machine whose node 1 is in the recorded state.
    pub fn start(&self) -> Memory {
        let snapshot = ZoneSnapshot::parse(&self.before).expect("parsed before");
        snapshot.machine(Profile::linux_6_1()).expect("a machine of the recorded shape")
    }

    /// The zone of `m` in the recording's form.
    pub fn render(&self, m: &Memory) -> String {
        comparable(&ZoneSnapshot::of(m, ZoneId::new(1)))
    }
}

/// The part of a snapshot the engine has to reproduce, as text.
fn comparable(s: &ZoneSnapshot) -> String {
    s.to_string()
}

fn op(code: u8, order: u8, flags: u16, id: u32) -> Op {
    let id = id as usize;
    match code {
        1 => {
            let kind = match flags & 3 {
                0 => Gfp::NONE,
                1 => Gfp::RECLAIMABLE,
                _ => Gfp::MOVABLE,
            };
            assert_eq!(flags & !(3 | 32), 0, "this trace needs more than the fast path");
            let gfp = kind | Gfp::THISNODE | Gfp::NOWARN | Gfp::NORETRY | Gfp::NOMEMALLOC;
            Op::Alloc { order: Order::new(order), gfp, id, movable_ops: flags & 32 != 0 }
        }
        2 => Op::Free { id },
        _ => panic!("unknown operation {code}"),
    }
}
