//! The trace of `kontig status --stalls`: it is removed however the command ends, unless it is
//! killed.

use kontig_live::Roots;
use kontig_live::stalls::Stalls;
use kontig_live::stalls::instance::NoTrace;
use kontig_live::stalls::watch::Watch;
use kontig_terminal::{interrupt, say};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The trace, or why there is none.
pub struct Traced(Result<Arc<Watch>, NoTrace>);

/// How far it is, for the interrupt that may come at any moment.
enum Stage {
    Begins,
    /// It was told to end while the trace was made.
    IsToEnd,
    Begun(Weak<Watch>),
}

impl Traced {
    /// Begins to trace. An interrupt ends the program from now on, with this exit code.
    pub fn begin(roots: &Roots, exit_code: i32) -> Traced {
        let stage = Arc::new(Mutex::new(Stage::Begins));
        let of_interrupt = stage.clone();
        interrupt::act(move || {
            let mut stage = locked(&of_interrupt);
            match &*stage {
                Stage::Begins | Stage::IsToEnd => *stage = Stage::IsToEnd,
                Stage::Begun(watch) => end(watch.upgrade().as_deref(), exit_code),
            }
        });
        let watch = Watch::begin(roots).map(Arc::new);
        let mut stage = locked(&stage);
        if matches!(*stage, Stage::IsToEnd) {
            end(watch.as_deref().ok(), exit_code);
        }
        *stage = Stage::Begun(watch.as_ref().map_or_else(|_| Weak::new(), Arc::downgrade));
        Traced(watch)
    }

    /// The waits since the last look, or why they are not known.
    pub fn take(&self) -> Stalls {
        match &self.0 {
            Ok(watch) => watch.take(),
            Err(e) => Stalls::unknown(e),
        }
    }
}

fn locked(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(watch: Option<&Watch>, exit_code: i32) {
    watch.iter().for_each(|watch| watch.end());
    if exit_code != 0 {
        say("interrupted");
    }
    std::process::exit(exit_code);
}
