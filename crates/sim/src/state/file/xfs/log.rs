//! XFS's log: changes gather in memory, go to the log together, and are written in place later.
//!
//! An item is an inode or a buffer. The changes of all transactions gather (the CIL) until they are an eighth of the log, or 30 seconds
//! old, or somebody wants them safe. Then they are a checkpoint: written to the log in pieces of 32 KiB, one behind the other.
//! Once that is done their vectors are freed, and the items wait to be written in place (the AIL), those that were logged first in
//! front. Space of the log is free again up to the first that waits. When less than a quarter is free items are written in place;
//! when none is, whoever changes something waits.

use crate::base::queue::{QueueId, Queues};
use crate::base::sequence::Sequence;
use crate::state::file::slab::Object;
use crate::state::file::{Cache, Files};
use kontig_mm::{CpuId, Memory};

const BLOCK: u64 = 4096;
/// An iclog (`l_iclog_size`), in blocks.
pub(crate) const PIECE: u32 = 8;
/// `xfssyncd_centisecs`, ns.
pub(crate) const WORKER_NS: u64 = 30_000_000_000;
/// What a change of an inode takes of the log: its format (56 bytes), the inode (176), an extent (16), and a header of 12 for each.
const INODE_BYTES: u64 = 56 + 176 + 16 + 3 * 12;
/// Of a block of a directory: its format (88 bytes) and two pieces of 128 bytes, the entry's and the block's tail, with headers.
const BUFFER_BYTES: u64 = 88 + 2 * 128 + 3 * 12;
/// Items of a checkpoint that are freed in one step.
const AT_ONCE: u32 = 64;
/// Kept free for the transactions that are under way.
const RESERVED: u64 = 1 << 20;

/// How large `mkfs.xfs` makes the log of a file system: a 2048th of it, from 10 MiB to 2 GiB, of one too small for that a
/// sixteenth.
pub(super) fn blocks(of: u32) -> u32 {
    (of / 2048).clamp(2560, 1 << 19).min(of / 16)
}

/// What is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// A file's inode.
    Inode(u32),
    /// A buffer.
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

/// What the log knows of an item.
#[derive(Clone, Default, Debug)]
pub(crate) struct Logged {
    item: Option<Object>,
    /// The vector for its next change (`li_lv_shadow`), the one that gathers, and the one that is being written to the log.
    shadow: Option<Object>,
    gathers: Option<Object>,
    committing: Option<Object>,
    /// Where in the log it is, while it waits to be written in place, and where it was when that began.
    at: Option<u64>,
    flushed_at: Option<u64>,
}

impl Logged {
    /// Whether a change of it is only in memory.
    pub(crate) fn is_pinned(&self) -> bool {
        self.gathers.is_some() || self.committing.is_some()
    }
    /// Whether the disk has it as it is.
    pub(crate) fn is_clean(&self) -> bool {
        !self.is_pinned() && self.at.is_none()
    }
}

/// The log of a file system.
#[derive(Clone)]
pub(crate) struct Log {
    first: u32,
    blocks: u32,
    /// Bytes that were ever written to it.
    head: u64,
    /// What gathers, and how many bytes it is.
    cil: Vec<Item>,
    cil_bytes: u64,
    /// The checkpoint that is being written, where it begins, and its pieces that are under way.
    committing: Vec<Item>,
    committing_at: u64,
    pub(crate) pieces: u32,
    /// All that was in the log up to here is to be written in place, whether there is space or not.
    push_to: u64,
    /// The number of what gathers, up to which one it is to be written, and up to which it is.
    sequence: u64,
    pub(crate) wanted: u64,
    done: u64,
    /// Items that are in the log and not in place; and those of them that nobody writes.
    ail: Sequence,
    idle: Sequence,
    /// Where the two threads wait, who waits for space, and who waits for a checkpoint.
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

    /// Whether something gathers.
    pub(crate) fn gathers(&self) -> bool {
        !self.cil.is_empty()
    }

    /// Whether only one change gathers: the worker has to know that it has something to do again.
    pub(crate) fn is_first(&self) -> bool {
        self.cil.len() == 1
    }

    /// Whether a checkpoint is being written.
    pub(crate) fn commits(&self) -> bool {
        !self.committing.is_empty()
    }

    /// Whether what gathers is to be written now.
    pub(crate) fn is_due(&self) -> bool {
        self.gathers() && (self.cil_bytes >= self.size() / 8 || self.wanted >= self.sequence)
    }

    /// Asks for all that has been changed to be in the log; the number to wait for.
    pub(crate) fn force(&mut self) -> u64 {
        let last = if self.gathers() { self.sequence } else { self.sequence - 1 };
        self.wanted = self.wanted.max(last);
        last
    }

    /// What the worker does every 30 seconds: all changes go to the log, and all that is in the log to its place.
    pub(crate) fn work(&mut self) {
        self.force();
        self.push_to = self.head;
    }

    /// Whether there is something for the worker to do.
    pub(crate) fn has_work(&self) -> bool {
        self.gathers() || self.ail.len() > 0
    }

    /// Whether what had this number is in the log.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// The first item that is not in place.
    fn tail(&self, files: &Files, disk: u8) -> u64 {
        let oldest = self.ail.first().and_then(|number| files.logged(disk, Item::of_number(number)).at);
        oldest.unwrap_or(if self.commits() { self.committing_at } else { self.head })
    }
}

impl Files {
    /// What the log of a disk knows of an item.
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

    /// Bytes of the log that are taken, those of what gathers included.
    pub(crate) fn log_used(&self, disk: u8) -> u64 {
        let log = &self.xfs[usize::from(disk)].as_ref().expect("the disk's file system is XFS").log;
        log.head + log.cil_bytes - log.tail(self, disk)
    }

    /// Whether another change fits into the log.
    pub(crate) fn log_has_space(&mut self, disk: u8) -> bool {
        let size = self.xfs(disk).log.size();
        self.log_used(disk) + RESERVED.min(size / 16) < size
    }

    /// Which object an item lacks before it can be logged.
    pub(crate) fn log_lacks(&self, disk: u8, item: Item) -> Option<Cache> {
        let logged = self.logged(disk, item);
        match (logged.item, logged.shadow) {
            (None, _) => Some(item.cache()),
            (_, None) => Some(Cache::LogVector),
            _ => None,
        }
    }

    /// Gives an item an object that it lacks. False where it has one by now.
    pub(crate) fn give_log(&mut self, disk: u8, item: Item, cache: Cache, object: Object) -> bool {
        if self.log_lacks(disk, item) != Some(cache) {
            return false;
        }
        let logged = self.logged_mut(disk, item);
        let place = if cache == Cache::LogVector { &mut logged.shadow } else { &mut logged.item };
        *place = Some(object);
        true
    }

    /// Logs a change of an item, which lacks nothing.
    pub(crate) fn log_change(&mut self, disk: u8, item: Item) {
        let logged = self.logged_mut(disk, item);
        if logged.gathers.is_some() {
            // The change before it is overwritten; the new vector is kept for the next checkpoint.
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

    /// What gathers becomes a checkpoint; the runs of blocks that it is written to.
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
            // The number of an inode that is gone may be another's.
            if !self.is_there(disk, item) {
                continue;
            }
            let logged = self.logged_mut(disk, item);
            if let Some(vector) = logged.gathers.take() {
                logged.committing = Some(vector);
                committing.push(item);
            }
        }
        // The first that was logged is the last here, which is taken first.
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

    /// The checkpoint is in the log: some of its items wait to be written in place from now on. False while there are more.
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
                        // It is held once for being in the log, however often that is.
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

    /// The item to be written in place next, if there is little space in the log or it has been there for long.
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

    /// Somebody writes an item in place that waits for it. False if it does not, or is pinned.
    pub(crate) fn begin_flush(&mut self, disk: u8, item: Item) -> bool {
        let logged = self.logged_mut(disk, item);
        if logged.is_pinned() || logged.at.is_none() || logged.flushed_at.is_some() {
            return false;
        }
        logged.flushed_at = logged.at;
        self.xfs(disk).log.idle.remove(item.number());
        true
    }

    /// An item that is pinned cannot be written in place: it comes back with the checkpoint it is part of.
    pub(crate) fn pass_over(&mut self, disk: u8, item: Item) {
        self.xfs(disk).log.idle.remove(item.number());
    }

    /// An item is in place. If it has been logged again meanwhile it waits again.
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

    /// The objects of an item that are there because it is logged go: all of an inode that goes; of a buffer that is in place
    /// what nothing gathers in.
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

    /// A piece of a log has been written.
    pub(crate) fn end_log_io(&mut self, queues: &mut Queues, disk: u8) {
        let log = &mut self.xfs(disk).log;
        log.pieces -= 1;
        if log.pieces == 0 {
            queues.wake_all(log.checkpoints);
        }
    }
}
