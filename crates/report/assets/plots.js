// The kinds of chart an experiment has: percentile curves, latency against the pace, and values over time.

/** Distributions: percentile across, value up on a log axis, both variants, published percentiles as rings. */
function showCurves(host, experiment) {
  const curves = experiment.curves.filter(c => c.buckets.some(b => b.length));
  if (!curves.length) return;
  const published = curves.some(c => c.published.some(p => p.length));
  partHead(host, "Percentiles", "Read across: the share of operations that were at most this slow. The vertical axis is logarithmic."
    + (published ? " Rings are published figures." : ""));
  host.append(variantLegend(experiment.variants, published
    ? el("span", {}, el("i", { className: "ring" }), "published") : null));
  const grid = el("div", { className: "grid" });
  host.append(grid);
  for (const curve of curves) {
    const card = el("div", { className: "card" }, el("h4", { textContent: curve.name }));
    grid.append(card);
    chart(card, curveSpec(curve, experiment.variants, curves.length === 1 ? 380 : 300));
  }
}

function curveSpec(curve, variants, height) {
  const values = [...curve.buckets.flat().map(b => b[0]), ...curve.published.flat().map(p => p[1])].filter(v => v > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(...values, Infinity)) + 1e-9);
  const high = Math.max(...values, -Infinity);
  const y = values.length ? { low, high: Math.max(high * 1.25, low * 10) } : { low: 0.1, high: 1 };
  const steps = curve.buckets.map(percentileSteps);
  return {
    height,
    describe: `Percentile curves of ${curve.name}`,
    x: { low: 0, high: 100, ticks: count => count >= 9 ? [0, 5, 10, 25, 50, 75, 90, 95, 100] : [0, 25, 50, 75, 100], label: v => v === 0 ? "0" : `p${v}` },
    y: { ...y, log: true, ticks: count => logTicks(y.low, y.high, count), label: v => withUnit(v, curve.unit) },
    lines: steps.map((points, i) => ({ colour: variantColour(i), points })),
    rings: curve.published.flatMap((points, i) => points.map(at => ({ colour: variantColour(i), at }))),
    reading(x) {
      const p = Math.round(x * 2) / 2;
      const rows = curve.buckets.flatMap((buckets, i) => {
        const own = buckets.length ? [[variantColour(i), variants[i], withUnit(percentile(buckets, p), curve.unit)]] : [];
        const near = curve.published[i].filter(q => Math.abs(q[0] - x) < 1.2).map(q => [variantColour(i), `published p${q[0]}`, withUnit(q[1], curve.unit)]);
        return [...own, ...near];
      });
      return rows.length ? { head: `p${p}`, rows } : null;
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

/** Values over time: a panel a variant, each with its own clock, or all on one. Returns a function of the moment. */
function showSeries(host, experiment) {
  const changing = experiment.series.filter(s => s.lines.some(l => l.points.some(p => p[1] !== firstValue(s))));
  const still = experiment.series.filter(s => !changing.includes(s) && s.lines.some(l => l.points.length));
  if (!changing.length && !still.length) return () => {};
  let drawn = [], moments = [];
  const body = el("div");
  const spans = experiment.variants.map((_, i) => span(experiment, i));
  const place = () => drawn.forEach(({ shown, variants }) =>
    shown.cursors(moments.filter(m => variants.includes(m.variant)).map(m => ({ x: m.at, colour: variantColour(m.variant) }))));
  const draw = overlaid => {
    drawn = [];
    const card = series => seriesCard(series, experiment, spans, overlaid, drawn);
    const grid = list => el("div", { className: "grid" }, ...list.map(card));
    body.replaceChildren(grid(changing.slice(0, 8)));
    if (changing.length > 8) {
      body.append(el("details", {}, el("summary", { textContent: `${changing.length - 8} more series` }), grid(changing.slice(8))));
    }
    place();
  };
  const hint = experiment.variants.length > 1
    ? "Side by side, each variant has its own clock and both share the vertical axis; overlaid, they share the clock too. Shading marks phases; the dotted line is the moment the map shows."
    : "Shading marks phases; the dotted line is the moment the map shows.";
  partHead(host, "Over time", hint, experiment.variants.length > 1
    ? choice("Arrangement", [[false, "Side by side"], [true, "Overlaid"]], false, draw) : null);
  host.append(variantLegend(experiment.variants), body);
  if (still.length) {
    const list = still.map(s => `${s.name} ${withUnit(firstValue(s), s.unit)}`).join(", ");
    host.append(el("p", { className: "small", textContent: `Constant throughout: ${list}.` }));
  }
  draw(false);
  return list => { moments = list; place(); };
}

const firstValue = series => series.lines.find(l => l.points.length)?.points[0][1];

/** First and last second anything was recorded of a variant. */
function span(experiment, variant) {
  let low = Infinity, high = -Infinity;
  const see = t => { low = Math.min(low, t); high = Math.max(high, t); };
  experiment.phases[variant].forEach(p => { see(p.start); see(p.end); });
  experiment.series.forEach(s => s.lines.filter(l => l.variant === variant && l.points.length).forEach(l => {
    see(l.points[0][0]);
    see(l.points[l.points.length - 1][0]);
  }));
  return low < high ? [low, high] : [Math.min(low, 0), Math.max(low, 0) + 1];
}

function seriesCard(series, experiment, spans, overlaid, drawn) {
  const unit = series.unit ? el("small", { textContent: series.unit }) : null;
  const card = el("div", { className: "card" }, el("h4", {}, series.name, unit));
  const present = experiment.variants.map((_, i) => i).filter(i => series.lines.some(l => l.variant === i && l.points.length));
  const groups = overlaid ? [present] : present.map(i => [i]);
  const panels = overlaid ? card : el("div", { className: "panels" });
  if (!overlaid) card.append(panels);
  for (const variants of groups) {
    const shown = chart(panels, seriesSpec(series, experiment, spans, variants));
    drawn.push({ shown, variants });
  }
  return card;
}

function seriesSpec(series, experiment, spans, variants) {
  const values = series.lines.flatMap(l => l.points.map(p => p[1]));
  let low = values.reduce((a, b) => Math.min(a, b), 0), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (series.unit === "%" && high <= 100 && high > 50) high = 100;
  if (high <= low) high = low + 1;
  high += (high - low) * (high === 100 ? 0 : 0.04);
  const x = { low: Math.min(...variants.map(i => spans[i][0])), high: Math.max(...variants.map(i => spans[i][1])) };
  const lines = series.lines.filter(l => variants.includes(l.variant)).sort((a, b) => b.repetition - a.repetition);
  const alone = variants.length === 1 && experiment.variants.length > 1;
  return {
    height: 176,
    title: alone ? experiment.variants[variants[0]] : "",
    describe: `${series.name} over time`,
    x: { ...x, ticks: count => timeTicks(x.low, x.high, count), label: v => duration(v) },
    y: { low, high, ticks: count => linearTicks(low, high, count), label: axisNumber },
    lines: lines.map(l => ({ colour: variantColour(l.variant), faint: l.repetition > 0, points: l.points })),
    bands: variants.length === 1 ? experiment.phases[variants[0]] : [],
    marks: variants.length > 1
      ? variants.flatMap(i => experiment.phases[i].map(p => ({ x: p.start, colour: variantColour(i) }))) : [],
    reading(t) {
      const rows = lines.filter(l => l.repetition === 0 && l.points.length && t <= l.points[l.points.length - 1][0])
        .map(l => [variantColour(l.variant), "", withUnit(at(l.points, t), series.unit)]).reverse();
      const phase = variants.length === 1 && experiment.phases[variants[0]].find(p => p.start <= t && t < p.end);
      return rows.length ? { head: `${duration(t, 4)}${phase ? ` · ${phase.name}` : ""}`, rows } : null;
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
