//! Traces of allocations and frees, in the form that the kernel module and the engine execute.
//!
//! A record is eight bytes, little-endian: `{u8 op, u8 order, u16 flags, u32 id}`. Requests are for
//! the recorded node alone and fail without a warning; their flags ([`Request`]) hold the
//! migratetype and further rights. [`random`] and [`targeted`] generate traces; a name and seed
//! always give the same one. Traces under memory pressure have operations of their own ([`lru`])
//! and are generated in [`pressure`].

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

/// Result in `res.bin` of an allocation that failed.
pub const FAILED: u32 = 0xffff_ffff;
/// Result in `res.bin` of a free of an id not held, and of an allocation under an id held already.
pub const SKIPPED: u32 = 0xffff_fffe;

const ALLOC: u8 = 1;
const FREE: u8 = 2;
const RECORD: usize = 8;

/// Id of a block until it is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BlockId(pub u32);

/// An operation of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Allocates a block; skipped if the id is held.
    Alloc { order: Order, request: Request, id: BlockId },
    /// Frees a block; skipped if its allocation failed.
    Free { id: BlockId },
}

impl Op {
    /// Id of the block that it allocates or frees.
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

/// An error in a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTrace {
    /// Number of the operation, if the error is in one.
    pub op: Option<usize>,
    pub reason: String,
}

/// Parses a trace.
///
/// # Errors
/// The first operation that the module could not carry out.
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

/// Parses one record of a trace of `ops` operations.
fn record(r: &[u8; RECORD], ops: usize) -> Result<Op, String> {
    let [code, order, f0, f1, i0, i1, i2, i3] = *r;
    let (flags, id) = (u16::from_le_bytes([f0, f1]), u32::from_le_bytes([i0, i1, i2, i3]));
    // A trace never holds more blocks than it has operations, so it needs no larger id.
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

/// Encodes a trace as records.
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
    /// Name on the command line.
    pub name: &'static str,
    /// Description: operations, then the rule they exercise.
    pub what: &'static str,
    /// Default number of operations.
    pub ops: usize,
    /// Sysctls to set before it.
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
    fn operations_that_no_module_could_do_are_refused() {
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
