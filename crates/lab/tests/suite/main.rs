//! The integration tests of `lab`, in one program: linking is what takes long.

mod bases;
mod cases_and_rounds;
mod events;
mod figures;
mod fuzz_readers;
mod groups;
mod guest;
mod preparation;
mod reference;
mod repeated;
mod translation;
mod workloads;
