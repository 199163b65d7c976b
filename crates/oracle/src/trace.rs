//! Traces: allocations and frees, in the form a kernel module carries them out and the engine replays them.
//!
//! A record is eight bytes, little-endian: `{u8 op, u8 order, u16 flags, u32 id}`. Requests are for the recorded node
//! alone and give up quietly; their flags ([`Request`]) say the migratetype and what more they may do. [`random`] and
//! [`targeted`] make traces; the same name and seed always make the same one. Those that reclaim has to do with have
//! operations of their own ([`lru`]), and are made in [`pressure`].

pub mod lru;
pub mod pressure;
pub mod prng;
pub mod random;
pub mod request;
pub mod script;
pub mod targeted;

use kontig_mm::Order;
use kontig_mm::types::MAX_ORDER;
pub use request::Request;
use std::fmt;

/// What `res.bin` holds for an allocation that failed.
pub const FAILED: u32 = 0xffff_ffff;
/// What `res.bin` holds for a free of what is not held, and for an allocation under a number that is.
pub const SKIPPED: u32 = 0xffff_fffe;

const ALLOC: u8 = 1;
const FREE: u8 = 2;
const RECORD: usize = 8;

/// The number an allocation is remembered under until it is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BlockId(pub u32);

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Allocate a block; skipped if the number is taken.
    Alloc {
        /// Its size.
        order: Order,
        /// Of which type, and how.
        request: Request,
        /// What it is remembered under.
        id: BlockId,
    },
    /// Free a block; skipped if its allocation failed.
    Free {
        /// Which.
        id: BlockId,
    },
}

impl Op {
    /// The block it is about.
    pub const fn id(&self) -> BlockId {
        match *self {
            Op::Alloc { id, .. } | Op::Free { id } => id,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Alloc { order, request, id } => {
                write!(f, "alloc of order {} as block {}, {request}", order.get(), id.0)
            }
            Op::Free { id } => write!(f, "free of block {}", id.0),
        }
    }
}

/// What is wrong with a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTrace {
    /// Which operation, if it is about one.
    pub op: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

/// Reads a trace.
///
/// # Errors
/// The first operation that no module could carry out.
pub fn decode(bytes: &[u8]) -> Result<Vec<Op>, BadTrace> {
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if !rest.is_empty() {
        let reason = format!("{} bytes: ends within operation {}, a record has {RECORD}", bytes.len(), records.len());
        return Err(BadTrace { op: None, reason });
    }
    let one =
        |(i, r): (usize, &[u8; RECORD])| record(r, records.len()).map_err(|reason| BadTrace { op: Some(i), reason });
    records.iter().enumerate().map(one).collect()
}

/// Reads one record of a trace of so many.
fn record(r: &[u8; RECORD], ops: usize) -> Result<Op, String> {
    let [code, order, f0, f1, i0, i1, i2, i3] = *r;
    let (flags, id) = (u16::from_le_bytes([f0, f1]), u32::from_le_bytes([i0, i1, i2, i3]));
    // A trace never holds more blocks than it has operations, so nobody needs a larger number.
    if id as usize >= ops {
        return Err(format!("block {id} is out of range in a trace of {ops} operations"));
    }
    let id = BlockId(id);
    match code {
        FREE => Ok(Op::Free { id }),
        ALLOC => {
            if order > MAX_ORDER.get() {
                return Err(format!("order {order} is above {}", MAX_ORDER.get()));
            }
            let request = Request::from_flags(flags).ok_or_else(|| format!("flags {flags:#x} are not all known"))?;
            if request.has(Request::OWNED) && order != 0 {
                return Err(format!("a block of order {order} cannot be made migratable, only a single page"));
            }
            Ok(Op::Alloc { order: Order::new(order), request, id })
        }
        _ => Err(format!("unknown operation code {code}")),
    }
}

/// Writes a trace.
pub fn encode(ops: &[Op]) -> Vec<u8> {
    ops.iter()
        .flat_map(|op| {
            let (code, order, flags, id) = match *op {
                Op::Alloc { order, request, id } => (ALLOC, order.get(), request.flags(), id),
                Op::Free { id } => (FREE, 0, 0, id),
            };
            let ([f0, f1], [i0, i1, i2, i3]) = (flags.to_le_bytes(), id.0.to_le_bytes());
            [code, order, f0, f1, i0, i1, i2, i3]
        })
        .collect()
}

/// A trace that can be generated.
pub struct Recipe {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, and which rule it is for.
    pub what: &'static str,
    /// How many operations it is meant to have.
    pub ops: usize,
    /// What has to be set before it.
    pub sysctls: &'static [(&'static str, &'static str)],
    make: fn(&mut script::Script),
}

/// The traces that can be generated.
pub fn recipes() -> impl Iterator<Item = &'static Recipe> {
    random::TRACES.iter().chain(targeted::TRACES)
}

/// Generates a trace of `ops` operations; `None` if nobody knows the name.
pub fn generate(name: &str, seed: u64, ops: usize) -> Option<Vec<Op>> {
    let recipe = recipes().find(|t| t.name == name)?;
    let mut script = script::Script::new(seed, ops);
    (recipe.make)(&mut script);
    Some(script.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_survives_a_round_trip() {
        for flags in (0..16384u16).filter(|f| f & 3 != 3 && f & 256 == 0) {
            let order = if flags & 32 != 0 { 0 } else { 9 };
            let [low, high] = flags.to_le_bytes();
            let bytes = [ALLOC, order, low, high, 0, 0, 0, 0, FREE, 0, 0, 0, 1, 0, 0, 0];
            let ops = decode(&bytes).expect("a possible trace");
            assert_eq!(encode(&ops), bytes, "flags {flags:#x}");
        }
    }

    #[test]
    fn what_no_module_could_do_is_refused_with_its_operation() {
        let refused = |bytes: &[u8]| decode(bytes).expect_err("refused");
        let says = |bytes: &[u8], what: &str| {
            let e = refused(bytes);
            assert!(e.op == Some(0) && e.reason.contains(what), "{e:?}");
        };
        says(&[3, 0, 0, 0, 0, 0, 0, 0], "unknown operation code 3");
        says(&[1, 11, 0, 0, 0, 0, 0, 0], "order 11");
        says(&[1, 0, 0, 1, 0, 0, 0, 0], "flags 0x100");
        says(&[1, 0, 3, 0, 0, 0, 0, 0], "flags 0x3");
        says(&[1, 1, 32, 0, 0, 0, 0, 0], "only a single page");
        says(&[2, 0, 0, 0, 1, 0, 0, 0], "block 1 is out of range");
        assert_eq!(refused(&[1, 0, 0]).op, None);
    }
}
