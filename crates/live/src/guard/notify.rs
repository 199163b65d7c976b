//! Messages to systemd: that the service is ready, and alive (`sd_notify`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The socket of the service manager; nobody where the program was not started by one.
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    every: Option<Duration>,
    last: Option<Instant>,
    status: String,
}

impl Notify {
    /// By the variables that the manager sets.
    pub fn from_environment() -> Notify {
        let socket = std::env::var("NOTIFY_SOCKET").ok();
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|us| us.parse().ok()).map(Duration::from_micros);
        Notify::to(socket.as_deref(), watchdog)
    }

    fn to(socket: Option<&str>, watchdog: Option<Duration>) -> Notify {
        let address = socket.and_then(|path| match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(path).ok(),
        });
        let to = address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address)));
        // Half of the time, as systemd advises.
        Notify { to, every: watchdog.map(|watchdog| watchdog / 2), last: None, status: String::new() }
    }

    /// Sends a state, such as `READY=1`.
    pub fn send(&self, state: &str) {
        // A manager that does not listen loses only this.
        let _ = self.to.as_ref().map(|(socket, address)| socket.send_to_addr(state.as_bytes(), address));
    }

    /// Says what it does now, once.
    pub fn status(&mut self, status: &str) {
        if self.status != status {
            self.send(&format!("STATUS={status}"));
            self.status = status.into();
        }
    }

    /// Says that it is alive, as often as the manager's watchdog wants it.
    pub fn alive(&mut self) {
        let Some(every) = self.every else { return };
        if self.last.is_none_or(|last| last.elapsed() >= every) {
            self.send("WATCHDOG=1");
            self.last = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_told_that_it_is_ready_and_alive() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("bound");
        let mut notify = Notify::to(path.to_str(), Some(Duration::from_secs(3600)));
        notify.send("READY=1");
        notify.alive();
        // Not again before half of the time is over.
        notify.alive();
        notify.status("at_target");
        notify.status("at_target");
        notify.send("STOPPING=1");
        let told = || {
            let mut bytes = [0; 64];
            let n = manager.recv(&mut bytes).expect("told");
            String::from_utf8_lossy(&bytes[..n]).into_owned()
        };
        assert_eq!([told(), told(), told(), told()], ["READY=1", "WATCHDOG=1", "STATUS=at_target", "STOPPING=1"]);
    }
}
