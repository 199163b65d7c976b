//! The looks of a screen, and the one that is shown.

use super::look::Look;
use kontig_live::history::point::Count;

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

    /// How fast a count grew, a second, up to a look; `None` after a boot, or of the first look.
    pub fn rate(&self, at: usize, count: Count) -> Option<f64> {
        let (before, now) = (&self.looks.get(at.checked_sub(1)?)?.point, &self.looks.get(at)?.point);
        Some(now.since(before, count)? / now.seconds_since(before)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_live::history::Sample;

    fn look(unix_ms: i64) -> Look {
        Look::of(&Sample { unix_ms, files: Default::default() })
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
