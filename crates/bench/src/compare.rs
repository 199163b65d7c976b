//! Runs a stream on the engine and, by turns, on a peer.

use crate::limit::{Limits, Yardstick};
use crate::measure::Samples;
use crate::options::Options;
use crate::streams::{Figure, Prepared, Stream};
use crate::subject::{Contender, Subject};
use crate::table::{Row, Target, Unit};

/// Runs a stream on two subjects by turns. Returns a row for each figure.
pub fn compare<A: Subject, B: Subject>(
    stream: &impl Stream,
    (ours, peer): (&Contender<A>, &Contender<B>),
    options: &Options,
) -> Vec<Row> {
    beside(stream, (ours, peer), options, None)
}

/// The same with limits of the machine as further yardsticks.
pub(crate) fn beside<A: Subject, B: Subject>(
    stream: &impl Stream,
    (ours, peer): (&Contender<A>, &Contender<B>),
    options: &Options,
    mut limits: Option<Limits>,
) -> Vec<Row> {
    let (mut a, mut b): (Prepared<A>, Prepared<B>) = (stream.prepare(ours), stream.prepare(peer));
    // The first turn does not count: it touches memory for the first time.
    stream.run(&mut a);
    stream.run(&mut b);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..options.repetitions() {
        ours.push(stream.run(&mut a));
        peers.push(stream.run(&mut b));
        limits.iter_mut().for_each(Limits::sample);
    }
    let row = |(i, figure): (usize, Figure)| {
        let target = figure.target(&peer.name);
        let (ours, peers) = (column(&ours, i), column(&peers, i));
        let limits = limits.iter().flat_map(|limits| limits.beside(&ours));
        let yardsticks = std::iter::once((peer.name.clone(), peers)).chain(limits).collect();
        row(figure, ours, yardsticks, target, options)
    };
    stream.figures().into_iter().enumerate().map(row).collect()
}

/// Runs a stream on one subject. Returns a row for each figure.
pub fn alone<A: Subject>(stream: &impl Stream, ours: &Contender<A>, options: &Options) -> Vec<Row> {
    let mut prepared = stream.prepare(ours);
    stream.run(&mut prepared);
    let mut limits = stream.limits();
    let turn = |_| {
        limits.sample();
        stream.run(&mut prepared)
    };
    let runs: Vec<_> = (0..options.repetitions()).map(turn).collect();
    let row = |(i, figure): (usize, Figure)| {
        let (target, ours) = (figure.limit.map(Target::AtMost), column(&runs, i));
        let yardsticks = limits.beside(&ours);
        row(figure, ours, yardsticks, target, options)
    };
    stream.figures().into_iter().enumerate().map(row).collect()
}

fn column(runs: &[Vec<f64>], i: usize) -> Samples {
    Samples::new(runs.iter().map(|run| run[i]).collect())
}

fn row(figure: Figure, ours: Samples, yardsticks: Vec<Yardstick>, target: Option<Target>, options: &Options) -> Row {
    let target = target.and_then(|target| options.target(target));
    // A figure that is a ratio needs none.
    let yardsticks = if figure.unit == Unit::Times { Vec::new() } else { yardsticks };
    Row { number: figure.number, what: figure.what, unit: figure.unit, ours, yardsticks, target }
}
