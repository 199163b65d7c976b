//! The integration tests of `workload`, in one program: linking is what takes long.

mod threads;
mod workloads;
