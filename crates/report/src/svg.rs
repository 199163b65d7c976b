//! The memory map as a still picture for a document: a row per variant, a column per moment.
//!
//! A square stands for many blocks. Its colour comes from error diffusion over states, so that the
//! shares of a panel are the shares of the machine and nothing rare vanishes. The picture follows
//! the reader's light or dark scheme and stays below about 150 kB.

use crate::data::by_variant;
use crate::map::{self, MapError};
use crate::palette::{self, SHADES};
use kontig_results::{MapFrame, MemoryMap, RunResult};
use std::fmt::Write;

/// Contents of a picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Heading; may be empty.
    pub title: String,
    /// Variants to show, top to bottom; empty for all, in the order the runs name them.
    pub variants: Vec<String>,
    /// Number of moments of each run, evenly spread from first to last.
    pub moments: usize,
}

impl Default for Picture {
    fn default() -> Picture {
        Picture { title: String::new(), variants: vec![], moments: 5 }
    }
}

/// Side of a panel, in the picture's units.
const PANEL: usize = 168;
const GAP: usize = 14;
const MARGIN: usize = 20;
/// Space above a row of panels for the variant's name, and below for the moment.
const NAME: usize = 26;
const CAPTION: usize = 40;
/// Squares across a panel, finest first. The first that keeps the picture within its size is used.
const SIDES: [usize; 5] = [56, 42, 28, 21, 14];
const PICTURE_BYTES: usize = 150_000;

/// Draws the map of each variant's first repetition that has one, at several moments. Variants
/// without a map are left out.
///
/// # Errors
/// [`MapError`] if a frame does not unpack.
pub fn memory_map_svg(runs: &[RunResult], picture: &Picture) -> Result<String, MapError> {
    let all = by_variant(&picture.variants, runs);
    let wanted = |name: &str| picture.variants.is_empty() || picture.variants.iter().any(|v| v == name);
    let maps: Vec<(&str, &MemoryMap)> = (all.iter())
        .filter(|(name, _)| wanted(name))
        .filter_map(|(name, runs)| Some((*name, &runs.iter().find(|run| !run.map.frames.is_empty())?.map)))
        .collect();
    let moments = picture.moments.max(1);
    let mut strips = Vec::with_capacity(maps.len());
    for (name, map) in maps {
        strips.push(Strip { name, panels: panels(map, moments)? });
    }
    let mut out = String::new();
    for side in SIDES {
        out = draw(&picture.title, &strips, moments, side);
        if out.len() <= PICTURE_BYTES {
            break;
        }
    }
    Ok(out)
}

/// A variant's row of the picture: its frames with their cells.
struct Strip<'a> {
    name: &'a str,
    panels: Vec<(&'a MapFrame, Vec<u8>)>,
}

/// Frames evenly spread from first to last (the last alone if one is asked for), with their cells.
fn panels(map: &MemoryMap, moments: usize) -> Result<Vec<(&MapFrame, Vec<u8>)>, MapError> {
    let last = map.frames.len() - 1;
    let index = |moment| if moments == 1 { last } else { (moment * last + (moments - 1) / 2) / (moments - 1) };
    let frames = (0..moments).map(|moment| &map.frames[index(moment)]);
    frames.map(|frame| Ok((frame, map::cells(frame, map::blocks(map))?))).collect()
}

fn draw(title: &str, strips: &[Strip<'_>], moments: usize, side: usize) -> String {
    let head = if title.is_empty() { MARGIN / 2 } else { MARGIN + 22 };
    let width = 2 * MARGIN + moments * PANEL + (moments - 1) * GAP;
    let legend_top = head + strips.len() * (NAME + PANEL + CAPTION) + 6;
    let mut out = opening(width, legend_top + legend_height(width));
    if !title.is_empty() {
        let _ = write!(out, "<text class=\"t\" x=\"{MARGIN}\" y=\"{}\">{}</text>", MARGIN + 12, escape(title));
    }
    for (i, strip) in strips.iter().enumerate() {
        let y = head + i * (NAME + PANEL + CAPTION);
        let _ = write!(out, "<text class=\"n\" x=\"{MARGIN}\" y=\"{}\">{}</text>", y + 17, escape(strip.name));
        for (moment, (frame, cells)) in strip.panels.iter().enumerate() {
            let x = MARGIN + moment * (PANEL + GAP);
            panel(&mut out, x, y + NAME, cells, side);
            caption(&mut out, x, y + NAME + PANEL, frame);
        }
    }
    legend(&mut out, width, legend_top);
    out.push_str("</svg>\n");
    out
}

fn opening(width: usize, height: usize) -> String {
    let mut style = String::new();
    for (i, shade) in SHADES.iter().enumerate() {
        let _ = write!(style, ".s{i}{{fill:{}}}", shade.light);
    }
    style.push_str("@media(prefers-color-scheme:dark){.bg{fill:#15181c}text{fill:#e7e5df}.c{fill:#a3a8ad}");
    for (i, shade) in SHADES.iter().enumerate() {
        let _ = write!(style, ".s{i}{{fill:{}}}", shade.dark);
    }
    style.push('}');
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Memory map over time\"><style>\
         text{{font:12px system-ui,sans-serif;fill:#1c2126}}.t{{font-size:17px;font-weight:600}}\
         .n{{font-size:13px;font-weight:600}}.c{{fill:#5b6269}}.bg{{fill:#fbfaf7}}{style}</style>\
         <rect class=\"bg\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>"
    )
}

/// One panel: a path for each shade, in units of a square, scaled to the panel.
fn panel(out: &mut String, x: usize, y: usize, cells: &[u8], side: usize) {
    let columns = if cells.len() >= side * side { side } else { (cells.len().max(1) as f64).sqrt().ceil() as usize };
    let squares = diffuse(cells, columns * columns);
    let mut paths: [String; SHADES.len()] = Default::default();
    for (row, shades) in squares.chunks(columns).enumerate() {
        let mut start = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            let (path, length) = (&mut paths[run[0]], run.len());
            let _ = write!(path, "M{start} {row}h{length}v1h-{length}z");
            start += length;
        }
    }
    let scale = PANEL as f64 / columns as f64;
    let _ = write!(
        out,
        "<g transform=\"translate({x} {y})scale({scale:.4})\" shape-rendering=\"crispEdges\" stroke=\"none\">"
    );
    for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path class=\"s{shade}\" d=\"{path}\"/>");
    }
    out.push_str("</g>");
}

/// A shade for each of `squares` equal stretches of `cells`, or for each cell if there are fewer.
fn diffuse(cells: &[u8], squares: usize) -> Vec<usize> {
    let squares = squares.min(cells.len());
    let mut owed = [0.0f64; SHADES.len()];
    let mut out = Vec::with_capacity(squares);
    for i in 0..squares {
        let part = &cells[i * cells.len() / squares..(i + 1) * cells.len() / squares];
        let mut present = [false; SHADES.len()];
        for &byte in part {
            let shade = palette::shade_of(byte);
            owed[shade] += 1.0 / part.len() as f64;
            present[shade] = true;
        }
        let most = (0..SHADES.len()).filter(|&s| present[s]).max_by(|&a, &b| owed[a].total_cmp(&owed[b]));
        let most = most.unwrap_or(palette::RESERVED);
        owed[most] -= 1.0;
        out.push(most);
    }
    out
}

fn caption(out: &mut String, x: usize, y: usize, frame: &MapFrame) {
    let (time, phase) = (duration(frame.at_ns), escape(&frame.phase));
    let _ = write!(out, "<text class=\"c\" x=\"{x}\" y=\"{}\">{time} · {phase}</text>", y + 15);
    let _ = write!(out, "<text class=\"c\" x=\"{x}\" y=\"{}\">score {:.0}</text>", y + 30, frame.score);
}

/// Entries of the legend, with their shades.
const LEGEND: [(&str, &[usize]); 7] = [
    ("free huge block", &[palette::FREE]),
    ("user's huge page", &[1]),
    ("kernel's huge page", &[2]),
    ("movable pages, few to all", &[3, 4, 5, 6, 7]),
    ("reclaimable pages", &[8, 9, 10, 11, 12]),
    ("unmovable inside", &[13, 14, 15, 16, 17]),
    ("reserved", &[palette::RESERVED]),
];
const SWATCH: usize = 13;
const LINE: usize = 24;

/// The place of each entry, and the height of all.
fn legend_places(width: usize) -> (Vec<(usize, usize)>, usize) {
    let (mut x, mut y) = (MARGIN, 0);
    let mut places = vec![];
    for (words, shades) in LEGEND {
        let wide = shades.len() * SWATCH + 6 + words.len() * 7 + 16;
        if x + wide > width && x > MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        places.push((x, y));
        x += wide;
    }
    (places, y + LINE)
}

fn legend_height(width: usize) -> usize {
    legend_places(width).1 + MARGIN / 2
}

fn legend(out: &mut String, width: usize, top: usize) {
    for ((words, shades), (x, y)) in LEGEND.iter().zip(legend_places(width).0) {
        for (i, shade) in shades.iter().enumerate() {
            let _ = write!(
                out,
                "<rect class=\"s{shade}\" x=\"{}\" y=\"{}\" width=\"{SWATCH}\" height=\"{SWATCH}\"/>",
                x + i * SWATCH,
                top + y
            );
        }
        let text = x + shades.len() * SWATCH + 6;
        let _ = write!(out, "<text x=\"{text}\" y=\"{}\">{words}</text>", top + y + 11);
    }
}

/// A time in a suitable unit.
fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 600.0 => format!("{s:.1} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").chars().filter(|c| !c.is_control()).collect()
}
