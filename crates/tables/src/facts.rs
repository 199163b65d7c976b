//! Facts: what is known of a run before its results are read.

use kontig_lab::identity::Identity;
use kontig_lab::plan::RunPlan;
use kontig_mm::types::PAGE_SIZE;

/// A run's names and inputs, as far as the tables have them.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub identity: Identity,
    pub experiment: String,
    pub case: String,
    pub variant: String,
    pub machine: String,
    pub memory_bytes: u64,
    pub nodes: u64,
    pub cpus: u64,
    pub profile: String,
    pub switches: Vec<String>,
    /// The kernel's names, with the values as they were written.
    pub sysctls: Vec<(String, String)>,
    /// Parameters of the workload, by their whole names.
    pub parameters: Vec<(String, toml::Value)>,
    pub rounds: u64,
    pub seed: u64,
    /// The version of kontig.
    pub version: String,
}

impl Facts {
    pub fn new(plan: &RunPlan, identity: Identity, version: &str) -> Facts {
        let nodes = plan.machine.node_pages();
        Facts {
            identity,
            experiment: plan.experiment.clone(),
            case: plan.case.clone(),
            variant: plan.variant.name.clone(),
            machine: plan.machine.name.clone(),
            memory_bytes: nodes.iter().sum::<u64>() * PAGE_SIZE,
            nodes: nodes.len() as u64,
            cpus: plan.machine.cpus as u64,
            profile: plan.variant.profile.clone(),
            switches: plan.variant.switches.clone(),
            sysctls: plan.variant.sysctls_by_full_name().into_iter().collect(),
            parameters: plan.variant.with.clone().into_iter().collect(),
            rounds: u64::from(plan.rounds),
            seed: plan.seed,
            version: version.to_owned(),
        }
    }

    /// The run's place among others, wherever they are stored.
    pub fn place(&self) -> impl Ord + '_ {
        (&self.experiment, &self.case, &self.variant, &self.machine, self.seed, &self.identity)
    }
}
