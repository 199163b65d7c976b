//! Source trees that a workload builds: where nothing lays a tree on the disk, a step unpacks or
//! copies it, or else the build reads files that are not there.

use crate::kbuild::Tree;
use crate::kind::Kind;
use crate::steps::{Do, Steps};
use crate::wrong::Wrong;

/// Trees that steps make, and those that builds need, each with the task and the key.
#[derive(Default)]
struct Trees {
    made: Vec<Tree>,
    needed: Vec<(Place, Tree)>,
}

/// The numbers of a phase and of its task, and a key of that.
type Place = (usize, usize, &'static str);

/// Checks what tasks do, each with the number of its phase and its own.
///
/// # Errors
/// The first build of a tree that no step makes.
pub(crate) fn check<'a>(tasks: impl Iterator<Item = (usize, usize, &'a Kind)>) -> Result<(), Wrong> {
    let mut trees = Trees::default();
    tasks.for_each(|(p, t, kind)| trees.of((p, t, "unpacked"), kind));
    let Trees { made, needed } = trees;
    let Some(((p, t, key), tree)) = needed.into_iter().find(|(_, tree)| !made.contains(tree)) else { return Ok(()) };
    let number = tree.number;
    let reason = format!(
        "unpacked = true: no step unpacks or copies tree {number} of this kernel: leave it out, and the tree lies on \
         the disk, or add {{ do = \"unpack-tree\", tree = {number} }}"
    );
    Err(Wrong::at(&["phase", &p.to_string(), "task", &t.to_string(), key], reason))
}

impl Trees {
    /// Adds those of a kind. A build that a step starts is looked for at the steps.
    fn of(&mut self, (p, t, key): Place, kind: &Kind) {
        match kind {
            Kind::Kbuild(build) if build.unpacked => {
                self.needed.push(((p, t, key), Tree { release: build.release, number: build.tree }));
            }
            Kind::Steps(steps) => self.of_steps((p, t, "steps"), steps),
            Kind::Processes(processes) => self.of_steps((p, t, "does"), &processes.does),
            _ => {}
        }
    }

    fn of_steps(&mut self, place: Place, steps: &Steps) {
        for step in &steps.steps {
            let number = match step.what {
                Do::UnpackTree => step.tree,
                Do::CopyTree => step.to.and_then(|to| u8::try_from(to).ok()),
                _ => None,
            };
            self.made.extend(number.map(|number| Tree { release: step.release, number }));
            if let Some(run) = &step.run {
                self.of(place, run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::WorkloadFile;

    fn refused(tasks: &str) -> Option<String> {
        let text = format!(
            "summary = 's'\nmachine = 'box-2g'\n[[phase]]\nname = 'measure'\nmeasured = true\n[[phase.task]]\n\
             copies = 1\n{tasks}"
        );
        let file: WorkloadFile = toml::from_str(&text).expect("a workload");
        file.workload.validate().err().map(|wrong| wrong.reason)
    }

    #[test]
    fn a_build_of_an_unpacked_tree_needs_a_step_that_unpacks_it() {
        let build = "run = { kind = 'kbuild', units = 9, jobs = 1, unpacked = true, tree = 2 }\n";
        let said = "unpacked = true: no step unpacks or copies tree 2";
        assert!(refused(build).is_some_and(|refused| refused.starts_with(said)));
        let beside = |step: &str| {
            let other = format!("run = {{ kind = 'steps', steps = [{step}] }}\n");
            refused(&format!("name = 'build'\n{build}[[phase.task]]\nname = 'tar'\ncopies = 1\n{other}"))
        };
        assert_eq!(beside("{ do = 'unpack-tree', tree = 2 }"), None);
        assert_eq!(beside("{ do = 'copy-tree', tree = 1, to = 2 }"), None);
        assert!(beside("{ do = 'unpack-tree', tree = 1 }").is_some(), "another tree");
        assert!(beside("{ do = 'unpack-tree', tree = 2, release = '3.0' }").is_some(), "another kernel's");
        assert_eq!(refused(&build.replace(", unpacked = true", "")), None, "a tree that lies on the disk");
    }

    #[test]
    fn a_build_that_a_step_starts_needs_its_tree_as_well() {
        let start = "{ do = 'start', run = { kind = 'kbuild', units = 9, jobs = 1, unpacked = true } }";
        let steps = |steps: &str| refused(&format!("run = {{ kind = 'steps', steps = [{steps}] }}\n"));
        assert!(steps(start).is_some_and(|said| said.contains("tree 0")));
        assert_eq!(steps(&format!("{{ do = 'unpack-tree', tree = 0 }}, {start}")), None);
    }
}
