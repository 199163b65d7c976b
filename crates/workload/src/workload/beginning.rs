//! Workloads that begin in a state that a machine has from the start: a host's, or a drawn one.
//!
//! A workload that was written without a snapshot loses its tasks that fragment memory: the host is
//! fragmented already.

use super::{PREPARE, PhaseEntry, TaskEntry, Workload};
use crate::found::FoundState;
use crate::kind::Kind;
use crate::wrong::Wrong;

impl Workload {
    /// The state that a machine begins in, if it is not as after boot.
    pub fn beginning(&self) -> Option<&Kind> {
        let first = &self.phases.first()?.task.first()?.run;
        first.is_beginning().then_some(first)
    }

    /// The files that this state is read from.
    pub fn files_of_beginning(&mut self) -> Vec<&mut String> {
        let first = self.phases.first_mut().and_then(|phase| phase.task.first_mut());
        match first.map(|task| &mut task.run) {
            Some(Kind::Snapshot(found)) => vec![&mut found.file],
            Some(Kind::Proc(found)) => std::iter::once(&mut found.buddyinfo).chain(&mut found.pagetypeinfo).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether anything in it is random: if not, repetitions are identical.
    pub fn is_random(&self) -> bool {
        matches!(self.beginning(), Some(Kind::Proc(_) | Kind::Occupancy(_))) || self.scenario().is_random()
    }

    /// Begins with a snapshot in place of the tasks that fragment memory. Phases before the
    /// measurement that are left empty are dropped.
    pub fn begin_with_snapshot(&mut self, file: &str) {
        let prepares = |kind: &Kind| {
            kind.is_beginning() || matches!(kind, Kind::Fragment(_) | Kind::FragmentUnmovable(_) | Kind::Nothing {})
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

    /// Checks that a start state is alone in the first phase, and possible.
    pub(super) fn check_beginning(&self) -> Result<(), Wrong> {
        for (p, phase) in self.phases.iter().enumerate() {
            let Some(t) = phase.task.iter().position(|task| task.run.is_beginning()) else { continue };
            let wrong = |key: &str, reason: String| {
                Err(Wrong::at(&["phase", &p.to_string(), "task", &t.to_string(), "run", key], reason))
            };
            if p > 0 || phase.measured || phase.seconds.is_some() || phase.task.len() > 1 {
                let reason = "this is what a machine begins with: it stands alone in the first phase, \
                              which is not measured";
                return wrong("kind", reason.into());
            }
            let possible = match &phase.task[t].run {
                Kind::Occupancy(occupancy) => occupancy.check(),
                Kind::Proc(found) => found.check(),
                _ => Ok(()),
            };
            if let Err(reason) = possible {
                let key = Wrong::parameter(&reason).unwrap_or_default().to_owned();
                return wrong(&key, reason);
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
        let snapshot = Kind::Snapshot(FoundState { file: "a.snap".into() });
        assert_eq!((workload.beginning(), workload.validate()), (Some(&snapshot), Ok(())));
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
    fn a_state_that_is_drawn_differs_by_seed_and_a_snapshot_does_not() {
        let with = |prepare: &str| of(&format!("prepare = {{ {prepare} }}\nmeasure = {{ kind = 'compact' }}"));
        assert!(with("kind = 'occupancy', movable = [{ share = 100, pages = [0, 9] }]").is_random());
        assert!(with("kind = 'proc', buddyinfo = 'a.txt'").is_random());
        assert!(!with("kind = 'snapshot', file = 'a.snap'").is_random());
    }

    #[test]
    fn a_state_that_cannot_be_is_refused_with_its_place() {
        let text = "prepare = { kind = 'occupancy', movable = [] }\nmeasure = { kind = 'compact' }";
        let wrong = of(text).validate().expect_err("refused");
        assert_eq!(wrong.way, ["prepare", "movable"]);
        assert!(wrong.reason.contains("shares of 0 % in all"), "{wrong}");
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
