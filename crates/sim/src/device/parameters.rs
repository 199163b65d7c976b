//! Disks in machine files: parsing, checks and service times.

use crate::state::file::FileSystem;
use kontig_text::parse_size;
use serde::{Deserialize, Serialize};

/// Bytes of a block: a page.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The kind of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flash behind PCIe: many queues, not ordered by the host.
    Nvme,
    /// Flash behind SATA: one queue, ordered by `mq-deadline`.
    Ssd,
    /// Hard disk: one queue, ordered by `mq-deadline`, then by the drive.
    Hdd,
}

/// A disk of a machine file. MB are 10⁶ bytes, as in the drives' data sheets.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DiskEntry {
    /// The name to select it by.
    pub name: String,
    /// `nvme`, `ssd` or `hdd`.
    pub kind: Kind,
    /// Its size, such as `"1 TiB"`.
    pub size: String,
    /// The file system on it: `ext4`, the default, or `xfs`.
    #[serde(default, skip_serializing_if = "FileSystem::is_default")]
    pub filesystem: FileSystem,
    /// Requests that the device works on at once.
    pub queue_depth: u32,
    /// Requests the host keeps for it, waiting and taken (`queue/nr_requests`); the default depends
    /// on its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// The largest request that is merged of adjacent ones, in KiB (`queue/max_sectors_kb`); 1,280
    /// by default. A longer one stays whole, where kernels split it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sectors_kb: Option<u32>,
    /// Sequential read bandwidth, MB/s.
    pub read_mb_s: f64,
    /// Sequential write bandwidth, MB/s.
    pub write_mb_s: f64,
    /// Flash: latency of reading one block on an idle device, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_us: Option<f64>,
    /// Flash: latency of writing one block, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_us: Option<f64>,
    /// Flash: single blocks read per second with a full queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Flash: single blocks written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Hard disk: revolutions per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Hard disk: average seek, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seek_ms: Option<f64>,
    /// Hard disk: seek to the next track, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_ms: Option<f64>,
    /// Source of the figures.
    pub source: String,
}

/// The same as whole numbers, ready for use. Index 0 is reading, 1 writing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) kind: Kind,
    pub(crate) blocks: u32,
    pub(crate) queue_depth: u32,
    /// Requests that the host keeps for the device.
    pub(crate) nr_requests: Option<u32>,
    /// Blocks of the largest merged request.
    pub(crate) most_blocks: u32,
    /// Time per block of a sequential run, ps.
    pub(crate) block_ps: [u64; 2],
    /// Flash: time of a lone block, ps.
    pub(crate) alone_ps: [u64; 2],
    /// Flash: least time of the device per request, ps.
    pub(crate) request_ps: [u64; 2],
    /// Hard disk: one revolution, ps.
    pub(crate) turn_ps: u64,
    /// Hard disk: shortest and longest seek, ps.
    pub(crate) seek_ps: [u64; 2],
}

/// The largest merged request, KiB (`BLK_DEF_MAX_SECTORS`).
const MAX_SECTORS_KB: u32 = 1280;

/// An error in an entry: the key, and a sentence that begins with it.
pub(crate) type Wrong = (&'static str, String);

/// Mean of the square root of the distance between two random positions in 0..1.
const MEAN_OF_ROOT: f64 = 8.0 / 15.0;

impl DiskEntry {
    /// Checks the entry and converts it.
    ///
    /// # Errors
    /// The wrong key, and the reason.
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
        let max_sectors_kb = self.max_sectors_kb.unwrap_or(MAX_SECTORS_KB);
        if !(4..=65_536).contains(&max_sectors_kb) {
            return Err(("max_sectors_kb", format!("max_sectors_kb = {max_sectors_kb} is not from 4 to 65536")));
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
            most_blocks: max_sectors_kb / (BLOCK_BYTES as u32 >> 10),
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

    /// Checks that a full queue can reach the rate for single blocks.
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
    /// Requests that the host keeps for the device, waiting and taken (`nr_requests`). By default
    /// twice the device's queue depth where the host orders them, else the depth of an NVMe queue.
    pub(crate) fn host_requests(&self) -> u32 {
        self.nr_requests.unwrap_or(match self.kind {
            Kind::Nvme => 1023,
            Kind::Ssd | Kind::Hdd => 2 * self.queue_depth.min(128),
        })
    }
}

/// Time of one operation at this rate per second, ps. `said` is the value in the file.
fn per_second(key: &'static str, rate: Option<f64>, said: f64) -> Result<u64, Wrong> {
    let Some(rate) = rate else { return Err((key, format!("{key} is missing"))) };
    if !(1e-3..=1e9).contains(&rate) {
        return Err((key, format!("{key} = {said}: a disk needs more than that, and less than 10⁹ a second")));
    }
    Ok((1e12 / rate).round() as u64)
}

/// Converts a time to ps.
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
