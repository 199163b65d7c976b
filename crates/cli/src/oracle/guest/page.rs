//! The comparison as a page: every row of every table, and what is known of the differences.

use super::change::settings;
use super::{Group, Lab, build, in_words};
use kontig_oracle::guest::compare::{Row, Spread, Verdict};
use kontig_text::markdown::{self, Align, head};

const HEAD: &str = "# Under pressure: the counters of kernels and of the lab

A program runs the same steps on a real kernel and in the lab, on a machine of 512 MiB (pattern bursts: 2 GiB) with two
disks, one of them with swap. The counters of `/proc/vmstat` are compared. A cell has the mean over the seeds and, in
brackets, the lowest and the highest; another seed chooses other pages. *inside* is within 15 % of the kernel's mean,
for `extfrag*` (pages taken from another type's blocks) within a factor of 2. `–`: the lab does not count it. Events are
counted from the first phase to the last; levels (`nr_*`) are means over the ends of the phases. The length of phases is
not judged.

`kontig oracle guest --out docs/generated/pressure.md` makes this page;
[`oracle/guest/recorded`](../../oracle/guest/recorded/README.md) says how the recordings are made.

";

/// Known causes of differences, none of them corrected for.
const KNOWN: &str = "## Known differences

* Levels start with what the kernel had before the pattern (column *at first*): its slabs, and pages on the LRU lists.
  As many of these are active, unmapped or dirty in the lab. The kernel's stacks, page tables and mapped pages are in
  use in the lab and in no counter.
* Files of 7.2 are in large folios on both sides. In pattern file readahead compacts for them, on the kernel mostly in
  vain, in the lab mostly not (`compact_fail`, `compact_success`): of what a run scans, most is scanned by those that
  fail. No trial showed why fewer of them fail.
* A file system's metadata (bitmaps, block tables, inodes that are written) is on no list in the lab, except for inodes
  that are read and for the pages that are there at first. The dirty ones of these are written block by block when
  somebody waits for them, which leaves the page dirty and wakes no flusher: they stay dirty on both sides.
* Interrupts and completions take no time of their own in the lab, and pages reach swap sooner (`nr_writeback`,
  `nr_vmscan_immediate_reclaim`): the kernel merges neighbours into one request.
* With one CPU, kswapd's turn decides who reclaims: where kswapd and a fault compete for milliseconds, the shares of
  direct reclaim differ (fork, anon on 7.2). The lab shares a CPU by the rules of one scheduler for both kernels, and
  has no tick: a turn ends where it ends.
* In pattern bursts the lab keeps more file pages active than the kernel and swaps out 1.4 times as many pages. Large
  folios of files are not the cause: the lab did the same with single pages.
* In generations (`lru_gen.enabled` = 7) a folio costs kswapd as much as a page in the lab, which is less than the
  kernel takes for it. In pattern anon three times as many pages that come back are of the working set
  (`workingset_activate_anon`); the cause is not known.
* On less than 512 MiB the kernel disables huge pages at boot with all their settings, and these guests set `enabled`
  alone: their huge faults neither reclaim nor compact.

";

pub(super) fn markdown(groups: &[Group]) -> String {
    let mut out = String::from(HEAD);
    let columns = ["pattern", "Linux", "seeds", "inside", "outside", "not counted"];
    out += &head(columns.map(|name| (name, Align::Left)));
    let of_steps = || groups.iter().filter(|group| !group.is_build());
    for group in of_steps() {
        let rows = group.rows();
        let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
        let [inside, outside, missing] = [Verdict::Inside, Verdict::Outside, Verdict::Missing].map(count);
        let (version, seeds) = (&group.guests[0].version, group.guests.len());
        let kernel = format!("{version}{}", group.settings());
        let counts = [seeds, inside, outside, missing].map(|n| n.to_string());
        out += &markdown::row([group.pattern.clone(), kernel].into_iter().chain(counts));
    }
    out.push('\n');
    out += KNOWN;
    settings(groups).iter().filter(|setting| !setting.is_of_builds()).for_each(|of| out += &of.markdown());
    of_steps().for_each(|group| out += &table(group));
    out += &builds(groups);
    markdown::wrapped(&out)
}

fn table(group: &Group) -> String {
    let mut out = heading(group);
    let figures = ["at first", "kernel", "laboratory", "ratio"].map(|name| (name, Align::Right));
    out += &head([("counter", Align::Left)].into_iter().chain(figures).chain([("", Align::Left)]));
    for row in group.rows() {
        let verdict = match row.verdict() {
            Verdict::Inside => "inside",
            Verdict::Outside => "**outside**",
            Verdict::Missing => "",
        };
        line(&mut out, &format!("`{}`", row.counter), &row, in_words, verdict);
    }
    for row in group.times() {
        let ms = |s: Spread| in_words(Spread { mean: s.mean / 1e6, least: s.least / 1e6, most: s.most / 1e6 });
        line(&mut out, &format!("ms of {}", row.counter), &row, ms, "");
    }
    out.push('\n');
    out
}

/// The title of a table, and what was run on both sides.
fn heading(group: &Group) -> String {
    let what = group.what();
    let mut out = format!(
        "## {}, Linux {}{}\n\n{}{}.",
        group.pattern,
        group.guests[0].version,
        group.settings(),
        what[..1].to_uppercase(),
        &what[1..]
    );
    match &group.lab {
        Lab::Failed(why) => out += &format!(" The laboratory's side is missing: {why}."),
        Lab::NotAsked => out += " The laboratory was not asked.",
        Lab::Runs(_) => out += &format!(" Laboratory: machine `{}`, profile {}.", group.machine(), group.series),
    }
    out + "\n\n"
}

/// A section for the builds alone.
fn builds(groups: &[Group]) -> String {
    let mut out = String::new();
    for group in groups.iter().filter(|group| group.is_build()) {
        if out.is_empty() {
            out += &format!("## A build under pressure\n\n{}\n\n", build::MEANING);
        }
        out += &format!("#{}", heading(group));
        if let Some(built) = &group.guests[0].built {
            let (sources, compiler) = (&built.sources, &built.compiler);
            let seeds: Vec<String> = group.seeds().iter().map(u64::to_string).collect();
            out += &format!("Linux {sources} was built by GCC {compiler}, seeds {}.\n\n", seeds.join(", "));
        }
        out += &build::markdown(&group.figures());
    }
    settings(groups)
        .iter()
        .filter(|setting| setting.is_of_builds())
        .for_each(|of| out += &format!("#{}", of.markdown()));
    out
}

fn line(out: &mut String, name: &str, row: &Row, words: impl Fn(Spread) -> String, verdict: &str) {
    let ratio = row.ratio().map_or("–".into(), |ratio| format!("{ratio:.2}"));
    let lab = row.lab.map_or("–".into(), &words);
    let at_first = row.at_first.map_or(String::new(), |at_first| format!("{:.0}", at_first.mean));
    *out += &markdown::row([name, &at_first, &words(row.kernel), &lab, &ratio, verdict]);
}
