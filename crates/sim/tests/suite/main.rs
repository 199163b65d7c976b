//! The integration tests of `sim`, in one program: linking is what takes long.

mod access;
mod batches;
mod check;
mod cpus;
mod files;
mod fork;
mod found;
mod generations;
mod groups;
mod large_folios;
mod mapped_files;
mod migration;
mod numa;
mod oom;
mod processes;
mod shared_memory;
mod support;
mod swap;
mod thp;
mod threads;
mod time;
mod writing;
mod xfs;
