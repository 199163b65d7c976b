//! A recording: a folder with the operations given to a real kernel, their results, and the memory
//! before and after.
//!
//! Files are compressed with xz (`NAME.xz`) or plain, and may stand in another recording's folder.
//! Which kernel it was and what was done is in `recording.toml` ([`about`]); what there is to
//! replay follows from the files present ([`Recording::parts`]). The formats are described beside
//! the recordings in `oracle/golden/README.md`.

pub mod about;
pub mod files;
pub mod lru;

use crate::error::BadRecording;
use crate::trace::lru::{Answer, LruOp, parse_answered};
use crate::trace::{self, Op, Request};
use about::About;
use files::Folder;
use kontig_mm::snapshot::{self, RecordedZone, ZoneSnapshot};
use kontig_mm::state::Watermarks;
use kontig_mm::sysctl::Sysctl;
use kontig_mm::{CpuId, Memory, NodeId, Profile, ZoneId, ZoneType};
use kontig_procfs::{VmStat, ZoneInfo};
use lru::LruState;
use std::path::{Path, PathBuf};

/// The CPU on which a recording begins; most recorded machines have no other.
pub const CPU: CpuId = CpuId::new(0);
/// The recorded node, or the first of them, which only the experiment uses.
pub const NODE: NodeId = NodeId::new(1);
/// The only zone of the recorded node, unless there are two.
pub const ZONE: ZoneId = ZoneId::new(1);

/// Operations of a trace under memory pressure, with the answers.
const LRU_OPS: &str = "lru.txt";

/// Sysctls whose effect is in the snapshot already, or that trigger an action.
const NOT_APPLIED: [&str; 3] = ["vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.compact_memory"];

/// File of a zone's state. Normal's does not name the zone.
pub fn snapshot_file(state: &str, node: NodeId, zone: ZoneType) -> String {
    let state = of_node(state, node);
    match zone {
        ZoneType::Normal => format!("{state}.snap"),
        other => format!("{state}.{}.snap", other.name().to_lowercase()),
    }
}

/// Name of a node's part of a state. The first recorded node's does not name the node.
fn of_node(state: &str, node: NodeId) -> String {
    if node == NODE { state.into() } else { format!("{state}.node{}", node.index()) }
}

/// A part of a recording that can be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// `trace.bin` from `t0.snap` on: every result is compared.
    Operations,
    /// `lru.txt` from `t0.snap` on: every answer and every recorded LRU state is compared.
    Reclaim,
    /// `trace.bin` on the filled memory of `f0.snap`: requests that compact, or wake kcompactd.
    Direct,
    /// The whole node compacted, by command or, if `proactive`, until its score is low enough.
    Sweep {
        /// Whether kcompactd does it, to lower the fragmentation score.
        proactive: bool,
    },
    /// A process faulting huge pages in, kcompactd at work beside it.
    Faults,
}

impl Part {
    /// First letter of the files with the states before and after.
    const fn letter(self) -> char {
        match self {
            Part::Operations | Part::Reclaim => 't',
            Part::Direct | Part::Sweep { .. } | Part::Faults => 'f',
        }
    }
    /// File of the state before: its `snap`, `pages` or `vmstat`.
    pub fn before(self, what: &str) -> String {
        format!("{}0.{what}", self.letter())
    }
    /// File of the state after.
    pub fn after(self, what: &str) -> String {
        format!("{}1.{what}", self.letter())
    }
}

/// An open recording. Files are read on demand.
pub struct Recording {
    pub name: String,
    /// The kernel and the experiment.
    pub about: About,
    pub(crate) profile: Profile,
    folder: Folder,
}

impl Recording {
    /// Opens a folder.
    ///
    /// # Errors
    /// If it does not exist, its kernel has no profile, or `recording.toml` is wrong.
    pub fn open(dir: &Path) -> Result<Recording, BadRecording> {
        Recording::open_with(dir, None)
    }

    /// Opens a folder to replay it by this profile instead of its kernel's.
    ///
    /// # Errors
    /// As [`Recording::open`], but the kernel needs no profile of its own.
    pub fn open_with(dir: &Path, profile: Option<&Profile>) -> Result<Recording, BadRecording> {
        let mut folder = Folder::open(dir)?;
        let name = folder.name();
        let about = About::read(&folder, &name)?;
        folder.refer(&about.files)?;
        let profile = profile.map_or_else(|| about.profile(&name), |p| Ok(p.clone()))?;
        Ok(Recording { name, about, profile, folder })
    }

    /// Checks that every file is whole, those that no replay needs included.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_files(&self) -> Result<(), BadRecording> {
        self.folder.check()
    }
    /// Whether there is a file of this name.
    pub fn has(&self, file: &str) -> bool {
        self.folder.has(file)
    }
    /// Where a file is, for messages.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path(file)
    }
    /// A file, unpacked.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn bytes(&self, file: &str) -> Result<Vec<u8>, BadRecording> {
        self.folder.bytes(file)
    }
    /// A file as text.
    ///
    /// # Errors
    /// If it is missing, damaged or not text.
    pub fn text(&self, file: &str) -> Result<String, BadRecording> {
        self.folder.text(file)
    }
    /// A file of little-endian 32-bit words.
    ///
    /// # Errors
    /// If it is missing, damaged or ends within a word.
    pub fn words(&self, file: &str) -> Result<Vec<u32>, BadRecording> {
        let bytes = self.bytes(file)?;
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            let reason = format!("{} bytes, which is not a whole number of 4-byte words", bytes.len());
            return Err(BadRecording::whole(self.path(file), reason));
        }
        Ok(words.iter().map(|w| u32::from_le_bytes(*w)).collect())
    }

    /// The parts to replay, in order.
    ///
    /// # Errors
    /// If a file that another one needs is missing.
    pub fn parts(&self) -> Result<Vec<Part>, BadRecording> {
        if self.is_of_lru() {
            self.check_lru()?;
            return Ok(vec![Part::Reclaim]);
        }
        if self.has("thp.txt") {
            return Ok(vec![Part::Faults]);
        }
        let mut parts = Vec::new();
        if self.has("trace.bin") || self.has("res.bin") {
            for needed in ["trace.bin", "res.bin"] {
                if !self.has(needed) {
                    return Err(BadRecording::whole(self.path(needed), "is missing"));
                }
            }
            match (self.has("t0.snap"), self.has("f0.snap")) {
                (true, _) => parts.push(Part::Operations),
                (false, true) => parts.push(Part::Direct),
                (false, false) => {
                    // The state after shows which state before is missing.
                    let part =
                        if self.has("f1.snap") && !self.has("t1.snap") { Part::Direct } else { Part::Operations };
                    return Err(BadRecording::whole(self.path(&part.before("snap")), "is missing"));
                }
            }
        }
        // The tracepoints belong to the trace, unless a sweep followed it.
        let events = self.has("trace.txt") && (parts.is_empty() || parts == [Part::Operations] && self.has("f0.snap"));
        if self.has("mig.txt") || events {
            if !self.has("f0.snap") {
                return Err(BadRecording::whole(self.path("f0.snap"), "is missing"));
            }
            parts.push(Part::Sweep { proactive: self.about.proactiveness() > 0 });
        }
        Ok(parts)
    }

    /// The trace. Flags that this kernel does not have are cleared.
    ///
    /// # Errors
    /// If it is missing or malformed.
    pub fn trace(&self) -> Result<Vec<Op>, BadRecording> {
        let mut ops = trace::decode(&self.bytes("trace.bin")?).map_err(|e| match e.op {
            Some(op) => BadRecording::operation(self.path("trace.bin"), op, e.reason),
            None => BadRecording::whole(self.path("trace.bin"), e.reason),
        })?;
        if !self.profile.has_atomic_mark() {
            for op in &mut ops {
                if let Op::Alloc { request, .. } = op {
                    *request = request.without(Request::ATOMIC);
                }
            }
        }
        Ok(ops)
    }

    /// Results of the kernel for each of `ops` operations.
    ///
    /// # Errors
    /// If it is missing, damaged or of another length, or `recording.toml` says another number of
    /// operations.
    pub fn results(&self, ops: usize) -> Result<Vec<u32>, BadRecording> {
        let results = self.words("res.bin")?;
        if results.len() != ops {
            let reason = format!("{} results of {ops} operations in trace.bin", results.len());
            return Err(BadRecording::whole(self.path("res.bin"), reason));
        }
        if let Some(said) = self.about.ops.filter(|said| usize::try_from(*said) != Ok(ops)) {
            let about = self.text("recording.toml")?;
            let line = about.lines().position(|line| line.starts_with("ops")).map_or(1, |i| i + 1);
            let reason = format!("ops = {said}, but trace.bin has {ops} operations");
            return Err(BadRecording::line(self.path("recording.toml"), line, reason));
        }
        Ok(results)
    }

    /// A recorded state of the zone.
    ///
    /// # Errors
    /// If it is missing or malformed.
    pub fn snapshot(&self, file: &str) -> Result<ZoneSnapshot, BadRecording> {
        ZoneSnapshot::parse(&self.text(file)?).map_err(|e| BadRecording::whole(self.path(file), e))
    }

    /// Whether it holds a trace under memory pressure.
    pub fn is_of_lru(&self) -> bool {
        self.has(LRU_OPS) || self.has("t0.lru")
    }

    /// The operations of such a trace with the kernel's answers.
    ///
    /// # Errors
    /// If they are missing or a line is malformed.
    pub fn lru_operations(&self) -> Result<Vec<(LruOp, Answer)>, BadRecording> {
        let mut dumps = 0;
        let one = |(i, line): (usize, &str)| {
            let bad = |reason: String| BadRecording::line(self.path(LRU_OPS), i + 1, reason);
            let (op, answer) = parse_answered(line).map_err(bad)?;
            if op == LruOp::Dump {
                if answer != Answer::Number(dumps) {
                    return Err(bad(format!("'{answer}' is the answer to the dump with number {dumps}")));
                }
                dumps += 1;
            }
            Ok((op, answer))
        };
        let ops: Vec<_> = self.text(LRU_OPS)?.lines().enumerate().map(one).collect::<Result<_, _>>()?;
        if let Some(said) = self.about.ops.filter(|said| usize::try_from(*said) != Ok(ops.len())) {
            let reason = format!("{} operations, but recording.toml says {said}", ops.len());
            return Err(BadRecording::whole(self.path(LRU_OPS), reason));
        }
        Ok(ops)
    }

    /// The recorded nodes, from [`NODE`] on.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let first = NODE.index();
        (first..first + usize::from(self.about.nodes.max(1))).map(NodeId::new)
    }

    /// A node's LRU state `t0`, `t1`, or `d` and the number of a dump.
    ///
    /// # Errors
    /// If it is missing or contradicts itself.
    pub fn lru_state(&self, state: &str, node: NodeId) -> Result<LruState, BadRecording> {
        let file = format!("{}.lru", of_node(state, node));
        lru::parse(&self.path(&file), &self.text(&file)?)
    }

    /// Checks that every file of such a recording exists and can be parsed.
    ///
    /// # Errors
    /// The first file that is missing or malformed.
    pub fn check_lru(&self) -> Result<(), BadRecording> {
        let operations = self.lru_operations()?;
        let dumps = operations.iter().filter(|(op, _)| *op == LruOp::Dump).count();
        for state in (0..dumps).map(|n| format!("d{n}")).chain(["t0".into(), "t1".into()]) {
            for node in self.nodes() {
                self.snapshot(&snapshot_file(&state, node, ZoneType::Normal))?;
                self.lru_state(&state, node)?;
            }
        }
        Ok(())
    }

    /// Event counters: a `vmstat` file.
    ///
    /// # Errors
    /// If it is missing or a line is not a name and a number.
    pub fn counters(&self, file: &str) -> Result<VmStat, BadRecording> {
        VmStat::parse(file, &self.text(file)?).map_err(|e| BadRecording::line(self.path(file), e.line, e.reason))
    }

    /// A machine whose node 1 is in the state recorded before a part, with the recorded sysctls.
    ///
    /// # Errors
    /// If a file is missing or malformed, or the recorded state contradicts itself.
    pub fn machine(&self, part: Part) -> Result<Memory, BadRecording> {
        if part == Part::Reclaim {
            return self.machine_under_pressure();
        }
        let file = part.before("snap");
        let mut snapshot = self.snapshot(&file)?;
        if part == Part::Faults {
            snapshot = snapshot.with_watermarks(self.watermarks("f1.zoneinfo")?);
        }
        let bad = |file: &str, e: String| BadRecording::whole(self.path(file), e);
        let pages = part.before("pages");
        let mut m = if self.has(&pages) {
            snapshot.machine_with_pages(self.profile.clone(), &self.text(&pages)?).map_err(|e| bad(&pages, e))?
        } else {
            let m = snapshot.machine(self.profile.clone()).map_err(|e| bad(&file, e))?;
            if part != Part::Operations && self.has("frag.pfns") {
                let used = self.pages_of_a_process(&m)?;
                snapshot.machine_with_pages(self.profile.clone(), &used).map_err(|e| bad(&file, e))?
            } else {
                m
            }
        };
        m.check().map_err(|e| bad(&file, format!("the state contradicts itself: {e}")))?;
        self.apply_sysctls(part, &mut m)?;
        Ok(m)
    }

    /// The same for a trace under memory pressure: a recorded node has one zone or two, and its LRU
    /// lists are empty.
    fn machine_under_pressure(&self) -> Result<Memory, BadRecording> {
        let mut states = Vec::new();
        for node in self.nodes() {
            for kind in [ZoneType::Dma32, ZoneType::Normal] {
                let file = snapshot_file("t0", node, kind);
                if kind == ZoneType::Normal || self.has(&file) {
                    states.push((node, kind, self.snapshot(&file)?, self.text(&file.replace(".snap", ".pages"))?));
                }
            }
        }
        let states: Vec<_> = states
            .iter()
            .map(|(node, kind, zone, pages)| RecordedZone { node: *node, kind: *kind, zone, pages: Some(pages) })
            .collect();
        let bad = |e: String| BadRecording::whole(self.path("t0.snap"), e);
        let mut m = snapshot::machine(&states, self.profile.clone()).map_err(bad)?;
        m.check().map_err(|e| bad(format!("the state contradicts itself: {e}")))?;
        m.keep_lru_order().map_err(|e| BadRecording::whole(self.path("t0.pages"), e))?;
        self.apply_sysctls(Part::Reclaim, &mut m)?;
        Ok(m)
    }

    fn apply_sysctls(&self, part: Part, m: &mut Memory) -> Result<(), BadRecording> {
        let bad = |e: String| BadRecording::whole(self.path("recording.toml"), e);
        for (name, value) in self.about.sysctls_in_force(part) {
            if Sysctl::find(&name).is_some() && !NOT_APPLIED.contains(&name.as_str()) {
                m.sysctl_write(&name, &value).map_err(|e| bad(e.to_string()))?;
            }
        }
        m.take_wakes().for_each(drop);
        Ok(())
    }

    /// Whether a part's state marks the kernel's compound pages. The first modules did not.
    ///
    /// # Errors
    /// If the file of the pages cannot be read.
    pub fn tells_compound_pages(&self, part: Part) -> Result<bool, BadRecording> {
        let pages = part.before("pages");
        Ok(self.has(&pages) && self.text(&pages)?.contains('c'))
    }

    /// The zone's watermarks from a `zoneinfo` file: those in force after khugepaged, started for
    /// the first huge page, has raised them.
    fn watermarks(&self, file: &str) -> Result<Watermarks, BadRecording> {
        let info = ZoneInfo::parse(file, &self.text(file)?)
            .map_err(|e| BadRecording::line(self.path(file), e.line, e.reason))?;
        let zone = info.zone(1, "Normal");
        let mark = |name: &str| {
            let none = || BadRecording::whole(self.path(file), format!("node 1's zone Normal has no '{name}'"));
            zone.and_then(|z| z.sizes.get(name)).ok_or_else(none)
        };
        let (min, low, high) = (mark("min")?, mark("low")?, mark("high")?);
        // Not every kernel prints promo, which is as far above high as high is above low.
        Ok(Watermarks { min, low, high, promo: mark("promo").unwrap_or(2 * high - low) })
    }

    /// The use of frames where only the process that filled the node is known: it had all of
    /// `frag.pfns` and has freed what is free now.
    fn pages_of_a_process(&self, m: &Memory) -> Result<String, BadRecording> {
        let zone = m.zone(ZONE);
        let mut used = vec!['u'; zone.spanned() as usize];
        for (i, pfn) in self.words("frag.pfns")?.into_iter().enumerate() {
            let frame = pfn.checked_sub(zone.start.get()).and_then(|at| used.get_mut(at as usize));
            let outside = || BadRecording::whole(self.path("frag.pfns"), format!("page {i}: {pfn:#x} is in no zone"));
            *frame.ok_or_else(outside)? = 'l';
        }
        Ok(used.into_iter().collect())
    }
}
