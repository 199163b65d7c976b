//! The terminal table, held to the letter: a reader must see at a glance what agrees and what was missed.

mod common;

use kontig_report::table::render;

#[test]
fn published_rows_show_both_and_a_verdict() {
    insta::assert_snapshot!(render(&common::table(), None, false), @r#"
    hugepage-latency on xeon-1t
      A = 5.6.0-rc3  (baseline)
      B = 5.6.0-rc3+proactiveness=20
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
     row                            unit         published   published   published   measured     measured   measured   verdict
                                                         A           B      change          A            B     change
    ══════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
     hugepage alloc latency p5      us               7,894           2    ×0.00025      6,012          2.1   ×0.00035   agrees
     hugepage alloc latency p25     us              12,561           3    ×0.00024     11,034         3.02   ×0.00027   agrees
     hugepage alloc latency p50 *   us              21,229           4    ×0.00019     19,840          3.7   ×0.00019   agrees
     hugepage alloc latency p75     us              30,147           4    ×0.00013     28,901         24.5   ×0.00085   agrees, off 6.4×
     hugepage alloc latency p95 *   us              33,799         429      ×0.013     36,120        2,100     ×0.058   MISSED: off 4.6×
     2M hugepages allocated *       hugepages      383,859     384,105       ×1.00    383,012      384,001      ×1.00   agrees
     proactive compaction runs      runs (20+)           0          20           –          0           34          –   agrees
     system                         s             1,666.48      194.58       ×0.12        182        1,604      ×8.81   MISSED: opposite
     user                           s                17.39        8.35       ×0.48       17.2         17.1      ×0.99   MISSED: unchanged
     elapsed *                      s             1,657.89      199.62       ×0.12      1,490            –          –   MISSED: no figure

     Not published
     pages migrated                 pages                –           –           –          0   98,123,456          –   –
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    direction 6/8 rows agree; headline 2/4 within 2×
    4 rows missed: hugepage alloc latency p95; system; user; elapsed
    "#);
}

#[test]
fn a_narrow_terminal_keeps_every_figure_whole() {
    let text = render(&common::table(), Some(80), false);
    assert!(text.lines().take_while(|line| !line.starts_with("direction")).all(|line| line.chars().count() <= 80));
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
    insta::assert_snapshot!(render(&table, None, false), @r#"
    hugepage-latency on xeon-1t
      A = 5.6.0-rc3  (baseline)
      B = 5.6.0-rc3+proactiveness=20
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
fn colour_is_only_there_when_asked_for_and_names_cannot_bring_their_own() {
    let mut table = common::table();
    table.rows[0].name = "p5\u{1b}[2J".into();
    table.id = "x\u{1b}]0;title\u{7}".into();
    assert!(!render(&table, None, false).contains('\u{1b}'));
    let coloured = render(&table, None, true);
    assert!(coloured.contains("\u{1b}[") && !coloured.contains("\u{1b}[2J") && !coloured.contains("\u{1b}]"));
}

#[test]
fn notes_come_last_each_on_a_line_of_its_own() {
    let mut table = common::table();
    table.notes = vec!["7.2: a setting had no effect".into(), "two\nlines \u{1b}[31m".into()];
    let text = render(&table, None, false);
    assert!(text.ends_with("\nnote: 7.2: a setting had no effect\nnote: twolines [31m\n"), "{text}");
}
