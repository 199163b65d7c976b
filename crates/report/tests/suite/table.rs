//! The terminal table, to the letter: agreeing and missed rows must stand out.

use crate::common;
use kontig_report::table::{Figures, render, together};
use kontig_results::{ExperimentResult, Remark, Row};

#[test]
fn published_rows_show_both_and_a_verdict() {
    insta::assert_snapshot!(render(&common::table(), &Figures::All, None, false), @r#"
    hugepage-latency on xeon-1t
      A = 5.6.0-rc3  (baseline)
      B = 5.6.0-rc3+proactiveness=20
    direction 2/5 rows agree; to zero 4/4; false alarms 0/1; headline 2/4 within 2×
    4 rows missed: hugepage alloc latency p95; system; user; elapsed
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     row                            unit         published   published   published   measured   measured   measured   verdict
                                                         A           B      change          A          B     change
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     hugepage alloc latency p5      us               7,894           2    ×0.00025      6,012        2.1   ×0.00035   agrees
     hugepage alloc latency p25     us              12,561           3    ×0.00024     11,034       3.02   ×0.00027   agrees
     hugepage alloc latency p50 *   us              21,229           4    ×0.00019     19,840        3.7   ×0.00019   agrees
     hugepage alloc latency p75     us              30,147           4    ×0.00013     28,901       24.5   ×0.00085   agrees, off 6.4×
     hugepage alloc latency p95 *   us              33,799         429      ×0.013     36,120      2,100     ×0.058   MISSED: off 4.6×
     2M hugepages allocated *       hugepages      383,859     384,105       ×1.00    383,012    384,001      ×1.00   agrees
     proactive compaction runs      runs (20+)           0          20           –          0         34          –   agrees
     system                         s             1,666.48      194.58       ×0.12        182      1,604      ×8.81   MISSED: opposite
     user                           s                17.39        8.35       ×0.48       17.2       17.1      ×0.99   MISSED: unchanged
     elapsed *                      s             1,657.89      199.62       ×0.12      1,490          –          –   MISSED: no figure
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    if nothing changed: direction 0/5 rows agree; to zero 0/4; false alarms 0/1; headline 1/4 within 2×
    false alarms: rows published to change by less than a tenth that move by more here; to zero: rows that a patch brings to less than a hundredth

    not published
    ───────────────────────────────────────────────────────────
     row              unit    measured     measured   measured
                                     A            B     change
    ═══════════════════════════════════════════════════════════
     pages migrated   pages          0   98,123,456          –
    ───────────────────────────────────────────────────────────
    "#);
}

#[test]
fn a_narrow_terminal_keeps_every_figure_whole() {
    let text = render(&common::table(), &Figures::All, Some(80), false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for figure in ["21,229", "×0.00019", "98,123,456", "384,105"] {
        assert!(text.contains(figure), "{figure} is broken:\n{text}");
    }
    assert!(text.contains("→ MISSED"));
}

#[test]
fn without_published_rows_only_measured_columns_remain() {
    let mut table = common::table();
    table.rows.iter_mut().for_each(|row| row.published.clear());
    table.rows.truncate(3);
    insta::assert_snapshot!(render(&table, &Figures::All, None, false), @r#"
    hugepage-latency on xeon-1t
      A = 5.6.0-rc3  (baseline)
      B = 5.6.0-rc3+proactiveness=20
    B (5.6.0-rc3+proactiveness=20) against A:
      seems better: hugepage alloc latency p50 ×0.00019 (19,840 → 3.7 us)
    one seed: chance alone would make some figures seem to differ; five seeds say which
    ──────────────────────────────────────────────────────────────────────
     row                            unit   measured   measured   measured
                                                  A          B     change
    ══════════════════════════════════════════════════════════════════════
     hugepage alloc latency p5      us        6,012        2.1   ×0.00035
     hugepage alloc latency p25     us       11,034       3.02   ×0.00027
     hugepage alloc latency p50 *   us       19,840        3.7   ×0.00019
    ──────────────────────────────────────────────────────────────────────
    nothing was published to hold these rows against
    "#);
}

#[test]
fn a_publication_of_the_workload_stands_in_place_of_nothing() {
    let mut table = common::repeated();
    let line = "nothing was published to hold these rows against";
    assert!(render(&table, &Figures::All, None, false).contains(line));
    let published = Remark { variant: None, text: "'kontig reproduce five' compares this workload".into() };
    let step = "published of this step: p50 ×0.5 (here ×2)";
    table.elsewhere = vec![published, Remark { variant: Some(1), text: step.into() }];
    let text = render(&table, &Figures::All, None, false);
    assert!(!text.contains(line), "{text}");
    assert!(text.contains("\n'kontig reproduce five' compares this workload\n† too few samples"), "{text}");
    // The rest of the conclusion is read against what was published of the step.
    assert!(text.contains(&format!("\n  B = 100\nB against A, {step}\nB (100) against A:\n")), "{text}");
    assert_eq!(text.matches(step).count(), 1, "{text}");
}

#[test]
fn repetitions_show_their_spread_and_how_often_a_variant_won() {
    insta::assert_snapshot!(render(&common::repeated(), &Figures::All, None, false), @"
    five on xeon-1t
      A = 20  (baseline)
      B = 100
    B (100) against A:
      worse in 5 of 5 seeds: share of free memory 60.84 → 0 %; kcompactd CPU time ×2.02 (1.78 → 3.6 s)
      no comparison: B has no hugepage alloc latency p50, p99
      no difference shown: elapsed per page (seeds differ as much)
    5 repetitions, each with its own seed: percentiles are of all samples together, other figures are medians; ranges are from the lowest repetition to the highest
    ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     row                          unit   measured   range         measured   range   measured   B against
                                                A   A                    B   B         change   A, by seed
    ═══════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     hugepage alloc latency p50   us        113.9   102.5–170.9          –                  –   –
     hugepage alloc latency p99   us       217.3†   195.6–326            –                  –   –
     share of free memory         %         60.84   60.5–61              0              ×0.00   won 0 of 5
     elapsed per page             us           12   9–20                10   8–14       ×0.83   won 3 of 5, ranges overlap
    ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    nothing was published to hold these rows against
    † too few samples to tell: p99 takes 299

    by phase of the run; the rows above are of the phase 'measure'
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────
     figure                                settle            measure           total     change   total against
                                                                                       of total   A, by seed
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════
     kcompactd CPU time, s   A                  0               1.78            1.78
                             B   3.51 (3.51–3.71)   0.09 (0.09–0.29)   3.6 (3.6–3.8)      ×2.02   won 0 of 5
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────
    A: ended at the first failed allocation, with 60.5 to 61.0 % of the free memory taken
    B: nothing was obtained: no hugepage alloc latency
    to go on after a failure, until N come in a row: --with give_up_after=N
    ");
}

#[test]
fn tables_of_phases_and_ranges_fit_a_narrow_terminal() {
    let text = render(&common::repeated(), &Figures::All, Some(80), false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["60.5–61", "102.5–170.9", "B won 3 of 5, ranges overlap", "217.3†", "3.51"] {
        assert!(text.contains(part), "{part} is missing or broken:\n{text}");
    }
}

/// As wide as half a screen of code, or a telephone: a table would have a letter a line.
#[test]
fn where_no_table_fits_each_row_is_a_list() {
    let text = render(&common::table(), &Figures::Matter, Some(40), false);
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    let row = "\nhugepage alloc latency p50 *, us\n  published: A 21,229, B 4, ×0.00019\n  measured: A 19,840, B 3.7, \
               ×0.00019\n  → agrees\n";
    assert!(text.contains(row), "{text}");
    let text = render(&common::repeated(), &Figures::Matter, Some(40), false);
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    assert!(text.contains("\nelapsed per page, us\n  measured: A 12 (9–20), B 10 (8–14),\n"), "{text}");
    assert!(text.contains("\n  B against A, by seed: won 3 of 5,\n"), "{text}");
}

#[test]
fn without_more_being_asked_for_a_table_has_what_the_conclusion_is_about() {
    let text = render(&common::repeated(), &Figures::Matter, None, false);
    assert!(text.contains("\n kcompactd CPU time, total  "), "{text}");
    assert!(!text.contains("by phase of the run"), "{text}");
    assert!(text.ends_with("--all-figures prints 2 more, --html and --json have them\n"), "{text}");
    let held = render(&common::table(), &Figures::Matter, None, false);
    assert!(held.contains("agrees, off 6.4×") && !held.contains("not published"), "{held}");
}

#[test]
fn nothing_measured_is_a_dash_and_never_a_nought() {
    let text = render(&common::repeated(), &Figures::All, None, false);
    let line = |start: &str| text.lines().find(|l| l.trim_start().starts_with(start)).unwrap().to_owned();
    assert!(line("hugepage alloc latency p50").trim_end().ends_with('–') && !line("hugepage alloc").contains(" 0 "));
    assert!(text.contains("B: nothing was obtained: no hugepage alloc latency"));
    assert!(line("share of free memory").contains(" 0 "), "none of what was there is a number");
}

#[test]
fn colour_is_only_there_when_asked_for_and_names_cannot_bring_their_own() {
    let mut table = common::table();
    table.rows[0].name = "p5\u{1b}[2J".into();
    table.id = "x\u{1b}]0;title\u{7}".into();
    assert!(!render(&table, &Figures::All, None, false).contains('\u{1b}'));
    let coloured = render(&table, &Figures::All, None, true);
    assert!(coloured.contains("\u{1b}[") && !coloured.contains("\u{1b}[2J") && !coloured.contains("\u{1b}]"));
}

#[test]
fn every_figure_is_shown_whatever_phases_have_it() {
    let base = common::repeated();
    let of = |name: &str, phase: &str, value: f64| Row {
        name: name.into(),
        phase: phase.to_owned(),
        measured: vec![Some(common::once(value)), None],
        pairs: vec![],
        ..base.rows[0].clone()
    };
    let rows = vec![
        of("wait", "1 writer", 1.25),
        of("wait", "2 writers", 2.25),
        of("only here", "2 writers", 3.25),
        of("score", "measure", 4.25),
        of("elapsed", "1 writer", 5.25),
        of("elapsed", "2 writers", 6.25),
        of("elapsed", "total", 7.25),
    ];
    let e = ExperimentResult { rows, ..base };
    let text = render(&e, &Figures::All, None, false);
    for value in ["1.25", "2.25", "3.25", "4.25", "5.25", "6.25", "7.25"] {
        assert!(text.contains(value), "{value} is missing from\n{text}");
    }
    assert!(text.contains(" only here, 2 writers "), "{text}");
    assert!(text.contains("rows above that name no phase are of the measurement as a whole"), "{text}");
    let columns = text.lines().find(|line| line.starts_with(" figure ")).expect("a table by phase");
    assert_eq!(
        columns.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect::<Vec<_>>(),
        ["figure", "1 writer", "2 writers", "total", "change"]
    );
}

#[test]
fn of_more_than_two_variants_the_change_says_to_which() {
    let e = common::ageing();
    assert_eq!(e.variants.len(), 3);
    assert!(
        render(&e, &Figures::All, None, false).contains(" change to C "),
        "{}",
        render(&e, &Figures::All, None, false)
    );
    // With published figures only the last variant has a change; without, each has one.
    let loose =
        ExperimentResult { rows: e.rows.into_iter().map(|row| Row { published: vec![], ..row }).collect(), ..e };
    for (e, to_b) in [(common::ageing(), 0), (loose, 1)] {
        let text = render(&e, &Figures::All, None, false);
        let head = text.lines().find(|line| line.contains("change to C")).expect("a heading");
        assert_eq!(head.matches("change to B").count(), to_b, "{head}");
    }
}

#[test]
fn steps_caveats_and_rounds_are_said_under_the_table() {
    let e = common::ageing();
    let text = render(&e, &Figures::All, None, false);
    let verdicts = ["Success", "Direct pages", "Swap Outs", "Max", "User"].map(|name| {
        let line = text.lines().find(|line| line.starts_with(&format!(" {name}"))).expect("a row");
        line.rsplit_once("   ").map_or("", |(_, verdict)| verdict).trim()
    });
    assert_eq!(
        verdicts,
        [
            "MISSED: B agrees; C unchanged",
            "B agrees, off 649×; C agrees",
            "MISSED: B agrees; C not nothing",
            "B opposite; C agrees (few-samples)",
            "B unchanged; C agrees (artefact)"
        ]
    );
    let (_, below) = text.split_once("direction ").expect("a score");
    insta::assert_snapshot!(below, @"
    0/1 rows agree; to zero 2/2; false alarms 1/3; headline 3/4 within 2×
    2 rows missed: Success; Swap Outs
    6 rounds on one machine, not booted in between: figures are medians; ranges are from the lowest round to the highest
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     row                      unit      published   published   published     published   measured   measured   measured      measured   verdict
                                                A           B           C   change to C          A          B          C   change to C
    ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     Success *                %              27.5        25.3        45.5         ×1.65         20         20         20         ×1.00   MISSED: B agrees; C unchanged
     Direct pages scanned *   events   21,892,772          30           0         ×0.00      9,000          8          0         ×0.00   B agrees, off 649×; C agrees
     Swap Outs                events            0           0           0             –          0          0          7             –   MISSED: B agrees; C not nothing
     Max *                    ms                4           2           2         ×0.50          1          2          2         ×2.00   B opposite; C agrees (few-samples)
     User *                   s              67.5        0.99        0.99        ×0.015         60         59         59         ×0.98   B unchanged; C agrees (artefact)
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    if nothing changed: direction 0/1 rows agree; to zero 0/2; false alarms 0/3; headline 1/4 within 2×
    false alarms: rows published to change by less than a tenth that move by more here; to zero: rows that a patch brings to less than a hundredth
    scored apart, artefact: 1 row, direction 0/1 agree, size 1/2 within 2×
      User: the process is not waited for
    scored apart, few-samples: 1 row, direction 0/1 agree, size 1/2 within 2×
      Max: a single maximum

    round by round
    ───────────────────────────────────────────────────────────────────────
     round     THP fault alloc   events       THP fault alloc   events
               published A       measured A   published C       measured C
    ═══════════════════════════════════════════════════════════════════════
     1                      61           60                52           60
     2                      56           50                60           50
     3                      57           50                55           30
     4                      50           40                54           20
     5                      34           30                55           10
     6                      33           32                56           10
     ages by             ×0.57        ×0.56             ×0.99        ×0.18
    ───────────────────────────────────────────────────────────────────────
    THP fault alloc of A: ages the published way, of the published size
    THP fault alloc of C: MISSED: published as steady, and ages
    ");
    insta::assert_snapshot!(together(&[&e, &e]).unwrap_or_default(), @"
    hugepage-latency, 2 cases together: direction 0/2 rows agree; to zero 4/4; false alarms 2/6; headline 6/8 within 2×
    hugepage-latency, 2 cases together, if nothing changed: direction 0/2 rows agree; to zero 0/4; false alarms 0/6; headline 2/8 within 2×
    ");
    assert_eq!(together(&[&e]), None);
}

#[test]
fn figures_that_are_0_in_every_phase_are_told_together() {
    let base = common::repeated();
    let of = |name: &str, phase: &str, values: [Option<f64>; 2]| Row {
        name: name.into(),
        phase: phase.to_owned(),
        measured: values.map(|value| value.map(common::once)).to_vec(),
        pairs: vec![],
        ..base.rows[0].clone()
    };
    let both = |name, values| [of(name, "early", values), of(name, "late", values)];
    let rows = [both("idle", [Some(0.0); 2]), both("partly", [Some(0.0), Some(1.0)]), both("gone", [Some(0.0), None])];
    let text = render(&ExperimentResult { rows: rows.concat(), ..base }, &Figures::All, None, false);
    assert!(text.contains("\n0 in every phase: idle\n"), "what is missing is not 0:\n{text}");
    assert!(!text.contains(" idle, ") && text.contains(" partly, ") && text.contains(" gone, "), "{text}");
}
