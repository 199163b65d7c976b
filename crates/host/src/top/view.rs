//! The looks of a screen, and the one that is shown.

use super::look::Look;
use kontig_live::history::Step;
use kontig_live::history::count::Count;
use kontig_live::stalls::Stalls;

/// The time for which it is told who waited.
const STALLS_MS: i64 = 60_000;

/// Looks in their order.
pub struct View {
    pub looks: Vec<Look>,
    /// The look that is shown.
    pub at: usize,
    /// Looks are added, and the last one is shown unless the screen is held.
    pub is_live: bool,
    pub is_held: bool,
}

impl View {
    pub fn new(looks: Vec<Look>, is_live: bool) -> View {
        View { at: looks.len().saturating_sub(1), looks, is_live, is_held: false }
    }

    /// Adds a look, and forgets the oldest beyond `kept`.
    pub fn add(&mut self, look: Look, kept: usize) {
        self.looks.push(look);
        if self.looks.len() > kept {
            self.looks.remove(0);
            self.at = self.at.saturating_sub(1);
        }
        if !self.is_held {
            self.at = self.looks.len() - 1;
        }
    }

    /// Holds the screen, or goes on with the last look.
    pub fn hold(&mut self) {
        self.is_held = !self.is_held;
        if self.is_live && !self.is_held {
            self.at = self.looks.len().saturating_sub(1);
        }
    }

    /// Goes back, and stays there.
    pub fn back(&mut self, looks: usize) {
        self.at = self.at.saturating_sub(looks);
        self.is_held = true;
    }

    /// Goes on; at the last look, a live screen follows again.
    pub fn on(&mut self, looks: usize) {
        self.at = self.at.saturating_add(looks).min(self.looks.len().saturating_sub(1));
        self.is_held = self.at + 1 < self.looks.len();
    }

    /// The look that is shown.
    pub fn shown(&self) -> Option<&Look> {
        self.looks.get(self.at)
    }

    /// The waits of the minute before a look, or of the time that is known; `None` unless they are
    /// watched.
    pub fn stalls(&self, at: usize) -> Option<Stalls> {
        let until = self.looks.get(at)?.point.unix_ms;
        let looks = self.looks[..=at].iter().rev().take_while(|look| until - look.point.unix_ms < STALLS_MS);
        let spans: Vec<&Stalls> = looks.filter_map(|look| look.stalls.as_ref()).collect();
        (!spans.is_empty()).then(|| Stalls::joined(spans))
    }

    /// How fast a count grew, a second, up to a look; `None` after a boot or a gap, or of the first
    /// look.
    pub fn rate(&self, at: usize, count: Count) -> Option<f64> {
        let (before, now) = (&self.looks.get(at.checked_sub(1)?)?.point, &self.looks.get(at)?.point);
        Some(Step::between(before, now)?.grown(count)?.a_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_live::history::{Sample, Stored};
    use kontig_live::stalls::{Stall, WaitedFor};

    fn look(unix_ms: i64) -> Look {
        Look::of(&Sample { unix_ms, files: Default::default() })
    }

    #[test]
    fn stalls_are_those_of_the_minute_before_the_look_that_is_shown() {
        let stall = |seconds| {
            let (name, waited_for) = ("java".to_string(), WaitedFor::Reclaim);
            Stall { pid: 7, name, waited_for, order: 0, attempts: 1, seconds, longest_s: seconds }
        };
        let at = |s: i64, waited| {
            let stalls = Stalls { seconds: 30.0, processes: vec![stall(waited)], lost_events: 0, not_known: None };
            Look { stalls: Some(stalls), ..look(s * 1000) }
        };
        let mut view = View::new(vec![look(0), at(30, 1.0), at(60, 0.25), at(90, 0.125)], true);
        let seconds = |view: &View, at| view.stalls(at).map(|stalls| stalls.processes[0].seconds);
        assert_eq!([0, 1, 2, 3].map(|at| seconds(&view, at)), [None, Some(1.0), Some(1.25), Some(0.375)]);
        view.back(1);
        assert_eq!(seconds(&view, view.at), Some(1.25));
    }

    #[test]
    fn no_rate_goes_over_a_time_without_samples() {
        let at = |s: i64, waits: i64| {
            let texts = [
                ("kontig/interval_s", "1\n".to_string()),
                ("proc/uptime", format!("{}.00 1.00\n", 100 + s)),
                ("proc/vmstat", format!("compact_stall {waits}\n")),
            ];
            let files = texts.map(|(path, text)| (path.into(), Stored::Text(text.into())));
            Look::of(&Sample { unix_ms: s * 1000, files: files.into() })
        };
        let view = View::new(vec![at(0, 0), at(1, 2), at(16, 90_000), at(17, 90_004)], false);
        let rates = [0, 1, 2, 3].map(|at| view.rate(at, Count::WaitedForCompaction));
        assert_eq!(rates, [None, Some(2.0), None, Some(4.0)]);
    }

    #[test]
    fn without_looks_no_key_does_anything() {
        let mut view = View::new(Vec::new(), true);
        view.on(1);
        view.back(1);
        view.hold();
        assert!(view.shown().is_none());
    }

    #[test]
    fn a_held_screen_stays_at_its_look_while_others_come_and_go() {
        let mut view = View::new((0..3).map(look).collect(), true);
        view.back(1);
        (3..6).for_each(|i| view.add(look(i), 4));
        let at = |view: &View| view.shown().map(|look| look.point.unix_ms);
        assert_eq!((at(&view), view.looks.len()), (Some(2), 4), "the oldest two are forgotten, its own is not");
        view.hold();
        assert_eq!(at(&view), Some(5));
        view.add(look(6), 4);
        assert_eq!(at(&view), Some(6));
    }
}
