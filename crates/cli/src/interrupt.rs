//! Ctrl-C and SIGTERM: one handler for all commands. A command that has something to keep or to clean up says what is
//! to be done; of the others an interrupt is the end, said in one line.

use std::sync::{Mutex, PoisonError};

type Action = Box<dyn Fn() + Send>;

static ACTION: Mutex<Option<Action>> = Mutex::new(None);

/// Listens from now on.
pub fn listen() {
    let listening = ctrlc::set_handler(|| match &*ACTION.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(act) => act(),
        None => {
            crate::say("interrupted");
            std::process::exit(1);
        }
    });
    if let Err(e) = listening {
        crate::say(&format!("Ctrl-C ends this at once: {e}"));
    }
}

/// What an interrupt does from now on, instead of ending the program.
pub fn act(action: impl Fn() + Send + 'static) {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}
