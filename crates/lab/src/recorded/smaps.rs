//! A process's memory from copies of its smaps, as it grew and shrank: huge pages as such, other
//! anonymous memory in pieces of 1 MiB.
//!
//! What was swapped out is still the process's, so it counts as memory; whether it is swapped out
//! again, the machine decides. Memory that processes share, and files, are left out, each by its
//! name.

use super::Recording;
use kontig_error::{AskedWrongly, Error};
use kontig_procfs::{BadText, Mapping, Smaps};
use kontig_program::{Gfp, Order};

/// Order, flags and KiB of the pieces that memory is taken in.
const PIECES: [(Order, Gfp, u64); 2] =
    [(Order::HUGE, Gfp::TRANSHUGE, 2048), (Order::new(8), Gfp::HIGHUSER_MOVABLE, 1024)];

/// The memory of a process at a time, KiB.
#[derive(Clone, Copy, Default)]
struct Held {
    huge: u64,
    /// Other anonymous memory, swapped out or not.
    small: u64,
    swapped: u64,
    shared: u64,
    files: u64,
    hugetlb: u64,
}

/// Whether a mapping is of shared memory: `MAP_SHARED` without a file, `memfd_create`, System V's,
/// or a file of a tmpfs that has huge pages.
fn is_shared_memory(mapping: &Mapping) -> bool {
    let names = ["/dev/zero", "/memfd:", "/SYSV", "/dev/shm/", "/[aio]"];
    let is_shared = mapping.permissions.ends_with('s') && names.iter().any(|name| mapping.name.starts_with(name));
    is_shared || mapping.kb("ShmemPmdMapped").is_some_and(|kb| kb > 0)
}

impl Held {
    fn of(smaps: &Smaps) -> Held {
        let mut held = Held::default();
        for mapping in &smaps.mappings {
            let kb = |name: &str| mapping.kb(name).unwrap_or(0);
            let (anonymous, huge) = (kb("Anonymous"), kb("AnonHugePages"));
            let shared = is_shared_memory(mapping);
            // A slot of shared memory is not this process's alone.
            let swapped = if shared { 0 } else { kb("Swap") };
            held.huge += huge;
            held.small += anonymous.saturating_sub(huge) + swapped;
            held.swapped += swapped;
            let others = if shared { &mut held.shared } else { &mut held.files };
            *others += kb("Rss").saturating_sub(anonymous);
            held.hugetlb += kb("Private_Hugetlb") + kb("Shared_Hugetlb");
        }
        held
    }

    /// The larger of each.
    fn max(self, other: Held) -> Held {
        Held {
            huge: self.huge.max(other.huge),
            small: self.small.max(other.small),
            swapped: self.swapped.max(other.swapped),
            shared: self.shared.max(other.shared),
            files: self.files.max(other.files),
            hugetlb: self.hugetlb.max(other.hugetlb),
        }
    }

    fn notes(self) -> Vec<String> {
        let rounded =
            "sizes are rounded: huge pages to 2 MiB, other anonymous memory to 1 MiB; what grew last shrinks first";
        let up_to = [
            (self.swapped, "of its memory were swapped out, and are taken for memory in use"),
            (self.shared, "of shared memory are left out"),
            (self.files, "of files in its memory are left out"),
            (self.hugetlb, "of a hugetlb pool are left out"),
        ];
        let up_to = up_to.into_iter().filter(|(kib, _)| *kib > 0);
        let up_to = up_to.map(|(kib, what)| format!("up to {} MiB {what}", kib.div_ceil(1024)));
        std::iter::once(rounded.into()).chain(up_to).collect()
    }
}

impl Recording {
    /// Reads copies of one process's smaps, taken every `every_s` seconds.
    ///
    /// # Errors
    /// The first line that is none of smaps, or that there is no memory in them.
    pub fn of_smaps(copies: &[(String, String)], every_s: f64) -> Result<Recording, Error> {
        let mut recording = Recording::default();
        let mut places: [Vec<usize>; 2] = Default::default();
        let mut most = Held::default();
        for ((path, text), i) in copies.iter().zip(0u32..) {
            let malformed = |e: BadText| AskedWrongly::Malformed { path: e.file, line: e.line, reason: e.reason };
            let held = Held::of(&Smaps::parse(path, text).map_err(malformed)?);
            most = most.max(held);
            let at_us = (f64::from(i) * every_s * 1e6).round() as u64;
            for ((places, kib), (order, gfp, piece)) in places.iter_mut().zip([held.huge, held.small]).zip(PIECES) {
                let wanted = (kib + piece / 2) / piece;
                while places.len() as u64 > wanted {
                    places.pop().into_iter().for_each(|place| recording.free(0, place, 0, 1 << order.get(), at_us));
                }
                while (places.len() as u64) < wanted {
                    places.push(recording.take(0, at_us, order, gfp));
                }
            }
        }
        let Some((name, _)) = recording.processes.get_mut(&0) else {
            let path = copies.first().map_or("", |(path, _)| path).to_owned();
            let instead = if most.shared > 0 { ": its memory is shared, which is left out" } else { "" };
            let reason = format!("no anonymous memory in it{instead}");
            return Err(AskedWrongly::Malformed { path, line: 1, reason }.into());
        };
        *name = "process".into();
        recording.notes = most.notes();
        Ok(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_workload::trace::recording::Allocation;

    fn smaps(anonymous: u64, huge: u64, more: &str) -> String {
        format!(
            "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \nRss: {} kB\nAnonymous: {anonymous} kB\n\
             AnonHugePages: {huge} kB\n{more}",
            anonymous + 3000
        )
    }

    fn recording(copies: &[String]) -> Result<Recording, String> {
        let copies: Vec<(String, String)> = copies.iter().map(|text| ("s".into(), text.clone())).collect();
        Recording::of_smaps(&copies, 2.0).map_err(|e| e.to_string())
    }

    #[test]
    fn memory_of_smaps_grows_and_shrinks_at_its_times() {
        let copies = [(5000, 4096), (8200, 4096), (2100, 2048)].map(|(anonymous, huge)| smaps(anonymous, huge, ""));
        let recording = recording(&copies).expect("smaps");
        let text = recording.workload("smaps", "tiny-64m");
        // What grew last shrinks first.
        let lines = "0 9 0 -\n0 9 0 4000000\n0 8 1 4000000\n2000000 8 1 2000000\n2000000 8 1 2000000\n\
                     2000000 8 1 2000000\n";
        assert!(text.contains(&format!("\"\"\"\n{lines}\"\"\"")), "{text}");
        assert!(text.contains("\nname = \"process\"\n"), "{text}");
        assert_eq!(recording.notes[1], "up to 3 MiB of files in its memory are left out");
    }

    #[test]
    fn what_was_swapped_out_is_not_given_back() {
        let copies = [smaps(102_400, 0, "Swap: 0 kB\n"), smaps(10_240, 0, "Swap: 92160 kB\n")];
        let recording = recording(&copies).expect("smaps");
        assert_eq!(recording.allocations(), 100);
        assert!(recording.each().all(Allocation::stays), "nothing is freed");
        assert_eq!(recording.notes[1], "up to 90 MiB of its memory were swapped out, and are taken for memory in use");
    }

    #[test]
    fn shared_memory_is_named_apart_from_files() {
        let shared = |name: &str, more: &str| {
            format!("7f1000000000-7f1040000000 rw-s 00000000 00:01 7 {name}\nRss: 4096 kB\nAnonymous: 0 kB\n{more}")
        };
        let notes = |more: &str| recording(&[smaps(4096, 0, more)]).expect("smaps").notes;
        let names = ["/dev/zero (deleted)", "/memfd:doublemapper (deleted)", "/SYSV0052e2c1 (deleted)", "/dev/shm/x"];
        for name in names {
            let said = "up to 4 MiB of shared memory are left out";
            assert_eq!(
                notes(&shared(name, "Swap: 2048 kB\n"))[1..],
                [said, "up to 3 MiB of files in its memory are left out"]
            );
        }
        assert_eq!(notes(&shared("/mnt/a", ""))[1], "up to 7 MiB of files in its memory are left out");
        assert_eq!(
            notes(&shared("/mnt/a", "ShmemPmdMapped: 2048 kB\n"))[1],
            "up to 4 MiB of shared memory are left out"
        );
        assert_eq!(recording(&[smaps(0, 0, "")]).err().expect("refused"), "s:1: no anonymous memory in it");
        let all_shared = recording(&[shared("/dev/zero (deleted)", "")]).err().expect("refused");
        assert_eq!(all_shared, "s:1: no anonymous memory in it: its memory is shared, which is left out");
    }
}
