//! The loop: a look every half second, a decision for each node, and what it says.

use super::controller::{Decision, Outcome};
use super::diagnose::Blocks;
use super::dirty::Dirty;
use super::drive::{Drive, Driving, JOURNAL, proactiveness};
use super::event::{Event, Predicted, Tally, What};
use super::failed::Failed;
use super::hold::Hold;
use super::look::{Looked, Looker, Looks};
use super::notify::Notify;
use super::policy::Policy;
use super::reason::{NoGain, Rest};
use super::rules::Target;
use super::runner::{self, Ran, Writer};
use super::sample::{NodeSample, Sample, Sampler};
use super::state::{Resting, State};
use super::watched::Watched;
use super::{diagnose, drive, hold};
use crate::bound::{self, Effort, Probe};
use crate::error::ReadError;
use crate::prepare::journal::{Leftover, NoJournal, Setting, restore_left};
use crate::roots::Roots;
use crate::snapshot::Snapshot;
use kontig_mm::Profile;
use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks, which is the kernel's own.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time between two looks at whether to end.
const DOZE: Duration = Duration::from_millis(100);
/// Time after which the state is written again though no reason has changed.
const STATE_AGAIN: Duration = Duration::from_secs(5);

/// The lock of a guard that changes the host, in the directory of its hold.
const LOCK: &str = "guard.running";

/// The action on a lack of blocks.
pub enum Mode<'a> {
    /// Says what it would do.
    DryRun,
    Execute {
        writer: &'a Writer<'a>,
        looker: &'a Looker<'a>,
    },
    /// Sets the kernel to do it.
    Drive(Drive<'a>),
}

/// The host, and how it is watched.
pub struct Means<'a> {
    pub roots: &'a Roots,
    pub page_bytes: u64,
    /// The rules by which a run is predicted.
    pub profile: &'a Profile,
    pub mode: Mode<'a>,
    /// Reads the policy anew.
    pub reread: &'a dyn Fn() -> Result<Policy, String>,
    /// Raised to end it, and to read the policy anew.
    pub stop: &'a AtomicBool,
    pub anew: &'a AtomicBool,
    /// Where the hold is, and the lock.
    pub dir: &'a Path,
    /// After which it ends by itself.
    pub time: Option<Duration>,
    /// Takes each line of the log; false ends it.
    pub told: &'a mut dyn FnMut(&Event) -> bool,
}

/// Watches the host until it is told to end.
///
/// # Errors
/// If nothing can be read, or what is needed cannot be written; a failure in the middle is told and
/// passes.
pub fn watch(means: Means, policy: Policy) -> Result<(), Failed> {
    let _alone = if matches!(means.mode, Mode::DryRun) { None } else { Some(alone(means.dir)?) };
    // The setting is one for the host, whatever directory a guard has.
    let _drives = if matches!(means.mode, Mode::Drive(_)) { Some(drives_alone(means.roots)?) } else { None };
    let mut daemon = Daemon {
        hold: Hold::in_dir(means.dir),
        sampler: Sampler::new(means.page_bytes),
        began: Instant::now(),
        nodes: Vec::new(),
        driving: None,
        begins_above: drive::begins_above(means.roots),
        dirty: Dirty::default(),
        looks: Looks::default(),
        frames: 0,
        last: Vec::new(),
        is_read: true,
        notify: Notify::from_environment(),
        written: None,
        means,
    };
    // Before settings are read: what a killed guard has left is no wish of the operator's.
    daemon.restore()?;
    let first = daemon.sample().map_err(Failed::Unread)?;
    daemon.fits(&policy, &first)?;
    daemon.follow(&policy, &first);
    daemon.notify.send("READY=1");
    let ended = daemon.run();
    daemon.notify.send("STOPPING=1");
    if daemon.changes_the_host() {
        State::remove(daemon.means.dir);
    }
    let released = daemon.release();
    daemon.sum_up();
    ended.and(released)
}

/// Whether a guard that compacts is controlled in this directory.
pub fn is_at_work(dir: &Path) -> bool {
    // A lock for others does not keep one from starting but for this moment.
    let lock = File::open(dir.join(LOCK)).map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
    matches!(lock, Ok(Err(rustix::io::Errno::WOULDBLOCK)))
}

/// The lock that only one guard has; it goes with the process, however that ends.
fn alone(dir: &Path) -> Result<File, Failed> {
    let path = dir.join(LOCK);
    let failed = |e: io::Error| Failed::Unwritten(path.clone(), e);
    if dir == Path::new(hold::DEFAULT_DIR) {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    lock(File::create(&path).map_err(failed)?, path)
}

/// The lock that only one guard has of those that drive the kernel's setting.
fn drives_alone(roots: &Roots) -> Result<Option<File>, Failed> {
    let path = drive::setting(roots);
    // Without the file there is nothing to drive, which is said where it is written.
    File::open(&path).ok().map(|file| lock(file, path)).transpose()
}

fn lock(file: File, path: PathBuf) -> Result<File, Failed> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Failed::Busy(path)),
        Err(e) => Err(Failed::Unwritten(path, e.into())),
    }
}

struct Daemon<'a> {
    means: Means<'a>,
    hold: Hold,
    sampler: Sampler,
    began: Instant,
    nodes: Vec<Watched>,
    driving: Option<Driving>,
    /// The score above which the kernel, if it is driven, begins at all.
    begins_above: u64,
    dirty: Dirty,
    looks: Looks,
    /// Frames of all nodes.
    frames: u64,
    /// The free memory that was seen last.
    last: Vec<NodeSample>,
    /// Whether somebody reads the log.
    is_read: bool,
    notify: Notify,
    /// When the state was last written, with the reasons for rest in it; or that it cannot be.
    written: Option<Result<(Instant, Reasons), Instant>>,
}

/// The reason why each node rests.
type Reasons = Vec<Option<Resting>>;

impl Daemon<'_> {
    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn tell(&mut self, node: Option<u32>, what: What) {
        self.is_read &= (self.means.told)(&Event::now(node, what));
    }

    fn sample(&mut self) -> Result<Sample, ReadError> {
        let at_s = self.now_s();
        self.sampler.sample(self.means.roots, at_s)
    }

    /// Watches the nodes by these rules. What is known of a node stays known.
    fn follow(&mut self, policy: &Policy, sample: &Sample) {
        let known = std::mem::take(&mut self.nodes);
        let mut known: Vec<Option<Watched>> = known.into_iter().map(Some).collect();
        for node in sample.nodes.iter().map(|node| node.node) {
            let Some(rules) = policy.of_node(node) else { continue };
            let old = known.iter_mut().find(|w| w.as_ref().is_some_and(|w| w.controller.node == node));
            let watched = match old.and_then(Option::take) {
                Some(mut watched) => {
                    watched.controller.set_rules(rules);
                    watched
                }
                None => Watched::new(
                    match self.means.mode {
                        Mode::Drive(_) => Tally::driven(node),
                        Mode::DryRun | Mode::Execute { .. } => Tally::counted(node),
                    },
                    rules,
                ),
            };
            self.nodes.push(watched);
            let beside = sample.kernel_compacts.filter(|p| *p > 0 && matches!(rules.target, Target::Blocks { .. }));
            self.tell(Some(node), What::Watches { rules, beside_kernel: beside });
        }
    }

    /// Refuses a policy that this host cannot follow.
    fn fits(&self, policy: &Policy, sample: &Sample) -> Result<(), Failed> {
        let exists = |node: u32| sample.nodes.iter().any(|known| known.node == node);
        if let Some(node) = policy.named().find(|node| !exists(*node)) {
            return Err(Failed::NoNode(node));
        }
        for node in &sample.nodes {
            let Some(rules) = policy.of_node(node.node) else { continue };
            let order = rules.target.order(node.huge_order);
            match rules.target {
                Target::Blocks { count, .. } if count > node.present() >> order => {
                    return Err(Failed::TooSmall { node: node.node, asked: count, has: node.present() >> order });
                }
                _ => {}
            }
            // Before it says that it is ready.
            let written = match self.means.mode {
                Mode::DryRun => continue,
                Mode::Execute { .. } => self.file(node.node, sample.nodes.len() == 1)?,
                Mode::Drive(_) => drive::setting(self.means.roots),
            };
            runner::may_write(&written).map_err(|e| Failed::Unwritten(written, e))?;
        }
        let left = sample.nodes.iter().find(|node| policy.of_node(node.node).is_none());
        match left {
            Some(node) if matches!(self.means.mode, Mode::Drive(_)) => Err(Failed::DrivesAll(node.node)),
            _ => Ok(()),
        }
    }

    /// The file that compacts this node alone.
    fn file(&self, node: u32, is_only_node: bool) -> Result<PathBuf, Failed> {
        let none = || Failed::NoFile(self.means.roots.sys(format!("devices/system/node/node{node}/compact")));
        runner::file(self.means.roots, node, is_only_node).ok_or_else(none)
    }

    fn run(&mut self) -> Result<(), Failed> {
        while !self.means.stop.load(Ordering::Relaxed) && self.is_read {
            if self.means.time.is_some_and(|time| self.began.elapsed() >= time) {
                break;
            }
            self.notify.alive();
            if self.means.anew.swap(false, Ordering::Relaxed) {
                self.read_anew();
            }
            match self.sample() {
                Ok(sample) => self.look(&sample)?,
                Err(e) => self.tell(None, What::Failed { why: e.to_string() }),
            }
            self.wait();
        }
        Ok(())
    }

    fn wait(&self) {
        let end = Instant::now() + INTERVAL;
        while !self.means.stop.load(Ordering::Relaxed) && Instant::now() < end {
            std::thread::sleep(DOZE.min(end.saturating_duration_since(Instant::now())));
        }
    }

    fn read_anew(&mut self) {
        let read = (self.means.reread)().and_then(|policy| {
            let sample = self.sample().map_err(|e| e.to_string())?;
            let fits = self.fits(&policy, &sample);
            fits.map(|()| (policy, sample)).map_err(|e| e.to_string())
        });
        match read {
            Ok((policy, sample)) => {
                self.tell(None, What::PolicyRead);
                self.follow(&policy, &sample);
            }
            Err(why) => self.tell(None, What::PolicyRefused { why }),
        }
    }

    /// A look at all nodes.
    fn look(&mut self, sample: &Sample) -> Result<(), Failed> {
        let held = self.hold.holds();
        self.frames = sample.nodes.iter().map(NodeSample::present).sum();
        self.last.clone_from(&sample.nodes);
        self.drive_on(sample, held);
        let mut wanted = Vec::new();
        for i in 0..self.nodes.len() {
            self.notify.alive();
            let number = self.nodes[i].controller.node;
            let Some(node) = sample.nodes.iter().find(|node| node.node == number) else { continue };
            let watched = &mut self.nodes[i];
            watched.see(sample.at_s, watched.controller.is_kept(node));
            if self.driving.as_ref().is_some_and(|driving| driving.nodes.iter().any(|(n, _)| *n == number)) {
                continue;
            }
            match (watched.controller.decide(sample, node, held), &self.means.mode) {
                (Decision::Rest { why }, _) => self.rest(i, node, why),
                (Decision::Compact { .. }, Mode::DryRun) => self.think(i, sample, node),
                (Decision::Compact { cpu_s }, Mode::Execute { writer, .. }) => {
                    let writer = *writer;
                    self.compact(i, (number, sample.nodes.len() == 1), writer, cpu_s)?;
                }
                (Decision::Compact { .. }, Mode::Drive(_)) if node.score() <= self.begins_above => {
                    self.rest(i, node, Rest::BelowScore { above: self.begins_above });
                }
                // All nodes are driven at once.
                (Decision::Compact { .. }, Mode::Drive(_)) => wanted.push((i, node)),
            }
        }
        self.drive(sample, &wanted)?;
        self.say_state();
        self.write_state();
        Ok(())
    }

    /// CPU time of guard with that of its looks, which children take.
    fn own_cpu_s(&self) -> f64 {
        own_cpu_s() + self.looks.cpu_s
    }

    /// Whether it does more than look.
    fn changes_the_host(&self) -> bool {
        !matches!(self.means.mode, Mode::DryRun)
    }

    /// Leaves the state for others, when a reason has changed and every few seconds.
    fn write_state(&mut self) {
        let reasons: Reasons = self.nodes.iter().map(Watched::resting).collect();
        let is_due = match &self.written {
            None => true,
            Some(Ok((at, before))) => at.elapsed() >= STATE_AGAIN || *before != reasons,
            Some(Err(at)) => at.elapsed() >= STATE_AGAIN,
        };
        if !(self.changes_the_host() && is_due) {
            return;
        }
        let state = |watched: &Watched| {
            let node = self.last.iter().find(|node| node.node == watched.controller.node)?;
            Some(watched.node_state(node, self.means.page_bytes))
        };
        let nodes = self.nodes.iter().filter_map(state).collect();
        match State::now(self.own_cpu_s(), nodes).write(self.means.dir) {
            Ok(()) => self.written = Some(Ok((Instant::now(), reasons))),
            Err(e) => {
                let told = matches!(self.written, Some(Err(_)));
                self.written = Some(Err(Instant::now()));
                if !told {
                    self.tell(None, What::Failed { why: e.to_string() });
                }
            }
        }
    }

    fn rest(&mut self, i: usize, node: &NodeSample, why: Rest) {
        let watched = &mut self.nodes[i];
        watched.rests = Some(why);
        let at_hand = watched.controller.at_hand(node);
        watched.state = format!("{} ({at_hand} at hand)", why.name());
        if !watched.is_news(self.began.elapsed().as_secs_f64(), why.name()) {
            return;
        }
        self.tell(Some(node.node), What::Rests { at_hand, score: node.score(), why });
    }

    /// Says what a run would gain.
    fn think(&mut self, i: usize, sample: &Sample, node: &NodeSample) {
        let controller = &self.nodes[i].controller;
        let (order, lacks) = (controller.order(node), controller.lacks(node));
        let cpu = own_cpu_s();
        let predicted = self.predict(node.node, order, lacks);
        let (predicted, not_predicted) = match predicted {
            Ok(predicted) => (Some(predicted), None),
            Err(why) => (None, Some(why)),
        };
        let outcome =
            Outcome { at_s: sample.at_s, cpu_s: Some(own_cpu_s() - cpu), made: 0, no_gain: Some(NoGain::DryRun) };
        self.nodes[i].controller.finished(outcome, node);
        self.nodes[i].told.clear();
        let (at_hand, score) = (node.at_hand(order), node.score());
        let what = What::WouldCompact { at_hand, score, lacks, predicted, not_predicted };
        self.tell(Some(node.node), what);
    }

    /// A run of the kernel's compaction where `lacks` blocks are lacking. It begins once CPUs'
    /// lists are emptied, so what that makes is no gain of its own.
    fn predict(&self, node: u32, order: u32, lacks: u64) -> Result<Predicted, String> {
        let snapshot = Snapshot::take(self.means.roots, self.means.page_bytes).map_err(|e| e.to_string())?;
        let probe = Probe::run(&snapshot, self.means.profile, order, &[node])?;
        let fewest = bound::fewest(&snapshot, order, Some(node));
        let for_nothing = fewest.without_a_move();
        let effort = probe.until(lacks + for_nothing).unwrap_or_else(|| probe.end());
        Ok(Predicted {
            fewest_moves: fewest.moves(effort.more),
            effort: Effort { more: effort.more.saturating_sub(for_nothing), ..effort },
            from_cpus_lists: for_nothing,
            ends_early: !probe.ended.is_empty(),
        })
    }

    /// A run for a node, which may be the only one.
    fn compact(&mut self, i: usize, (number, is_only): (u32, bool), writer: &Writer, cpu_s: f64) -> Result<(), Failed> {
        let (roots, stop, at_s) = (self.means.roots, self.means.stop, self.now_s());
        let file = self.file(number, is_only)?;
        let controller = &self.nodes[i].controller;
        if controller.rules().sync && controller.failed_lately(at_s).is_some_and(NoGain::may_pass) {
            if let Some(seconds) = self.dirty.write(at_s, stop, || self.notify.alive()) {
                self.tell(Some(number), What::Synced { seconds });
            }
            if self.hold.holds() || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        let own = own_cpu_s();
        // Before and after it, free pages on CPUs' lists count alike.
        runner::drain(roots, stop);
        let Some(before) = self.node(number) else { return Ok(()) };
        if self.nodes[i].controller.is_enough(&before) {
            let at_hand = self.nodes[i].controller.at_hand(&before);
            let watched = &mut self.nodes[i];
            watched.controller.spend(own_cpu_s() - own);
            watched.rests = Some(Rest::AtTarget);
            watched.state = format!("emptied CPUs' lists ({at_hand} at hand)");
            return Ok(());
        }
        self.nodes[i].rests = None;
        self.write_state();
        let (sampler, notify, controller) = (&mut self.sampler, &mut self.notify, &self.nodes[i].controller);
        let (mut most, order) = (0, controller.order(&before));
        let (began, time) = (self.began, self.means.time);
        let is_over = || time.is_some_and(|time| began.elapsed() >= time);
        let enough = || {
            notify.alive();
            let now = sampler.nodes(roots, at_s).ok();
            let now = now.as_ref().and_then(|nodes| nodes.iter().find(|n| n.node == number));
            most = most.max(now.map_or(0, |now| now.at_hand(order)));
            is_over() || now.is_some_and(|now| controller.is_enough(now))
        };
        let ran = runner::run(roots, &file, (writer, stop), cpu_s, enough);
        let ran = ran.map_err(|e| Failed::Unwritten(file, e))?;
        // Emptying CPUs' lists is a part of a run's cost.
        self.nodes[i].controller.spend(own_cpu_s() - own);
        let Some(after) = self.node(number) else { return Ok(()) };
        self.conclude(i, (&before, &after), most, &ran);
        Ok(())
    }

    /// A node's free memory now; where that cannot be read, it is told.
    fn node(&mut self, number: u32) -> Option<NodeSample> {
        let at_s = self.now_s();
        match self.sampler.nodes(self.means.roots, at_s) {
            Ok(nodes) => self.last = nodes,
            Err(e) => {
                self.tell(None, What::Failed { why: e.to_string() });
                return None;
            }
        }
        self.last.iter().find(|node| node.node == number).cloned()
    }

    /// Learns from a run, and tells it.
    fn conclude(&mut self, i: usize, (node, after): (&NodeSample, &NodeSample), most: u64, ran: &Ran) {
        let rules = self.nodes[i].controller.rules();
        let [before, now] = [node, after].map(|node| self.nodes[i].controller.at_hand(node));
        // What others have freed meanwhile is no gain of a run that moved nothing.
        let gained = ran.moved.is_none_or(|moved| moved > 0)
            && match rules.target {
                Target::Blocks { .. } => now > before,
                Target::Score { .. } => after.score() < node.score(),
            };
        let no_gain = (!gained).then(|| self.why_not(i, after, ran, Blocks { before, most, after: now }));
        let (at_s, made) = (self.now_s(), if gained { now.saturating_sub(before) } else { 0 });
        let watched = &mut self.nodes[i];
        watched.controller.finished(Outcome { at_s, cpu_s: Some(ran.cpu_s), made, no_gain }, after);
        watched.see(at_s, watched.controller.is_kept(after));
        if gained {
            watched.told.clear();
            self.dirty.helped();
        }
        watched.rests = None;
        watched.state = format!("compacted, {before} to {now} at hand");
        watched.ran(no_gain);
        let tally = &mut watched.tally;
        tally.gained += made;
        tally.pages_moved = tally.pages_moved.zip(ran.moved).map(|(sum, moved)| sum + moved);
        tally.cpu_s = tally.cpu_s.map(|sum| sum + ran.cpu_s);
        let what = What::Compacted {
            before,
            after: now,
            score: after.score(),
            pages_moved: ran.moved,
            pages_not_moved: ran.failed,
            cpu_s: ran.cpu_s,
            seconds: ran.seconds,
            demand: watched.controller.demand(),
            no_gain,
        };
        self.tell(Some(node.node), what);
    }

    fn why_not(&mut self, i: usize, after: &NodeSample, ran: &Ran, blocks: Blocks) -> NoGain {
        let order = self.nodes[i].controller.order(after);
        if let Some(why) = diagnose::by_counters(ran, blocks, after, order) {
            return why;
        }
        let now = self.now_s();
        let known = self.nodes[i].looked;
        if let Some(looked) = known.filter(|looked| looked.is_fresh(now)) {
            return looked.found.unwrap_or_else(|| diagnose::by_moves(ran));
        }
        let Mode::Execute { looker, .. } = self.means.mode else { return diagnose::by_moves(ran) };
        let needs_s = self.looks.needs_s(self.frames);
        let controller = &self.nodes[i].controller;
        let may_follow = |looked: Looked| looked.may_follow(now, needs_s, controller.rules().cpu_share);
        // The run itself is not charged yet.
        if !controller.affords(ran.cpu_s + needs_s) || !known.is_none_or(may_follow) {
            return NoGain::NotLooked { needs_s };
        }
        let (notify, hold, stop) = (&mut self.notify, &self.hold, self.means.stop);
        let (found, cpu_s) = self.looks.look(looker(after.node, order), || {
            notify.alive();
            !stop.load(Ordering::Relaxed) && !hold.holds()
        });
        self.nodes[i].controller.spend(cpu_s);
        self.nodes[i].looked = Some(Looked { at_s: now, found });
        found.unwrap_or_else(|| diagnose::by_moves(ran))
    }

    /// Tells the service manager the state of all nodes.
    fn say_state(&mut self) {
        let state = |watched: &Watched| format!("node {}: {}", watched.controller.node, watched.state);
        self.notify.status(&self.nodes.iter().map(state).collect::<Vec<_>>().join(", "));
    }

    /// Sets the kernel to compact for these nodes, by the largest value that one of them asks for.
    fn drive(&mut self, sample: &Sample, wanted: &[(usize, &NodeSample)]) -> Result<(), Failed> {
        let Mode::Drive(drive) = &self.means.mode else { return Ok(()) };
        let value_for = |(i, node): &(usize, &NodeSample)| {
            let controller = &self.nodes[*i].controller;
            proactiveness(node, controller.lacks(node), controller.order(node))
        };
        let Some(value) = wanted.iter().map(value_for).max() else { return Ok(()) };
        // The operator's own value is never lowered.
        let value = value.max(sample.kernel_compacts.unwrap_or(0));
        let driving = match self.driving.take() {
            Some(mut driving) => driving.raise(self.means.roots, value).map(|()| driving),
            None => Driving::begin(drive, self.means.roots, value, sample.at_s),
        };
        let mut driving = driving.map_err(Failed::NoJournal)?;
        let mut told = Vec::new();
        for (i, node) in wanted {
            let at_hand = self.nodes[*i].controller.at_hand(node);
            driving.nodes.push((node.node, at_hand));
            self.nodes[*i].told.clear();
            self.nodes[*i].rests = None;
            self.nodes[*i].state = format!("the kernel compacts ({at_hand} at hand)");
            told.push((node.node, What::Drives { proactiveness: driving.value(), at_hand }));
        }
        self.driving = Some(driving);
        told.into_iter().for_each(|(node, what)| self.tell(Some(node), what));
        Ok(())
    }

    /// Looks whether the kernel has done enough, and gives its setting back once no node lacks
    /// blocks, or after a while.
    fn drive_on(&mut self, sample: &Sample, held: bool) {
        let Some(mut driving) = self.driving.take() else { return };
        let is_over = held || driving.is_long(sample.at_s);
        let has_moved = driving.has_moved(self.means.roots);
        let mut released = Vec::new();
        for (number, before) in std::mem::take(&mut driving.nodes) {
            let watched = self.nodes.iter_mut().find(|watched| watched.controller.node == number);
            let node = sample.nodes.iter().find(|node| node.node == number);
            // One that is not watched any more asks for nothing.
            let (Some(watched), Some(node)) = (watched, node) else { continue };
            if !is_over && !watched.controller.is_enough(node) {
                driving.nodes.push((number, before));
                continue;
            }
            let at_hand = watched.controller.at_hand(node);
            // What others have freed meanwhile is no gain of the kernel's that moved nothing.
            let gained = at_hand > before && has_moved;
            let no_gain = (!gained).then_some(NoGain::Unknown);
            watched.controller.finished(Outcome { at_s: sample.at_s, cpu_s: None, made: 0, no_gain }, node);
            watched.ran(no_gain);
            watched.tally.gained += if gained { at_hand - before } else { 0 };
            released.push((number, What::Released { before, at_hand }));
        }
        if driving.nodes.is_empty() {
            match driving.end() {
                Ok(left) => self.tell_left(left),
                Err(e) => self.tell(None, What::Failed { why: e.to_string() }),
            }
        } else {
            self.driving = Some(driving);
        }
        released.into_iter().for_each(|(node, what)| self.tell(Some(node), what));
    }

    fn tell_left(&mut self, setting: Option<Setting>) {
        if let Some(Setting { path, was, left: Some(is), .. }) = setting {
            self.tell(None, What::Left { path: path.display().to_string(), was, is });
        }
    }

    fn release(&mut self) -> Result<(), Failed> {
        if let Some(driving) = self.driving.take() {
            let left = driving.end().map_err(Failed::NoJournal)?;
            self.tell_left(left);
        }
        Ok(())
    }

    /// Restores what a guard has left that was killed along with the process that restores. One
    /// that compacts by itself goes on where it cannot: it needs no such setting, and the journal
    /// stays for who may write it.
    fn restore(&mut self) -> Result<(), Failed> {
        if !self.changes_the_host() {
            return Ok(());
        }
        let journal = self.means.dir.join(JOURNAL);
        let restored = loop {
            match restore_left(&journal, self.means.roots) {
                // This guard is alone: that one is dying, and exists for a while after its lock.
                Err(NoJournal::Busy(process)) => process.wait_for_end(),
                done => break done,
            }
        };
        let path = |setting: &Setting| setting.path.display().to_string();
        match restored {
            Ok(settings) => {
                for setting in settings {
                    match setting.left {
                        Some(_) => self.tell_left(Some(setting)),
                        None => self.tell(None, What::Restored { path: path(&setting), was: setting.was }),
                    }
                }
                Ok(())
            }
            Err(e) if matches!(self.means.mode, Mode::Drive(_)) => Err(Failed::NoJournal(e)),
            Err(e) => {
                let (why, settings) =
                    (e.to_string(), Leftover::find(&journal).map_or(Vec::new(), |left| left.settings));
                let journal = journal.display().to_string();
                let told = settings.iter().map(|s| (Some(path(s)), Some(s.was.clone())));
                // Of a journal that cannot be read, no setting is known.
                let unknown = settings.is_empty().then_some((None, None));
                for (path, was) in told.chain(unknown) {
                    self.tell(None, What::NotRestored { path, was, journal: journal.clone(), why: why.clone() });
                }
                Ok(())
            }
        }
    }

    fn sum_up(&mut self) {
        let now = self.now_s();
        for watched in &mut self.nodes {
            watched.see(now, false);
        }
        let nodes = self.nodes.iter().map(|watched| watched.tally).collect();
        let (own_cpu_s, looks_cpu_s) = (self.own_cpu_s(), self.looks.cpu_s);
        let what = What::Ended { seconds: self.now_s(), own_cpu_s, looks_cpu_s, nodes };
        self.tell(None, what);
    }
}

/// Seconds that this process has had a CPU, without its children.
fn own_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
