//! The processes that waited for memory: direct compaction and direct reclaim by process and order.
//!
//! Only the kernel's tracepoints tell that. They are read from an [`instance`] of tracefs that is
//! this program's own, by a thread ([`watch`]) that adds them up ([`sums`]). Nobody else's trace is
//! touched. Where there is no tracefs, or this user may not trace, one line says so, and what is
//! left are the kernel's counters and `/proc/pressure`, which name nobody.

pub mod instance;
pub mod sums;
pub mod watch;

use serde::Serialize;

/// The work that a request waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitedFor {
    Compaction,
    Reclaim,
}

impl WaitedFor {
    pub fn text(self) -> &'static str {
        match self {
            WaitedFor::Compaction => "compaction",
            WaitedFor::Reclaim => "reclaim",
        }
    }
}

/// The waits of a process for one order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stall {
    pub pid: u32,
    pub name: String,
    pub waited_for: WaitedFor,
    pub order: u32,
    /// Compactions or reclaims: a request can make several before it has its page.
    pub attempts: u64,
    pub seconds: f64,
    /// The longest of them.
    pub longest_s: f64,
}

/// The waits of a span of time.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Stalls {
    pub seconds: f64,
    /// Those that waited longest first.
    pub processes: Vec<Stall>,
    /// Events that the kernel dropped as nobody had read them in time: there were more waits.
    pub lost_events: u64,
    /// Why it is not known who waited; null if it is.
    pub not_known: Option<String>,
}

impl Stalls {
    /// Nothing is known, for this reason.
    pub fn unknown(why: impl ToString) -> Stalls {
        Stalls { not_known: Some(why.to_string()), ..Stalls::default() }
    }

    /// Several spans as one.
    pub fn joined<'a>(all: impl IntoIterator<Item = &'a Stalls>) -> Stalls {
        let mut sum = Stalls::default();
        for one in all {
            sum.seconds += one.seconds;
            sum.lost_events += one.lost_events;
            sum.not_known = sum.not_known.or_else(|| one.not_known.clone());
            for stall in &one.processes {
                let is_same = |s: &&mut Stall| {
                    (s.pid, s.waited_for, s.order, &s.name) == (stall.pid, stall.waited_for, stall.order, &stall.name)
                };
                match sum.processes.iter_mut().find(is_same) {
                    Some(same) => {
                        same.attempts += stall.attempts;
                        same.seconds += stall.seconds;
                        same.longest_s = same.longest_s.max(stall.longest_s);
                    }
                    None => sum.processes.push(stall.clone()),
                }
            }
        }
        sum.sort();
        sum
    }

    fn sort(&mut self) {
        self.processes.sort_by(|a, b| {
            let rest = |s: &Stall| (std::cmp::Reverse(s.attempts), s.pid, s.waited_for, s.order);
            b.seconds.total_cmp(&a.seconds).then_with(|| rest(a).cmp(&rest(b)))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_joined_and_who_waited_longest_comes_first() {
        let stall = |pid, order, seconds| {
            let (name, waited_for) = ("java".to_string(), WaitedFor::Compaction);
            Stall { pid, name, waited_for, order, attempts: 2, seconds, longest_s: seconds }
        };
        let span = |processes| Stalls { seconds: 2.0, processes, lost_events: 1, not_known: None };
        let joined = Stalls::joined(&[span(vec![stall(7, 9, 0.5), stall(8, 9, 0.25)]), span(vec![stall(8, 9, 0.5)])]);
        let both = Stall { attempts: 4, longest_s: 0.5, ..stall(8, 9, 0.75) };
        assert_eq!(joined.processes, [both, stall(7, 9, 0.5)]);
        assert_eq!((joined.seconds, joined.lost_events), (4.0, 2));
        let unknown = Stalls::joined(&[span(vec![]), Stalls::unknown("no tracefs")]);
        assert_eq!(unknown.not_known.as_deref(), Some("no tracefs"));
    }
}
