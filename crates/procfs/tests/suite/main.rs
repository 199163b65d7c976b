//! The integration tests of `procfs`, in one program: linking is what takes long.

#[cfg(feature = "mm")]
mod from_mm;
mod random;
mod recorded;
