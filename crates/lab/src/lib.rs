//! Kontig's laboratory: experiments, their runs, and how they compare with what was published.

pub mod result;
