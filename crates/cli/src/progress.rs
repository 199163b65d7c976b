//! Progress: bars on a terminal, lines where standard error is a file or a pipe.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kontig_lab::expected::Expected;
use kontig_lab::session::Job;
use kontig_text::{size, time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often progress is looked at.
const TICK: Duration = Duration::from_millis(100);
/// A session of more experiments announces itself when it begins. One of fewer does so once it has
/// lasted [`SHORT`], because most of them have ended by then.
const FEW: usize = 8;
const SHORT: Duration = Duration::from_secs(20);
/// No longer silence than this; and, but for the first run and the last, no more lines on runs that
/// have ended than one in this time.
const BEAT: Duration = Duration::from_secs(30);

/// Waits for the next look; whether the runs go on.
fn go_on(done: &Receiver<()>) -> bool {
    done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout)
}

/// Shows a bar for each run until `done` is closed, after a line if they are expected to take long.
/// Hidden unless standard error is a terminal.
pub fn show(jobs: &[Job], expected: &Expected, done: &Receiver<()>) {
    if is_long(expected) {
        let text = Lines::new(jobs.iter().map(Told::job).collect()).announcement(expected);
        text.iter().for_each(|text| kontig_terminal::say(text));
    }
    let all = MultiProgress::new();
    let style = ProgressStyle::with_template("{msg:48!} {bar:24} {percent:>3}% {elapsed:>4}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let mut bars: BTreeMap<usize, ProgressBar> = BTreeMap::new();
    while go_on(done) {
        for (i, job) in jobs.iter().enumerate() {
            match job.control.permille.load(Ordering::Relaxed) {
                0 => {}
                1..1000 => {
                    let bar = bars.entry(i).or_insert_with(|| {
                        let bar = ProgressBar::new(1000).with_style(style.clone()).with_message(job.plan.title());
                        let bar = all.add(bar);
                        bar.reset_elapsed();
                        bar
                    });
                    bar.set_position(job.control.permille.load(Ordering::Relaxed).into());
                }
                _ => {
                    if let Some(bar) = bars.remove(&i) {
                        bar.finish_and_clear();
                    }
                }
            }
        }
    }
    let _ = all.clear();
}

/// Prints how many runs there are and what they are expected to take, then a line as the first
/// ends, as the last does, as one does after half a minute without, and as all of an experiment
/// have, or that they go on, until `done` is closed.
pub fn tell(jobs: &[Job], expected: &Expected, done: &Receiver<()>) {
    let begin = Instant::now();
    let mut lines = Lines::new(jobs.iter().map(Told::job).collect());
    let mut announced = false;
    let mut said = begin;
    while go_on(done) {
        let takes_long = lines.experiments().len() > FEW || is_long(expected) || begin.elapsed() > SHORT;
        if !announced
            && takes_long
            && let Some(text) = lines.announcement(expected)
        {
            kontig_terminal::say(&text);
            (announced, said) = (true, Instant::now());
        }
        if announced {
            let mut now = lines.ended(begin.elapsed());
            if now.is_empty() && said.elapsed() > BEAT {
                now.push(lines.still(begin.elapsed()));
            }
            if !now.is_empty() {
                said = Instant::now();
            }
            now.iter().for_each(|line| kontig_terminal::say(line));
        }
    }
    // The last runs have ended since.
    if announced {
        lines.ended(begin.elapsed()).iter().for_each(|line| kontig_terminal::say(line));
    }
}

/// Whether runs are expected to take so long that a word on it is welcome.
fn is_long(expected: &Expected) -> bool {
    expected.seconds.is_some_and(|seconds| seconds > SHORT.as_secs_f64())
}

/// A run, as far as the lines tell of it.
struct Told {
    title: String,
    /// The experiment and its case.
    experiment: String,
    /// Runs of one number share a result.
    shared: usize,
    permille: Box<dyn Fn() -> u32 + Send>,
}

impl Told {
    fn job(job: &Job) -> Told {
        let permille = Arc::clone(&job.control.permille);
        let title = job.plan.title();
        Told {
            experiment: title.split(" / ").next().unwrap_or_default().into(),
            title: format!("{title}, seed {}", job.plan.seed),
            shared: Arc::as_ptr(&permille) as usize,
            permille: Box::new(move || permille.load(Ordering::Relaxed)),
        }
    }
}

/// The runs of a session, and those whose end is told.
struct Lines {
    of: Vec<Told>,
    told: Vec<bool>,
    /// The permille of all runs when the session began: an earlier one may have finished some.
    before: u64,
    /// When the last line on a run was told; none yet, or the time since the session began.
    at: Option<Duration>,
}

impl Lines {
    fn new(of: Vec<Told>) -> Lines {
        let told: Vec<bool> = of.iter().map(|run| (run.permille)() >= 1000).collect();
        let mut lines = Lines { of, told, before: 0, at: None };
        lines.before = lines.permille().0;
        lines
    }

    /// The experiments, each with its case.
    fn experiments(&self) -> Vec<&str> {
        let mut experiments: Vec<&str> = self.of.iter().map(|run| run.experiment.as_str()).collect();
        experiments.dedup();
        experiments
    }

    /// The permille done of all runs, and how many runs that is of. Those that share a result count
    /// once.
    fn permille(&self) -> (u64, u64) {
        let of: BTreeMap<usize, u32> = self.of.iter().map(|run| (run.shared, (run.permille)())).collect();
        (of.values().map(|permille| u64::from(*permille).min(1000)).sum(), of.len() as u64)
    }

    /// The rest of the time if all runs take as long as those so far.
    fn rest(&self, elapsed: Duration) -> Option<f64> {
        let (now, runs) = self.permille();
        let (done, left) = (now - self.before.min(now), 1000 * runs - now);
        (done > 0).then(|| elapsed.as_secs_f64() * left as f64 / done as f64)
    }

    /// A line on the runs that are left, and what they are expected to take. `None` if none is.
    fn announcement(&self, expected: &Expected) -> Option<String> {
        let experiments = self.experiments();
        let of = match experiments[..] {
            [one] => one.into(),
            _ => format!("{} experiments", experiments.len()),
        };
        let left = self.told.iter().filter(|told| !**told).count();
        if left == 0 {
            return None;
        }
        let at_once = match (expected.at_once, expected.short_of_memory) {
            (0 | 1, false) => "one after the other".into(),
            (0 | 1, true) => "one after the other, as memory allows".into(),
            (n, false) => format!("{n} at a time"),
            (n, true) => format!("{n} at a time, as memory allows"),
        };
        let takes = match expected.seconds.map(time) {
            Some(time) if expected.as_published => format!("about {time}"),
            Some(time) => format!("about {time} if the changed parameters take no longer"),
            None => "how long is not known".into(),
        };
        let memory = size(expected.bytes);
        let all = self.of.len();
        Some(format!("{left} of {all} runs to do, of {of}, {at_once}; {takes}, up to {memory} of memory"))
    }

    /// A line that says that runs go on.
    fn still(&self, elapsed: Duration) -> String {
        let ended = self.told.iter().filter(|told| **told).count();
        let running = self.of.iter().zip(&self.told).filter(|(run, told)| !**told && (run.permille)() > 0).count();
        let rest = self.rest(elapsed).map_or(String::new(), |rest| format!(", about {} to go", time(rest)));
        let (runs, so_far) = (self.of.len(), time(elapsed.as_secs_f64()));
        format!("{ended} of {runs} have ended, {running} are under way; {so_far} so far{rest}")
    }

    /// Lines for what has ended since the last call.
    fn ended(&mut self, elapsed: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        let runs = self.of.len();
        let ended: Vec<usize> = (0..runs).filter(|i| !self.told[*i] && (self.of[*i].permille)() >= 1000).collect();
        if ended.is_empty() {
            return lines;
        }
        let rest = self.rest(elapsed);
        let single = self.of.iter().all(|run| run.experiment == self.of[0].experiment);
        let before = self.told.iter().filter(|told| **told).count();
        let n = before + ended.len();
        if n == runs || self.at.is_none_or(|at| elapsed >= at + BEAT) {
            self.at = Some(elapsed);
            let rest = match rest {
                Some(rest) if n < runs => format!(", about {} to go", time(rest)),
                _ => String::new(),
            };
            let (title, so_far) = (&self.of[ended[ended.len() - 1]].title, time(elapsed.as_secs_f64()));
            lines.push(format!("{n} of {runs}: {title}; {so_far} so far{rest}"));
        }
        for i in ended {
            self.told[i] = true;
            if single {
                continue;
            }
            let experiment = &self.of[i].experiment;
            let others = || self.of.iter().zip(&self.told).filter(|(run, _)| run.experiment != *experiment);
            if self.of.iter().zip(&self.told).all(|(run, told)| *told || run.experiment != *experiment) {
                let mut left: Vec<&str> =
                    others().filter(|(_, told)| !**told).map(|(run, _)| &*run.experiment).collect();
                left.dedup();
                let left = match left.len() {
                    0 => "it was the last".into(),
                    1 => "1 experiment is left".into(),
                    n => format!("{n} experiments are left"),
                };
                lines.push(format!("{experiment} has ended; {left}"));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn of(title: &str, permille: &Arc<AtomicU32>) -> Told {
        let (shared, permille) = (Arc::as_ptr(permille) as usize, Arc::clone(permille));
        let experiment = title.split(" / ").next().unwrap_or_default().into();
        Told { title: title.into(), experiment, shared, permille: Box::new(move || permille.load(Ordering::Relaxed)) }
    }

    fn expected() -> Expected {
        Expected { seconds: Some(90.0), as_published: true, at_once: 2, short_of_memory: false, bytes: 3 << 30 }
    }

    #[test]
    fn the_runs_that_are_left_are_said_with_what_they_take() {
        let run = Arc::new(AtomicU32::new(0));
        let lines = Lines::new(vec![of("java / old", &run), of("java / new", &run)]);
        let said = |change: fn(&mut Expected)| {
            let mut expected = expected();
            change(&mut expected);
            lines.announcement(&expected).expect("runs are left")
        };
        let all = "2 of 2 runs to do, of java, ";
        assert_eq!(said(|_| {}), format!("{all}2 at a time; about 1 min 30 s, up to 3 GiB of memory"));
        let alone = said(|expected| (expected.at_once, expected.short_of_memory) = (1, true));
        assert_eq!(
            alone,
            format!("{all}one after the other, as memory allows; about 1 min 30 s, up to 3 GiB of memory")
        );
        assert!(said(|expected| expected.seconds = None).contains("; how long is not known, up to "));
    }

    #[test]
    fn nothing_is_announced_where_all_runs_are_finished() {
        let run = Arc::new(AtomicU32::new(1000));
        assert_eq!(Lines::new(vec![of("java / old", &run)]).announcement(&expected()), None);
    }

    #[test]
    fn long_runs_are_said_to_go_on() {
        let [a, b] = [0, 0].map(|permille| Arc::new(AtomicU32::new(permille)));
        let mut lines = Lines::new(vec![of("java / old", &a), of("java / new", &b)]);
        a.store(1000, Ordering::Relaxed);
        b.store(200, Ordering::Relaxed);
        lines.ended(Duration::from_secs(30));
        let said = lines.still(Duration::from_secs(60));
        assert_eq!(said, "1 of 2 have ended, 1 are under way; 1 min 0 s so far, about 40 s to go");
    }

    #[test]
    fn each_end_is_told_once_with_the_time_so_far_and_the_rest() {
        let [a, b, c] = [0, 0, 0].map(|permille| Arc::new(AtomicU32::new(permille)));
        let mut lines = Lines::new(vec![of("java / old", &a), of("java / new", &b), of("usemem / old", &c)]);
        let at = Duration::from_secs;
        assert!(lines.ended(at(1)).is_empty());
        a.store(1000, Ordering::Relaxed);
        b.store(500, Ordering::Relaxed);
        assert_eq!(lines.ended(at(60)), ["1 of 3: java / old; 1 min 0 s so far, about 1 min 0 s to go"]);
        b.store(1000, Ordering::Relaxed);
        let ended = ["2 of 3: java / new; 1 min 40 s so far, about 50 s to go", "java has ended; 1 experiment is left"];
        assert_eq!(lines.ended(at(100)), ended);
        c.store(1000, Ordering::Relaxed);
        let last = ["3 of 3: usemem / old; 2 min 0 s so far", "usemem has ended; it was the last"];
        assert_eq!(lines.ended(at(120)), last);
    }

    #[test]
    fn of_many_short_runs_the_first_the_last_and_one_each_half_minute_are_told() {
        let runs: Vec<Arc<AtomicU32>> = (0..1000).map(|_| Arc::new(AtomicU32::new(0))).collect();
        let mut lines = Lines::new(runs.iter().map(|run| of("watch / 6.1", run)).collect());
        let mut told = Vec::new();
        for (i, run) in runs.iter().enumerate() {
            run.store(1000, Ordering::Relaxed);
            // A run each tenth of a second.
            told.extend(lines.ended(Duration::from_millis(100 * i as u64)));
        }
        let which: Vec<&str> = told.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(which, ["1 of 1000", "301 of 1000", "601 of 1000", "901 of 1000", "1000 of 1000"], "{told:?}");
    }

    #[test]
    fn runs_of_an_earlier_session_are_no_measure_of_the_rest() {
        let [a, b] = [1000, 0].map(|permille| Arc::new(AtomicU32::new(permille)));
        let mut lines = Lines::new(vec![of("java / old", &a), of("java / new", &b), of("java / same", &b)]);
        let announced = lines.announcement(&expected()).expect("runs are left");
        assert!(announced.starts_with("2 of 3 runs to do, of java, 2 at a time; "), "{announced}");
        assert!(lines.ended(Duration::ZERO).is_empty());
        b.store(250, Ordering::Relaxed);
        assert_eq!(lines.rest(Duration::from_secs(10)), Some(30.0));
    }
}
