//! Runs a stream on the engine and, by turns, on a peer.

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
    let (mut a, mut b): (Prepared<A>, Prepared<B>) = (stream.prepare(ours), stream.prepare(peer));
    // The first turn does not count: it touches memory for the first time.
    stream.run(&mut a);
    stream.run(&mut b);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..options.repetitions() {
        ours.push(stream.run(&mut a));
        peers.push(stream.run(&mut b));
    }
    let row = |(i, figure): (usize, Figure)| {
        let target = figure.target(&peer.name);
        // A figure that is a ratio needs no yardstick.
        let peer = (figure.unit != Unit::Times).then(|| (peer.name.clone(), column(&peers, i)));
        row(figure, column(&ours, i), peer, target, options)
    };
    stream.figures().into_iter().enumerate().map(row).collect()
}

/// Runs a stream on one subject. Returns a row for each figure.
pub fn alone<A: Subject>(stream: &impl Stream, ours: &Contender<A>, options: &Options) -> Vec<Row> {
    let mut prepared = stream.prepare(ours);
    stream.run(&mut prepared);
    let runs: Vec<_> = (0..options.repetitions()).map(|_| stream.run(&mut prepared)).collect();
    let row = |(i, figure): (usize, Figure)| {
        let target = figure.limit.map(Target::AtMost);
        row(figure, column(&runs, i), None, target, options)
    };
    stream.figures().into_iter().enumerate().map(row).collect()
}

fn column(runs: &[Vec<f64>], i: usize) -> Samples {
    Samples::new(runs.iter().map(|run| run[i]).collect())
}

fn row(
    figure: Figure,
    ours: Samples,
    peer: Option<(String, Samples)>,
    target: Option<Target>,
    options: &Options,
) -> Row {
    let target = target.and_then(|target| options.target(target));
    Row { number: figure.number, what: figure.what, unit: figure.unit, ours, peer, target }
}
