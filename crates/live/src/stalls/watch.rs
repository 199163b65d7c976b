//! Reads a trace while it is made, and tells who waited.

use super::Stalls;
use super::instance::{Instance, NoTrace};
use super::sums::{Process, Sums};
use crate::error::ReadError;
use crate::roots::Roots;
use kontig_procfs::{ProcessStatus, TraceLine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two reads; the kernel asks for one before, when a buffer is half full.
const INTERVAL: Duration = Duration::from_millis(200);

/// Bytes that are read at most once it is told to stop: on a busy host events come without end.
const LAST_BYTES: usize = 16 << 20;

/// Waits are watched until it ends or is dropped, which removes the trace.
pub struct Watch {
    found: Arc<Mutex<Found>>,
    stop: Arc<AtomicBool>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

struct Found {
    sums: Sums,
    since: Instant,
    failed: Option<ReadError>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// If there is no tracefs, or this user may not trace.
    pub fn begin(roots: &Roots) -> Result<Watch, NoTrace> {
        let instance = Instance::make(roots)?;
        let found = Arc::new(Mutex::new(Found { sums: Sums::default(), since: Instant::now(), failed: None }));
        let stop = Arc::new(AtomicBool::new(false));
        let (roots, to, until) = (roots.clone(), found.clone(), stop.clone());
        let reader = std::thread::spawn(move || {
            if let Err(e) = read(instance, &roots, &to, &until) {
                locked(&to).failed = Some(e);
            }
        });
        Ok(Watch { found, stop, reader: Mutex::new(Some(reader)) })
    }

    /// The waits since it began, or since they were last taken. Those of the last fifth of a second
    /// are told the next time, unless it has ended.
    pub fn take(&self) -> Stalls {
        let mut found = locked(&self.found);
        let seconds = found.since.elapsed().as_secs_f64();
        found.since = Instant::now();
        let mut stalls = found.sums.take(seconds);
        stalls.not_known = found.failed.as_ref().map(ToString::to_string);
        stalls
    }

    /// Takes in what has happened until now, and removes the trace.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Held meanwhile: whoever ends it, too, waits until the trace is gone.
        let mut reader = locked(&self.reader);
        if let Some(reader) = reader.take() {
            // What it could not read was told.
            let _ = reader.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads until it is told to stop and nothing is left, and removes the trace.
fn read(mut instance: Instance, roots: &Roots, to: &Mutex<Found>, stop: &AtomicBool) -> Result<(), ReadError> {
    let file = instance.dir().join("trace_pipe");
    let (mut piece, mut text) = (vec![0; 64 << 10], Vec::new());
    let mut names = Names { roots, known: BTreeMap::new() };
    let mut left = LAST_BYTES;
    while left > 0 {
        let Some(pipe) = instance.pipe() else { return Ok(()) };
        let is_stopped = stop.load(Ordering::Relaxed);
        match pipe.read(&mut piece) {
            Ok(n) if n > 0 => {
                left -= if is_stopped { n.min(left) } else { 0 };
                text.extend_from_slice(&piece[..n]);
                let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let mut found = locked(to);
                for line in String::from_utf8_lossy(&text[..whole]).lines() {
                    found.sums.line(line, &mut |event| names.of(event));
                }
                text.drain(..whole);
            }
            Ok(_) if is_stopped => break,
            Ok(_) => wait(pipe),
            Err(e) if e.kind() == ErrorKind::WouldBlock && is_stopped => break,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                // A number may be another thread's by then.
                names.known.clear();
                wait(pipe);
            }
            Err(e) => return Err(ReadError::io(&file, &e)),
        }
    }
    Ok(())
}

fn wait(pipe: &std::fs::File) {
    let time = Timespec::try_from(INTERVAL).ok();
    if poll(&mut [PollFd::new(pipe, PollFlags::IN)], time.as_ref()).is_err() {
        std::thread::sleep(INTERVAL);
    }
}

/// Threads by their processes.
struct Names<'a> {
    roots: &'a Roots,
    known: BTreeMap<u32, Process>,
}

impl Names<'_> {
    fn of(&mut self, event: &TraceLine<'_>) -> Process {
        let roots = self.roots;
        self.known.entry(event.pid).or_insert_with(|| process(roots, event)).clone()
    }
}

/// The process of an event's thread: the thread itself where it has ended already.
fn process(roots: &Roots, event: &TraceLine<'_>) -> Process {
    let itself = || (event.pid, event.comm.to_string());
    let tgid = || {
        let status = roots.parse_proc(&format!("{}/status", event.pid), ProcessStatus::parse).ok()?;
        status.get("Tgid")?.trim().parse::<u32>().ok()
    };
    let Some(tgid) = event.tgid.or_else(tgid).filter(|tgid| *tgid != event.pid) else { return itself() };
    let name = roots.read_proc(format!("{tgid}/comm"));
    name.map_or_else(|_| itself(), |name| (tgid, name.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_last_events_before_the_end_are_read() {
        let tree = tempfile::tempdir().expect("a directory");
        let many = include_str!("trace_pipe.txt").repeat(100);
        fs::write(tree.path().join("trace_pipe"), &many).expect("written");
        assert!(many.len() > 64 << 10, "more than one read takes");
        let roots = Roots { procfs: tree.path().into(), ..Roots::default() };
        let found = Mutex::new(Found { sums: Sums::default(), since: Instant::now(), failed: None });
        read(Instance::of(tree.path().into()), &roots, &found, &AtomicBool::new(true)).expect("read");
        let stalls = locked(&found).sums.take(1.0);
        assert_eq!(stalls.processes.iter().map(|stall| stall.attempts).sum::<u64>(), 200);
    }

    #[test]
    fn a_thread_is_told_as_its_process_and_as_itself_once_it_is_gone() {
        let tree = tempfile::tempdir().expect("a directory");
        let roots = Roots { procfs: tree.path().into(), ..Roots::default() };
        for (pid, comm) in [(4242, "java"), (4243, "GC Thread#0")] {
            fs::create_dir(roots.proc(pid.to_string())).expect("made");
            fs::write(roots.proc(format!("{pid}/comm")), format!("{comm}\n")).expect("written");
            let status = format!("Name:\t{comm}\nTgid:\t4242\nPid:\t{pid}\n");
            fs::write(roots.proc(format!("{pid}/status")), status).expect("written");
        }
        let event = |pid| TraceLine { comm: "GC Thread#0", pid, tgid: None, at_us: 0, event: "", text: "" };
        assert_eq!(process(&roots, &event(4243)), (4242, "java".into()));
        assert_eq!(process(&roots, &event(99)), (99, "GC Thread#0".into()));
    }
}
