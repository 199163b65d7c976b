// The memory map: every pageblock of every variant at one moment, with a slider through the run.
//
// Blocks run left to right, top to bottom, zone after zone. Where there is room a block is a square filled to the
// level it is used; on a large machine a block is a dot of a picture, which is scaled to the page, and a lens under
// the pointer shows single blocks of all variants at once.

const PAGES_PER_BLOCK = 512, PAGE_BYTES = 4096;
/** Kinds of the legend: words and the shades they gather. */
const KINDS = [
  ["free huge block", [0]], ["user's huge page", [1]], ["kernel's huge page", [2]],
  ["movable pages", [3, 4, 5, 6, 7]], ["reclaimable pages", [8, 9, 10, 11, 12]],
  ["unmovable inside", [13, 14, 15, 16, 17]], ["reserved", [18]],
];
/** Side of a block on the smallest machines, CSS pixels. */
const LARGEST = 72;
const LENS = { width: 210, height: 150, block: 14 };
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The bytes of a frame, one a block; throws if they are not there. */
async function unpack(frame, blocks) {
  const packed = Uint8Array.from(atob(frame.cells), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const cells = await new Response(stream).arrayBuffer().then(buffer => new Uint8Array(buffer), () => {
    throw new Error("its cells are damaged");
  });
  if (cells.length !== blocks) throw new Error(`it has ${cells.length} cells for ${blocks} pageblocks`);
  return cells;
}

/** How a machine's zones are laid out on a width: block size in CSS pixels, columns, and where each zone starts. */
function mapLayout(zones, width, ratio) {
  const tallest = Math.min(Math.max(width * 0.95, 260), 540);
  const label = zones.length > 1 ? 18 : 0;
  const rowsAt = columns => zones.reduce((sum, z) => sum + Math.ceil(z[1] / columns), 0);
  const blocks = zones.reduce((sum, z) => sum + z[1], 0);
  let columns = 8;
  const fits = () => {
    const block = width / columns;
    return rowsAt(columns) * (block < 4 ? 1 / ratio : Math.min(block, LARGEST)) <= tallest;
  };
  while (columns < Math.max(blocks, 8) && columns < 8192 && !fits()) columns *= 2;
  let across = Math.min(width / columns, LARGEST);
  if (across * ratio >= 3) across = Math.floor(across * ratio) / ratio;
  const rows = rowsAt(columns);
  const down = across >= 4 ? across : Math.max(1 / ratio, Math.min(across * 2, tallest / rows));
  let y = 0, first = 0;
  const placed = zones.map(([name, count]) => {
    const zone = { name, first, count, top: y + label, rows: Math.ceil(count / columns) };
    first += count;
    y = zone.top + zone.rows * down + (label ? 6 : 0);
    return zone;
  });
  return { columns, across, down, zones: placed, height: Math.ceil(y) };
}

/** Where a block is drawn. */
function blockPlace(layout, block) {
  const zone = layout.zones.find(z => block >= z.first && block < z.first + z.count);
  if (!zone) return null;
  const within = block - zone.first, column = within % layout.columns, row = Math.floor(within / layout.columns);
  return { zone, column, row, x: column * layout.across, y: zone.top + row * layout.down };
}

/** The block at a point, or null. */
function blockAt(layout, x, y) {
  const zone = layout.zones.find(z => y >= z.top && y < z.top + z.rows * layout.down);
  const column = Math.floor(x / layout.across);
  if (!zone || column < 0 || column >= layout.columns) return null;
  const within = Math.floor((y - zone.top) / layout.down) * layout.columns + column;
  return within < zone.count ? zone.first + within : null;
}

const paint = palette => (dark.matches ? palette.dark : palette.light);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** The ink of each scheme, looked up once: styles are slow to ask for and a map asks for every block. */
const inks = new Map();
const ink = () => inks.get(dark.matches) || inks.set(dark.matches, css("--ink")).get(dark.matches);

/** A single block as a square: a level for how full it is, a notch where something unmovable sits. */
function drawBlock(context, palette, byte, x, y, size) {
  const colours = paint(palette), shade = palette.shades[byte], level = palette.levels[shade];
  const gap = size >= 24 ? 2 : 1, side = size - gap;
  context.fillStyle = colours[0];
  context.fillRect(x, y, side, side);
  const filled = Math.round(side * level);
  context.fillStyle = colours[shade];
  context.fillRect(x, y + side - filled, side, filled);
  if (byte & 64 && size >= 9) {
    const notch = Math.max(3, Math.round(side / 5));
    context.fillStyle = ink();
    context.beginPath();
    context.moveTo(x + side, y);
    context.lineTo(x + side - notch, y);
    context.lineTo(x + side, y + notch);
    context.fill();
  }
}

/** A canvas of a size in CSS pixels, sharp on any screen. */
function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function drawMap(view, palette) {
  const { layout, cells, canvas, width } = view;
  if (!layout || !cells) return;
  const context = sized(canvas, width, layout.height);
  context.font = "11.5px system-ui, sans-serif";
  for (const zone of layout.zones) {
    if (layout.zones.length > 1) {
      context.fillStyle = css("--soft");
      context.fillText(`${zone.name} · ${grouped(zone.count)} blocks`, 0, zone.top - 5);
    }
    if (layout.across >= 8) {
      for (let i = 0; i < zone.count; i++) {
        const place = blockPlace(layout, zone.first + i);
        drawBlock(context, palette, cells[zone.first + i], place.x, place.y, layout.across);
      }
    } else if (zone.count) {
      const picture = zonePicture(cells, zone, layout.columns, palette);
      context.imageSmoothingEnabled = layout.across * (devicePixelRatio || 1) < 3;
      context.imageSmoothingQuality = "high";
      context.drawImage(picture, 0, zone.top, layout.columns * layout.across, zone.rows * layout.down);
    }
  }
  if (view.marked !== null) outline(context, layout, view.marked);
}

/** A zone as a picture of one pixel a block. */
function zonePicture(cells, zone, columns, palette) {
  const colours = paint(palette).map(hex => {
    const n = parseInt(hex.slice(1), 16);
    return 0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16;
  });
  const picture = el("canvas", { width: columns, height: zone.rows });
  const image = new ImageData(columns, zone.rows), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < zone.count; i++) pixels[i] = colours[palette.shades[cells[zone.first + i]]];
  picture.getContext("2d").putImageData(image, 0, 0);
  return picture;
}

function outline(context, layout, block) {
  const place = blockPlace(layout, block);
  if (!place || layout.across < 8) return;
  context.strokeStyle = ink();
  context.lineWidth = 2;
  context.strokeRect(place.x - 1, place.y - 1, layout.across, layout.across);
}

/** What a byte says, in words. */
function blockWords(palette, byte) {
  const words = palette.classes[byte >> 2 & 15] || "unknown state";
  return `${palette.migratetypes[byte & 3]} block, ${words}${byte & 64 ? ", holds unmovable pages" : ""}`;
}

/** The floating lens of one map: neighbours of a block at a readable size, and the block in words. */
function showLens(view, palette, block) {
  const { lens, layout, cells } = view;
  const place = block === null || !cells ? null : blockPlace(layout, block);
  lens.box.hidden = !place;
  if (!place) return;
  const magnify = layout.across < 8;
  lens.canvas.hidden = !magnify;
  if (magnify) {
    const context = sized(lens.canvas, LENS.width, LENS.height);
    const across = Math.floor(LENS.width / LENS.block), down = Math.floor(LENS.height / LENS.block);
    const left = place.column - (across >> 1), top = place.row - (down >> 1);
    for (let r = 0; r <= down; r++) {
      for (let c = 0; c < across; c++) {
        const column = left + c, within = (top + r) * layout.columns + column;
        if (column < 0 || column >= layout.columns || within < 0 || within >= place.zone.count) continue;
        drawBlock(context, palette, cells[place.zone.first + within], c * LENS.block, r * LENS.block, LENS.block);
      }
    }
    context.strokeStyle = ink();
    context.lineWidth = 2;
    context.strokeRect((across >> 1) * LENS.block - 1.5, (down >> 1) * LENS.block - 1.5, LENS.block + 2, LENS.block + 2);
  }
  const pfn = block * PAGES_PER_BLOCK;
  lens.words.replaceChildren(
    el("b", { textContent: `Block ${grouped(block)}` }), ` ${place.zone.name}`, el("br"),
    el("span", { className: "soft", textContent: `PFN ${pfn}–${pfn + PAGES_PER_BLOCK - 1}` }), el("br"),
    blockWords(palette, cells[block]));
  placeTip(lens.box, view.plot, place.x, Math.min(place.y + 14, Math.max(layout.height - 60, 0)));
}

/** Builds the part of an experiment; `onMoment` hears the moments shown as [{ variant, at }]. */
function showMap(host, experiment, palette, onMoment) {
  const maps = experiment.maps.map((map, variant) => ({ map, variant })).filter(m => m.map.frames.length);
  if (!maps.length) return;
  const blocks = Math.max(...maps.map(m => m.map.zones.reduce((sum, z) => sum + z[1], 0)));
  partHead(host, "Memory map", `${grouped(blocks)} pageblocks of 2 MiB, lowest address first; where a colour has five steps they run from up to a quarter used to full. Point at a block to see it and the same block of the other runs.`);
  if (typeof DecompressionStream === "undefined") {
    host.append(el("p", { className: "warning", textContent: "This browser cannot unpack the map (it has no DecompressionStream). Any current Firefox, Chrome, Edge or Safari can." }));
    return;
  }
  const steps = Math.max(...maps.map(m => m.map.frames.length));
  const grid = el("div", { className: "maps" });
  const views = maps.map(m => mapView(m, experiment, grid, palette));
  host.append(transport(steps, position => {
    onMoment(views.map(view => ({ variant: view.variant, at: view.frameAt(position).at })));
    return Promise.all(views.map(view => view.show(position)));
  }), grid);
  for (const view of views) {
    const point = event => {
      const box = view.canvas.getBoundingClientRect();
      const block = view.layout ? blockAt(view.layout, event.clientX - box.left, event.clientY - box.top) : null;
      views.forEach(each => each.mark(block));
    };
    view.canvas.addEventListener("pointermove", point);
    view.canvas.addEventListener("pointerdown", point);
    view.canvas.addEventListener("pointerleave", () => views.forEach(each => each.mark(null)));
  }
  dark.addEventListener("change", () => views.forEach(view => view.redraw()));
}

/** One variant's map and what belongs to it. */
function mapView({ map, variant }, experiment, grid, palette) {
  const blocks = map.zones.reduce((sum, z) => sum + z[1], 0);
  const moment = el("small"), stats = el("div", { className: "map-stats" });
  const canvas = el("canvas", { className: "blocks" });
  canvas.setAttribute("role", "img");
  const lens = { canvas: el("canvas"), words: el("div"), box: el("div", { className: "tip lens", hidden: true }) };
  lens.box.append(lens.canvas, lens.words);
  const plot = el("div", { className: "map-plot" }, canvas, lens.box);
  const shares = el("div", { className: "shares" }), counts = el("ul", { className: "counts" });
  grid.append(el("div", { className: "card" },
    el("h4", {}, el("span", {}, variantKey(variant), experiment.variants[variant]), moment), stats, plot, shares, counts));
  const view = { variant, canvas, plot, lens, layout: null, cells: null, width: 0, marked: null };
  const cache = new Map();
  let wanted = null;
  view.frameAt = position => map.frames[Math.round(position * (map.frames.length - 1))];
  view.redraw = () => {
    drawMap(view, palette);
    if (view.cells) mapCounts(view.cells, palette, shares, counts);
    showLens(view, palette, view.marked);
  };
  view.mark = block => {
    const outlined = view.layout && view.layout.across >= 8 && view.marked !== block;
    view.marked = block;
    if (outlined) drawMap(view, palette);
    showLens(view, palette, block);
  };
  view.show = async position => {
    const frame = view.frameAt(position);
    wanted = frame;
    moment.textContent = `${duration(frame.at, 4)} · ${frame.phase}`;
    try {
      const cells = cache.get(frame) || await unpack(frame, blocks);
      cache.delete(frame);
      cache.set(frame, cells);
      if (cache.size > 16) cache.delete(cache.keys().next().value);
      if (wanted !== frame) return;
      view.cells = cells;
      mapStats(stats, frame, cells);
      canvas.setAttribute("aria-label", `Memory map of ${experiment.variants[variant]} at ${duration(frame.at, 4)}`);
      view.redraw();
    } catch (error) {
      if (wanted !== frame) return;
      view.cells = null;
      if (view.layout) sized(canvas, view.width, view.layout.height);
      shares.replaceChildren();
      counts.replaceChildren();
      stats.replaceChildren(el("p", { className: "warning", textContent: `This moment cannot be shown: ${error.message}` }));
    }
  };
  onWidth(plot, width => {
    view.width = width;
    view.layout = mapLayout(map.zones, width, devicePixelRatio || 1);
    view.redraw();
  });
  return view;
}

function mapStats(host, frame, cells) {
  let free = 0;
  for (const byte of cells) if ((byte >> 2 & 15) === 0) free++;
  const bytes = frame.free * PAGE_BYTES;
  const size = bytes >= 2 ** 30 ? `${plainNumber(Number((bytes / 2 ** 30).toPrecision(4)))} GiB` : `${plainNumber(Number((bytes / 2 ** 20).toPrecision(4)))} MiB`;
  const inHuge = frame.free ? Math.min(100, free * PAGES_PER_BLOCK / frame.free * 100) : 0;
  host.replaceChildren(...[
    ["free memory", size], ["of it in huge blocks", `${inHuge.toFixed(inHuge < 10 ? 1 : 0)}%`],
    ["huge blocks at hand", grouped(free)], ["fragmentation score", plainNumber(Number(frame.score.toFixed(1)))],
  ].map(([words, figure]) => el("div", {}, el("b", { textContent: figure }), words)));
}

/** The legend, with what each kind amounts to now. */
function mapCounts(cells, palette, shares, list) {
  const colours = paint(palette), tally = new Array(colours.length).fill(0);
  for (const byte of cells) tally[palette.shades[byte]]++;
  const strip = (shade, weight) => {
    const piece = el("i");
    piece.style.background = colours[shade];
    piece.style.flex = weight;
    return piece;
  };
  shares.replaceChildren(...KINDS.flatMap(([, shades]) => shades).filter(s => tally[s]).map(s => strip(s, `${tally[s]} 0 0`)));
  list.replaceChildren(...KINDS.map(([words, shades]) => {
    const count = shades.reduce((sum, s) => sum + tally[s], 0), share = count / cells.length * 100;
    const figure = count ? `${grouped(count)} · ${share < 0.1 ? "<0.1" : share.toFixed(1)}%` : "none";
    return el("li", { className: count ? "" : "none" },
      el("span", { className: "swatch" }, ...shades.map(s => strip(s, "1"))),
      el("span", { className: "words", textContent: words }), el("span", { className: "number", textContent: figure }));
  }));
}
