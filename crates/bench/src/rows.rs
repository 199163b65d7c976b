//! All rows, in the order of the table.

use crate::compare::{alone, beside, compare};
use crate::rival::{self, Called};
use crate::streams::{self, Stream, Visit};
use crate::subject::{self, Contender, Subject};
use crate::table::Row;
use crate::{
    Options, compaction, files, memory, metadata, processes, reclaim, runs, simulator, soundness, switches, turns,
};

/// Receives the table as it is measured.
pub trait Listener {
    /// Called before a measurement, with its name.
    fn begins(&mut self, what: &str);
    /// Called with measured rows.
    fn rows(&mut self, rows: Vec<Row>);
    /// Called with the rows that lack a yardstick or a target because this peer is missing.
    fn without(&mut self, numbers: Vec<&'static str>, peer: &'static str);
}

/// Runs the selected streams on all contenders.
struct Streams<'a, P> {
    options: &'a Options,
    peer: Option<&'a Contender<P>>,
    rivals: &'a [Contender<Called>],
    listener: &'a mut dyn Listener,
    /// Rows, each with its missing peer.
    without: Vec<(&'static str, &'static str)>,
}

impl<P: Subject> Visit for Streams<'_, P> {
    fn stream(&mut self, numbers: &[&str], text: &str, stream: &impl Stream) {
        if !self.options.wants(numbers, text) {
            return;
        }
        let figures = stream.figures();
        self.listener.begins(&figures[0].what);
        let ours = subject::kontig();
        match self.peer {
            Some(peer) => self.listener.rows(beside(stream, (&ours, peer), self.options, Some(stream.limits()))),
            None => self.listener.rows(alone(stream, &ours, self.options)),
        }
        for rival in self.rivals {
            self.listener.begins(&format!("{}, {}", figures[0].what, rival.name));
            self.listener.rows(compare(stream, (&rival::kontig(), rival), self.options));
        }
        // Quick runs have no targets, so they lack no rival.
        for figure in figures.into_iter().filter(|_| !self.options.quick) {
            let is_there = |name: &str| {
                let peer = self.peer.map(|peer| &peer.name);
                peer.into_iter().chain(self.rivals.iter().map(|r| &r.name)).any(|there| there.starts_with(name))
            };
            let absent = figure.against.iter().filter(|(peer, _)| !is_there(peer));
            self.without.extend(absent.map(|(peer, _)| (figure.number, *peer)));
        }
    }
}

/// Measures the selected rows: the engine beside the peer, the rivals,
/// and the limits of the machine.
pub fn each<P: Subject>(
    o: &Options,
    peer: Option<&Contender<P>>,
    rivals: &[Contender<Called>],
    listener: &mut dyn Listener,
) {
    // First, while nothing else is resident.
    group(o, listener, &["9", "9a", "9b", "9c"], "metadata", metadata::rows);
    group(o, listener, &["9d", "9e"], "memory", memory::rows);
    let mut streams = Streams { options: o, peer, rivals, listener, without: Vec::new() };
    streams::each(o, &mut streams);
    let mut without = streams.without;
    group(o, listener, &["11", "12"], "soundness", soundness::rows);
    group(o, listener, &["13", "13a", "13b", "13c"], "simulator", simulator::event_rows);
    group(o, listener, &["U", "Ua", "Ub"], "runs", runs::rows);
    group(o, listener, &["T1", "T80", "T1000", "Ts"], "turns", turns::rows);
    group(o, listener, &["W", "Wa"], "switches", switches::rows);
    group(o, listener, &["F"], "fragmenting", |o| vec![simulator::fragmenting_row(o)]);
    group(o, listener, &["S", "M"], "compaction", compaction::rows);
    group(o, listener, &["L", "La", "Lb", "Lc", "Ld", "Le"], "reclaim", reclaim::rows);
    group(o, listener, &["C", "Ca", "Cb"], "files", files::rows);
    group(o, listener, &["P", "Pa", "Pb", "Pc"], "processes", processes::rows);
    while let Some(&(_, peer)) = without.first() {
        let (of_peer, others) = without.into_iter().partition(|(_, p)| *p == peer);
        let of_peer: Vec<(&str, &str)> = of_peer;
        without = others;
        listener.without(of_peer.into_iter().map(|(number, _)| number).collect(), peer);
    }
}

fn group(
    o: &Options,
    listener: &mut dyn Listener,
    numbers: &[&str],
    text: &str,
    measure: impl FnOnce(&Options) -> Vec<Row>,
) {
    if o.wants(numbers, text) {
        listener.begins(text);
        listener.rows(measure(o));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kontig;

    #[derive(Default)]
    struct Seen(Vec<Row>);
    impl Listener for Seen {
        fn begins(&mut self, _: &str) {}
        fn rows(&mut self, rows: Vec<Row>) {
            self.0.extend(rows);
        }
        fn without(&mut self, numbers: Vec<&'static str>, _: &'static str) {
            assert!(numbers.is_empty());
        }
    }

    #[test]
    fn the_simulator_s_rows_run_to_the_end_on_small_machines() {
        for filter in ["11", "U", "W", "S", "L", "C", "P"] {
            let o = Options { quick: true, filter: vec![filter.into()], ..Options::default() };
            let mut seen = Seen::default();
            each::<Kontig>(&o, None, &[], &mut seen);
            assert!(seen.0.iter().any(|r| r.number == filter), "row {filter}");
            let taken = seen.0.iter().map(|r| (r.number, r.ours.median()));
            taken.for_each(|(number, ns)| assert!(ns > 0.0, "row {number} took {ns}"));
        }
    }
}
