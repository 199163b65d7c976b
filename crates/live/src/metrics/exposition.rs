//! Prometheus's text format, version 0.0.4: what its server and node_exporter's textfile collector
//! read.

use std::fmt::Write;

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether values only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Counter,
    Gauge,
}

/// The series of one name.
#[derive(Clone, PartialEq, Debug)]
pub struct Family {
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    /// Labels and the value of each series.
    pub series: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Family {
    /// A family without series.
    pub fn new(name: &'static str, kind: Kind, help: &'static str) -> Family {
        Family { name, help, kind, series: Vec::new() }
    }

    /// Adds a series with these labels.
    pub fn add(&mut self, labels: Vec<(&'static str, String)>, value: f64) {
        self.series.push((labels, value));
    }
}

/// The families as text; those without series are left out.
pub fn text(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.series.is_empty()) {
        let kind = if family.kind == Kind::Counter { "counter" } else { "gauge" };
        let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(text, "# HELP {} {help}\n# TYPE {} {kind}", family.name, family.name);
        for (labels, value) in &family.series {
            let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escaped(value));
            let labels: Vec<String> = labels.iter().map(label).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{}{labels} {value}", family.name);
        }
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_help_its_type_and_its_series_with_labels() {
        let mut family = Family::new("kontig_x_total", Kind::Counter, "Seconds of \\ it.");
        family.add(vec![("node", "0".into()), ("zone", "a\"b".into())], 2.5);
        family.add(Vec::new(), 1e9);
        let none = Family::new("kontig_y", Kind::Gauge, "Nothing.");
        assert_eq!(
            text(&[family, none]),
            "# HELP kontig_x_total Seconds of \\\\ it.\n# TYPE kontig_x_total counter\n\
             kontig_x_total{node=\"0\",zone=\"a\\\"b\"} 2.5\nkontig_x_total 1000000000\n"
        );
    }
}
