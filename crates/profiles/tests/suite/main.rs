//! The integration tests of `profiles`, in one program: linking is what takes long.

mod rules;
