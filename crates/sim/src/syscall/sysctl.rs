//! A write to a sysctl. `vm.compact_memory` compacts every node before it returns; `vm.drop_caches`
//! drops clean pages of files, unused objects, or both.

use super::truncate::DropCaches;
use crate::base::context::Context;
use crate::base::error::SimError;
use crate::base::wait::Wait;
use crate::kernel::Kernel;
use kontig_mm::kcompactd::NodeSweep;
use kontig_mm::sysctl::{Sysctl, SysctlEffect, SysctlError};
use kontig_mm::{NodeId, Step};
use kontig_program::Value;

#[derive(Clone)]
pub(crate) struct SysctlWrite {
    name: String,
    value: String,
    /// The node being compacted.
    sweep: Option<(NodeId, NodeSweep)>,
    drop_caches: Option<DropCaches>,
}

impl Kernel {
    /// Moves pages between lists and generations, if the write is to that switch: the swap cache
    /// decides which generation a page joins, and the engine does not know it otherwise.
    fn switch_lru_gen(&mut self, name: &str, value: &str) {
        let switch = Sysctl::find(name).filter(|sysctl| sysctl.name == "lru_gen.enabled");
        let Some(Ok(to)) = switch.map(|sysctl| sysctl.parse(self.mem.profile(), value)) else { return };
        let cached = self.pages.swap.iter().flat_map(|swap| swap.area.cached());
        self.mem.set_lru_gen(to > 0, cached);
        self.pages.spaces.mark_tables(to > 0);
    }
}

impl SysctlWrite {
    pub(crate) fn new(name: String, value: String) -> SysctlWrite {
        SysctlWrite { name, value, sweep: None, drop_caches: None }
    }

    pub(crate) fn step(&mut self, k: &mut Kernel, c: &mut Context) -> Result<Step<Value, Wait>, SimError> {
        if let Some(drop_caches) = &mut self.drop_caches {
            return Ok(drop_caches.step(k, c));
        }
        if self.name == "vm.drop_caches" {
            let wrong = SysctlError::Invalid { name: "vm.drop_caches", value: self.value.clone(), min: 1, max: 3 };
            self.drop_caches = Some(DropCaches::of_value(&self.value).ok_or(SimError::Sysctl(wrong))?);
            return Ok(Step::Working);
        }
        if self.sweep.is_some() {
            return Ok(self.compact(k, c));
        }
        k.switch_lru_gen(&self.name, &self.value);
        match k.mem.sysctl_write(&self.name, &self.value).map_err(SimError::Sysctl)? {
            SysctlEffect::None => {}
            SysctlEffect::WakeKcompactd => k.mem.trigger_proactive_compaction(),
            SysctlEffect::CompactMemory => {
                self.begin(NodeId::new(0), c);
                return Ok(Step::Working);
            }
        }
        Ok(Step::Done(Value::Unit))
    }

    fn begin(&mut self, node: NodeId, c: &Context) {
        self.sweep = Some((node, NodeSweep::new(node, c.cpu, false)));
    }

    fn compact(&mut self, k: &mut Kernel, c: &mut Context) -> Step<Value, Wait> {
        let Some((node, sweep)) = &mut self.sweep else { return Step::Done(Value::Unit) };
        let budget = k.budget(c);
        let (step, next) = (sweep.step(&mut k.mem, &mut k.pages, budget), node.index() + 1);
        k.charge(&mut c.now);
        match step {
            Step::Done(()) if next == k.mem.nodes().len() => Step::Done(Value::Unit),
            Step::Done(()) => {
                self.begin(NodeId::new(next), c);
                Step::Working
            }
            Step::Working => Step::Working,
            Step::Wait(wait) => Step::Wait(k.wait_for(wait)),
        }
    }
}
