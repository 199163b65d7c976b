//! The compiler proper, whose walks a simulated TLB counts beforehand.

use super::held::{Held, Run, Timed, written};
use super::run::{output, peak, with_pages};
use crate::translation::measured::Measured;
use kontig_program::Pattern;
use kontig_translation::Tlb;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of the C file that is compiled.
const FUNCTIONS: usize = 500;
/// Compilations of a run, of which the fastest counts: each is short.
const COMPILATIONS: usize = 4;

pub(super) fn hold(dir: &Path, m: &Measured) -> Result<Held, String> {
    let source = written(dir, "many.c", &many_functions())?;
    let cc1 = PathBuf::from(output(Command::new("gcc").arg("-print-prog-name=cc1"))?.trim());
    let command = |huge| {
        let mut command = Command::new(&cc1);
        with_pages(&mut command, huge).args(["-quiet", "-O1", "-o", "/dev/null"]).arg(&source);
        command
    };
    let walks = walks(dir, m.processor.tlb1, m.processor.tlb2, &command(false))?;
    let timed = Timed::by_turns(|huge| {
        let lying = peak(&mut command(huge))?;
        let mut seconds = f64::INFINITY;
        for _ in 0..COMPILATIONS {
            seconds = seconds.min(user_s(&mut command(huge))?);
        }
        Ok(Run { seconds, lying })
    })?;
    let bytes = timed.best[0].lying.bytes;
    // What a walk of memory of this size saves. A chase walks where the TLB does not hold the page.
    let missed = 1.0 - f64::from(m.processor.tlb2.entries) / (bytes / 4096) as f64;
    if missed <= 0.0 {
        return Err(format!("the compiler used {} MiB, which the TLB holds", bytes >> 20));
    }
    let saved_s = walks as f64 * timed.saved_ns(m, Pattern::Chase, bytes) / missed / 1e9;
    let known = format!("{:.1} million walks on small pages, {} MiB", walks as f64 / 1e6, bytes >> 20);
    Ok(timed.beside(known, saved_s))
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

/// The time a program takes in its own code, s.
fn user_s(command: &mut Command) -> Result<f64, String> {
    let used = || crate::usage::children_user_s().ok_or("the system does not say what children used");
    let before = used()?;
    output(command)?;
    Ok(used()? - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_of_data_are_read_by_their_names() {
        let text =
            "desc: D1 cache\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfn=f\n1 2 3\nsummary: 9 8 7 6 5 4 3 2 1\n";
        assert_eq!(data_misses(text), Some(5));
        assert_eq!(data_misses("events: Ir\nsummary: 9\n"), None);
    }

    #[test]
    fn a_tlb_is_a_cache_of_pages() {
        assert_eq!(as_cache(Tlb::of(3072)), "12582912,12,4096");
        assert_eq!(as_cache(Tlb::of(72)), "294912,9,4096");
    }
}
