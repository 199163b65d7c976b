//! The integration tests of `live`, in one program: linking is what takes long.

mod common;
mod damage;
mod explain;
mod frames;
mod history;
mod process;
mod restorer;
mod status;
mod this_host;
