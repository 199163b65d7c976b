//! Runs a program and takes its times.

use super::held::Run;
use crate::translation::pages::Lying;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Runs a program to its end; what it prints.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{program} cannot be run: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} failed: {}", said.lines().next().unwrap_or("it said nothing")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program that prints `ready` when its memory is filled, waits for a line, and then prints
/// what each of its rounds took.
pub(super) fn steady(command: &mut Command) -> Result<Run, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str| format!("{program} {what}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failed(&format!("cannot be run: {e}")))?;
    let run = rounds(&mut child);
    let ended = child.wait().is_ok_and(|status| status.success());
    run.filter(|_| ended).ok_or_else(|| failed("ended before it printed its times"))
}

/// The least round but the first, and how the memory lay before it.
fn rounds(child: &mut Child) -> Option<Run> {
    let mut lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
    lines.find(|line| line == "ready")?;
    let lying = Lying::of(child.id())?;
    // The program waits for this; taken, it is closed at the end of the statement.
    writeln!(child.stdin.take()?).ok()?;
    Some(Run { seconds: least_round_s(lines)?, lying })
}

fn least_round_s(lines: impl Iterator<Item = String>) -> Option<f64> {
    let ns = lines.filter_map(|line| line.strip_prefix("round_ns ")?.split(' ').next()?.parse::<f64>().ok());
    ns.skip(1).min_by(f64::total_cmp).map(|ns| ns / 1e9)
}

/// How a program's memory lies when it has most of it.
pub(super) fn peak(command: &mut Command) -> Result<Lying, String> {
    let mut child = command.stdin(Stdio::null()).spawn().map_err(|e| format!("the compiler cannot be run: {e}"))?;
    let mut most: Option<Lying> = None;
    loop {
        if child.try_wait().map_err(|e| format!("the compiler cannot be waited for: {e}"))?.is_some() {
            return most.ok_or_else(|| "the compiler was too fast to be looked at".into());
        }
        // It may have ended since.
        let now = Lying::of(child.id());
        most = [most, now].into_iter().flatten().max_by_key(|lying| lying.bytes);
        sleep(Duration::from_millis(50));
    }
}

/// On Linux, glibc's malloc asks for huge pages if it is told to.
pub(super) fn with_pages(command: &mut Command, huge: bool) -> &mut Command {
    command.env("GLIBC_TUNABLES", format!("glibc.malloc.hugetlb={}", u8::from(huge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_counts_but_the_first_which_warms_up() {
        let least = |lines: &[&str]| least_round_s(lines.iter().map(ToString::to_string));
        assert_eq!(least(&["round_ns 7 1", "round_ns 2500000000 1", "round_ns 3000000000 1"]), Some(2.5));
        assert_eq!(least(&["round_ns 7000000000 1"]), None);
        assert_eq!(least(&["hello"]), None);
    }

    #[test]
    fn a_program_is_looked_at_when_it_is_ready_and_waits_until_then() {
        let script = "echo ready; read line; echo round_ns 1 0; echo round_ns 2000000000 0";
        let run = steady(Command::new("sh").args(["-c", script])).expect("it runs");
        assert_eq!(run.seconds, 2.0);
        assert!(run.lying.bytes > 0);
        let error = steady(Command::new("sh").args(["-c", "exit 3"])).err().expect("it prints nothing");
        assert_eq!(error, "sh ended before it printed its times");
    }
}
