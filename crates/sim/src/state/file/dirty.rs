//! Dirty page limits, and the throttling of writers.
//!
//! The limits are shares of the dirtyable memory, which is what is free above the reserves plus the
//! pages of files; or they are given in bytes (`vm.dirty_*`). Above a tenth the flusher writes in
//! the background; half-way to a fifth writers are throttled, so that together they dirty as much
//! as the disk writes. That rate is estimated from the pages written and dirtied in the last 200
//! ms, and corrected by a curve that pulls the number of dirty pages to the middle between the
//! start of throttling and the limit. Source: `mm/page-writeback.c` of 6.1. A disk's share of the
//! limit is its share of all disks' bandwidth, where the kernel uses the pages each has recently
//! written.

use super::Files;
use kontig_mm::{LruList, Memory, Wmark};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// Interval between two estimates (`BANDWIDTH_INTERVAL`).
const INTERVAL: u64 = 200 * MS;
/// The longest pause (`MAX_PAUSE`).
const MOST_PAUSE: u64 = 200 * MS;
/// A disk's bandwidth until it has been measured: 100 MB/s, in pages per second.
const INIT_BANDWIDTH: u64 = 100 << (20 - 12);
/// Pages dirtied between two checks at first: 128 KiB (`DIRTY_POLL_THRESH`).
const POLL: u64 = 32;
/// The curve's values are fractions of this.
const ONE: i128 = 1 << 10;

/// The limits at one moment, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) background: u64,
    pub(crate) limit: u64,
}

impl Limits {
    /// The limits for the memory dirtyable now.
    pub(crate) fn now(m: &Memory) -> Limits {
        let reserved = |zone: &kontig_mm::Zone| {
            let kept = zone.lowmem_reserve.iter().copied().max().unwrap_or(0) + zone.watermarks.get(Wmark::High);
            kept.min(zone.managed)
        };
        let free: u64 = m.zones().iter().map(|zone| zone.nr_free_pages()).sum();
        let reserves: u64 = m.zones().iter().map(reserved).sum();
        let of_files = |list| m.lru().vecs().iter().map(|vec| vec.size(list)).sum::<u64>();
        let dirtyable =
            free.saturating_sub(reserves) + of_files(LruList::InactiveFile) + of_files(LruList::ActiveFile) + 1;
        let set = m.tunables().dirty;
        let limit = set.limit.pages(dirtyable);
        // A background limit above the limit is replaced by half of it.
        let background = Some(set.background.pages(dirtyable)).filter(|background| *background < limit);
        Limits { background: background.unwrap_or(limit / 2), limit }
    }

    /// The number of dirty pages below which nobody is throttled.
    fn freerun(self) -> u64 {
        (self.background + self.limit) / 2
    }
}

/// A disk's writeback statistics (`bdi_writeback`), in pages and pages per second.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    /// Pages dirtied and written so far.
    pub(crate) dirtied: u64,
    pub(crate) written: u64,
    /// The time of the last estimate, and the values then.
    at: u64,
    dirtied_then: u64,
    written_then: u64,
    write: u64,
    /// The write bandwidth, smoothed.
    pub(crate) average: u64,
    /// The rate allowed to each writer, and the rate that would be balanced.
    dirty_limit: u64,
    balanced: u64,
    /// Pages dirty or under writeback.
    pub(crate) pending: u64,
}

impl Default for Bandwidth {
    fn default() -> Bandwidth {
        Bandwidth {
            dirtied: 0,
            written: 0,
            at: 0,
            dirtied_then: 0,
            written_then: 0,
            write: INIT_BANDWIDTH,
            average: INIT_BANDWIDTH,
            dirty_limit: INIT_BANDWIDTH,
            balanced: INIT_BANDWIDTH,
            pending: 0,
        }
    }
}

impl Bandwidth {
    /// Updates the estimates if the interval is over. `ratio` says how far the dirty pages are from
    /// the setpoint.
    fn update(&mut self, now: u64, dirty: u64, limits: Limits, ratio: i128) {
        let elapsed = now.saturating_sub(self.at);
        if elapsed < INTERVAL {
            return;
        }
        let since = |now: u64, then: u64| (u128::from(now - then) * u128::from(SECOND) / u128::from(elapsed)) as u64;
        if elapsed <= SECOND {
            // After a longer time without throttling, the rate of dirtying is unknown.
            self.update_limit(since(self.dirtied, self.dirtied_then), dirty, limits, ratio);
        }
        self.update_write(elapsed);
        (self.at, self.dirtied_then, self.written_then) = (now, self.dirtied, self.written);
    }

    fn update_write(&mut self, elapsed: u64) {
        // Three seconds, rounded up to a power of two of ticks.
        const PERIOD: u128 = 4096 * 1_000_000;
        let written = u128::from(self.written - self.written_then) * u128::from(SECOND);
        let elapsed = u128::from(elapsed);
        if elapsed > PERIOD {
            self.write = (written / elapsed) as u64;
            self.average = self.write.max(1);
            return;
        }
        let bandwidth = ((written + u128::from(self.write) * (PERIOD - elapsed)) / PERIOD) as u64;
        let (old, average) = (self.write, self.average);
        if average > old && old >= bandwidth {
            self.average -= (average - old) >> 3;
        }
        if average < old && old <= bandwidth {
            self.average += (old - average) >> 3;
        }
        self.average = self.average.max(1);
        self.write = bandwidth;
    }

    fn update_limit(&mut self, dirty_rate: u64, dirty: u64, limits: Limits, ratio: i128) {
        let setpoint = (limits.freerun() + limits.limit) / 2;
        let task = scaled(self.dirty_limit, ratio) + 1;
        let balanced = (u128::from(task) * u128::from(self.average) / u128::from(dirty_rate | 1)) as u64;
        let balanced = balanced.min(self.average);
        let now = self.dirty_limit;
        let step = if dirty < setpoint {
            self.balanced.min(balanced).min(task).saturating_sub(now)
        } else {
            now.saturating_sub(self.balanced.max(balanced).max(task))
        };
        let shift = now / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.dirty_limit = if now < balanced { now + step } else { now - step.min(now) }.max(1);
        self.balanced = balanced;
    }
}

fn scaled(rate: u64, ratio: i128) -> u64 {
    (i128::from(rate) * ratio / ONE) as u64
}

/// The factor from the balanced rate to a writer's rate (`wb_position_ratio`), in fractions of
/// [`ONE`].
fn position_ratio(dirty: u64, limits: Limits, of_disk: u64, disk_limit: u64, bandwidth: u64) -> i128 {
    let [dirty, limit, of_disk] = [dirty, limits.limit, of_disk].map(i128::from);
    if dirty >= limit {
        return 0;
    }
    let setpoint = (i128::from(limits.freerun()) + limit) / 2;
    let x = (((setpoint - dirty) * ONE) / ((limit - setpoint) | 1)).clamp(-ONE * 64, ONE * 64);
    let mut ratio = ((x * x / ONE * x) / ONE + ONE).clamp(0, 2 * ONE);
    let disk_limit = i128::from(disk_limit.min(limits.limit)).max((limit - dirty) / 8);
    let share = (disk_limit << 16) / (limit | 1);
    let disk_setpoint = (setpoint * share) >> 16;
    let span = ((limit - disk_limit + 8 * i128::from(bandwidth)) * share) >> 16;
    let intercept = disk_setpoint + span;
    ratio = if of_disk < intercept - span / 4 {
        ratio * (intercept - of_disk) / ((intercept - disk_setpoint) | 1)
    } else {
        ratio / 4
    };
    // A disk with few dirty pages gets more.
    let little = disk_limit / 2;
    if of_disk < little {
        ratio = if of_disk > little / 8 { ratio * little / of_disk } else { ratio * 8 };
    }
    ratio
}

/// Pages a process has dirtied since its last pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirtier {
    pub(crate) dirtied: u64,
    /// Number of pages after which it checks the limits.
    pub(crate) looks_after: u64,
    /// The time up to which it has paused for the pages it dirtied.
    paid_until: u64,
}

impl Default for Dirtier {
    fn default() -> Dirtier {
        Dirtier { dirtied: 0, looks_after: POLL, paid_until: 0 }
    }
}

/// Actions for a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Balance {
    /// Wake the flusher to write in the background.
    pub(crate) background: bool,
    /// Length of the pause, ns; 0 for none.
    pub(crate) pause: u64,
    /// Check again after the pause before writing anything: the limit is reached.
    pub(crate) again: bool,
}

impl Files {
    /// Checks the dirty limits after writes to a disk's files (`balance_dirty_pages`).
    pub(crate) fn balance_dirty(&mut self, m: &Memory, disk: u8, process: u32, now: u64) -> Balance {
        let limits = Limits::now(m);
        let dirty = self.counts.dirty + self.counts.writeback;
        let mut balance = Balance { background: self.counts.dirty > limits.background, pause: 0, again: false };
        let average_of_all: u64 = self.writing.iter().map(|w| w.bandwidth.average).sum();
        let dirtier = &mut self.dirtiers[process as usize];
        let bandwidth = &mut self.writing[usize::from(disk)].bandwidth;
        if dirty <= limits.freerun() {
            // The further away the limit, the longer until the next check.
            let room = limits.limit.saturating_sub(dirty);
            let looks_after = if room > 0 { 1 << (room.ilog2() / 2) } else { 1 };
            *dirtier = Dirtier { dirtied: 0, looks_after, paid_until: now };
            return balance;
        }
        balance.background = true;
        let disk_limit = (u128::from(limits.limit) * u128::from(bandwidth.average) / u128::from(average_of_all)) as u64;
        let ratio = position_ratio(dirty, limits, bandwidth.pending, disk_limit, bandwidth.average);
        bandwidth.update(now, dirty, limits, ratio);
        let rate = scaled(bandwidth.dirty_limit, ratio);
        // No longer than the disk has work for.
        let most = (bandwidth.pending * SECOND / (8 * bandwidth.average + 1) + MS).min(MOST_PAUSE);
        let (least, looks_after) = pauses(bandwidth, rate, most);
        let pages = dirtier.dirtied;
        let period = (pages * SECOND).checked_div(rate).unwrap_or(most);
        let since = if dirtier.paid_until == 0 { 0 } else { now.saturating_sub(dirtier.paid_until) };
        let pause = if rate == 0 { most as i64 } else { period as i64 - since as i64 };
        if pause < least as i64 {
            if pause < -(SECOND as i64) {
                (dirtier.paid_until, dirtier.dirtied) = (now, 0);
            } else if period > 0 {
                (dirtier.paid_until, dirtier.dirtied) = (dirtier.paid_until + period, 0);
            } else if dirtier.looks_after <= pages {
                dirtier.looks_after += pages;
            }
            return balance;
        }
        let (pause, owed) = waited_and_owed(pause as u64, most);
        (balance.pause, balance.again) = (pause, rate == 0);
        *dirtier = Dirtier { dirtied: 0, looks_after, paid_until: now + owed + balance.pause };
        balance
    }
}

/// Divides a pause into the part made at once and the part owed afterwards, each at most the
/// longest pause.
fn waited_and_owed(pause: u64, most: u64) -> (u64, u64) {
    (pause.min(most), pause.saturating_sub(most).min(most))
}

/// The shortest pause worth making, and the number of pages until the next check (`wb_min_pause`).
fn pauses(bandwidth: &Bandwidth, rate: u64, most: u64) -> (u64, u64) {
    let limit = bandwidth.dirty_limit.max(1);
    let mut target = 10 * MS;
    let (high, low) = (bandwidth.average.max(1).ilog2(), limit.ilog2());
    // The more writers there are, the longer each pauses.
    target += u64::from(high.saturating_sub(low)) * 10 * SECOND / 1024;
    target = target.min(MS + most / 2);
    let mut pages = limit * target / SECOND;
    if pages < POLL {
        target = most;
        pages = limit * target / SECOND;
        if pages > POLL {
            pages = POLL;
            target = SECOND * POLL / limit;
        }
    }
    if SECOND * pages / (rate + 1) > most {
        target = most;
        pages = rate * target / SECOND;
    }
    (if pages >= POLL { MS + target / 2 } else { target }, pages.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { background: 1000, limit: 2000 };

    #[test]
    fn the_curve_is_one_in_the_middle_and_nothing_at_the_limit() {
        let at = |dirty| position_ratio(dirty, LIMITS, dirty, 2000, 25_600);
        let middle = at(1750);
        assert!((ONE - 5..=ONE + 5).contains(&middle), "{middle}");
        assert!(at(1500) > 3 * ONE / 2 && at(1990) < ONE / 7);
        assert_eq!(at(2000), 0);
    }

    #[test]
    fn the_bandwidth_comes_to_what_is_written() {
        let mut b = Bandwidth::default();
        for second in 1..100u64 {
            b.written += 10_000;
            b.dirtied += 10_000;
            b.update(second * SECOND, 1750, LIMITS, ONE);
        }
        assert!((9_900..10_200).contains(&b.average), "{b:?}");
    }

    #[test]
    fn time_beyond_the_longest_pause_is_owed_up_to_another() {
        assert_eq!(waited_and_owed(5, 10), (5, 0));
        assert_eq!(waited_and_owed(13, 10), (10, 3));
        assert_eq!(waited_and_owed(99, 10), (10, 10));
    }

    #[test]
    fn a_writers_rate_falls_while_too_much_is_dirty_and_rises_while_too_little_is() {
        let after = |dirty: u64, ratio: i128| {
            let mut b = Bandwidth { dirty_limit: 12_000, balanced: 12_000, ..Bandwidth::default() };
            for fifth in 1..10u64 {
                (b.written, b.dirtied) = (fifth * 5_000, fifth * 5_000);
                b.update(fifth * INTERVAL, dirty, LIMITS, ratio);
            }
            b.dirty_limit
        };
        assert!(after(1900, ONE / 2) < 11_000 && after(1600, 2 * ONE) > 13_000);
        assert_eq!(after(1900, 2 * ONE), 12_000, "never against what the pages say");
    }
}
