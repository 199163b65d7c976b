//! The tables, column by column.

use crate::column::Kind::{Flag, Number, Text, Whole};
use crate::column::{Column, Table};

/// All tables, in the order in which they are written.
pub const TABLES: [&Table; 7] = [&RUNS, &SETTINGS, &FIGURES, &ROUNDS, &PERCENTILES, &SERIES, &COUNTERS];

/// The percentiles of every distribution; the last is the longest operation.
pub const PERCENTILES_KEPT: [f64; 11] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];

const fn text(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Text, meaning)
}

const fn whole(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Whole, meaning)
}

const fn number(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Number, meaning)
}

const fn flag(name: &'static str, meaning: &'static str) -> Column {
    Column::new(name, Flag, meaning)
}

const RUN: Column = text("run", "the run's key in `runs`");
const PHASE: Column = text("phase", "the phase of the run; `total`: from the machine's start to the run's end");
const UNIT: Column = text("unit", "the unit of `value`").null("of a plain number");
const FIGURE: Column = text("figure", "its name in kontig's own tables");
const VALUE: Column = number("value", "the figure").unit("see `unit`").null("if nothing was measured");
const MISSING: Column =
    text("missing", "why there is no value").null("if there is a value, or none could have been expected");
const BETTER: Column = text("better", "`lower`, `higher` or `neither`");
const MERGE: Column = text(
    "merge",
    "how several seeds' values become one: `median`, `mean`, `stddev`, `sum`, `min`, `max`; a `pooled` one comes from \
     all their samples together, and no mean of it is right",
);

pub(crate) const RUNS: Table = Table {
    name: "runs",
    row: "a run: one variant with one seed",
    columns: &[
        text("run", "the key: a hash of `inputs` and of the three names that follow"),
        text("experiment", "the experiment or workload, as `kontig list` has it"),
        text("case", "the case of the experiment").null("if it has no cases"),
        text("variant", "the column of kontig's own tables"),
        text("machine", "the machine's name"),
        whole("memory_bytes", "memory that the page allocator manages").unit("bytes"),
        whole("nodes", "NUMA nodes"),
        whole("cpus", "CPU threads"),
        text("profile", "the kernel generation"),
        text("switches", "patches on top of it, with spaces between").null("if there are none"),
        whole("seed", "the seed of the run's random numbers"),
        whole("rounds", "measurements on the machine, one after the other without a reboot"),
        flag("random", "whether anything depended on the seed"),
        whole("simulated_ns", "simulated time from boot to the run's end").unit("ns"),
        text("ended", "rules that ended tasks before their work was done, with `; ` between")
            .null("if all work was done"),
        text(
            "inputs",
            "a hash of machine, host snapshot, profile, sysctls, workload, rounds, seed and version: the same run \
             under two names has it twice",
        ),
        text("kontig", "the version that made the run"),
    ],
};

pub(crate) const SETTINGS: Table = Table {
    name: "settings",
    row: "a sysctl or a parameter of the workload that a run was given; defaults have none",
    columns: &[
        RUN,
        text("kind", "`sysctl` or `parameter`"),
        text("name", "its name, such as `vm.compaction_proactiveness`; a parameter's in full, such as `measure.size`"),
        text("value", "the value as it was written"),
        number("number", "the same as a number, a size in bytes").null("if it is none"),
        flag("without_effect", "whether it differs from boot's value, and yet changed no decision of the run")
            .null("of a parameter"),
    ],
};

pub(crate) const FIGURES: Table = Table {
    name: "figures",
    row: "a figure of a run; those of one round of several are in `rounds`",
    columns: &[RUN, PHASE, FIGURE, UNIT, VALUE, MISSING, BETTER, MERGE],
};

const ROUND: Column = whole("round", "the round, from 1");

pub(crate) const ROUNDS: Table = Table {
    name: "rounds",
    row: "a figure of one of several rounds; runs of a single round have no rows",
    columns: &[RUN, ROUND, PHASE, FIGURE, UNIT, VALUE, MISSING, BETTER, MERGE],
};

pub(crate) const PERCENTILES: Table = Table {
    name: "percentiles",
    row: "a percentile of a distribution of single operations",
    columns: &[
        RUN,
        ROUND.null("of a run of a single round"),
        PHASE,
        text("distribution", "the operations, such as `hugepage alloc latency`"),
        number("percentile", "1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 and 100").unit("%"),
        UNIT,
        number("value", "not exceeded by this share of the operations; exact at 100, else within a thousandth")
            .unit("see `unit`"),
        whole("samples", "operations in the distribution"),
        whole("samples_needed", "with fewer samples, they bound this percentile with less than 95 % confidence"),
    ],
};

pub(crate) const SERIES: Table = Table {
    name: "series",
    row: "a value at one moment of a run",
    columns: &[
        RUN,
        text("series", "its name, such as `free memory`"),
        UNIT,
        whole("at_ns", "simulated time since boot").unit("ns"),
        number("value", "the value at that moment").unit("see `unit`"),
    ],
};

pub(crate) const COUNTERS: Table = Table {
    name: "counters",
    row: "a counter of `/proc/vmstat`",
    columns: &[
        RUN,
        ROUND.null("over all measured phases of the run"),
        text("counter", "the kernel's name for it"),
        whole("value", "how far it rose in the measured phases; a level's value at their end").unit("pages or events"),
    ],
};
