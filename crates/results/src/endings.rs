//! Endings of a run: the tasks that a rule of the workload stopped before their work was done.
//!
//! In JSON `null` stands for none, an object for one, a list for several.

use kontig_program::Ending;
use serde::{Deserialize, Serialize};

/// The endings, in the order of the tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(from = "Written", into = "Written")]
pub struct Endings(pub Vec<Ending>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    None(()),
    One(Ending),
    Several(Vec<Ending>),
}

impl From<Written> for Endings {
    fn from(written: Written) -> Endings {
        Endings(match written {
            Written::None(()) => Vec::new(),
            Written::One(ending) => vec![ending],
            Written::Several(endings) => endings,
        })
    }
}

impl From<Endings> for Written {
    fn from(Endings(mut endings): Endings) -> Written {
        match endings.len() {
            0 => Written::None(()),
            1 => Written::One(endings.remove(0)),
            _ => Written::Several(endings),
        }
    }
}
