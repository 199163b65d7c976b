//! `kontig explain --simulate`: recommended settings, tried in the laboratory.

use crate::reproduce::run_session;
use kontig_error::Error;
use kontig_host::explain::Laboratory;
use kontig_lab::simulation::{RunSession, Simulation, simulate};
use kontig_live::Snapshot;
use kontig_live::cgroup::Limit;
use kontig_live::explain::Finding;
use kontig_report::table::{Figures, render};
use kontig_terminal::{columns, wrap};
use std::io::IsTerminal;

/// The laboratory that this program has, and `kontig-host` lacks.
pub struct OfThisProgram;

impl Laboratory for OfThisProgram {
    type Simulation = Simulation;

    fn simulate(&self, findings: &[Finding], snapshot: Snapshot, limit: Option<&Limit>) -> Result<Simulation, Error> {
        let run: RunSession<'_> = &|session| run_session(session, None, &|_| Ok(()));
        simulate(findings, snapshot, limit, run)
    }

    fn text(&self, s: &Simulation, width: usize) -> String {
        let mut text = wrap("\n", &s.said, 0, width);
        for not in &s.not_tried {
            text += &wrap("  ", &format!("{} was not tried: {}", not.name, not.why), 4, width);
        }
        match &s.table {
            None => text + "No rule recommends a setting that could be tried.\n",
            Some(table) => text + "\n" + &render(table, &Figures::Matter, columns(), std::io::stdout().is_terminal()),
        }
    }
}
