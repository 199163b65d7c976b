//! The multi-generational LRU: how pages join generations, are promoted, and come back.
//!
//! [`add`] puts pages on the lists and takes them off, [`uses`] counts their uses, [`refault`]
//! keeps their shadows. What evicts and ages them is reclaim's. Source: kernel-behaviour §4.10.

pub(crate) mod add;
mod refault;
pub(crate) mod uses;

use crate::rules::Generations;
use crate::state::Memory;
use alloc::string::String;

impl Memory {
    /// Switches the multi-generational LRU on (`lru_gen/enabled` 1: no walks of page tables). Says
    /// why not, if the kernel's is not known, or pages are on the LRU already.
    ///
    /// # Errors
    /// In one line.
    pub fn enable_lru_gen(&mut self) -> Result<(), String> {
        if self.shared.profile.lru_gen.generations == Generations::Unmodelled {
            return Err(alloc::format!("{} has no multi-generational LRU that is known", self.shared.profile.name));
        }
        let listed = |list: &crate::state::List| !list.is_empty();
        if !self.lru.is_ordered() || self.lru.vecs().iter().any(|vec| vec.lists.iter().any(listed)) {
            return Err("the multi-generational LRU begins with empty lists whose order is kept".into());
        }
        self.lru.keep_generations();
        Ok(())
    }
}
