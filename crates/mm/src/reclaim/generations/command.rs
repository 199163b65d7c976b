//! The commands that the kernel takes in its file `lru_gen`: to age, and to evict.
//!
//! Source: kernel-behaviour §4.10.6, §4.10.9.

use super::MAX_LRU_BATCH;
use crate::gfp::Gfp;
use crate::owner::Owner;
use crate::reclaim::control::ScanControl;
use crate::state::{MAX_NR_GENS, MIN_NR_GENS, Memory};
use crate::types::{CpuId, LruvecId, Order, ZoneType};

/// The reason why a command is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No such generation, or one that is too young (`EINVAL`).
    Invalid,
    /// There are four generations already (`ERANGE`).
    Full,
    /// None began, since page tables were walked for it before (`EEXIST`).
    Exists,
}

impl Memory {
    fn for_command(&self, cpu: CpuId, lruvec: LruvecId) -> ScanControl {
        let mut sc = ScanControl::new(cpu, Gfp::KERNEL, Order::ZERO, ZoneType::Device);
        sc.priority = 0;
        sc.nr_to_reclaim = 0;
        sc.proactive = true;
        sc.promoted = Some(Default::default());
        let for_group = self.groups.are_kept() && self.shared.profile.lru_gen.by_all_tiers();
        sc.target = for_group.then(|| self.groups.group_of(lruvec));
        sc
    }

    /// Has the generation after `seq` begin; also as a fifth, if forced.
    ///
    /// # Errors
    /// As the kernel refuses it.
    pub fn lru_gen_age<O: Owner>(
        &mut self,
        owner: &mut O,
        cpu: CpuId,
        lruvec: LruvecId,
        seq: u64,
        swappiness: Option<u8>,
        force: bool,
    ) -> Result<(), Refused> {
        let mut sc = self.for_command(cpu, lruvec);
        let can_swap = swappiness.map_or_else(|| self.gen_swappiness(&sc), u64::from) > 0;
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        let gens = self.lru.gens(lruvec);
        if by_all_tiers && seq <= gens.max_seq {
            let seq = gens.max_seq;
            let begun = self.try_to_inc_max_seq(owner, &mut sc, lruvec, seq, can_swap, force);
            return if begun { Ok(()) } else { Err(Refused::Exists) };
        }
        if seq < gens.max_seq {
            return Ok(());
        }
        if seq > gens.max_seq {
            return Err(Refused::Invalid);
        }
        if !force && gens.nr_gens(usize::from(!can_swap)) >= MAX_NR_GENS as u64 {
            return Err(Refused::Full);
        }
        self.try_to_inc_max_seq(owner, &mut sc, lruvec, seq, can_swap, force);
        Ok(())
    }

    /// Evicts generations up to `seq` until this number of pages is reclaimed.
    ///
    /// # Errors
    /// As the kernel refuses it.
    pub fn lru_gen_evict<O: Owner>(
        &mut self,
        owner: &mut O,
        cpu: CpuId,
        lruvec: LruvecId,
        seq: u64,
        swappiness: Option<u8>,
        pages: u64,
    ) -> Result<(), Refused> {
        let mut sc = self.for_command(cpu, lruvec);
        let swappiness = swappiness.map_or_else(|| self.gen_swappiness(&sc), u64::from);
        if seq + MIN_NR_GENS > self.lru.gens(lruvec).max_seq {
            return Err(Refused::Invalid);
        }
        let by_all_tiers = self.shared.profile.lru_gen.by_all_tiers();
        loop {
            let oldest = match by_all_tiers {
                true => self.evictable_min_seq(lruvec, swappiness > 0),
                false => self.lru.gens(lruvec).min_seq[usize::from(swappiness == 0)],
            };
            let left = pages.saturating_sub(sc.nr_reclaimed);
            if seq < oldest || left == 0 {
                break;
            }
            let batch = if by_all_tiers { left.min(MAX_LRU_BATCH) } else { MAX_LRU_BATCH };
            if self.evict_folios(owner, lruvec, swappiness, batch, &mut sc) == 0 {
                break;
            }
            self.offer_cpu(owner);
        }
        Ok(())
    }
}
