//! A TOML file together with what it takes over from its base.
//!
//! `base = "NAME"` starts a machine, workload, experiment or target from another of its kind: what
//! the file does not say is its base's. `costs` of a machine and `workload` of an experiment or a
//! case may have a base of their own, or be nothing but its name. Tables are merged key by key.
//! Zones, disks, phases, tasks and published rows are merged with the base's that have the same
//! name (a zone: the same node and kind). Other lists are replaced as a whole. A file that says
//! what its base says already is refused, so that a figure stands once.
//!
//! Two short forms are expanded here: `each` of a task, and the figures of a target's `columns`.
//! The sysctls of an experiment's workload become those of its cases or variants.
//!
//! Values keep their place in the file; inherited ones have the place of the name they came by.

mod base;
mod columns;
mod each;
mod file;
mod sysctls;
mod value;

pub use file::Source;

use crate::built_in::Form;
use base::Part;
use columns::choose_columns;
use each::expand_tasks;
use kontig_error::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use value::{Wrong, tables_mut};

impl Source {
    /// Hands over the whole document: with what its bases say, and short forms expanded.
    pub(crate) fn with_document<R>(&self, read: impl FnOnce(Spanned<DeTable<'_>>) -> R) -> Result<R, Error> {
        if self.text.trim().is_empty() {
            return Err(self.malformed(0, "there is nothing in it"));
        }
        let bases = self.bases(&mut Vec::new())?;
        let mut document = self.merged(&bases)?;
        let has_base = bases.iter().any(|base| base.part == Part::Whole);
        self.expand(document.get_mut(), has_base).map_err(|(at, reason)| self.malformed(at, reason))?;
        Ok(read(document))
    }

    /// Writes the short forms out.
    fn expand(&self, document: &mut DeTable<'_>, has_base: bool) -> Result<(), Wrong> {
        match self.form {
            Form::Machine => Ok(()),
            Form::Workload => expand_tasks(document),
            Form::Experiment => {
                sysctls::hand_on(document)?;
                let of = |table: &mut DeTable<'_>| match table.get_mut("workload").map(Spanned::get_mut) {
                    Some(DeValue::Table(workload)) => expand_tasks(workload),
                    _ => Ok(()),
                };
                of(document)?;
                tables_mut(document, "case").try_for_each(of)
            }
            Form::Target => choose_columns(document, has_base),
        }
    }
}
