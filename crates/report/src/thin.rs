//! Thins long series for drawing, without losing a peak.
//!
//! Each stretch of points is replaced by its lowest and highest, in order. An average or every n-th
//! point would hide a spike of one sample.

/// At most about `limit` of `points`, first and last kept.
pub(crate) fn thin(points: &[(u64, f64)], limit: usize) -> Vec<(u64, f64)> {
    if points.len() <= limit.max(4) {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(limit.max(4) / 2);
    let mut out = vec![points[0]];
    for part in points[1..points.len() - 1].chunks(stretch) {
        let by_value = |a: &&(u64, f64), b: &&(u64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (part.iter().min_by(by_value), part.iter().max_by(by_value));
        if let (Some(&low), Some(&high)) = (low, high) {
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            out.push(first);
            if first != second {
                out.push(second);
            }
        }
    }
    out.push(points[points.len() - 1]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_survives() {
        let mut points: Vec<(u64, f64)> = (0..10_000).map(|t| (t, (t as f64 * 0.01).sin())).collect();
        points[7_321].1 = 55.0;
        let thinned = thin(&points, 600);
        assert!(thinned.len() <= 602 && thinned.contains(&(7_321, 55.0)));
        assert_eq!((thinned[0], thinned[thinned.len() - 1]), (points[0], points[9_999]));
        assert!(thinned.windows(2).all(|w| w[0].0 <= w[1].0));
    }

    #[test]
    fn short_series_are_left_alone() {
        assert_eq!(thin(&[(1, 2.0), (3, 4.0)], 600), [(1, 2.0), (3, 4.0)]);
        assert!(thin(&[], 600).is_empty());
    }
}
