//! The machine's proc files, as text in the kernel's formats.
