//! Answers to the engine's questions about pages that it reclaims or moves: anonymous ones
//! ([`anon`]) and those of files ([`mod@file`]).

mod anon;
mod around;
mod file;
mod groups;
mod pages;

pub(crate) use pages::Pages;
