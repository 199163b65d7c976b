//! XFS's log: changes gather in memory, are logged together, and are written in place later.
//!
//! An item is an inode or a buffer. The changes of all transactions gather (the CIL) until they
//! fill an eighth of the log, are 30 seconds old, or are forced. Then they become a checkpoint,
//! which is written to the log in consecutive pieces of 32 KiB. After that their vectors are freed,
//! and the items wait to be written in place (the AIL), the first logged in front. Log space is
//! free again up to the first waiting item. When less than a quarter is free, items are written in
//! place; when none is, tasks with changes wait.

use crate::base::queue::{QueueId, Queues};
use crate::base::sequence::Sequence;
use crate::state::file::slab::Object;
use crate::state::file::{Cache, Files};
use kontig_mm::{CpuId, Memory};

const BLOCK: u64 = 4096;
/// Blocks of an iclog (`l_iclog_size`).
pub(crate) const PIECE: u32 = 8;
/// Interval of the log worker (`xfssyncd_centisecs`), ns.
pub(crate) const WORKER_NS: u64 = 30_000_000_000;
/// Log space of an inode's change: its format (56 bytes), the inode (176), an extent (16), and a
/// header of 12 for each.
const INODE_BYTES: u64 = 56 + 176 + 16 + 3 * 12;
/// Log space of a directory block's change: its format (88 bytes) and two pieces of 128 bytes, the
/// entry's and the block's tail, with headers.
const BUFFER_BYTES: u64 = 88 + 2 * 128 + 3 * 12;
/// Items of a checkpoint handled in one step.
const AT_ONCE: u32 = 64;
/// Log space kept free for transactions in progress.
const RESERVED: u64 = 1 << 20;

/// The log's size by `mkfs.xfs`: a 2048th of the file system, from 10 MiB to 2 GiB; of one too
/// small for that a sixteenth.
pub(super) fn blocks(of: u32) -> u32 {
    (of / 2048).clamp(2560, 1 << 19).min(of / 16)
}

/// An item of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Inode(u32),
    Buffer(u32),
}

impl Item {
    fn number(self) -> u32 {
        match self {
            Item::Inode(number) => number << 1,
            Item::Buffer(number) => number << 1 | 1,
        }
    }
    fn of_number(number: u32) -> Item {
        if number & 1 == 0 { Item::Inode(number >> 1) } else { Item::Buffer(number >> 1) }
    }
    /// The slab cache of its log item.
    fn cache(self) -> Cache {
        match self {
            Item::Inode(_) => Cache::XfsInodeItem,
            Item::Buffer(_) => Cache::XfsBufferItem,
        }
    }
    fn bytes(self) -> u64 {
        match self {
            Item::Inode(_) => INODE_BYTES,
            Item::Buffer(_) => BUFFER_BYTES,
        }
    }
}

/// An item's state in the log.
#[derive(Clone, Default, Debug)]
pub(crate) struct Logged {
    item: Option<Object>,
    /// Log vectors: for the next change (`li_lv_shadow`), in the CIL, and in the checkpoint being
    /// written.
    shadow: Option<Object>,
    gathers: Option<Object>,
    committing: Option<Object>,
    /// Its position in the log while it waits to be written in place, and the position when that
    /// write began.
    at: Option<u64>,
    flushed_at: Option<u64>,
}

impl Logged {
    /// Whether a change of it is only in memory.
    pub(crate) fn is_pinned(&self) -> bool {
        self.gathers.is_some() || self.committing.is_some()
    }
    /// Whether its copy on the disk is up to date.
    pub(crate) fn is_clean(&self) -> bool {
        !self.is_pinned() && self.at.is_none()
    }
}

/// The log of a file system.
#[derive(Clone)]
pub(crate) struct Log {
    first: u32,
    blocks: u32,
    /// Bytes ever written to it.
    head: u64,
    /// The CIL, and its size in the log.
    cil: Vec<Item>,
    cil_bytes: u64,
    /// The checkpoint being written, its start, and its pieces in flight.
    committing: Vec<Item>,
    committing_at: u64,
    pub(crate) pieces: u32,
    /// Everything logged before this position must be written in place, whether space is short or
    /// not.
    push_to: u64,
    /// Numbers of checkpoints: of the one gathering, the last one forced, and the last one written.
    sequence: u64,
    pub(crate) wanted: u64,
    done: u64,
    /// Items logged but not in place; and those of them not being written.
    ail: Sequence,
    idle: Sequence,
    /// Queues of the two threads, of tasks that wait for space, and of those that wait for a
    /// checkpoint.
    pub(crate) checkpoints: QueueId,
    pub(crate) pusher: QueueId,
    pub(crate) space: QueueId,
    pub(crate) written: QueueId,
}

impl Log {
    pub(super) fn new(first: u32, blocks: u32, queues: &mut Queues) -> Log {
        Log {
            first,
            blocks,
            head: 0,
            cil: Vec::new(),
            cil_bytes: 0,
            committing: Vec::new(),
            committing_at: 0,
            pieces: 0,
            push_to: 0,
            sequence: 1,
            wanted: 0,
            done: 0,
            ail: Sequence::default(),
            idle: Sequence::default(),
            checkpoints: queues.add(),
            pusher: queues.add(),
            space: queues.add(),
            written: queues.add(),
        }
    }

    fn size(&self) -> u64 {
        u64::from(self.blocks) * BLOCK
    }

    /// Whether there are changes in the CIL.
    pub(crate) fn gathers(&self) -> bool {
        !self.cil.is_empty()
    }

    /// Whether the CIL has a single change, which must start the worker again.
    pub(crate) fn is_first(&self) -> bool {
        self.cil.len() == 1
    }

    /// Whether a checkpoint is being written.
    pub(crate) fn commits(&self) -> bool {
        !self.committing.is_empty()
    }

    /// Whether the CIL must be written now.
    pub(crate) fn is_due(&self) -> bool {
        self.gathers() && (self.cil_bytes >= self.size() / 8 || self.wanted >= self.sequence)
    }

    /// Forces all changes so far to the log; the checkpoint to wait for.
    pub(crate) fn force(&mut self) -> u64 {
        let last = if self.gathers() { self.sequence } else { self.sequence - 1 };
        self.wanted = self.wanted.max(last);
        last
    }

    /// The work of every 30 seconds: forces all changes to the log, and pushes all logged items in
    /// place.
    pub(crate) fn work(&mut self) {
        self.force();
        self.push_to = self.head;
    }

    /// Whether the worker has something to do.
    pub(crate) fn has_work(&self) -> bool {
        self.gathers() || self.ail.len() > 0
    }

    /// Whether this checkpoint is in the log.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// The position of the first item not in place.
    fn tail(&self, files: &Files, disk: u8) -> u64 {
        let oldest = self.ail.first().and_then(|number| files.logged(disk, Item::of_number(number)).at);
        oldest.unwrap_or(if self.commits() { self.committing_at } else { self.head })
    }
}

impl Files {
    /// The state of an item in a disk's log.
    pub(crate) fn logged(&self, disk: u8, item: Item) -> &Logged {
        match item {
            Item::Inode(number) => &self.inodes[number].logged,
            Item::Buffer(number) => {
                let xfs = self.xfs[usize::from(disk)].as_ref().expect("the disk's file system is XFS");
                &xfs.buffers.all[number].logged
            }
        }
    }

    fn logged_mut(&mut self, disk: u8, item: Item) -> &mut Logged {
        match item {
            Item::Inode(number) => &mut self.inodes[number].logged,
            Item::Buffer(number) => &mut self.xfs(disk).buffers.all[number].logged,
        }
    }

    fn is_there(&mut self, disk: u8, item: Item) -> bool {
        match item {
            Item::Inode(number) => self.inodes.get(number).is_some(),
            Item::Buffer(number) => self.xfs(disk).buffers.all.get(number).is_some(),
        }
    }

    /// Bytes of the log in use, including the CIL's.
    pub(crate) fn log_used(&self, disk: u8) -> u64 {
        let log = &self.xfs[usize::from(disk)].as_ref().expect("the disk's file system is XFS").log;
        log.head + log.cil_bytes - log.tail(self, disk)
    }

    /// Whether another change fits into the log.
    pub(crate) fn log_has_space(&mut self, disk: u8) -> bool {
        let size = self.xfs(disk).log.size();
        self.log_used(disk) + RESERVED.min(size / 16) < size
    }

    /// The object that an item lacks before it can be logged.
    pub(crate) fn log_lacks(&self, disk: u8, item: Item) -> Option<Cache> {
        let logged = self.logged(disk, item);
        match (logged.item, logged.shadow) {
            (None, _) => Some(item.cache()),
            (_, None) => Some(Cache::LogVector),
            _ => None,
        }
    }

    /// Gives an item an object that it lacked. False if it has one by now.
    pub(crate) fn give_log(&mut self, disk: u8, item: Item, cache: Cache, object: Object) -> bool {
        if self.log_lacks(disk, item) != Some(cache) {
            return false;
        }
        let logged = self.logged_mut(disk, item);
        let place = if cache == Cache::LogVector { &mut logged.shadow } else { &mut logged.item };
        *place = Some(object);
        true
    }

    /// Adds a change of an item that has its objects to the CIL.
    pub(crate) fn log_change(&mut self, disk: u8, item: Item) {
        let logged = self.logged_mut(disk, item);
        if logged.gathers.is_some() {
            // It overwrites the earlier change; the new vector is kept for the next checkpoint.
            return;
        }
        logged.gathers = logged.shadow.take();
        debug_assert!(logged.gathers.is_some() && logged.item.is_some());
        if let Item::Buffer(number) = item {
            self.xfs(disk).buffers.hold(number);
        }
        let log = &mut self.xfs(disk).log;
        log.cil.push(item);
        log.cil_bytes += item.bytes();
    }

    /// Turns the CIL into a checkpoint; the runs of blocks to write.
    pub(crate) fn begin_checkpoint(&mut self, disk: u8) -> Vec<(u32, u32)> {
        let log = &mut self.xfs(disk).log;
        debug_assert!(!log.commits());
        let gathered = std::mem::take(&mut log.cil);
        log.committing_at = log.head;
        let pages = std::mem::take(&mut log.cil_bytes).div_ceil(BLOCK);
        let at = log.head / BLOCK;
        log.head += pages * BLOCK;
        log.sequence += 1;
        let (first, blocks) = (log.first, u64::from(log.blocks));
        let mut committing = Vec::with_capacity(gathered.len());
        for item in gathered {
            // The number of an evicted inode may have been reused.
            if !self.is_there(disk, item) {
                continue;
            }
            let logged = self.logged_mut(disk, item);
            if let Some(vector) = logged.gathers.take() {
                logged.committing = Some(vector);
                committing.push(item);
            }
        }
        // Popping from the end handles the items in the order logged.
        committing.reverse();
        self.xfs(disk).log.committing = committing;
        let mut runs = Vec::new();
        let mut next = at;
        while next < at + pages {
            let place = next % blocks;
            let run = u64::from(PIECE).min(at + pages - next).min(blocks - place);
            runs.push((first + place as u32, run as u32));
            next += run;
        }
        runs
    }

    /// Moves some items of a written checkpoint to the AIL. False while there are more.
    pub(crate) fn end_checkpoint(&mut self, m: &mut Memory, cpu: CpuId, disk: u8) -> bool {
        for _ in 0..AT_ONCE {
            let Some(item) = self.xfs(disk).log.committing.pop() else { break };
            if self.is_there(disk, item) {
                let at = self.xfs(disk).log.committing_at;
                let logged = self.logged_mut(disk, item);
                if let Some(vector) = logged.committing.take() {
                    logged.at = Some(at);
                    logged.flushed_at = None;
                    let log = &mut self.xfs(disk).log;
                    let was_in = log.ail.remove(item.number());
                    log.idle.remove(item.number());
                    log.ail.add(item.number());
                    log.idle.add(item.number());
                    if let (Item::Buffer(number), true) = (item, was_in) {
                        // The AIL holds the buffer once, however often it is logged.
                        self.let_go_buffer(m, cpu, disk, number);
                    }
                    self.slabs.free(m, cpu, Cache::LogVector, vector);
                }
            }
        }
        let log = &mut self.xfs(disk).log;
        if log.commits() {
            return false;
        }
        log.done = log.sequence - 1;
        true
    }

    /// The next item to write in place, if log space is short or the item has been logged for long.
    pub(crate) fn next_to_push(&mut self, disk: u8) -> Option<Item> {
        let log = &self.xfs(disk).log;
        let (push_to, first) = (log.push_to, log.idle.first().map(Item::of_number)?);
        let is_old = self.logged(disk, first).at.is_some_and(|at| at < push_to);
        (is_old || self.log_is_short(disk)).then_some(first)
    }

    /// Whether less than a quarter of the log is free.
    pub(crate) fn log_is_short(&mut self, disk: u8) -> bool {
        let size = self.xfs(disk).log.size();
        self.log_used(disk) > size / 4 * 3
    }

    /// Starts writing a waiting item in place. False if it does not wait, or is pinned.
    pub(crate) fn begin_flush(&mut self, disk: u8, item: Item) -> bool {
        let logged = self.logged_mut(disk, item);
        if logged.is_pinned() || logged.at.is_none() || logged.flushed_at.is_some() {
            return false;
        }
        logged.flushed_at = logged.at;
        self.xfs(disk).log.idle.remove(item.number());
        true
    }

    /// A pinned item cannot be written in place: it comes back with its checkpoint.
    pub(crate) fn pass_over(&mut self, disk: u8, item: Item) {
        self.xfs(disk).log.idle.remove(item.number());
    }

    /// Completes the write of an item in place. If it has been logged again, it waits again.
    pub(crate) fn end_flush(&mut self, m: &mut Memory, cpu: CpuId, disk: u8, item: Item) {
        if !self.is_there(disk, item) {
            return;
        }
        let logged = self.logged_mut(disk, item);
        let Some(flushed) = logged.flushed_at.take() else { return };
        if logged.at != Some(flushed) {
            return;
        }
        logged.at = None;
        self.xfs(disk).log.ail.remove(item.number());
        if let Item::Buffer(number) = item {
            self.drop_logged(m, cpu, disk, item, false);
            self.let_go_buffer(m, cpu, disk, number);
        }
    }

    /// Frees an item's log objects: all of an evicted inode; of a buffer in place, those without
    /// changes in the CIL.
    pub(crate) fn drop_logged(&mut self, m: &mut Memory, cpu: CpuId, disk: u8, item: Item, all: bool) {
        let logged = self.logged_mut(disk, item);
        if !all && logged.is_pinned() {
            return;
        }
        let Logged { item: object, shadow, gathers, committing, .. } = std::mem::take(logged);
        if let Some(object) = object {
            self.slabs.free(m, cpu, item.cache(), object);
        }
        for vector in [shadow, gathers, committing].into_iter().flatten() {
            self.slabs.free(m, cpu, Cache::LogVector, vector);
        }
        let log = &mut self.xfs(disk).log;
        log.ail.remove(item.number());
        log.idle.remove(item.number());
    }

    /// Completes the write of a piece of the log.
    pub(crate) fn end_log_io(&mut self, queues: &mut Queues, disk: u8) {
        let log = &mut self.xfs(disk).log;
        log.pieces -= 1;
        if log.pieces == 0 {
            queues.wake_all(log.checkpoints);
        }
    }
}
