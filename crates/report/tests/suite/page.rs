//! The page and the picture fetch nothing, let nothing hostile
//! through, and have data for every part.

use crate::common;
use kontig_report::html::{Page, PageExperiment, page};
use kontig_report::limits::LIMITS;
use kontig_report::map::{self, MapError};
use kontig_report::overview::{Listed, Overview};
use kontig_report::svg::{Picture, memory_map_svg};
use kontig_report::table::{Figures, render};
use kontig_results::PacePoint;
use kontig_results::{ExperimentResult, RunResult, Score};

fn html(result: &ExperimentResult, runs: &[RunResult], text: &str) -> String {
    html_with_pace(result, runs, &common::pace(), text)
}

fn html_with_pace(result: &ExperimentResult, runs: &[RunResult], pace: &[PacePoint], text: &str) -> String {
    let (pace_machine, summary, notes) = (text.into(), text.into(), text.into());
    let experiment = PageExperiment { result, runs, pace, pace_machine, summary, notes };
    let overview = Some(Overview::new(&[Listed { series: text, result }], &[text.into()]));
    page(&Page { title: text.into(), subtitle: text.into(), overview, experiments: vec![experiment] })
}

/// The JSON for the page's script.
fn data(html: &str) -> serde_json::Value {
    let (_, rest) = html.split_once("id=\"data\">").expect("a data element");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn the_page_loads_nothing() {
    for runs in [common::small(), common::large()] {
        let html = html(&common::table(), &runs, "A page");
        for reference in ["http://", "https://", "src=", "@import", "url(", "<link", "{{"] {
            assert!(!html.contains(reference), "{reference} in the page");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    const HOSTILE: &str = "</script><b onclick='x'>\"{{data}}<!--<script>";
    let mut table = common::table();
    table.id = HOSTILE.into();
    table.variants[0] = HOSTILE.into();
    for row in &mut table.rows {
        (row.name, row.unit) = (HOSTILE.into(), HOSTILE.into());
    }
    let mut runs = common::small();
    for run in &mut runs {
        if run.repetition == 0 {
            run.variant = HOSTILE.into();
        }
        run.series[0].name = HOSTILE.into();
        run.histograms[0].unit = HOSTILE.into();
        run.phases[0].name = HOSTILE.into();
        run.map.zones[0].name = HOSTILE.into();
        run.map.frames.iter_mut().for_each(|frame| frame.phase = HOSTILE.into());
    }
    let mut pace = common::pace();
    pace.iter_mut().for_each(|point| point.variant = HOSTILE.into());
    let html = html_with_pace(&table, &runs, &pace, HOSTILE);
    assert!(!html.contains("<b onclick") && !html.contains("<!--<script>"));
    assert_eq!(html.matches("</script>").count(), 2, "the data's and the script's own");
    assert_eq!(data(&html)["experiments"][0]["variants"][0], HOSTILE);
    let swept = &data(&html)["experiments"][0]["pace"];
    assert_eq!((&swept["machine"], &swept["variants"][0]["name"]), (&HOSTILE.into(), &HOSTILE.into()));
    let picture = Picture { title: HOSTILE.into(), ..Picture::default() };
    assert!(!memory_map_svg(&runs, &picture).expect("a picture").contains("<b"));
}

#[test]
fn every_part_has_its_data() {
    let html = html(&common::table(), &common::small(), "A page");
    let experiment = &data(&html)["experiments"][0];
    assert_eq!(experiment["curves"][0]["published"][1][4], serde_json::json!([95.0, 429.0]));
    assert_eq!(experiment["series"][0]["lines"].as_array().map(Vec::len), Some(4), "two repetitions of two variants");
    assert_eq!(experiment["curves"][0]["repetitions"][1].as_array().map(Vec::len), Some(2), "beside both together");
    assert_eq!(experiment["phases"][0][2]["name"], "allocate");
    assert_eq!(experiment["maps"][1]["frames"].as_array().map(Vec::len), Some(12));
    let pace = &experiment["pace"];
    assert_eq!(pace["pauses"], serde_json::json!([0.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]));
    assert_eq!(pace["variants"][1]["lines"].as_array().map(Vec::len), Some(5), "a line a percentile");
    assert_eq!(pace["variants"][1]["lines"][0][6], serde_json::json!([6, 3.25]));
    assert!(html.contains("MISSED: opposite") && html.contains("<b>2/5</b>"));
    assert!(html.contains("<b>0/1</b> false alarms <small>(0 if nothing changed)</small>"));
    assert!(html.contains("<b>2/4</b> headline rows within 2× <small>(1 if nothing changed)</small>"));
}

#[test]
fn the_page_and_the_readme_show_the_one_list_of_limits() {
    let page = html(&common::table(), &common::small(), "");
    let (_, limits) = page.split_once("<h2>Limits</h2>").expect("a heading");
    assert!(
        limits.contains("<li><b>Address translation</b> takes time in workloads of the kind <code>accesses</code>")
    );
    assert!(limits.contains("A machine without a <code>[[disk]]</code>"), "{limits:.200}");
    let readme = include_str!("../../../../README.md");
    let (_, section) = readme.split_once("\n## Limits\n").expect("a heading");
    let (section, _) = section.split_once("\n## ").expect("a next one");
    let listed: Vec<String> = section.split("\n- ").skip(1).map(|item| item.trim_end().replace("\n  ", " ")).collect();
    assert_eq!(listed, LIMITS);
}

#[test]
fn a_false_alarm_is_counted_and_missed_alike_in_terminal_page_and_json() {
    let mut table = common::table();
    table.rows.push(common::row("DMA32 allocs", "events", false, &[100.0, 95.0], &[Some(100.0), Some(61.0)]));
    table.score = Score::of(&table.rows, &[]);
    let text = render(&table, &Figures::All, None, false);
    let page = html(&table, &common::small(), "");
    for (form, text, parts) in [
        ("terminal", &text, ["false alarms 1/2", "MISSED: false alarm", "if nothing changed: direction 0/5"]),
        ("page", &page, ["<b>1/2</b> false alarms", "MISSED: false alarm", "(0 if nothing changed)"]),
    ] {
        parts.iter().for_each(|part| assert!(text.contains(part), "{form}: {part}"));
    }
    let json = serde_json::to_value(&table).expect("a table");
    assert_eq!(json["score"]["measured"]["false_alarms"], serde_json::json!({ "moved": 1, "of": 2 }));
    assert_eq!(json["score"]["nothing_changes"]["false_alarms"], serde_json::json!({ "moved": 0, "of": 2 }));
}

#[test]
fn repetitions_phases_and_remarks_are_on_the_page() {
    let html = html(&common::repeated(), &common::small(), "");
    for part in [
        "60.84<small class=\"range\">60.5–61</small>",
        "217.3†",
        "p99 takes 299",
        "won 3 of 5, ranges overlap",
        "<h3>By phase</h3>",
        "3.51<small",
        "</b>: nothing was obtained: no hugepage alloc latency</li>",
        "<li>to go on after a failure",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn the_pace_sweep_needs_points_that_can_be_drawn() {
    let point = |pause_us, us| PacePoint {
        variant: "a".into(),
        pause_us,
        per_second: Some(1e6 / us),
        samples: 20_000,
        latency_us: vec![(50.0, us), (99.0, us)],
    };
    let lines = |pace: &[PacePoint]| {
        let html = html_with_pace(&common::table(), &[], pace, "");
        assert!(html.contains("<div class=\"part pace\" hidden></div>"));
        data(&html)["experiments"][0]["pace"]["variants"].clone()
    };
    assert_eq!(lines(&[]), serde_json::json!([]));
    assert_eq!(lines(&[point(f64::NAN, 1.0), point(-1.0, 1.0), point(f64::INFINITY, 1.0)]), serde_json::json!([]));
    let none = lines(&[point(0.0, 0.0), point(1.0, f64::NAN), point(2.0, f64::INFINITY)]);
    assert_eq!(none[0]["lines"], serde_json::json!([[], [], [], [], []]));
    assert_eq!(none[0]["rates"], serde_json::json!([null, null, null]));
}

#[test]
fn rows_without_published_figures_stand_under_a_heading() {
    let mut table = common::table();
    table.rows.rotate_right(1);
    let html_of = |table: &ExperimentResult| html(table, &[], "");
    let html = html_of(&table);
    let (held, others) = html.split_once("<h3>Not published</h3>").expect("a heading");
    assert!(!others.split_once("</table>").expect("its table").0.contains("Published"), "and without empty columns");
    assert!(held.contains("latency p5 ") && held.contains("elapsed") && !held.contains("pages migrated <"));
    assert!(others.contains("pages migrated <"));
    table.rows.iter_mut().for_each(|row| row.published.clear());
    assert!(!html_of(&table).contains("Not published"));
}

#[test]
fn the_overview_comes_first_and_says_what_it_says_in_a_terminal() {
    let html = html(&common::table(), &[], "Seed 000");
    let (_, overview) = html.split_once("<h2>All experiments</h2>").expect("an overview");
    let (overview, rest) = overview.split_once("</section>").expect("its end");
    assert!(rest.contains("<section"), "the experiments follow");
    let text = Overview::new(&[Listed { series: "Seed 000", result: &common::table() }], &[]).text(None, false);
    let conclusion = text.lines().next().expect("a conclusion");
    assert!(overview.contains(conclusion), "{conclusion}");
    assert!(overview.contains("1 of 2 tables; not finished: Seed 000") && overview.contains("<td>Seed 000</td>"));
}

#[test]
fn an_empty_page_and_empty_runs_are_pages() {
    let none = Page { title: "None".into(), subtitle: String::new(), overview: None, experiments: vec![] };
    assert!(page(&none).ends_with("</html>\n"));
    let mut run = common::run(0, 0, &[("node 0 Normal", 4)], 2);
    run.map = Default::default();
    run.histograms[0].buckets.clear();
    run.series.clear();
    run.phases.clear();
    let empty = [run];
    assert!(html(&common::table(), &empty, "").contains("hugepage-latency"));
    assert!(memory_map_svg(&empty, &Picture::default()).expect("a picture").ends_with("</svg>\n"));
}

#[test]
fn pictures_stay_small_and_show_what_is_there() {
    for runs in [common::small(), common::large()] {
        let svg = memory_map_svg(&runs, &Picture::default()).expect("a picture");
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
        assert_eq!(svg.matches("<g ").count(), 10, "two variants at five moments");
        assert!(svg.contains("allocate") && svg.contains("5.6.0-rc3+proactiveness=20"));
    }
    let one = Picture { variants: vec!["5.6.0-rc3".into()], moments: 3, ..Picture::default() };
    let svg = memory_map_svg(&common::small(), &one).expect("a picture");
    assert_eq!(svg.matches("<g ").count(), 3);
}

#[test]
fn damaged_maps_are_errors() {
    let mut runs = common::small();
    let blocks = map::blocks(&runs[0].map);
    let frame = runs[0].map.frames[0].clone();
    assert_eq!(map::cells(&frame, blocks).map(|cells| cells.len()), Ok(32));
    assert_eq!(map::cells(&frame, blocks + 1), Err(MapError::Length { cells: 32, blocks: 33 }));
    assert_eq!(map::cells(&frame, blocks - 1), Err(MapError::Deflate));
    runs[0].map.frames[0].cells = "????".into();
    assert_eq!(memory_map_svg(&runs, &Picture::default()), Err(MapError::Base64));
}

#[test]
fn rounds_and_rows_that_are_scored_apart_are_on_the_page() {
    let html = html(&common::ageing(), &[], "A page");
    assert!(html.contains("<h3>Round by round</h3>") && html.contains("ages the published way"), "{html:.0}");
    assert!(html.contains("MISSED: published as steady, and ages"));
    assert!(html.contains("scored apart, artefact: 1 row") && html.contains("User: the process is not waited for"));
    assert!(html.contains("hugepage-latency, box-2g"));
}

#[test]
fn twelve_variants_have_colours_of_their_own_and_no_more_than_four_share_a_pattern() {
    let mut table = common::table();
    table.variants = (0..13).map(|i| format!("variant {i}")).collect();
    let html = html(&table, &[], "A page");
    let key = |i: usize| {
        let name = format!("</i>variant {i}</span>");
        let before = &html[..html.find(&name).unwrap_or_else(|| panic!("variant {i}"))];
        before[before.rfind("<i class=").expect("its key")..].to_string()
    };
    let keys: Vec<String> = (0..12).map(key).collect();
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(*key, format!("<i class=\"key v{i} d{}\">", i / 4));
        assert_eq!(html.matches(&format!("--v{i}: #")).count(), 2, "one on a light page, one on a dark one");
        assert_eq!(html.matches(&format!(".v{i} {{ --c: var(--v{i}); }}")).count(), 1);
    }
    assert_eq!(key(12), keys[0]);
}

#[test]
fn a_page_of_many_runs_stays_small_and_says_what_it_leaves_out() {
    let table = common::table();
    let few = common::small();
    let many: Vec<RunResult> = (0..400)
        .flat_map(|i| {
            let again = few.iter().filter(|run| run.repetition == 0).cloned();
            again.map(move |run| RunResult { repetition: i, map: Default::default(), ..run })
        })
        .collect();
    let [small, large] = [&few, &many].map(|runs| html(&table, runs, "A page"));
    let said = "of each variant 30 of 400 seeds are drawn over time";
    assert!(large.contains(said) && !small.contains("leaves something out"));
    let series = &data(&large)["experiments"][0]["series"][0]["lines"];
    assert_eq!(series.as_array().map(Vec::len), Some(2 * 30));
    let curve = &data(&large)["experiments"][0]["curves"][0];
    assert_eq!(curve["repetitions"][0].as_array().map(Vec::len), Some(30));
}
