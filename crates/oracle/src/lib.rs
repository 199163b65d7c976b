//! Kontig held against real kernels: recordings made under emulation, replayed by the engine operation by operation.

pub mod record;
