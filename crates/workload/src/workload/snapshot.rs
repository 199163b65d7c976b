//! Workloads that begin with a snapshot of a host.
//!
//! A workload that was written without a snapshot loses its tasks that fragment memory: the host is
//! fragmented already.

use super::{PREPARE, PhaseEntry, TaskEntry, Workload};
use crate::found::FoundState;
use crate::kind::Kind;
use crate::wrong::Wrong;

impl Workload {
    /// The file of the snapshot that a machine begins with.
    pub fn snapshot(&self) -> Option<&str> {
        match &self.phases.first()?.task.first()?.run {
            Kind::Snapshot(found) => Some(&found.file),
            _ => None,
        }
    }

    /// The mutable form of [`Workload::snapshot`].
    pub fn snapshot_mut(&mut self) -> Option<&mut String> {
        match &mut self.phases.first_mut()?.task.first_mut()?.run {
            Kind::Snapshot(found) => Some(&mut found.file),
            _ => None,
        }
    }

    /// Begins with a snapshot in place of the tasks that fragment memory. Phases before the
    /// measurement that are left empty are dropped.
    pub fn begin_with_snapshot(&mut self, file: &str) {
        let prepares = |kind: &Kind| {
            matches!(kind, Kind::Fragment(_) | Kind::FragmentUnmovable(_) | Kind::Snapshot(_) | Kind::Nothing {})
        };
        let first = self.phases.iter().position(|phase| phase.measured).unwrap_or(self.phases.len());
        let measured = self.phases.split_off(first);
        for mut phase in std::mem::take(&mut self.phases) {
            phase.task.retain(|task| !prepares(&task.run));
            if !phase.task.is_empty() {
                self.phases.push(phase);
            }
        }
        let run = Kind::Snapshot(FoundState { file: file.into() });
        let (name, task) = (PREPARE.into(), vec![TaskEntry::plain(run)]);
        // Whatever else prepares keeps its phase.
        self.phases
            .iter_mut()
            .filter(|phase| phase.name == PREPARE)
            .for_each(|phase| phase.name = "work before".into());
        self.phases
            .insert(0, PhaseEntry { name, measured: false, seconds: None, stops: Vec::new(), kills: Vec::new(), task });
        self.phases.extend(measured);
    }

    /// Checks that a snapshot is alone in the first phase.
    pub(super) fn check_snapshot(&self) -> Result<(), Wrong> {
        for (p, phase) in self.phases.iter().enumerate() {
            let Some(t) = phase.task.iter().position(|task| matches!(task.run, Kind::Snapshot(_))) else { continue };
            if p > 0 || phase.measured || phase.seconds.is_some() || phase.task.len() > 1 {
                let reason = "a snapshot is what a machine begins with: it stands alone in the first phase, \
                              which is not measured";
                let way = ["phase", &p.to_string(), "task", &t.to_string(), "run", "kind"].map(String::from);
                return Err(Wrong { way: way.to_vec(), reason: reason.into() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Workload {
        toml::from_str(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_snapshot_is_named_in_place_of_a_preparation_and_does_nothing() {
        let text = "prepare = { kind = 'snapshot', file = 'a.snap' }\nmeasure = { kind = 'compact' }";
        let workload = of(text);
        assert_eq!((workload.snapshot(), workload.validate()), (Some("a.snap"), Ok(())));
        assert!(workload.scenario().phases[0].tasks.is_empty());
        assert_eq!(of(&toml::to_string(&workload).expect("it is written")), workload);
    }

    #[test]
    fn it_takes_the_place_of_what_fragments_memory_and_of_nothing_else() {
        let mut short =
            of("prepare = { kind = 'fragment', holes = 'last' }\nsettle_s = 3\nmeasure = { kind = 'compact' }");
        short.begin_with_snapshot("a.snap");
        assert_eq!(short, of("prepare = { kind = 'snapshot', file = 'a.snap' }\nmeasure = { kind = 'compact' }"));
        let churn = "[[phase.task]]\nbackground = true\nrun = { kind = 'churn', size = '1 MiB' }";
        let mut long = of(&format!(
            "[[phase]]\nname = 'prepare'\n[[phase.task]]\nrun = {{ kind = 'fragment', holes = 'last' }}\n{churn}\n\
             [[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\nrun = {{ kind = 'compact' }}"
        ));
        long.begin_with_snapshot("a.snap");
        assert_eq!(long.validate(), Ok(()));
        let tasks: Vec<(&str, usize)> = long.phases.iter().map(|p| (p.name.as_str(), p.task.len())).collect();
        assert_eq!(tasks, [("prepare", 1), ("work before", 1), ("measure", 1)]);
    }

    #[test]
    fn anywhere_else_it_is_refused_with_its_place() {
        let wrong = |text: &str| of(text).validate().expect_err("refused").way.join(".");
        assert_eq!(
            wrong("prepare = { kind = 'nothing' }\nmeasure = { kind = 'snapshot', file = 'a.snap' }"),
            "measure.kind"
        );
        let late = "[[phase]]\nname = 'a'\n[[phase]]\nname = 'b'\n[[phase.task]]\n\
                    run = { kind = 'snapshot', file = 'a' }\n\
                    [[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\nrun = { kind = 'compact' }";
        assert_eq!(wrong(late), "phase.1.task.0.run.kind");
    }
}
