//! The pace sweep's table, to the letter.

mod common;

use kontig_lab::session::PacePoint;
use kontig_report::pace::render;

#[test]
fn pauses_are_rows_and_percentiles_columns() {
    insta::assert_snapshot!(render(&common::pace()), @"

    latency against the pause between allocations, on a smaller machine (µs)
      A = 5.6.0-rc3
      B = 5.6.0-rc3+proactiveness=20
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
                     A       A       A       A       A       A           B      B      B       B       B       B
     pause     pages/s     p50     p90     p95     p99   p99.9     pages/s    p50    p90     p95     p99   p99.9
    ═════════════════════════════════════════════════════════════════════════════════════════════════════════════
         0       665.6   1,502   2,702   2,852   2,972   5,996     307,692   3.25   4.25   2,378   2,478   4,998
        20       656.8   1,502   2,702   2,852   2,972   5,996      43,011   3.25   4.25   2,293   2,389   4,819
        50       644.1   1,502   2,702   2,852   2,972   5,996      18,779   3.25   4.25   1,507   1,570   3,166
       100         624   1,502   2,702   2,852   2,972   5,996       9,685   3.25   4.25   424.4   442.1   889.8
       200       587.4   1,502   2,702   2,852   2,972   5,996       4,920   3.25   4.25   64.94   67.57   133.8
       500       499.4   1,502   2,702   2,852   2,972   5,996       1,987   3.25   4.25   6.597   6.769   11.12
     1,000       399.6   1,502   2,702   2,852   2,972   5,996       996.8   3.25   4.25   3.013   3.034   3.579
    ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
    pages/s: huge pages a second, were every allocation as fast as p50
    ");
}

#[test]
fn without_points_there_is_no_table() {
    assert_eq!(render(&[]), "");
    let never = PacePoint { variant: "a".into(), pause_us: f64::NAN, latency_us: vec![(50.0, 1.0)] };
    assert_eq!(render(&[never]), "");
}

#[test]
fn points_may_come_in_any_order_and_lack_figures() {
    let point = |variant: &str, pause_us, latency_us: &[(f64, f64)]| PacePoint {
        variant: variant.into(),
        pause_us,
        latency_us: latency_us.to_vec(),
    };
    let points = [
        point("b\u{1b}[2J", 1000.0, &[(50.0, 4.0), (99.0, f64::NAN)]),
        point("a", 0.5, &[(99.9, 12_345.0)]),
        point("a", 0.0, &[(50.0, 0.0)]),
    ];
    insta::assert_snapshot!(render(&points), @"

    latency against the pause between allocations, on a smaller machine (µs)
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
    pages/s: huge pages a second, were every allocation as fast as p50
    ");
}
