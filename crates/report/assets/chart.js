// A line chart in SVG, drawn to the width it is given: axes with units, lines, rings, phases, and a reading on hover.

/**
 * Draws into `host` and redraws when its width changes. `spec` has:
 *   x, y      { low, high, log?, ticks(count), label(value) }
 *   lines     [{ colour, dashes?, faint?, points: [[x, y]…], dots?, name? }]; dots at the points, the name at the line's end
 *   rings     [{ colour, at: [x, y] }], published figures
 *   specks    [{ colour, at: [x, y] }], single values beside a line
 *   bands     [{ name, start, end }], phases behind the lines
 *   marks     [{ x, colour }], thin uprights
 *   reading   x => { head, rows: [[colour, name, text]…] } or null
 *   title, height, describe
 * Returns { cursors([{ x, colour }]) }.
 */
function chart(host, spec) {
  const plot = el("div", { className: "plot" });
  const tip = el("div", { className: "tip", hidden: true });
  host.append(plot);
  let geometry = null, cursors = [];
  const drawCursors = () => {
    if (!geometry) return;
    geometry.cursorLayer.replaceChildren(...cursors
      .filter(c => c.x >= spec.x.low && c.x <= spec.x.high)
      .map(c => svg("line", { class: "cursor", stroke: c.colour, x1: geometry.px(c.x), x2: geometry.px(c.x), y1: geometry.top, y2: geometry.bottom })));
  };
  const redraw = width => {
    geometry = drawChart(spec, width);
    plot.replaceChildren(geometry.root, tip);
    drawCursors();
  };
  onWidth(plot, redraw);
  const away = () => { tip.hidden = true; if (geometry) geometry.probe.setAttribute("visibility", "hidden"); };
  const read = event => {
    if (!geometry || !spec.reading) return;
    const box = plot.getBoundingClientRect();
    const px = Math.min(Math.max(event.clientX - box.left, geometry.left), geometry.right);
    const reading = spec.reading(geometry.value(px));
    if (!reading) return away();
    geometry.probe.setAttribute("visibility", "visible");
    geometry.probe.setAttribute("x1", px);
    geometry.probe.setAttribute("x2", px);
    tip.replaceChildren(el("p", { className: "soft", textContent: reading.head }), ...reading.rows.map(([colour, name, text]) => {
      const key = el("i", { className: "key" });
      key.style.background = colour;
      return el("p", {}, key, name ? `${name} ` : "", el("b", { textContent: text }));
    }));
    placeTip(tip, plot, px, Math.max(geometry.top, Math.min(event.clientY - box.top - 20, geometry.bottom - 60)));
  };
  plot.addEventListener("pointermove", read);
  plot.addEventListener("pointerdown", read);
  plot.addEventListener("pointerleave", away);
  return { cursors(list) { cursors = list; drawCursors(); } };
}

function drawChart(spec, width) {
  const height = spec.height, { x, y } = spec;
  const yTicks = y.ticks(Math.max(3, Math.floor(height / 42)));
  const yLabels = yTicks.map(y.label);
  const left = 12 + Math.max(...yLabels.map(text => text.length), 1) * 6.6, right = width - 10 - endRoom(spec.lines);
  const top = (spec.title ? 22 : 8) + (spec.bands?.length ? 16 : 0), bottom = height - 24;
  const scale = (axis, from, to) => {
    const f = axis.log ? Math.log10 : v => v;
    const low = f(axis.low), span = f(axis.high) - low || 1;
    return v => from + (f(axis.log ? Math.max(v, axis.low) : v) - low) / span * (to - from);
  };
  const px = scale(x, left, right), py = scale(y, bottom, top);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.describe || "" });
  if (spec.title) root.append(svg("text", { class: "title", x: left, y: 13 }, spec.title));
  drawBands(root, spec, px, top, bottom, left, right);
  yTicks.forEach((value, i) => {
    const at = Math.round(py(value)) + 0.5;
    root.append(svg("line", { class: "gridline", x1: left, x2: right, y1: at, y2: at }));
    root.append(svg("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, yLabels[i]));
  });
  root.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom + 0.5, y2: bottom + 0.5 }));
  drawXTicks(root, x, px, bottom, left, right);
  for (const mark of spec.marks || []) {
    const at = px(mark.x);
    root.append(svg("line", { x1: at, x2: at, y1: top, y2: bottom, stroke: mark.colour, "stroke-opacity": 0.35 }));
  }
  for (const line of spec.lines) {
    if (!line.points.length) continue;
    const path = line.points.map(p => `${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join("L");
    root.append(svg("path", {
      d: `M${path}`, fill: "none", stroke: line.colour, "stroke-width": line.faint ? 1 : 1.9,
      "stroke-opacity": line.faint ? 0.35 : 1, "stroke-linejoin": "round", "stroke-linecap": line.dashes ? "butt" : "round",
      ...(line.dashes ? { "stroke-dasharray": line.dashes } : {}),
    }));
    if (line.dots) root.append(...line.points.map(p => svg("circle", { cx: px(p[0]), cy: py(p[1]), r: 2.6, fill: line.colour })));
  }
  drawEnds(root, spec.lines, px, py, top, bottom);
  for (const ring of spec.rings || []) {
    root.append(svg("circle", { cx: px(ring.at[0]), cy: py(ring.at[1]), r: 4, fill: "var(--card)", stroke: ring.colour, "stroke-width": 2 }));
  }
  for (const speck of spec.specks || []) {
    root.append(svg("circle", { cx: px(speck.at[0]), cy: py(speck.at[1]), r: 2.2, fill: speck.colour, "fill-opacity": 0.4 }));
  }
  const probe = svg("line", { class: "probe", y1: top, y2: bottom, visibility: "hidden" });
  const cursorLayer = svg("g");
  root.append(cursorLayer, probe);
  const value = at => {
    const share = (at - left) / (right - left || 1);
    return x.low + share * (x.high - x.low);
  };
  return { root, px, value, left, right, top, bottom, probe, cursorLayer };
}

function drawXTicks(root, x, px, bottom, left, right) {
  const ticks = x.ticks(Math.max(2, Math.floor((right - left) / 62)));
  let end = -Infinity;
  for (const value of ticks) {
    const at = px(value), text = x.label(value), half = text.length * 3.2;
    const centre = Math.min(Math.max(at, left + half - 6), right - half + 8);
    root.append(svg("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }));
    if (centre - half < end + 6) continue;
    root.append(svg("text", { x: centre, y: bottom + 17, "text-anchor": "middle" }, text));
    end = centre + half;
  }
}

/** Room on the right for the names at the lines' ends. */
function endRoom(lines) {
  const longest = Math.max(0, ...lines.map(line => line.name && line.points.length ? line.name.length : 0));
  return longest ? longest * 6.6 + 6 : 0;
}

/** Each line's name beside its last point, moved apart where lines end together. */
function drawEnds(root, lines, px, py, top, bottom) {
  const ends = lines.filter(line => line.name && line.points.length).map(line => {
    const [x, y] = line.points[line.points.length - 1];
    return { line, x: px(x), y: py(y) };
  }).sort((a, b) => a.y - b.y);
  // Names that would touch form a stack, centred on their lines' ends and kept inside the chart.
  const apart = 13, stacks = [];
  const first = stack => {
    const tall = (stack.length - 1) * apart, middle = stack.reduce((sum, end) => sum + end.y, 0) / stack.length;
    return Math.max(Math.min(middle - tall / 2, bottom - tall), top);
  };
  for (const end of ends) {
    let stack = [end];
    while (stacks.length && first(stacks.at(-1)) + stacks.at(-1).length * apart > first(stack)) stack = [...stacks.pop(), ...stack];
    stacks.push(stack);
  }
  for (const stack of stacks) {
    stack.forEach(({ line, x }, i) => {
      root.append(svg("text", { class: "end", x: x + 8, y: first(stack) + i * apart + 4, style: `fill: ${line.colour}` }, line.name));
    });
  }
}

/** Phases: every other one shaded, each with its name where that fits. */
function drawBands(root, spec, px, top, bottom, left, right) {
  (spec.bands || []).forEach((band, i) => {
    const from = Math.max(left, px(band.start)), to = Math.min(right, px(band.end));
    if (to <= from) return;
    const group = svg("g");
    group.append(svg("rect", { class: "band", x: from, y: top - 16, width: to - from, height: bottom - top + 16, "fill-opacity": i % 2 ? 0 : 1 }));
    group.append(svg("line", { class: "axis", x1: from, x2: from, y1: top - 16, y2: bottom }));
    group.append(svg("title", {}, band.name));
    if (to - from > band.name.length * 6 + 8) group.append(svg("text", { x: from + 5, y: top - 4 }, band.name));
    root.append(group);
  });
}
