//! The integration tests of `recorder`, in one program: linking is what takes long.

mod record;
