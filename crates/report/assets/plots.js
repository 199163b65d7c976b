// The kinds of chart an experiment has: percentile curves, latency against the pace, and values over time.

/** Distributions: percentile across, value up on a log axis, a line a variant, published percentiles as rings. */
function showCurves(host, experiment) {
  const curves = experiment.curves.filter(c => c.buckets.some(b => b.length));
  if (!curves.length) return;
  const published = curves.some(c => c.published.some(p => p.length));
  const repeated = curves.some(c => c.repetitions.some(r => r.length));
  const body = el("div", { className: "grid" });
  const draw = tail => body.replaceChildren(...curves.map(curve => {
    const card = el("div", { className: "card" }, el("h4", { textContent: curve.name }));
    chart(card, curveSpec(curve, experiment.variants, curves.length === 1 ? 380 : 300, tail));
    return card;
  }));
  partHead(host, "Percentiles", "Read across: the share of operations that were at most this slow; the tail gives every tenfold rarer operation the same room. The vertical axis is logarithmic."
    + (repeated ? " Bold lines are all repetitions together, faint ones each of them." : "")
    + (published ? " Rings are published figures." : ""),
    choice("Percentile axis", [[false, "All alike"], [true, "Tail"]], false, draw));
  host.append(variantLegend(experiment.variants, published
    ? el("span", {}, el("i", { className: "ring" }), "published") : null), body);
  draw(false);
}

/** The two axes of percentiles: all alike, and by how rare what lies beyond is, in powers of ten. */
const EVEN = {
  of: p => p, back: x => x, high: () => 100, label: v => v === 0 ? "0" : `p${v}`,
  ticks: count => count >= 9 ? [0, 5, 10, 25, 50, 75, 90, 95, 100] : [0, 25, 50, 75, 100],
};
const TAIL = {
  of: p => -Math.log10(Math.max(1 - p / 100, 1e-12)), back: x => 100 - 100 * 10 ** -x, high: samples => Math.max(1, Math.log10(samples)),
  label: x => `p${Number((100 - 100 * 10 ** -x).toPrecision(8))}`,
  ticks: (count, high) => [0, TAIL.of(50), ...Array.from({ length: Math.floor(high + 1e-9) }, (_, i) => i + 1)],
};

function curveSpec(curve, variants, height, tail) {
  const values = [...curve.buckets.flat().map(b => b[0]), ...curve.published.flat().map(p => p[1])].filter(v => v > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(...values, Infinity)) + 1e-9);
  const top = Math.max(...values, -Infinity);
  const y = values.length ? { low, high: Math.max(top * 1.25, low * 10) } : { low: 0.1, high: 1 };
  const axis = tail ? TAIL : EVEN;
  const high = axis.high(Math.max(...curve.buckets.map(total)));
  const across = points => points.map(([p, v]) => [Math.min(axis.of(p), high), v]);
  const line = (buckets, i, faint) => ({ colour: variantColour(i), dashes: variantDashes(i), faint, points: across(percentileSteps(buckets)) });
  return {
    height,
    describe: `Percentile curves of ${curve.name}`,
    x: { low: 0, high, ticks: count => axis.ticks(count, high), label: axis.label },
    y: { ...y, log: true, ticks: count => logTicks(y.low, y.high, count), label: v => withUnit(v, curve.unit) },
    lines: [
      ...curve.repetitions.flatMap((runs, i) => runs.map(buckets => line(buckets, i, true))),
      ...curve.buckets.map((buckets, i) => line(buckets, i, false)),
    ],
    rings: curve.published.flatMap((points, i) => across(points).map(at => ({ colour: variantColour(i), at }))),
    reading(x) {
      const p = tail ? axis.back(x) : Math.round(x * 2) / 2;
      const rows = curve.buckets.flatMap((buckets, i) => {
        const own = buckets.length ? [[variantColour(i), variants[i], withUnit(percentile(buckets, p), curve.unit)]] : [];
        const near = curve.published[i].filter(q => Math.abs(axis.of(q[0]) - x) < high * 0.012).map(q => [variantColour(i), `published p${q[0]}`, withUnit(q[1], curve.unit)]);
        return [...own, ...near];
      });
      return rows.length ? { head: `p${Number(p.toPrecision(p > 99 ? 6 : 3))}`, rows } : null;
    },
  };
}

const total = buckets => buckets.reduce((sum, b) => sum + b[1], 0);

/** Corners of the step line through a distribution: at each bound, from the share below it to the share up to it. */
function percentileSteps(buckets) {
  const all = total(buckets);
  let below = 0;
  return buckets.flatMap(([bound, count]) => {
    const from = below / all * 100;
    below += count;
    return [[from, bound], [below / all * 100, bound]];
  });
}

/** The bound that `p` percent of a distribution are at or below. */
function percentile(buckets, p) {
  const wanted = total(buckets) * p / 100;
  let sum = 0;
  for (const [bound, count] of buckets) if ((sum += count) >= wanted) return bound;
  return buckets[buckets.length - 1][0];
}

/** The pace sweep: pause across, latency up on a log axis, a line a percentile, and a chart a variant on the same axes. */
function showPace(host, experiment) {
  const { machine, pauses, percentiles, variants } = experiment.pace;
  const values = variants.flatMap(v => v.lines.flat().map(p => p[1]));
  if (!values.length) return;
  partHead(host, "How fast may huge pages be taken?", "Across: the pause after each allocation, longer to the right."
    + " Up: how long allocations take, on a logarithmic axis; the line p99 is what one in a hundred exceeds."
    + (machine ? ` Every point is a run of its own, on the smaller machine ${machine}.` : ""));
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const y = { low, high: Math.max(Math.max(...values) * 1.25, low * 10) };
  host.append(el("div", { className: "grid" }, ...variants.map(variant => {
    const index = experiment.variants.indexOf(variant.name);
    const card = el("div", { className: "card" }, el("h4", {}, index < 0 ? null : variantKey(index), variant.name));
    chart(card, paceSpec(variant, pauses, percentiles, y));
    return card;
  })));
}

function paceSpec(variant, pauses, percentiles, y) {
  const last = pauses.length - 1;
  return {
    height: 300,
    describe: `Latency against the pause, ${variant.name}`,
    // Pauses stand evenly spaced, whatever their lengths.
    x: { low: -0.3, high: last + 0.3, ticks: () => pauses.map((_, i) => i), label: i => i === 0 ? `pause ${withUnit(pauses[i], "us")}` : withUnit(pauses[i], "us") },
    y: { ...y, log: true, ticks: count => logTicks(y.low, y.high, count), label: v => withUnit(v, "us") },
    lines: variant.lines.map((points, i) => ({ colour: `var(--q${i})`, points, dots: true, name: `p${percentiles[i]}` })),
    reading(x) {
      const at = Math.min(Math.max(Math.round(x), 0), last);
      const rows = variant.lines.flatMap((points, i) => points.filter(p => p[0] === at)
        .map(p => [`var(--q${i})`, `p${percentiles[i]}`, withUnit(p[1], "us")])).reverse();
      const rate = variant.rates[at];
      const pace = rate === null ? "" : ` · ${plainNumber(rate)} huge pages/s in all`;
      return rows.length ? { head: `pause ${withUnit(pauses[at], "us")}${pace}`, rows } : null;
    },
  };
}

/** What was swept: its value across, a figure up, a chart a figure. */
function showSweeps(host, experiment) {
  for (const sweep of experiment.sweeps.filter(s => s.figures.length)) {
    const seeds = sweep.figures.some(f => f.seeds.some(s => s.length));
    partHead(host, sweep.title, "Across: the value it was set to. Up: the figure, from nothing."
      + (seeds ? " The line joins the figures of the table; each dot is a seed." : ""));
    host.append(el("div", { className: "grid" }, ...sweep.figures.map(figure => {
      const card = el("div", { className: "card" }, el("h4", { textContent: `${figure.name}, ${figure.unit}` }));
      chart(card, sweepSpec(figure, sweep));
      return card;
    })));
  }
}

function sweepSpec(figure, { setting, unit, values }) {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const low = Math.min(...values), high = Math.max(...values), margin = (high - low) * 0.03;
  const top = Math.max(...figure.merged.filter(v => v !== null), ...figure.seeds.flat()) * 1.05 || 1;
  return {
    height: 200,
    describe: `${figure.name} against ${setting}`,
    x: { low: low - margin, high: high + margin, ticks: () => order.map(i => values[i]), label: plainNumber },
    y: { low: 0, high: top, ticks: count => linearTicks(0, top, count), label: axisNumber },
    lines: [{ colour: "var(--v0)", dots: true, points: order.filter(i => figure.merged[i] !== null).map(i => [values[i], figure.merged[i]]) }],
    specks: order.flatMap(i => figure.seeds[i].map(v => ({ colour: "var(--v0)", at: [values[i], v] }))),
    reading(x) {
      const near = order.reduce((a, b) => Math.abs(values[b] - x) < Math.abs(values[a] - x) ? b : a);
      const value = figure.merged[near];
      return value === null ? null : { head: `${setting} = ${withUnit(values[near], unit)}`, rows: [["var(--v0)", "", withUnit(value, figure.unit)]] };
    },
  };
}

/** Values over time: a panel a variant, each with its own clock, or all on one. Returns a function of the moment. */
function showSeries(host, experiment) {
  const changing = experiment.series.filter(s => s.lines.some(l => l.points.some(p => p[1] !== firstValue(s))));
  const still = experiment.series.filter(s => !changing.includes(s) && s.lines.some(l => l.points.length));
  if (!changing.length && !still.length) return () => {};
  let drawn = [], moments = [], overlaid = false, phase = null;
  const body = el("div");
  const place = () => drawn.forEach(({ shown, variants }) =>
    shown.cursors(moments.filter(m => variants.includes(m.variant)).map(m => ({ x: m.at, colour: variantColour(m.variant) }))));
  const draw = () => {
    drawn = [];
    const spans = experiment.variants.map((_, i) => span(experiment, i, phase));
    const card = series => seriesCard(series, experiment, spans, phase, overlaid, drawn);
    const many = experiment.variants.length > 2 && !overlaid ? " many" : "";
    const grid = list => el("div", { className: `grid${many}` }, ...list.map(card));
    body.replaceChildren(grid(changing.slice(0, 8)));
    if (changing.length > 8) {
      body.append(el("details", {}, el("summary", { textContent: `${changing.length - 8} more series` }), grid(changing.slice(8))));
    }
    place();
  };
  const several = experiment.variants.length > 1;
  const hint = several
    ? "Side by side, each variant has its own clock and both axes are of what is shown; overlaid, they share the clock too. Shading marks phases; the dotted line is the moment the map shows. Within one phase, time counts from its start."
    : "Shading marks phases; the dotted line is the moment the map shows. Within one phase, time counts from its start.";
  const names = [...new Set(experiment.phases.flat().map(p => p.name))];
  partHead(host, "Over time", hint,
    names.length > 1 ? choice("Phase", [[null, "All phases"], ...names.map(n => [n, n])], null, name => { phase = name; draw(); }) : null,
    several ? choice("Arrangement", [[false, "Side by side"], [true, "Overlaid"]], false, all => { overlaid = all; draw(); }) : null);
  host.append(variantLegend(experiment.variants), body);
  if (still.length) {
    const list = still.map(s => `${s.name} ${withUnit(firstValue(s), s.unit)}`).join(", ");
    host.append(el("p", { className: "small", textContent: `Constant throughout: ${list}.` }));
  }
  draw();
  return list => { moments = list; place(); };
}

const firstValue = series => series.lines.find(l => l.points.length)?.points[0][1];

/** First and last second something was recorded of a variant, or of one phase of it. */
function span(experiment, variant, phase) {
  let low = Infinity, high = -Infinity;
  const see = t => { low = Math.min(low, t); high = Math.max(high, t); };
  experiment.series.forEach(s => s.lines.filter(l => l.variant === variant && l.points.length).forEach(l => {
    see(l.points[0][0]);
    see(l.points[l.points.length - 1][0]);
  }));
  if (phase !== null || low > high) experiment.phases[variant].filter(p => phase === null || p.name === phase).forEach((p, i) => {
    if (i === 0) low = Infinity, high = -Infinity;
    see(p.start);
    see(p.end);
  });
  return low < high ? [low, high] : [Math.min(low, 0), Math.max(low, 0) + 1];
}

function seriesCard(series, experiment, spans, phase, overlaid, drawn) {
  const unit = series.unit ? el("small", { textContent: series.unit }) : null;
  const card = el("div", { className: "card" }, el("h4", {}, series.name, unit));
  const present = experiment.variants.map((_, i) => i).filter(i => series.lines.some(l => l.variant === i && l.points.length));
  const groups = overlaid ? [present] : present.map(i => [i]);
  const panels = overlaid ? card : el("div", { className: "panels" });
  if (!overlaid) card.append(panels);
  for (const variants of groups) {
    const shown = chart(panels, seriesSpec(series, experiment, spans, phase, variants));
    drawn.push({ shown, variants });
  }
  return card;
}

function seriesSpec(series, experiment, spans, phase, variants) {
  // Phases begin and end with a look at the machine: what lies within is the whole line of what is shown.
  const shown = series.lines.map(l => ({ ...l, points: l.points.filter(p => p[0] >= spans[l.variant][0] && p[0] <= spans[l.variant][1]) }));
  const values = shown.flatMap(l => l.points.map(p => p[1]));
  let low = values.reduce((a, b) => Math.min(a, b), 0), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (series.unit === "%" && high <= 100 && high > 50) high = 100;
  if (high <= low) high = low + 1;
  high += (high - low) * (high === 100 ? 0 : 0.04);
  const x = { low: Math.min(...variants.map(i => spans[i][0])), high: Math.max(...variants.map(i => spans[i][1])) };
  const lines = shown.filter(l => variants.includes(l.variant)).sort((a, b) => b.repetition - a.repetition);
  // Within one phase, time counts from its start.
  const origin = phase === null ? 0 : x.low;
  const alone = variants.length === 1 && experiment.variants.length > 1;
  return {
    height: 176,
    title: alone ? experiment.variants[variants[0]] : "",
    describe: `${series.name} over time`,
    x: { ...x, ticks: count => timeTicks(x.low - origin, x.high - origin, count).map(t => t + origin), label: v => duration(Math.max(v - origin, 0)) },
    y: { low, high, ticks: count => linearTicks(low, high, count), label: axisNumber },
    lines: lines.map(l => ({ colour: variantColour(l.variant), dashes: variantDashes(l.variant), faint: l.repetition > 0, points: l.points })),
    bands: variants.length === 1 ? experiment.phases[variants[0]] : [],
    marks: variants.length > 1
      ? variants.flatMap(i => experiment.phases[i].map(p => ({ x: p.start, colour: variantColour(i) }))) : [],
    reading(t) {
      const rows = lines.filter(l => l.repetition === 0 && l.points.length && t <= l.points[l.points.length - 1][0])
        .map(l => [variantColour(l.variant), "", withUnit(at(l.points, t), series.unit)]).reverse();
      const within = variants.length === 1 && experiment.phases[variants[0]].find(p => p.start <= t && t < p.end);
      return rows.length ? { head: `${duration(t - origin, 4)}${within ? ` · ${within.name}` : ""}`, rows } : null;
    },
  };
}

/** The value recorded last before a time. */
function at(points, t) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (points[middle][0] <= t) low = middle; else high = middle - 1;
  }
  return points[low][1];
}
