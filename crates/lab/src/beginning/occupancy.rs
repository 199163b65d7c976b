//! Memory drawn from a distribution, pageblock by pageblock.

use super::frames::{BLOCK, Frames, State, by_chance};
use kontig_mm::{MigrateType, ZoneSpec};
use kontig_program::SplitMix64;
use kontig_workload::occupancy::{Layout, Occupancy, Share, Unmovable};

/// Gives every frame its use.
pub(super) fn fill(of: &Occupancy, frames: &mut Frames, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let zones = frames.spec.zones.clone();
    for zone in &zones {
        if let Some(unmovable) = &of.unmovable {
            for block in with_kernel_pages(unmovable, zone, &mut random) {
                frames.types[block] = MigrateType::Unmovable;
                put(frames, block, unmovable.pages, &mut random, |_| State::Kernel);
            }
        }
        let blocks: Vec<usize> = blocks(zone).collect();
        for (block, pages) in blocks.iter().zip(movable(&of.movable, blocks.len(), &mut random)) {
            let state = |random: &mut SplitMix64| match by_chance(of.files, random) {
                true => State::File,
                false => State::Process,
            };
            put(frames, *block, pages, &mut random, state);
        }
    }
}

fn blocks(zone: &ZoneSpec) -> impl Iterator<Item = usize> {
    (zone.start as usize / BLOCK)..(zone.end as usize / BLOCK)
}

/// The number of a zone's pageblocks that a share is.
fn part(share: f64, blocks: usize) -> usize {
    ((share / 100.0 * blocks as f64).round() as usize).min(blocks)
}

/// The pageblocks of a zone that hold pages of the kernel.
fn with_kernel_pages(of: &Unmovable, zone: &ZoneSpec, random: &mut SplitMix64) -> Vec<usize> {
    let mut all: Vec<usize> = blocks(zone).collect();
    let n = part(of.share, all.len());
    match of.layout {
        Layout::Together => all.truncate(n),
        Layout::Spread => all = (0..n).map(|i| all[i * all.len() / n]).collect(),
        Layout::Random => {
            random.choose(&mut all, n);
            all.truncate(n);
            all.sort_unstable();
        }
    }
    all
}

/// Each pageblock's range of movable pages: the shares as they are, in random order.
fn movable(shares: &[Share], blocks: usize, random: &mut SplitMix64) -> Vec<[u32; 2]> {
    let mut all = Vec::with_capacity(blocks);
    let mut sum = 0.0;
    for Share { share, pages } in shares {
        sum += share;
        all.resize(part(sum, blocks).max(all.len()), *pages);
    }
    // Rounding may leave one without.
    let last = shares.last().map_or([0, 0], |of| of.pages);
    all.resize(blocks, last);
    random.shuffle(&mut all);
    all
}

/// Draws how many of a pageblock's free frames get this use, and which. Of a pageblock that the
/// firmware has a part of, the part that is left gets its share.
fn put(
    frames: &mut Frames,
    block: usize,
    [least, most]: [u32; 2],
    random: &mut SplitMix64,
    mut state: impl FnMut(&mut SplitMix64) -> State,
) {
    let has = frames.of_block(block);
    let pages = (least + random.below(most - least + 1)) as usize * has.len() / BLOCK;
    let mut free: Vec<usize> = has.filter(|pfn| frames.states[*pfn] == State::Free).collect();
    random.choose(&mut free, pages);
    for pfn in free.into_iter().take(pages) {
        frames.states[pfn] = state(random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_mm::{MachineSpec, ZoneType};

    const BLOCKS: usize = 40;

    fn filled(text: &str, seed: u64) -> Frames {
        let end = (BLOCKS * BLOCK) as u32;
        let managed = u64::from(end) - 256;
        let zone = ZoneSpec { node: 0, kind: ZoneType::Dma32, start: 0, end, present: end.into(), managed };
        let mut frames = Frames::new(MachineSpec { cpus: 1, zones: vec![zone], thp: false, lru: true });
        fill(&toml::from_str(text).expect("well-formed"), &mut frames, seed);
        frames
    }

    fn counts(frames: &Frames, state: State) -> Vec<usize> {
        let of = |block: &[State]| block.iter().filter(|s| **s == state).count();
        frames.states.chunks(BLOCK).map(of).collect()
    }

    const MIXED: &str = "movable = [{ share = 50, pages = [512, 512] }, { share = 25, pages = [0, 0] }, \
                         { share = 25, pages = [100, 101] }]\nfiles = 50\n";

    #[test]
    fn shares_of_the_pageblocks_have_the_pages_stated_of_processes_and_files() {
        let frames = filled(MIXED, 1);
        let [anon, file] = [State::Process, State::File].map(|state| counts(&frames, state));
        let mut both: Vec<usize> = anon.iter().zip(&file).map(|(a, b)| a + b).collect();
        // The first pageblock has half of its frames.
        both[0] *= 2;
        both.sort_unstable();
        assert_eq!(both[..10], [0; 10]);
        assert!(both[10..20].iter().all(|n| [100, 101].contains(n)), "{both:?}");
        assert_eq!(both[20..], [512; 20]);
        let [anon, file] = [anon, file].map(|of| of.iter().sum::<usize>() as f64);
        assert!((0.9..1.1).contains(&(anon / file)), "{anon} and {file}");
    }

    #[test]
    fn the_state_is_the_seeds_and_the_engine_has_it() {
        let states = |seed| filled(MIXED, seed).states;
        assert_eq!(states(1), states(1));
        assert_ne!(states(1), states(2));
        let frames = filled(MIXED, 1);
        let memory = frames.memory(&kontig_profiles::linux("6.1")).expect("a machine");
        memory.check().expect("a consistent one");
        let free = frames.states.iter().filter(|state| **state == State::Free).count();
        assert_eq!(memory.nr_free_pages(), free as u64);
        assert_eq!(frames.users().len(), frames.states.len() - 256 - free);
    }

    #[test]
    fn pageblocks_with_kernel_pages_lie_as_stated() {
        let of = |layout: &str| {
            let unmovable = format!("unmovable = {{ share = 10, pages = [7, 7], layout = '{layout}' }}");
            let frames = filled(&format!("movable = [{{ share = 100, pages = [512, 512] }}]\n{unmovable}"), 1);
            let kernel = counts(&frames, State::Kernel);
            let with: Vec<usize> = (0..BLOCKS).filter(|block| kernel[*block] > 0).collect();
            let types: Vec<usize> =
                (0..BLOCKS).filter(|block| frames.types[*block] == MigrateType::Unmovable).collect();
            assert_eq!((&with, counts(&frames, State::Free).iter().sum::<usize>()), (&types, 0));
            with
        };
        assert_eq!(of("together"), [0, 1, 2, 3]);
        assert_eq!(of("spread"), [0, 10, 20, 30]);
        assert_eq!(of("random").len(), 4);
    }
}
