//! `--history FILE`: the simulated machine's files again and again, as `kontig history record`
//! keeps a host's. What reads a recorded host reads a simulated one: `guard replay`, `history
//! report`, `top`, `check`.

use crate::vmstat::proc_files;
use kontig_error::{AskedWrongly, Error, Failed};
use kontig_live::history::sample::{BOOT_ID, INTERVAL, PAGE_SIZE};
use kontig_live::history::{NotWritten, Sample, Stored, Writer};
use kontig_mm::Daemon;
use kontig_mm::sysctl::Sysctl;
use kontig_mm::types::{PAGE_SIZE as PAGE_BYTES, PAGEBLOCK_PAGES};
use kontig_sim::{KernelThread, Machine};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Simulated time between two samples.
const INTERVAL_S: u64 = 10;
/// Nanoseconds of a tick, in which `/proc/PID/stat` counts.
const TICK_NS: u64 = 10_000_000;

/// A history that is being written.
#[derive(Clone)]
pub(crate) struct History {
    writer: Arc<Mutex<Writer>>,
    /// The run, in place of a boot's id.
    run: Arc<str>,
    next_ns: u64,
    /// The first error of a write. Nothing is written after it.
    failed: Option<String>,
}

impl History {
    /// Creates the file of a run that is called so.
    ///
    /// # Errors
    /// If it cannot be created, or is there: a run is not appended to another.
    pub(crate) fn create(path: &Path, run: &str) -> Result<History, Error> {
        kontig_error::files::check_new(path)?;
        let writer = Writer::append(path).map_err(|e| match e {
            NotWritten::Failed(..) => Error::from(Failed::Run { run: "--history".into(), reason: e.to_string() }),
            NotWritten::InUse(_) | NotWritten::Other(_) => AskedWrongly::Value(e.to_string()).into(),
        })?;
        Ok(History { writer: Arc::new(Mutex::new(writer)), run: run.into(), next_ns: 0, failed: None })
    }

    /// When the next sample is due, in simulated nanoseconds.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes a sample if one is due.
    pub(crate) fn look(&mut self, m: &Machine) {
        if m.now() < self.next_ns || self.failed.is_some() {
            return;
        }
        self.next_ns = m.now() + INTERVAL_S * 1_000_000_000;
        let sample = sample(m, &self.run);
        let written = self.writer.lock().unwrap_or_else(PoisonError::into_inner).sample(&sample);
        self.failed = written.err().map(|e| e.to_string());
    }

    /// # Errors
    /// If a sample could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let failed = |reason: &String| Failed::Run { run: "--history".into(), reason: reason.clone() }.into();
        self.failed.as_ref().map_or(Ok(()), |reason| Err(failed(reason)))
    }
}

/// The threads that make room, and the time each has taken.
fn threads(m: &Machine) -> impl Iterator<Item = (String, u64)> {
    m.kernel_threads().into_iter().filter_map(|(thread, ns)| {
        let name = match thread {
            KernelThread::Daemon(Daemon::Kcompactd(node)) => format!("kcompactd{}", node.index()),
            KernelThread::Daemon(Daemon::Kswapd(node)) => format!("kswapd{}", node.index()),
            KernelThread::Khugepaged => "khugepaged".into(),
            _ => return None,
        };
        Some((name, ns))
    })
}

/// Programs whose memory may use huge pages, with the choice in brackets.
fn enabled(m: &Machine) -> String {
    let Some(sysctl) = Sysctl::find("thp.enabled") else { return String::new() };
    let chosen = m.memory().sysctl_read(sysctl).map(|value| sysctl.text_of(value));
    let word = |word: &str| if chosen.as_deref() == Some(word) { format!("[{word}]") } else { word.into() };
    sysctl.words(m.memory().profile()).into_iter().flatten().map(word).collect::<Vec<_>>().join(" ")
}

/// The machine's files at this moment.
fn sample(m: &Machine, run: &str) -> Sample {
    let memory = m.memory();
    let mut texts: BTreeMap<String, String> = proc_files(m)
        .filter(|(name, _)| !name.starts_with("extfrag/"))
        .map(|(name, text)| (format!("proc/{name}"), text))
        .collect();
    let mut line = |path: &str, value: String| texts.insert(path.into(), value + "\n");
    line("proc/uptime", format!("{:.2} 0.00", m.now() as f64 / 1e9));
    line("proc/sys/kernel/osrelease", memory.profile().name.to_string());
    line(BOOT_ID, run.into());
    line(PAGE_SIZE, PAGE_BYTES.to_string());
    line(INTERVAL, INTERVAL_S.to_string());
    let huge = u64::from(PAGEBLOCK_PAGES) * PAGE_BYTES;
    line("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", huge.to_string());
    line("sys/kernel/mm/transparent_hugepage/enabled", enabled(m));
    for (pid, (name, ns)) in (2..).zip(threads(m)) {
        let fields = format!("{pid} ({name}) S 2 0 0 0 -1 0 0 0 0 0 0 {} 0 0 20 0 1 0 0", ns / TICK_NS);
        line(&format!("proc/{pid}/stat"), fields);
    }
    let files = texts.into_iter().map(|(path, text)| (path.into(), Stored::Text(text.into())));
    Sample { unix_ms: crate::mmtests::epoch_ms(m.now()), files: files.collect() }
}
