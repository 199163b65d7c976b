// What every drawing needs: elements, numbers with units, and ticks. Names from the data only ever become text nodes.

const SVG = document.getElementById("svg-home").namespaceURI;

/** An HTML element with properties and children; strings become text. */
function el(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

/** An SVG element with attributes. */
function svg(tag, attributes = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** A variant's colour, as the style sheet has it for the reader's scheme. */
const variantColour = index => `var(--v${index % 12})`;
// Lines of one pattern differ in colour alone, so no more than four do.
const variantPattern = index => Math.floor(index / 4) % 3;
const variantDashes = index => ["", "8 4", "2 3"][variantPattern(index)];
const variantKey = index => el("i", { className: `key v${index % 12} d${variantPattern(index)}` });

const grouped = value => Math.round(value).toLocaleString("en-US");

/** Four significant digits, grouped. */
function plainNumber(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e9) return Number(value.toPrecision(4)).toExponential().replace("e+", "e");
  if (size >= 1000) return grouped(value);
  return size < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
}

const TIMES = { ns: 1e-9, us: 1e-6, "µs": 1e-6, "μs": 1e-6, ms: 1e-3, s: 1 };

/** Seconds in the unit that suits their size. */
function duration(seconds, digits = 3) {
  const short = value => String(Number(value.toPrecision(digits)));
  const size = Math.abs(seconds);
  if (size === 0) return "0";
  if (size < 0.9995e-6) return `${short(seconds * 1e9)} ns`;
  if (size < 0.9995e-3) return `${short(seconds * 1e6)} µs`;
  if (size < 0.9995) return `${short(seconds * 1e3)} ms`;
  if (size < 600) return `${short(seconds)} s`;
  return size < 7200 ? `${short(seconds / 60)} min` : `${short(seconds / 3600)} h`;
}

/** A value with its unit: times scale, percent signs stand close, counts speak for themselves on an axis. */
function withUnit(value, unit) {
  if (unit in TIMES) return duration(value * TIMES[unit]);
  if (unit === "%") return `${plainNumber(value)}%`;
  return unit ? `${plainNumber(value)} ${unit}` : plainNumber(value);
}

/** A short label for an axis: thousands as k, M, G. */
function axisNumber(value) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    const divisor = letter === "k" ? 1e3 : size;
    if (Math.abs(value) >= size) return `${Number((value / divisor).toPrecision(4))}${letter}`;
  }
  return plainNumber(value);
}

/** Round steps from low to high, about `count` of them. */
function linearTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

/** Steps of a clock: 1, 2, 5, 10, 15, 30 of seconds, minutes or hours. */
function timeTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (high < 600 || !(raw > 0)) return linearTicks(low, high, count);
  const steps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const step = steps.find(s => s >= raw);
  if (!step) return linearTicks(low, high, count);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high; t += step) ticks.push(t);
  return ticks;
}

/** Powers of ten between two, thinned to about `count`. */
function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks = [];
  for (let e = first; e <= last; e += stride) ticks.push(10 ** e);
  return ticks;
}

/** A row of buttons of which one is pressed. */
function choice(label, options, chosen, onChoose) {
  const buttons = options.map(([value, text]) => {
    const button = el("button", { type: "button", textContent: text });
    button.setAttribute("aria-pressed", value === chosen);
    button.addEventListener("click", () => {
      buttons.forEach(other => other.setAttribute("aria-pressed", other === button));
      onChoose(value);
    });
    return button;
  });
  const group = el("div", { className: "switch" }, ...buttons);
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label);
  return group;
}

/** Heading of a part: words, a hint, and controls on the right. */
function partHead(host, title, hint, ...controls) {
  host.hidden = false;
  host.append(el("div", { className: "part-head" }, el("h3", { textContent: title }), el("div", { className: "controls" }, ...controls)));
  if (hint) host.append(el("p", { className: "hint", textContent: hint }));
}

/** Which variant is which colour. */
function variantLegend(names, ...more) {
  return el("div", { className: "legend" },
    ...names.map((name, i) => el("span", {}, variantKey(i), name)), ...more);
}

/** Puts a tip beside a point of its container, on whichever side has room. */
function placeTip(tip, container, x, y) {
  tip.hidden = false;
  const width = tip.offsetWidth, room = container.clientWidth;
  tip.style.left = `${Math.max(0, x + 14 + width <= room ? x + 14 : x - width - 14)}px`;
  tip.style.top = `${y}px`;
}

/** Calls back with the element's width, now and when it changes; a frame later, for drawing changes sizes again. */
function onWidth(node, callback) {
  let last = -1;
  new ResizeObserver(() => requestAnimationFrame(() => {
    const width = Math.floor(node.clientWidth);
    if (width > 0 && width !== last) callback(last = width);
  })).observe(node);
}
