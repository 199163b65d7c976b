//! What the engine is told about pages that it reclaims or moves: they are of processes ([`anon`]) or of files ([`mod@file`]).

mod anon;
mod file;
mod pages;

pub(crate) use pages::Pages;
