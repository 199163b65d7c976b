//! The counts of a history, a row each: where a count comes from, and where it is shown.
//!
//! `report`, `compare`, the page of time lines and the series for Prometheus all go by these rows:
//! a new count is a variant and a row.

/// Counts, which only grow until the next boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Count {
    /// Waits for compaction: each attempt of a request is one.
    WaitedForCompaction,
    /// Seconds in which some task, or all, waited for memory.
    SomeWaited,
    AllWaited,
    /// Waits for reclaim, counted alike.
    WaitedForReclaim,
    /// Huge pages given at the first touch, and small ones given instead.
    Given,
    Refused,
    /// Pages moved, whatever for.
    Moved,
    /// Times that a kernel thread was woken to compact.
    Woken,
    /// Seconds of a CPU that the kernel's threads took.
    Kcompactd,
    Kswapd,
    Khugepaged,
}

/// The file that a count is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A counter of `/proc/vmstat`.
    Counter(&'static str),
    /// A line of `/proc/pressure/memory`.
    Pressure(&'static str),
    /// The threads of this name.
    Thread(&'static str),
}

/// A count as it is told of a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// Its name in JSON.
    pub json: &'static str,
    /// Its name where two periods are compared; `None` if it is not.
    pub title: Option<&'static str>,
    /// The payer, and what for; `None` of what is no price.
    pub paid: Option<(&'static str, &'static str)>,
}

/// A picture of several counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chart {
    pub title: &'static str,
    /// The time that a count is told for.
    pub seconds: f64,
}

/// Series of one name for Prometheus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Series {
    pub name: &'static str,
    pub help: &'static str,
    pub label: Option<&'static str>,
}

/// A row: all that is known of a count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    pub count: Count,
    pub source: Source,
    pub told: Option<Told>,
    /// The picture, and the name of the line in it.
    pub line: Option<(Chart, &'static str)>,
    /// The series, and the label's value.
    pub series: Option<(Series, &'static str)>,
}

impl Source {
    /// Whether seconds are counted, which are told as a share of the time; else times an hour.
    pub fn is_time(self) -> bool {
        !matches!(self, Source::Counter(_))
    }

    /// A rate as it is told: `a_second` itself is a share of the time, if seconds are counted.
    pub fn told(self, a_second: f64) -> f64 {
        if self.is_time() { a_second } else { a_second * 3600.0 }
    }
}

const WAITED: Chart = Chart { title: "Waits of requests, a minute", seconds: 60.0 };
const TOUCHES: Chart = Chart { title: "First touches of memory, a minute", seconds: 60.0 };
const MOVED: Chart = Chart { title: "Pages moved, a minute", seconds: 60.0 };
const TIME_WAITED: Chart = Chart { title: "Share of the time in which tasks waited for memory", seconds: 1.0 };
const CPU: Chart = Chart { title: "Share of a CPU for the kernel's threads", seconds: 1.0 };

/// The pictures in their order on the page.
pub const CHARTS: [Chart; 5] = [WAITED, TOUCHES, MOVED, TIME_WAITED, CPU];

const STALLS: Series = Series {
    name: "kontig_allocation_stalls_total",
    help: "Waits of requests, each attempt one: for compaction, or for reclaim.",
    label: Some("waited_for"),
};
const FAULTS: Series = Series {
    name: "kontig_huge_page_faults_total",
    help: "First touches that wanted a huge page: those that got one, and those that got small pages instead \
           (fallback).",
    label: Some("result"),
};
pub const PAGES_MOVED: Series = Series {
    name: "kontig_pages_moved_total",
    help: "Pages moved, by anyone and for any reason.",
    label: Some("result"),
};
const WAKES: Series = Series {
    name: "kontig_kcompactd_wakes_total",
    help: "Times that a kernel thread was woken to compact.",
    label: None,
};
const CPU_SECONDS: Series = Series {
    name: "kontig_kernel_thread_cpu_seconds_total",
    help: "CPU time of the kernel's threads that make room, of all nodes.",
    label: Some("thread"),
};

/// The series in their order.
pub const SERIES: [Series; 5] = [STALLS, FAULTS, PAGES_MOVED, WAKES, CPU_SECONDS];

const fn told(json: &'static str, title: &'static str, who: &'static str, what: &'static str) -> Option<Told> {
    Some(Told { json, title: Some(title), paid: Some((who, what)) })
}

/// All counts, those that matter most to a program first, in the order of [`Count`].
pub const ROWS: [Row; 11] = [
    Row {
        count: Count::WaitedForCompaction,
        source: Source::Counter("compact_stall"),
        told: told("waited_for_compaction", "waits for compaction, an hour", "requests", "waits for compaction"),
        line: Some((WAITED, "for compaction")),
        series: Some((STALLS, "compaction")),
    },
    Row {
        count: Count::SomeWaited,
        source: Source::Pressure("some"),
        told: told("some_waited_share", "time in which some task waited for memory", "some task", "waited for memory"),
        line: Some((TIME_WAITED, "some")),
        series: None,
    },
    Row {
        count: Count::AllWaited,
        source: Source::Pressure("full"),
        told: told("all_waited_share", "time in which all tasks waited for memory", "all tasks", "waited for memory"),
        line: Some((TIME_WAITED, "all")),
        series: None,
    },
    Row {
        count: Count::WaitedForReclaim,
        source: Source::Counter("allocstall"),
        told: told("waited_for_reclaim", "waits for reclaim, an hour", "requests", "waits for reclaim"),
        line: Some((WAITED, "for reclaim")),
        series: Some((STALLS, "reclaim")),
    },
    Row {
        count: Count::Given,
        source: Source::Counter("thp_fault_alloc"),
        told: Some(Told { json: "huge_pages_given", title: None, paid: None }),
        line: Some((TOUCHES, "got a huge page")),
        series: Some((FAULTS, "huge")),
    },
    Row {
        count: Count::Refused,
        source: Source::Counter("thp_fault_fallback"),
        told: None,
        line: Some((TOUCHES, "got small ones instead")),
        series: Some((FAULTS, "fallback")),
    },
    Row {
        count: Count::Moved,
        source: Source::Counter("pgmigrate_success"),
        told: told("pages_moved", "pages moved, an hour", "everybody", "pages were moved"),
        line: Some((MOVED, "by anyone")),
        series: Some((PAGES_MOVED, "success")),
    },
    Row {
        count: Count::Woken,
        source: Source::Counter("compact_daemon_wake"),
        told: None,
        line: None,
        series: Some((WAKES, "")),
    },
    Row {
        count: Count::Kcompactd,
        source: Source::Thread("kcompactd"),
        told: told("kcompactd_cpu_share", "a CPU's time for kcompactd", "kcompactd", "compacted"),
        line: Some((CPU, "kcompactd")),
        series: Some((CPU_SECONDS, "kcompactd")),
    },
    Row {
        count: Count::Kswapd,
        source: Source::Thread("kswapd"),
        told: told("kswapd_cpu_share", "a CPU's time for kswapd", "kswapd", "reclaimed"),
        line: Some((CPU, "kswapd")),
        series: Some((CPU_SECONDS, "kswapd")),
    },
    Row {
        count: Count::Khugepaged,
        source: Source::Thread("khugepaged"),
        told: told("khugepaged_cpu_share", "a CPU's time for khugepaged", "khugepaged", "collapsed"),
        line: Some((CPU, "khugepaged")),
        series: Some((CPU_SECONDS, "khugepaged")),
    },
];

impl Count {
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_finds_its_row_and_each_row_its_picture_and_series() {
        for (nr, row) in ROWS.iter().enumerate() {
            assert_eq!((row.count as usize, row.count.row().count), (nr, row.count));
            assert!(row.line.is_none_or(|(chart, _)| CHARTS.contains(&chart)), "{row:?}");
            assert!(row.series.is_none_or(|(series, _)| SERIES.contains(&series)), "{row:?}");
            assert_eq!(row.series.map(|(series, _)| series.label.is_some()), row.series.map(|(_, l)| !l.is_empty()));
        }
    }
}
