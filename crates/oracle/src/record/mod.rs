//! Makes recordings: boots a Debian kernel under emulation and takes what it did out of it.
