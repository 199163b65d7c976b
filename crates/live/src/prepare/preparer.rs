//! The process that prepares a host, told from a later one with the same number by its start time.

use crate::roots;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// A process, by its number and when it started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Preparer {
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub started: String,
}

/// Time between two looks at a process without a pidfd.
const INTERVAL: Duration = Duration::from_millis(5);

impl Preparer {
    /// The process that runs this code.
    pub(super) fn this() -> Preparer {
        let pid = std::process::id();
        Preparer { pid, started: started(pid).unwrap_or_default() }
    }

    /// Whether it still runs. A process that is being killed runs until all its memory is given
    /// back, long after its files are closed.
    pub fn is_at_work(&self) -> bool {
        started(self.pid).is_some_and(|started| started == self.started)
    }

    /// Waits for its end.
    pub fn wait_for_end(&self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // Kernels and containers may lack it: then it polls.
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // The number may have been another process's when it was opened.
        while self.is_at_work() {
            let Some(process) = &process else {
                std::thread::sleep(INTERVAL);
                continue;
            };
            match poll(&mut [PollFd::new(process, PollFlags::IN)], None) {
                Ok(_) => return,
                Err(Errno::INTR) => {}
                Err(_) => std::thread::sleep(INTERVAL),
            }
        }
    }
}

/// When the process of this number started; `None` if there is none. It reads the host's own
/// `/proc`: a process at work is one of this host's.
fn started(pid: u32) -> Option<String> {
    let stat = roots::read(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    // The name, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let state_and_on: Vec<&str> = fields.split_whitespace().collect();
    // A zombie does nothing any more.
    (state_and_on.first() != Some(&"Z")).then(|| state_and_on.get(19).map(|s| s.to_string()))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_waited_for_and_no_longer() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("started");
        let pid = child.id();
        let process = Preparer { pid, started: started(pid).expect("it runs") };
        let waits = std::thread::spawn({
            let process = process.clone();
            move || process.wait_for_end()
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(process.is_at_work() && !waits.is_finished());
        child.kill().expect("killed");
        waits.join().expect("it has ended");
        assert!(!process.is_at_work(), "a zombie, as nobody has asked for its exit code");
        child.wait().expect("gone");
        Preparer { pid: std::process::id(), started: "another time".into() }.wait_for_end();
    }
}
