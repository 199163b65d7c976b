//! A process that has changed a setting is killed: its restorer restores it, and where that is
//! killed as well, who comes next.
//!
//! The processes are this program itself, started again with a part to play.

use kontig_live::Roots;
use kontig_live::prepare::journal::Journal;
use kontig_live::prepare::restorer::{Restorer, restore_at_end};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PART: &str = "KONTIG_TEST_PART";

/// A host of one setting.
struct Host {
    _tree: tempfile::TempDir,
    dir: PathBuf,
}

impl Host {
    fn new() -> Host {
        let tree = tempfile::tempdir().expect("a directory");
        let dir = tree.path().to_path_buf();
        std::fs::create_dir_all(dir.join("proc/sys/vm")).expect("made");
        std::fs::write(dir.join("proc/sys/vm/setting"), "20\n").expect("written");
        Host { _tree: tree, dir }
    }

    fn setting(&self) -> String {
        std::fs::read_to_string(self.dir.join("proc/sys/vm/setting")).expect("read").trim().to_string()
    }

    fn has_journal(&self) -> bool {
        self.dir.join("journal").exists()
    }

    /// A process that has changed the setting, and has a restorer; with that one's number.
    fn preparing(&self) -> (Child, String) {
        let process = part("prepare", &self.dir).spawn().expect("started");
        until(|| self.dir.join("restorer").exists() && self.setting() == "0");
        let pid = process.id();
        let restorers = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        // The thread of the test, not the main one, has started it.
        let of_threads = || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
            let each = tasks.map(|task| task.expect("a thread").path().join("children"));
            each.map(|file| std::fs::read_to_string(file).unwrap_or_default()).collect::<String>()
        };
        (process, restorers.ok().filter(|text| !text.is_empty()).unwrap_or_else(of_threads).trim().to_string())
    }
}

/// This program, to play a part.
fn part(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "restorer::a_part_is_played", "--nocapture", "--test-threads=1"]);
    command.env(PART, name).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command
}

fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut process: Child) {
    process.kill().expect("killed");
    process.wait().expect("gone");
}

/// Does nothing but in a process that was started for it.
#[test]
fn a_part_is_played() {
    let dir = std::env::current_dir().expect("a directory");
    let roots = Roots { procfs: dir.join("proc"), sysfs: dir.join("sys") };
    let journal = dir.join("journal");
    match std::env::var(PART).as_deref() {
        Ok("restorer") => {
            std::fs::write(dir.join("restorer"), "").expect("written");
            restore_at_end(std::io::stdin(), &journal, &roots).expect("restored");
        }
        Ok("close the pipe first") => {
            let mut restorer = part("restorer", &dir).stdin(Stdio::piped()).spawn().expect("started");
            let (mut kept, _) = Journal::begin(&journal, &roots).expect("begun");
            kept.change(&roots.proc("sys/vm/setting"), "0").expect("changed");
            until(|| dir.join("restorer").exists());
            drop(restorer.stdin.take());
            // Time for the restorer to find this process at work.
            std::thread::sleep(Duration::from_millis(500));
            std::fs::write(dir.join("closed"), "").expect("written");
            // The restorer outlives this process, which is killed here.
            restorer.wait().expect("it has ended");
        }
        Ok(how) => {
            let restorer = Restorer::start(part("restorer", &dir));
            let (mut kept, _) = Journal::begin(&journal, &roots).expect("begun");
            kept.change(&roots.proc("sys/vm/setting"), "0").expect("changed");
            if how == "prepare" {
                std::thread::sleep(Duration::from_secs(600));
            }
            kept.end().expect("restored");
            drop(restorer);
        }
        Err(_) => {}
    }
}

#[test]
fn a_killed_processes_guard_restores_what_it_has_changed() {
    let host = Host::new();
    let (process, _) = host.preparing();
    kill(process);
    until(|| host.setting() == "20" && !host.has_journal());
}

/// A process that is killed closes its pipe before it is gone, and until then looks as if it were
/// at work.
#[test]
fn a_guard_that_wakes_while_the_process_is_still_there_waits_for_its_end() {
    let host = Host::new();
    let process = part("close the pipe first", &host.dir).spawn().expect("started");
    until(|| host.dir.join("closed").exists());
    assert!(host.setting() == "0" && host.has_journal(), "a process at work is left alone");
    kill(process);
    until(|| host.setting() == "20" && !host.has_journal());
}

#[test]
fn where_the_guard_is_killed_first_the_next_process_restores_it() {
    let host = Host::new();
    let (process, restorer) = host.preparing();
    assert!(Command::new("kill").args(["-9", &restorer]).status().expect("kill").success(), "{restorer}");
    kill(process);
    assert!(host.setting() == "0" && host.has_journal());
    assert!(part("prepare to the end", &host.dir).status().expect("run").success());
    assert!(host.setting() == "20" && !host.has_journal());
}

#[test]
fn a_process_that_comes_to_its_end_leaves_its_guard_nothing_to_do() {
    let host = Host::new();
    assert!(part("prepare to the end", &host.dir).status().expect("run").success());
    assert!(host.setting() == "20" && !host.has_journal());
}
