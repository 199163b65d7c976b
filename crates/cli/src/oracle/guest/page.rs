//! The comparison as a page: every row of every table, and what is known of the differences.

use super::change::settings;
use super::words::marked;
use super::{Group, Lab, build, in_words, shares};
use kontig_oracle::guest::compare::{Row, Spread};
use kontig_text::markdown::{self, Align, head};

const HEAD: &str = "# Under pressure: the counters of kernels and of the lab

A program runs the same steps on a real kernel and in the lab, on a machine of 512 MiB (pattern bursts: 2 GiB) with two
disks, one of them with swap. The counters of `/proc/vmstat` are compared, and `extfrag*`: pages taken from another
type's blocks. A cell has the mean over the seeds and, in brackets, the lowest and the highest; another seed chooses
other pages. Events are counted from the first phase to the last; levels (`nr_*`) are means over the ends of the phases.

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
* A file system's metadata (bitmaps, block tables, inodes that are written) is on no list in the lab, except for
  inodes that are read and for the pages that are there at first. The dirty ones of these are written block by block
  when somebody waits for them, which leaves the page dirty and wakes no flusher: in file and costs they stay dirty on
  both sides, in the others mostly in the lab alone.
* Interrupts and completions take no time of their own in the lab: their time is part of the cost of what asked for
  them, and in the kernel whoever has the CPU pays.
* With one CPU, kswapd's turn decides who reclaims. The lab shares a CPU by CFS for 6.1, without a tick (a trial with
  turns that end at ticks of 4 ms changes fork little), and by deadlines for 7.2, whose timers end slices and whose
  wake-ups do not take the CPU from kswapd. In trials with nearly today's costs 77 % of 7.2's events were inside
  with that, 68 with CFS, 74 with deadlines looked at with each tick, and 69 where kswapd keeps the CPU for another.
* Every 500 ms kcompactd looks whether to compact by itself; where in this time a pattern begins, the recordings do
  not say. In trials in which it began 100 to 400 ms later in the lab, before swapping had its measured cost, fork on
  7.2 scanned 49,000 to 67,000 pages for migration instead of 100,000 (42,000 now; the kernel 48,000), and
  `compact_migrate_scanned` of mixed on 6.1 stayed at 15,000 to 22,000 (the kernel: 1,057), with single runs of fewer
  than 1,000.
* Costs are the same for both kernels: the mean where both were measured, else one kernel's or another machine's.
  kswapd takes 1.09 times as long for a page written on 7.2 (swap-costs, phase out), 1.4 times if scanning takes as long
  on both. In the lab anon's phase in-order lasts 0.87 of 7.2's time and about as long as 6.1's; half of the difference
  between the kernels is swap-out, half faults.
* In pattern bursts kswapd takes 1.5 times the kernel's CPU time in 0.6 times as many balancings (`pageoutrun`), with
  vm.defrag_mode = 1 1.4 times in 0.7 times as many. The cause is not known.
* Free pages on the CPU's lists decide much. At first 7.2 has 10,400 there. Some 7,500 lie in unmovable pageblocks,
  where the kernel counts that many fewer as its own than are in use, and a program's single pages leave them alone: a
  process that touches 16,384 pages leaves 7,968 (costs, phase faults). The lab puts as many there. With movable pages
  in their place 52 % of the events in generations were inside and 21 % of compaction, and in file faults never
  reclaimed or compacted. The balance is fine: with 1,000 pages too many there, and an unmovable pageblock more, 60 %
  and 53 % were inside, and 79 % and 62 % without generations.
* In generations (`lru_gen.enabled` = 7) a walk of page tables is one step in the lab. On the kernel, in swap-costs'
  phase heap, kswapd is on the CPU for 33 ms and scans 7 pages, so it walks, and the process goes on beside it. At the
  end of phase out 26,000 more pages of the heap than in the lab are in young generations there, all 3,136 of zone DMA
  among them, which the process takes late: the first walk did not see them as used, a later one did. So phase in
  makes far more pages young in the lab (`pgrefill`), and in anon fewer stalls reclaim. If each entry of a walk takes
  332 ns, as kswapd's time in heap has it, instead of 75, phase heap lasts as long as the kernel's (405 ms instead of
  355, the kernel 401), but kswapd takes 2.5 s of swap-costs instead of 1.8 (the kernel 2.0), and one event fewer is
  inside. A trial in which a page table keeps no mark of use of its own, so that what a walk passed over is looked at
  again, changes nothing. After anon kcompactd compacts on the kernel in two runs of three, in the lab in none.
* On less than 512 MiB the kernel disables huge pages at boot with all their settings, and these guests set `enabled`
  alone: their huge faults neither reclaim nor compact.

";

pub(super) fn markdown(groups: &[Group]) -> String {
    let mut out = String::from(HEAD);
    let of_steps = || groups.iter().filter(|group| !group.is_build());
    let judged = |group: &Group| shares::Judged {
        pattern: group.pattern.clone(),
        kernel: format!("{}{}", group.guests[0].version, group.settings()),
        seeds: group.guests.len(),
        rows: group.rows(),
    };
    out += &shares::markdown(&of_steps().map(judged).collect::<Vec<_>>());
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
        let verdict = marked(row.verdict());
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
