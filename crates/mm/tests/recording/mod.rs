//! Reads a recording of a real kernel: the trace, its results, and the zone before and after.

pub mod files;

use files::{text, unpack, words};
use kontig_mm::snapshot::ZoneSnapshot;
use kontig_mm::{Gfp, Memory, Order, Profile, ZoneId};

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

impl Recording {
    pub fn open(name: &str) -> Recording {
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("four bytes"));
        let trace = unpack(name, "trace.bin");
        let ops =
            trace.chunks_exact(8).map(|r| op(r[0], r[1], u16::from_le_bytes([r[2], r[3]]), word(&r[4..]))).collect();
        let state =
            |f: &str| comparable(&ZoneSnapshot::parse(&text(name, f)).unwrap_or_else(|e| panic!("{name}/{f}: {e}")));
        Recording { ops, results: words(name, "res.bin"), before: state("t0.snap"), after: state("t1.snap") }
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
