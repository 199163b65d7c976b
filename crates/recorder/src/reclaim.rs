//! What a trace that has to do with reclaim needs of its machine, and how its results are kept.
//!
//! Such a trace is text in a recording, an operation a line with what the kernel answered; the machine has it as records
//! and sends a word for each.

use super::RecordError;
use super::qemu::Board;
use kontig_oracle::trace::lru::{self, LruOp};
use kontig_oracle::trace::pressure::Pressure;

/// The script that has it carried out, and what that sends.
pub(super) const SCRIPT: &str = "lru";
pub(super) const EXPECTED: &[&str] = &["t0.snap", "t0.lru", RESULTS, "t1.snap", "t1.lru", "trace.txt"];
/// The words of the operations, and the file that holds both.
const RESULTS: &str = "res.bin";
const ANSWERED: &str = "lru.txt";

/// A trace of this kind.
#[derive(Clone, Debug)]
pub(super) struct Reclaim {
    pressure: &'static Pressure,
    ops: Vec<LruOp>,
}

impl Reclaim {
    pub(super) fn new(pressure: &'static Pressure, seed: u64, ops: usize) -> Reclaim {
        Reclaim { pressure, ops: pressure.generate(seed, ops) }
    }

    /// The records the machine's module reads.
    pub(super) fn trace(&self) -> Vec<u8> {
        lru::encode(&self.ops)
    }

    pub(super) fn board(&self) -> Board {
        let node = self.pressure.node;
        Board { node_mib: node.mib, two_zones: node.two_zones, reclaim: true }
    }

    /// Whether pages are swapped out.
    pub(super) fn swaps(&self) -> bool {
        self.pressure.swap_mib > 0
    }

    /// Settings of the script's shell.
    pub(super) fn parameters(&self) -> String {
        let swap = if self.swaps() { (self.pressure.swap_mib << 10).to_string() } else { String::new() };
        format!("PAGES={}\nSWAP_KIB={swap}\n", self.pressure.process_pages)
    }

    /// Puts the operations with their answers in the place of the words that came out of the machine.
    pub(super) fn answer(&self, sent: &mut Vec<(String, Vec<u8>)>) -> Result<(), RecordError> {
        let results = sent.iter().position(|(name, _)| name == RESULTS).map(|i| sent.remove(i).1).unwrap_or_default();
        let (words, rest) = results.as_chunks::<4>();
        if words.len() != self.ops.len() || !rest.is_empty() {
            let reason = format!("{} bytes of results of {} operations", results.len(), self.ops.len());
            return Err(RecordError::Failed(reason));
        }
        let words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
        sent.push((ANSWERED.into(), lru::write_answered(&self.ops, &words).into_bytes()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_oracle::trace::pressure;

    fn reclaim(name: &str) -> Reclaim {
        Reclaim::new(pressure::find(name).expect("a trace"), 1, 3)
    }

    #[test]
    fn a_trace_says_what_its_machine_needs() {
        assert_eq!(reclaim("lru-file").parameters(), "PAGES=0\nSWAP_KIB=\n");
        assert_eq!(reclaim("lru-anon").parameters(), "PAGES=45000\nSWAP_KIB=262144\n");
        assert_eq!(reclaim("lru-two-zones").board(), Board { node_mib: 256, two_zones: true, reclaim: true });
    }

    #[test]
    fn words_become_answers_and_too_few_are_refused() {
        let words: Vec<u8> = [0x10_0001, 0x10_0002, 0xffff_ffff_u32].iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut sent = vec![("t0.snap".to_string(), vec![]), (RESULTS.to_string(), words.clone())];
        reclaim("lru-file").answer(&mut sent).expect("whole");
        let text = String::from_utf8(sent[1].1.clone()).expect("text");
        assert_eq!((sent.len(), sent[1].0.as_str(), text.lines().count()), (2, ANSWERED, 3));
        assert!(text.ends_with(" = failed\n") && text.contains(" = dump\n") || text.contains(" = 100001\n"), "{text}");
        let mut short = vec![(RESULTS.to_string(), words[..8].to_vec())];
        assert!(reclaim("lru-file").answer(&mut short).is_err());
    }
}
