//! The integration tests of `report`, in one program: linking is what takes long.

mod common;
mod pace;
mod page;
mod table;
