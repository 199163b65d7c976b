//! Ctrl-C and SIGTERM: one handler for all commands. A command with something to keep or to clean
//! up registers an action; any other ends at once, with one line.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};

type Action = Box<dyn Fn() + Send>;

static ACTION: Mutex<Option<Action>> = Mutex::new(None);

/// Installs the signal handler.
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

/// Sets the action of an interrupt, instead of ending the program.
pub fn act(action: impl Fn() + Send + 'static) {
    *ACTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}

/// Where interrupts arrive from now on, for a command that waits for the next thing to do.
pub fn arrivals() -> Receiver<()> {
    let (stop, stopped) = channel();
    act(move || {
        // After the command's end nobody listens.
        let _ = stop.send(());
    });
    stopped
}
