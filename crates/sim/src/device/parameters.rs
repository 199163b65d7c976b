//! What a machine file says of a disk, and whether that can be.

use crate::state::file::FileSystem;
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};

/// Bytes of a block: a page.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The kinds of disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flash behind PCIe: many queues, and the host orders nothing.
    Nvme,
    /// Flash behind SATA: one queue, ordered by `mq-deadline`.
    Ssd,
    /// Platters: one queue, ordered by `mq-deadline`, then by the drive.
    Hdd,
}

/// A disk of a machine file. MB are 10⁶ bytes, as drives' documents have them.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DiskEntry {
    /// The name it is asked for by.
    pub name: String,
    /// `nvme`, `ssd` or `hdd`.
    pub kind: Kind,
    /// Its size, such as `"1 TiB"`.
    pub size: String,
    /// The file system on it: `ext4`, which is meant where nothing is said, or `xfs`.
    #[serde(default, skip_serializing_if = "FileSystem::is_default")]
    pub filesystem: FileSystem,
    /// Requests it works on at once.
    pub queue_depth: u32,
    /// Requests the host keeps for it, waiting and taken (`queue/nr_requests`); by default what a disk of its kind has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// What it reads of one long run, MB/s.
    pub read_mb_s: f64,
    /// What it writes of one long run, MB/s.
    pub write_mb_s: f64,
    /// Flash: from asking for one block, with nothing else to do, until it is read, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_us: Option<f64>,
    /// Flash: until it is written, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_us: Option<f64>,
    /// Flash: single blocks read a second with a full queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Flash: written a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Platters: turns a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Platters: the average seek, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_ms: Option<f64>,
    /// Platters: the seek to the next track, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_ms: Option<f64>,
    /// Where the figures come from.
    pub source: String,
}

/// The same as whole numbers, ready to be used. An index of 0 is reading, of 1 writing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) kind: Kind,
    pub(crate) blocks: u32,
    pub(crate) queue_depth: u32,
    /// Requests the host keeps for the device.
    pub(crate) nr_requests: Option<u32>,
    /// Moving a block of a long run, ps.
    pub(crate) block_ps: [u64; 2],
    /// Flash: one block alone, ps.
    pub(crate) alone_ps: [u64; 2],
    /// Flash: what a request takes of the device at least, ps.
    pub(crate) request_ps: [u64; 2],
    /// Platters: a turn, ps.
    pub(crate) turn_ps: u64,
    /// Platters: the shortest and the longest seek, ps.
    pub(crate) seek_ps: [u64; 2],
}

/// What is wrong with an entry: the key, and a sentence that begins with it.
pub(crate) type Wrong = (&'static str, String);

/// Of a square root between 0 and 1 at random distances of random places: the mean.
const MEAN_OF_ROOT: f64 = 8.0 / 15.0;

impl DiskEntry {
    /// Its parameters.
    ///
    /// # Errors
    /// If no such disk can be: which key is wrong, and why.
    pub(crate) fn parameters(&self) -> Result<Parameters, Wrong> {
        let bytes = parse_size(&self.size)
            .ok_or_else(|| ("size", format!("size = \"{}\" is not a size such as \"512 GiB\"", self.size)))?;
        let blocks = bytes / BLOCK_BYTES;
        let blocks = u32::try_from(blocks)
            .ok()
            .filter(|n| (1..u32::MAX).contains(n))
            .ok_or_else(|| ("size", format!("size = \"{}\" is not from 4 KiB to 16 TiB", self.size)))?;
        if !(1..=1024).contains(&self.queue_depth) {
            return Err(("queue_depth", format!("queue_depth = {} is not from 1 to 1024", self.queue_depth)));
        }
        if let Some(n) = self.nr_requests.filter(|n| !(1..=10_000).contains(n)) {
            return Err(("nr_requests", format!("nr_requests = {n} is not from 1 to 10000")));
        }
        let block_ps = [
            per_second("read_mb_s", Some(self.read_mb_s * 1e6 / BLOCK_BYTES as f64), self.read_mb_s)?,
            per_second("write_mb_s", Some(self.write_mb_s * 1e6 / BLOCK_BYTES as f64), self.write_mb_s)?,
        ];
        let mut all = Parameters {
            kind: self.kind,
            blocks,
            queue_depth: self.queue_depth,
            nr_requests: self.nr_requests,
            block_ps,
            alone_ps: [0; 2],
            request_ps: [0; 2],
            turn_ps: 0,
            seek_ps: [0; 2],
        };
        let flash = [
            ("read_us", self.read_us),
            ("write_us", self.write_us),
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
        ];
        let platters = [("rpm", self.rpm), ("seek_ms", self.seek_ms), ("track_ms", self.track_ms)];
        match self.kind {
            Kind::Nvme | Kind::Ssd => {
                none_of(&platters, "a disk without platters")?;
                for (way, [alone, iops]) in [[flash[0], flash[2]], [flash[1], flash[3]]].into_iter().enumerate() {
                    all.alone_ps[way] = time(alone, 1e6)?;
                    all.request_ps[way] = per_second(iops.0, iops.1, iops.1.unwrap_or(0.0))?.max(block_ps[way]);
                    self.check_flash(&all, way, alone.0, iops.0)?;
                }
            }
            Kind::Hdd => {
                none_of(&flash, "a disk with platters")?;
                let [(_, rpm), seek, track] = platters;
                all.turn_ps = per_second("rpm", rpm.map(|n| n / 60.0), rpm.unwrap_or(0.0))?;
                let (mean, shortest) = (time(seek, 1e9)?, time(track, 1e9)?);
                if shortest > mean {
                    return Err(("track_ms", "track_ms is more than seek_ms, the average".into()));
                }
                let longest = shortest + ((mean - shortest) as f64 / MEAN_OF_ROOT).round() as u64;
                all.seek_ps = [shortest, longest];
            }
        }
        Ok(all)
    }

    /// A full queue has to be able to reach what is said of it.
    fn check_flash(&self, all: &Parameters, way: usize, alone: &'static str, iops: &'static str) -> Result<(), Wrong> {
        let (each, once) = (all.request_ps[way], all.alone_ps[way]);
        if once < each {
            let reason = format!("{alone} is less than a block takes at that bandwidth and {iops}");
            return Err((alone, reason));
        }
        if once / u64::from(self.queue_depth) > each + each / 50 {
            let reach = (1e12 / once as f64 * f64::from(self.queue_depth)).round();
            let reason =
                format!("{iops} cannot be reached: {} requests at once make {reach} a second", self.queue_depth);
            return Err((iops, reason));
        }
        Ok(())
    }
}

impl Parameters {
    /// Requests the host keeps for the device, waiting and taken (`nr_requests`): where the machine does not say, twice what
    /// the device takes where the host orders them, else as many as an NVMe queue has.
    pub(crate) fn host_requests(&self) -> u32 {
        self.nr_requests.unwrap_or(match self.kind {
            Kind::Nvme => 1023,
            Kind::Ssd | Kind::Hdd => 2 * self.queue_depth.min(128),
        })
    }
}

/// The time of one where so many are done a second, ps. `said` is what the file has.
fn per_second(key: &'static str, rate: Option<f64>, said: f64) -> Result<u64, Wrong> {
    let Some(rate) = rate else { return Err((key, format!("{key} is missing"))) };
    if !(1e-3..=1e9).contains(&rate) {
        return Err((key, format!("{key} = {said}: a disk needs more than that, and less than 10⁹ a second")));
    }
    Ok((1e12 / rate).round() as u64)
}

/// A time, ps.
fn time((key, value): (&'static str, Option<f64>), unit_ps: f64) -> Result<u64, Wrong> {
    let Some(value) = value else { return Err((key, format!("{key} is missing"))) };
    if !(0.0..=10e12).contains(&(value * unit_ps)) {
        return Err((key, format!("{key} = {value} is not from 0 to 10 seconds")));
    }
    Ok((value * unit_ps).round() as u64)
}

fn none_of(keys: &[(&'static str, Option<f64>)], who: &str) -> Result<(), Wrong> {
    match keys.iter().find(|(_, value)| value.is_some()) {
        Some((key, _)) => Err((key, format!("{key}: {who} has none"))),
        None => Ok(()),
    }
}
