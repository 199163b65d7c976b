//! Real programs, each on small pages and on huge ones, and what the model says of them beforehand.
//!
//! What the model must know of a program is in its source or counted before the program is timed:
//! how often it accesses how much memory. The program's time on small pages is measured; the gain
//! is not.

use super::measured::{Loop, Measured, Point};
use super::memory::rolled_up;
use kontig_program::Pattern;
use kontig_translation::{Mapped, Processor, Tlb};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const TURNS: usize = 5;
/// A prediction holds within these percentage points, or within this share of the gain.
const POINTS: f64 = 5.0;
const SHARE: f64 = 0.25;

const ENTRIES: u64 = 12_000_000;
const LOOKUPS: u64 = 12_000_000;
/// The table has two slots for each of 16 Mi rows, of 16 bytes each.
const SLOTS_LOG2: u32 = 25;
/// How often the keys are looked up.
const PASSES: u64 = 8;
/// Functions of the C file that is compiled.
const FUNCTIONS: usize = 500;

/// A program that was held against the model.
pub struct Held {
    pub name: &'static str,
    /// Its accesses, as its source or a count before the run tells them.
    pub known: String,
    /// Its time on small pages and on huge ones, s: the least of several.
    pub seconds: [f64; 2],
    /// The lowest and the highest gain of one pair of runs, %.
    pub range: [f64; 2],
    /// The gain that the model says, %.
    pub predicted: f64,
}

impl Held {
    /// The share of the time that huge pages saved, %.
    pub fn measured(&self) -> f64 {
        100.0 * (1.0 - self.seconds[1] / self.seconds[0])
    }
    /// Whether the prediction is near enough.
    pub fn holds(&self) -> bool {
        let measured = self.measured();
        (self.predicted - measured).abs() <= POINTS.max(SHARE * measured.abs())
    }
}

/// Runs a program on both kinds of pages, with files in this directory, beside what the model says.
type Program = fn(&Path, &Measured) -> Result<Held, String>;

/// Holds each program against the model; what is missing for one is its error.
pub fn hold(m: &Measured, mut begins: impl FnMut(&str)) -> Vec<(&'static str, Result<Held, String>)> {
    let dir = std::env::temp_dir().join(format!("kontig-translation-{}", std::process::id()));
    let made = fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()));
    let all: [(&'static str, Program); 3] = [("Java, HashMap", java), ("hash join, C", join), ("gcc -O1", compiler)];
    let held = all.map(|(name, of)| {
        begins(name);
        (name, made.clone().and_then(|()| of(&dir, m)).map(|held| Held { name, ..held }))
    });
    // Only what was made here is in it.
    let _ = fs::remove_dir_all(&dir);
    held.into()
}

/// The time that an access saves on huge pages, ns.
fn saved(cpu: &Processor, pattern: Pattern, bytes: u64) -> f64 {
    let pages = bytes / 4096;
    cpu.access_ns(pattern, Mapped::all_small(pages)) - cpu.access_ns(pattern, Mapped::all_huge(pages))
}

/// Times the program on each kind of pages, by turns.
fn timed(known: String, saved_s: f64, run: impl Fn(bool) -> Result<f64, String>) -> Result<Held, String> {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push([run(false)?, run(true)?]);
    }
    let least = |i: usize| turns.iter().map(|turn| turn[i]).fold(f64::INFINITY, f64::min);
    let seconds = [least(0), least(1)];
    let gains = turns.iter().map(|[small, huge]| 100.0 * (1.0 - huge / small));
    let range = gains.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], gain| [low.min(gain), high.max(gain)]);
    Ok(Held { name: "", known, seconds, range, predicted: 100.0 * saved_s / seconds[0] })
}

/// Runs a program to its end; what it prints.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{program} cannot be run: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} failed: {}", said.lines().next().unwrap_or("it said nothing")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last `steady_ns` that a program prints, in seconds.
fn steady_s(text: &str) -> Result<f64, String> {
    let last = text.lines().rev().find_map(|line| line.strip_prefix("steady_ns ")?.split(' ').next()?.parse().ok());
    last.map(|ns: f64| ns / 1e9).ok_or_else(|| "the program did not print its time".into())
}

/// On Linux, glibc's malloc asks for huge pages if it is told to.
fn with_pages(command: &mut Command, huge: bool) -> &mut Command {
    command.env("GLIBC_TUNABLES", format!("glibc.malloc.hugetlb={}", u8::from(huge)))
}

fn java(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "Lookups.java", include_str!("../../programs/Lookups.java"))?;
    // A slot of 4 bytes in a table of 2^24; a node of 32 bytes; its key and its value, of 16 bytes
    // each. The collector copies the nodes, and then the key and the value of each side by side.
    let (slots, objects) = (4 << 24, 64 * ENTRIES);
    let of = |bytes| saved(&m.processor, Pattern::Chase, bytes);
    let of_lookup = of(slots) + 2.0 * of(objects);
    let known = format!(
        "{LOOKUPS} lookups that wait: a slot of 64 MiB, then a node, then its key and value, of {} MiB",
        objects >> 20
    );
    timed(known, of_lookup * LOOKUPS as f64 / 1e9, |huge| {
        let pages = if huge { "-XX:+UseTransparentHugePages" } else { "-XX:-UseTransparentHugePages" };
        let mut command = Command::new("java");
        command.args([pages, "-XX:+UseSerialGC", "-Xms3g", "-Xmx3g", "-XX:+AlwaysPreTouch"]);
        steady_s(&output(command.arg(&source).args([ENTRIES.to_string(), LOOKUPS.to_string()]))?)
    })
}

fn join(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "join.c", include_str!("../../programs/join.c"))?;
    let program = dir.join("join");
    output(Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(&source))?;
    let rows = 1u64 << (SLOTS_LOG2 - 1);
    // The table, and the keys that are read beside it.
    let (bytes, lookups) = ((16 << SLOTS_LOG2) + 8 * rows, PASSES * rows);
    let known = format!("{lookups} lookups that do not wait, in {} MiB", bytes >> 20);
    let saved_s = saved(&m.processor, Pattern::Independent, bytes) * lookups as f64 / 1e9;
    timed(known, saved_s, |huge| {
        steady_s(&output(
            with_pages(&mut Command::new(&program), huge).args([SLOTS_LOG2.to_string(), PASSES.to_string()]),
        )?)
    })
}

/// The compiler proper, whose walks a simulated TLB counts beforehand.
fn compiler(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "many.c", &many_functions())?;
    let cc1 = PathBuf::from(output(Command::new("gcc").arg("-print-prog-name=cc1"))?.trim());
    let command = |huge| {
        let mut command = Command::new(&cc1);
        with_pages(&mut command, huge).args(["-quiet", "-O1", "-o", "/dev/null"]).arg(&source);
        command
    };
    let walks = walks(dir, m.processor.tlb1, m.processor.tlb2, &command(false))?;
    let (resident, in_huge) = peak(&mut command(true))?;
    let pages = resident / 4096;
    // What a walk of memory of this size saves. A chase walks where the TLB does not hold the page.
    let missed = 1.0 - f64::from(m.processor.tlb2.entries) / pages as f64;
    if missed <= 0.0 {
        return Err(format!("the compiler used {} MiB, which the TLB holds", resident >> 20));
    }
    let share = in_huge as f64 / resident as f64;
    let saved_s = walks as f64 * share * saved(&m.processor, Pattern::Chase, resident) / missed / 1e9;
    let known = format!(
        "{:.1} million walks on small pages, {} MiB, {:.0} % of it on huge pages if asked for",
        walks as f64 / 1e6,
        resident >> 20,
        100.0 * share
    );
    timed(known, saved_s, |huge| user_s(&mut command(huge)))
}

/// A C file of functions that share nothing.
fn many_functions() -> String {
    let function = |i: usize| {
        format!(
            "int f{i}(int *a, int n) {{ int s = {i}; for (int j = 0; j < n; j++) {{ if (a[j] > s) s += a[j] * {}; \
             else a[j] ^= s >> {}; switch (a[j] & 7) {{ case 0: s++; break; case {}: s *= 3; break; default: \
             a[j] += j; }} }} return s; }}\n",
            i % 97 + 2,
            i % 13 + 1,
            i % 6 + 1
        )
    };
    (0..FUNCTIONS).map(function).collect()
}

fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// A cache of pages as cachegrind takes it: size, associativity, line.
fn as_cache(tlb: Tlb) -> String {
    let sets = 1u32 << (tlb.entries.trailing_zeros().min(8));
    format!("{},{},4096", u64::from(tlb.entries) * 4096, tlb.entries / sets)
}

/// The accesses that miss both levels of a TLB, which cachegrind takes for caches of lines as long
/// as a page.
fn walks(dir: &Path, tlb1: Tlb, tlb2: Tlb, command: &Command) -> Result<u64, String> {
    let out = dir.join("cachegrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64"]);
    valgrind.arg(format!("--D1={}", as_cache(tlb1))).arg(format!("--LL={}", as_cache(tlb2)));
    valgrind.arg(format!("--cachegrind-out-file={}", out.display()));
    output(valgrind.arg(command.get_program()).args(command.get_args()))?;
    let text = fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    data_misses(&text).ok_or_else(|| "cachegrind did not print what it counted".into())
}

/// Reads and writes that missed the last level, in cachegrind's file.
fn data_misses(text: &str) -> Option<u64> {
    let names = text.lines().find_map(|line| line.strip_prefix("events: "))?.split(' ');
    let counts = text.lines().find_map(|line| line.strip_prefix("summary: "))?.split(' ');
    let both = names.zip(counts).filter(|(name, _)| ["DLmr", "DLmw"].contains(name));
    let counts: Vec<u64> = both.map(|(_, count)| count.parse().ok()).collect::<Option<_>>()?;
    (counts.len() == 2).then(|| counts.iter().sum())
}

/// The most that a program has in memory, bytes, and what of it is on huge pages.
fn peak(command: &mut Command) -> Result<(u64, u64), String> {
    let mut child = command.stdin(Stdio::null()).spawn().map_err(|e| format!("the compiler cannot be run: {e}"))?;
    let mut most = (0, 0);
    loop {
        let ended = child.try_wait().map_err(|e| format!("the compiler cannot be waited for: {e}"))?;
        if ended.is_some() {
            return if most.0 > 0 { Ok(most) } else { Err("the compiler was too fast to be looked at".into()) };
        }
        // The process may have ended since.
        if let Some(all) = rolled_up(&format!("/proc/{}/smaps_rollup", child.id())) {
            let bytes = |name: &str| all.kb(name).unwrap_or(0) << 10;
            most = most.max((bytes("Rss"), bytes("AnonHugePages")));
        }
        sleep(Duration::from_millis(50));
    }
}

/// The time a program takes in its own code.
fn user_s(command: &mut Command) -> Result<f64, String> {
    let before = children_user_s()?;
    output(command)?;
    Ok(children_user_s()? - before)
}

fn children_user_s() -> Result<f64, String> {
    crate::quiet::children_user_s().ok_or_else(|| "the system does not say what children used".into())
}

/// The points of the loops that the model is near to: within a quarter of the gain, or five points.
pub fn loops_that_hold(m: &Measured) -> (usize, usize) {
    let holds = |point: &&Point| {
        let gain = |[small, huge]: [f64; 2]| 100.0 * (1.0 - huge / small);
        let (measured, modelled) = (gain(point.ns), gain(point.modelled(&m.processor)));
        (measured - modelled).abs() <= POINTS.max(SHARE * measured.abs())
    };
    let chases: Vec<_> = m.points.iter().filter(|point| point.of == Loop::Chase).collect();
    (chases.iter().filter(|point| holds(point)).count(), chases.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_holds_within_five_points_or_a_quarter() {
        let held = |predicted, huge| Held {
            name: "",
            known: String::new(),
            seconds: [100.0, huge],
            range: [0.0; 2],
            predicted,
        };
        assert!(held(4.0, 99.0).holds() && !held(7.0, 99.0).holds());
        assert!(held(31.0, 60.0).holds() && !held(29.0, 60.0).holds());
    }

    #[test]
    fn the_last_round_counts() {
        assert_eq!(steady_s("steady_ns 7000000000 1\nsteady_ns 2500000000 1\n"), Ok(2.5));
        assert!(steady_s("hello").is_err());
    }

    #[test]
    fn misses_of_data_are_read_by_their_names() {
        let text =
            "desc: D1 cache\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfn=f\n1 2 3\nsummary: 9 8 7 6 5 4 3 2 1\n";
        assert_eq!(data_misses(text), Some(5));
        assert_eq!(data_misses("events: Ir\nsummary: 9\n"), None);
    }

    #[test]
    fn a_tlb_is_a_cache_of_pages() {
        assert_eq!(as_cache(Tlb { entries: 3072, huge: None }), "12582912,12,4096");
        assert_eq!(as_cache(Tlb { entries: 72, huge: None }), "294912,9,4096");
    }

    #[test]
    fn time_on_each_kind_of_pages_is_taken_by_turns() {
        let held = timed("".into(), 0.5, |huge| Ok(if huge { 1.5 } else { 2.0 })).expect("it runs");
        assert_eq!((held.seconds, held.range, held.predicted), ([2.0, 1.5], [25.0, 25.0], 25.0));
        assert!(timed("".into(), 0.5, |_| Err("no java".into())).is_err());
    }
}
