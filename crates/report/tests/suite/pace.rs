//! The table of the pace sweep, to the letter.

use crate::common;
use kontig_report::pace::render;
use kontig_results::PacePoint;

#[test]
fn pauses_are_rows_and_percentiles_columns() {
    insta::assert_snapshot!(render(&common::pace(), "xeon-64g"), @"

    latency against the pause between allocations, on xeon-64g (µs)
      A = 5.6.0-rc3
      B = 5.6.0-rc3+proactiveness=20
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
                     A       A       A       A       A       A           B      B      B       B       B       B
     pause     pages/s     p50     p90     p95     p99   p99.9     pages/s    p50    p90     p95     p99   p99.9
    ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
         0       1,103   906.5   2,106   2,256   2,376   4,801     307,692   3.25   4.25   1,882   1,982   4,002
        20       1,079   906.5   2,106   2,256   2,376   4,801      43,011   3.25   4.25   1,815   1,911   3,859
        50       1,045   906.5   2,106   2,256   2,376   4,801      18,779   3.25   4.25   1,194   1,258   2,537
       100       993.5   906.5   2,106   2,256   2,376   4,801       9,685   3.25   4.25   339.6   357.3   716.1
       200       903.8   906.5   2,106   2,256   2,376   4,801       4,920   3.25   4.25   55.79   58.42   111.5
       500         711   906.5   2,106   2,256   2,376   4,801       1,987   3.25   4.25   9.734   9.907   13.39
     1,000       524.5   906.5   2,106   2,256   2,376   4,801       996.8   3.25   4.25   6.905   6.927   7.363
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
    pages/s: huge pages obtained a second, pauses and stalls included; every point is one run
    levels are xeon-64g's: compare them with each other, not with the rows above
    ");
}

#[test]
fn without_points_there_is_no_table() {
    assert_eq!(render(&[], "xeon-64g"), "");
    let never = PacePoint {
        variant: "a".into(),
        pause_us: f64::NAN,
        per_second: Some(1.0),
        samples: 20_000,
        latency_us: vec![(50.0, 1.0)],
    };
    assert_eq!(render(&[never], "xeon-64g"), "");
}

#[test]
fn points_may_come_in_any_order_and_lack_figures() {
    let point = |variant: &str, pause_us, latency_us: &[(f64, f64)]| PacePoint {
        variant: variant.into(),
        pause_us,
        per_second: latency_us.iter().find(|l| l.0 == 50.0).map(|l| 1e6 / (pause_us + l.1)),
        samples: 20_000,
        latency_us: latency_us.to_vec(),
    };
    let points = [
        point("b\u{1b}[2J", 1000.0, &[(50.0, 4.0), (99.0, f64::NAN)]),
        point("a", 0.5, &[(99.9, 12_345.0)]),
        point("a", 0.0, &[(50.0, 0.0)]),
    ];
    insta::assert_snapshot!(render(&points, "xeon\u{7}-64g"), @"

    latency against the pause between allocations, on xeon-64g (µs)
      A = b[2J
      B = a
    ────────────────────────────────────────────────────────────────────────────────────────────────
                     A     A     A     A     A       A           B     B     B     B     B        B
     pause     pages/s   p50   p90   p95   p99   p99.9     pages/s   p50   p90   p95   p99    p99.9
    ════════════════════════════════════════════════════════════════════════════════════════════════
         0           –     –     –     –     –       –           –     0     –     –     –        –
       0.5           –     –     –     –     –       –           –     –     –     –     –   12,345
     1,000         996     4     –     –     –       –           –     –     –     –     –        –
    ────────────────────────────────────────────────────────────────────────────────────────────────
    pages/s: huge pages obtained a second, pauses and stalls included; every point is one run
    levels are xeon-64g's: compare them with each other, not with the rows above
    ");
}

#[test]
fn percentiles_of_few_huge_pages_are_marked_and_nothing_obtained_is_a_dash() {
    let few = PacePoint {
        variant: "few".into(),
        pause_us: 0.0,
        per_second: Some(2.0),
        samples: 10,
        latency_us: vec![(50.0, 3.0), (99.0, 9.0)],
    };
    let none = PacePoint { variant: "none".into(), per_second: None, samples: 0, latency_us: vec![], ..few.clone() };
    let text = render(&[few, none], "xeon-64g");
    let row = text.lines().find(|l| l.trim_start().starts_with("0 ")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["0", "2", "3", "–", "–", "9†", "–", "–", "–", "–", "–", "–", "–"]
    );
    assert!(text.ends_with("† too few huge pages were obtained to tell this percentile\n"));
}
