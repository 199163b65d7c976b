//! A view drawn on a terminal of 80 by 24 or more.

use super::look::{Look, Pageblocks};
use super::view::View;
use kontig_live::history::at::clock;
use kontig_live::history::count::Count;
use kontig_live::stalls::Stalls;
use kontig_text::{grouped, percent, size, time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline};

/// Rows of a curve.
const CURVE: u16 = 3;
/// Nodes and zones that are shown at most.
const NODES: usize = 4;
const ZONES: usize = 4;
/// Processes that waited, shown at most.
const STALLS: usize = 3;

/// Draws the look that is shown, and the curves up to it.
pub fn draw(frame: &mut Frame, view: &View) {
    let Some(look) = view.shown() else { return };
    let nodes = look.point.nodes.len().min(NODES) as u16;
    let zones = look.pageblocks.len().clamp(1, ZONES) as u16;
    let stalls = view.stalls(view.at).map_or_else(Vec::new, |stalls| stall_lines(&stalls));
    let rows = [1, nodes + 1, 1, CURVE, 1, CURVE, 3, stalls.len() as u16, zones + 1].map(Constraint::Length);
    let rows = rows.into_iter().chain([Constraint::Min(0)]);
    let [head, nodes, title, curve, waits_title, waits, rates, waited, blocks, processes] =
        Layout::vertical(rows).areas(frame.area());
    frame.render_widget(heading(view, look), head);
    frame.render_widget(node_lines(look), nodes);
    let width = usize::from(frame.area().width);
    let at_hand = values(view, width, |at| view.looks[at].point.at_hand());
    curve_of(frame, title, curve, "Huge pages at hand", &at_hand, Color::Blue);
    // Rates below one a second are seen, too.
    let speeds = values(view, width, |at| Some((view.rate(at, Count::WaitedForCompaction)? * 10.0).round() as u64));
    let most = speeds.iter().flatten().max().map_or("–".into(), |most| format!("{:.1}", *most as f64 / 10.0));
    let name = format!("Waits for compaction, a second (at most {most})");
    curve_of(frame, waits_title, waits, &name, &speeds, Color::Yellow);
    frame.render_widget(rate_lines(view), rates);
    frame.render_widget(Paragraph::new(stalls), waited);
    frame.render_widget(Paragraph::new(pageblock_lines(look, width)), blocks);
    frame.render_widget(Paragraph::new(process_lines(look, usize::from(processes.height))), processes);
}

fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

fn heading(view: &View, look: &Look) -> Paragraph<'static> {
    let state = match (view.is_live, view.is_held) {
        (true, false) => "live".to_string(),
        (true, true) => format!("held, {} looks ago", grouped(view.looks.len() - 1 - view.at)),
        (false, _) => format!("sample {} of {}", grouped(view.at + 1), grouped(view.looks.len())),
    };
    let text = format!("  {} UTC  {state}  (q, space, ←, →)", &clock(look.point.unix_ms)[5..]);
    Paragraph::new(Line::from(vec![bold(format!("Linux {}", look.kernel)), Span::raw(text)]))
}

fn node_lines(look: &Look) -> Paragraph<'static> {
    let head = format!("{:<8}{:>14}{:>14}{:>8}", "node", "at hand", "free", "score");
    let mut lines = vec![Line::from(bold(head))];
    for node in look.point.nodes.iter().take(NODES) {
        let number = |n: Option<u64>| n.map_or("–".into(), grouped);
        let (at_hand, score) = (number(node.at_hand), number(node.score));
        lines.push(format!("{:<8}{at_hand:>14}{:>14}{score:>8}", node.node, size(node.free_bytes)).into());
    }
    Paragraph::new(lines)
}

/// The values of the looks up to the one that is shown, the newest first.
fn values(view: &View, width: usize, of: impl Fn(usize) -> Option<u64>) -> Vec<Option<u64>> {
    (0..=view.at).rev().take(width).map(of).collect()
}

fn curve_of(frame: &mut Frame, title: Rect, area: Rect, name: &str, values: &[Option<u64>], colour: Color) {
    frame.render_widget(Paragraph::new(Line::from(bold(name))), title);
    let line = Sparkline::default().data(values.iter().copied()).direction(RenderDirection::RightToLeft);
    frame.render_widget(line.style(Style::new().fg(colour)), area);
}

fn rate_lines(view: &View) -> Paragraph<'static> {
    let rate = |count| view.rate(view.at, count);
    let number = |count| match rate(count) {
        None => "–".into(),
        Some(n) if n > 0.0 && n < 9.95 => format!("{n:.1}"),
        Some(n) => grouped(n.round() as u64),
    };
    let share = |count| rate(count).map_or("–".into(), percent);
    let first = format!(
        "a second: huge {}, refused {}, moved {}, waits for compaction {}, reclaim {}",
        number(Count::Given),
        number(Count::Refused),
        number(Count::Moved),
        number(Count::WaitedForCompaction),
        number(Count::WaitedForReclaim)
    );
    let second = format!(
        "of the time, waiting for memory: some task {}, all tasks {}",
        share(Count::SomeWaited),
        share(Count::AllWaited)
    );
    let third = format!(
        "of a CPU: kcompactd {}, kswapd {}, khugepaged {}",
        share(Count::Kcompactd),
        share(Count::Kswapd),
        share(Count::Khugepaged)
    );
    Paragraph::new(vec![first.into(), second.into(), third.into()])
}

/// Processes that waited, the longest first, or why they are not known.
fn stall_lines(stalls: &Stalls) -> Vec<Line<'static>> {
    let title = |text: String| Line::from(bold(text));
    if let Some(why) = &stalls.not_known {
        return vec![title("Who waited is not known:".into()), why.clone().into()];
    }
    let span = time(stalls.seconds.round());
    if stalls.processes.is_empty() && stalls.lost_events == 0 {
        return vec![title(format!("Nobody waited for compaction or reclaim in {span}"))];
    }
    let lost = match stalls.lost_events {
        0 => String::new(),
        n => format!(", {} events lost", grouped(n)),
    };
    let head =
        format!("{:>8}  {:<16}{:<12}{:>5}{:>8}{:>9}{:>9}", "pid", "waited", "for", "order", "tries", "s", "most");
    let mut lines = vec![title(format!("{head}  in {span}{lost}"))];
    lines.extend(stalls.processes.iter().take(STALLS).map(|s| {
        let name: String = s.name.chars().take(15).collect();
        let (what, tries) = (s.waited_for.text(), grouped(s.attempts));
        let numbers = format!("{:>5}{tries:>8}{:>9.3}{:>9.3}", s.order, s.seconds, s.longest_s);
        format!("{:>8}  {name:<16}{what:<12}{numbers}", s.pid).into()
    }));
    lines
}

/// A cell of pageblocks by type, in the colours of the memory map. It reads without colours, too.
fn cell(migratetype: &str) -> (&'static str, Style) {
    let (cell, colour) = match migratetype {
        "Unmovable" => ("█", Color::Magenta),
        "Movable" => ("░", Color::Yellow),
        "Reclaimable" => ("▒", Color::Green),
        _ => ("▚", Color::Gray),
    };
    (cell, Style::new().fg(colour))
}

fn pageblock_lines(look: &Look, width: usize) -> Vec<Line<'static>> {
    let mut legend = vec![bold("Pageblocks by type")];
    if look.pageblocks.is_empty() {
        return vec![Line::from(legend), "only root may read them".into()];
    }
    let mut types: Vec<&str> = look.pageblocks.iter().flat_map(|z| z.types.iter().map(|(name, _)| &**name)).collect();
    let mut seen: Vec<&str> = Vec::new();
    types.retain(|name| {
        !seen.contains(name) && {
            seen.push(name);
            true
        }
    });
    for name in types {
        let (cell, style) = cell(name);
        legend.push(Span::styled(format!("  {cell} "), style));
        legend.push(Span::raw(name.to_string()));
    }
    let mut lines = vec![Line::from(legend)];
    lines.extend(look.pageblocks.iter().take(ZONES).map(|zone| bar(zone, width)));
    lines
}

/// A zone's pageblocks as a bar; each type that it has is seen.
fn bar(zone: &Pageblocks, width: usize) -> Line<'static> {
    let all: u64 = zone.types.iter().map(|(_, blocks)| blocks).sum();
    let head = format!("{:<10}{:>8} ", zone.zone, grouped(all));
    let cells = width.saturating_sub(head.chars().count()) as u64;
    let mut spans = vec![Span::raw(head)];
    let mut left = cells;
    for (nr, (name, blocks)) in zone.types.iter().enumerate() {
        let others = (zone.types.len() - nr - 1) as u64;
        let share = (blocks * cells).div_ceil(all.max(1)).clamp(1, left.saturating_sub(others).max(1));
        let share = if others == 0 { left } else { share };
        left = left.saturating_sub(share);
        let (cell, style) = cell(name);
        spans.push(Span::styled(cell.repeat(share as usize), style));
    }
    Line::from(spans)
}

fn process_lines(look: &Look, rows: usize) -> Vec<Line<'static>> {
    let Some(processes) = &look.processes else { return vec!["A history names no process.".into()] };
    let head = format!("{:>8}  {:<16}{:>12}{:>14}", "pid", "process", "in memory", "in huge pages");
    let mut lines = vec![Line::from(bold(head))];
    for p in processes.iter().take(rows.saturating_sub(1)) {
        let share = p.huge_bytes.map_or("–".into(), |huge| percent(huge as f64 / p.resident_bytes.max(1) as f64));
        let name: String = p.name.chars().take(15).collect();
        lines.push(format!("{:>8}  {name:<16}{:>12}{share:>14}", p.pid, size(p.resident_bytes)).into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontig_live::heaviest::Heavy;
    use kontig_live::history::point::{NodePoint, Point};
    use kontig_live::stalls::{Stall, WaitedFor};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn look(i: i64) -> Look {
        let node = NodePoint { node: 0, at_hand: Some(1000 + i as u64), score: Some(33), free_bytes: 3 << 30 };
        let counts = [(Count::WaitedForCompaction, 4.0 * i as f64), (Count::SomeWaited, 0.5 * i as f64)];
        let point = Point {
            unix_ms: 1_795_700_000_000 + 2000 * i,
            boot: None,
            uptime_s: Some(100.0 + 2.0 * i as f64),
            interval_s: 2.0,
            nodes: vec![node],
            counts: counts.into(),
            groups: Default::default(),
        };
        let types = [("Unmovable", 82), ("Movable", 10_334), ("Reclaimable", 336)];
        let types = types.map(|(name, blocks)| (name.to_string(), blocks)).into();
        let pageblocks = vec![Pageblocks { zone: "0 Normal".into(), types }];
        let java = Heavy { pid: 4242, name: "java".into(), resident_bytes: 2 << 30, huge_bytes: Some(1 << 30) };
        Look { point, kernel: "6.18.44".into(), pageblocks, processes: Some(vec![java]), stalls: None }
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
        terminal.draw(|frame| draw(frame, view)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn a_terminal_of_80_by_24_shows_nodes_stalls_pageblocks_and_processes() {
        let screen = drawn(&View::new((0..5).map(look).collect(), true), 80, 24);
        for part in [
            "Linux 6.18.44  11-26 13:33:28 UTC  live  (q, space, ←, →)",
            "0                1,004         3 GiB      33",
            "Waits for compaction, a second (at most 2.0)",
            "waits for compaction 2.0, reclaim –",
            "waiting for memory: some task 25 %, all tasks –",
            "of a CPU: kcompactd –, kswapd –, khugepaged –",
            "0 Normal    10,752 █░░░",
            "4242  java                   2 GiB          50 %",
        ] {
            assert!(screen.contains(part), "'{part}' is not in\n{screen}");
        }
        assert!(screen.lines().all(|line| line.chars().count() <= 82), "the quotes around a line are the test's");
    }

    #[test]
    fn a_rate_that_is_not_known_is_not_0() {
        let screen = drawn(&View::new(vec![look(0)], true), 80, 24);
        assert!(screen.contains("Waits for compaction, a second (at most –)"), "{screen}");
        let view = View::new((0..5).map(look).collect(), true);
        let rates = values(&view, 80, |at| view.rate(at, Count::WaitedForCompaction).map(|rate| rate as u64));
        assert_eq!(rates, [Some(2), Some(2), Some(2), Some(2), None]);
    }

    #[test]
    fn processes_that_waited_are_shown_between_the_rates_and_the_pageblocks() {
        let with = |stalls| {
            let looks =
                (0..5).map(|i| Look { stalls: Some(Stalls { seconds: 2.0, ..Stalls::clone(&stalls) }), ..look(i) });
            drawn(&View::new(looks.collect(), true), 80, 24)
        };
        let stall = |pid, waited_for, order, seconds| Stall {
            pid,
            name: "java".into(),
            waited_for,
            order,
            attempts: 300,
            seconds,
            longest_s: seconds / 2.0,
        };
        let all = (1..6).map(|pid| stall(pid, WaitedFor::Compaction, 9, f64::from(pid))).collect();
        let screen = with(Stalls { processes: all, lost_events: 3, ..Stalls::default() });
        for part in [
            "     pid  waited          for         order   tries        s     most  in 10 s, 15 events lost",
            "       5  java            compaction      9   1,500   25.000    2.500",
            "       3  java            compaction      9   1,500   15.000    1.500",
            "0 Normal    10,752 █░░░",
            "4242  java                   2 GiB          50 %",
        ] {
            let part: String = part.chars().take(80).collect();
            assert!(screen.contains(&part), "'{part}' is not in\n{screen}");
        }
        assert!(!screen.contains("       2  java            compaction"), "three are shown:\n{screen}");
        assert!(with(Stalls::default()).contains("Nobody waited for compaction or reclaim in 10 s"));
        let screen = with(Stalls::unknown("/sys/kernel/tracing/instances: no permission to trace: run this as root"));
        assert!(screen.contains("/sys/kernel/tracing/instances: no permission to trace: run this as root"), "{screen}");
    }

    #[test]
    fn the_bar_has_a_cell_for_each_type_and_fills_the_line() {
        let line = bar(&look(0).pageblocks[0], 80);
        let cells: Vec<usize> = line.spans.iter().skip(1).map(|span| span.content.chars().count()).collect();
        assert_eq!((cells.len(), cells.iter().sum::<usize>()), (3, 80 - 19));
        assert!(cells.iter().all(|n| *n >= 1) && cells[1] > 50, "{cells:?}");
    }

    #[test]
    fn a_terminal_that_is_too_small_shows_what_fits() {
        let view = View::new((0..5).map(look).collect(), false);
        for (width, height) in [(1, 1), (20, 5), (200, 60)] {
            drawn(&view, width, height);
        }
        assert!(drawn(&view, 80, 24).contains("sample 5 of 5"));
    }
}
