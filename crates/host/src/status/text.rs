//! A status as text for people: the most important first, in a screen.

use kontig_live::lru_gen;
use kontig_live::status::frames::Bound;
use kontig_live::status::purpose::Kind;
use kontig_live::status::zone::Zone;
use kontig_live::status::{Node, Status};
use kontig_terminal::Grid;
use kontig_terminal::wrap;
use kontig_text::{grouped, percent, size, time};

/// The form of the text.
struct Page<'a> {
    s: &'a Status,
    /// Columns; none where lines may be as long as they like.
    width: Option<usize>,
}

/// The whole text; with `orders`, every order of the free lists.
pub fn text(s: &Status, orders: bool, width: Option<usize>) -> String {
    let page = Page { s, width };
    let mut parts = vec![page.heading(), page.leftover(), page.blocks()];
    if orders {
        parts.push(page.orders());
    }
    parts.extend([
        page.purposes(),
        page.pageblocks(),
        page.frames(),
        page.owners(),
        page.pools(),
        page.events(),
        page.stalls(),
        page.settings(),
        page.not_read(),
    ]);
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn none() -> String {
    "–".into()
}

impl Page<'_> {
    fn wrapped(&self, head: &str, text: &str, indent: usize) -> String {
        wrap(head, text, indent, self.width.unwrap_or(100).min(100))
    }

    fn heading(&self) -> String {
        let s = self.s;
        let kernel = s.kernel.as_deref().unwrap_or("of unknown release");
        let up = s.uptime_s.map_or(String::new(), |s| format!(", up {}", time(s)));
        let concluded = if s.page_bytes_concluded { " (concluded from free memory)" } else { "" };
        let heading = format!("Linux {kernel}{up}, pages of {}{concluded}", size(s.page_bytes));
        let heading = self.wrapped("", &heading, 0);
        let left_out = lru_gen::left_out(s.kernel.as_deref()).filter(|_| s.lru_gen_on == Some(true));
        heading + &left_out.map_or(String::new(), |text| self.wrapped("", &text, 0))
    }

    fn leftover(&self) -> String {
        self.s.leftover.as_ref().map_or(String::new(), |left| self.wrapped("", &left.words(), 2))
    }

    fn blocks(&self) -> String {
        let s = self.s;
        let block = size(s.order_bytes);
        let title =
            format!("Blocks of {block} (order {}) that requests get now, without compaction or reclaim", s.order);
        let mut grid =
            Grid::new(["node, zone", "managed", "free", "low mark", "at hand", "score", "unusable", "extfrag"], &[0]);
        for node in &s.nodes {
            for zone in &node.zones {
                grid.row(self.zone(node, zone));
            }
            if node.zones.len() > 1 {
                grid.row(vec![
                    format!("{} all", node.node),
                    size(node.managed_bytes),
                    size(node.free_bytes),
                    String::new(),
                    node.at_hand.map_or_else(none, grouped),
                    node.score.map_or_else(none, grouped),
                ]);
            }
        }
        let mut text = self.wrapped("", &title, 0) + &grid.text(2, self.width);
        let deferred: u64 = s.nodes.iter().flat_map(|node| &node.zones).map(|zone| zone.deferred_bytes).sum();
        if deferred > 0 {
            let said = format!(
                "{} more are free and count as at hand, but are on no list: the kernel initialises or accepts them \
                 when a request finds nothing else.",
                size(deferred)
            );
            text += &self.wrapped("  ", &said, 2);
        }
        if s.nodes.iter().any(|node| node.at_hand.is_none()) {
            let largest = s.nodes.iter().flat_map(|n| &n.zones).filter_map(|z| z.orders.last()).map(|o| o.bytes).max();
            let said = format!(
                "The free lists end at {}: the kernel makes larger blocks by emptying a range when asked for one.",
                size(largest.unwrap_or(0))
            );
            text += &self.wrapped("  ", &said, 2);
        }
        let is_on = |value: &str| value != "0";
        let proactiveness = s.settings.iter().find(|setting| setting.name == "vm.compaction_proactiveness");
        // At which scores is not known of a kernel that does not say which it is.
        let is_set = proactiveness.is_some_and(|setting| setting.value.as_deref().is_some_and(is_on));
        if let Some((above, until)) = s.nodes.iter().find_map(|n| n.compacts_above.zip(n.compacts_until)) {
            let said =
                format!("The kernel compacts a node by itself when its score is above {above}, until it is {until}.");
            text += &self.wrapped("  ", &said, 2);
        } else if s.nodes.iter().any(|n| n.score.is_some()) && !is_set {
            text += &self.wrapped("  ", "The kernel does not compact by itself (vm.compaction_proactiveness).", 2);
        }
        text
    }

    fn zone(&self, node: &Node, zone: &Zone) -> Vec<String> {
        vec![
            format!("{} {}", node.node, zone.zone),
            size(zone.managed_bytes),
            size(zone.free_bytes),
            size(zone.marks.low_bytes),
            zone.at_hand.map_or_else(none, grouped),
            zone.score.map_or_else(none, grouped),
            percent(zone.unusable_index),
            zone.extfrag_index.map_or_else(none, |index| format!("{index:.3}")),
        ]
    }

    fn orders(&self) -> String {
        let mut text = String::new();
        for node in &self.s.nodes {
            for zone in &node.zones {
                text += &format!("Node {}, zone {}: every order\n", node.node, zone.zone);
                let mut grid = Grid::new(["order", "size", "free blocks", "at hand", "unusable", "extfrag"], &[]);
                for o in &zone.orders {
                    grid.row(vec![
                        o.order.to_string(),
                        size(o.bytes),
                        grouped(o.free_blocks),
                        grouped(o.at_hand),
                        percent(o.unusable_index),
                        o.extfrag_index.map_or_else(none, |index| format!("{index:.3}")),
                    ]);
                }
                text += &grid.text(2, self.width);
            }
        }
        text
    }

    fn purposes(&self) -> String {
        let nodes = &self.s.nodes;
        let names: Vec<String> = nodes.iter().map(|node| format!("node {}", node.node)).collect();
        let head = ["used for", "which"].into_iter().chain(names.iter().map(String::as_str));
        let mut grid = Grid::new(head, &[0, 1]);
        let mut kinds: Vec<(Kind, &str)> = Vec::new();
        for purpose in nodes.iter().flat_map(|node| &node.purposes) {
            if !kinds.iter().any(|(kind, _)| *kind == purpose.kind) {
                kinds.push((purpose.kind, purpose.can.text()));
            }
        }
        for (kind, can) in kinds {
            let bytes = |node: &Node| node.purposes.iter().find(|p| p.kind == kind)?.bytes;
            let of = |node: &Node| bytes(node).map_or_else(none, size);
            grid.row([kind.text().to_string(), can.to_string()].into_iter().chain(nodes.iter().map(of)).collect());
        }
        let text = format!("Memory, by the kernel's counters\n{}", grid.text(2, self.width));
        let largest = self.s.caches.iter().flatten().take(4).map(|c| format!("{} {}", c.name, size(c.bytes)));
        let largest: Vec<String> = largest.collect();
        if largest.is_empty() {
            return text;
        }
        text + &self.wrapped("  ", &format!("largest of the kernel's objects: {}", largest.join(", ")), 4)
    }

    fn frames(&self) -> String {
        let mut text = String::new();
        for frames in self.s.frames.iter().flatten() {
            let b = &frames.blocks;
            let title = format!(
                "Node {}, frame by frame: {} blocks of {}",
                frames.node,
                grouped(b.blocks),
                size(self.s.order_bytes)
            );
            text += &self.wrapped("", &title, 0);
            let mut grid = Grid::new(["blocks", "that"], &[1]);
            for (blocks, that) in [
                (b.free, "are free"),
                (b.on_cpus, "are free, a part of them on CPUs' lists"),
                (b.movable, "hold nothing that can not be moved"),
                (b.blocked, "hold something that can not be moved"),
                (b.never, "– of those, memory that was never the allocator's; all others are poisoned"),
                (b.blocked_by_few, "– of those, eight pages of it at most"),
            ] {
                grid.row(vec![grouped(blocks), that.into()]);
            }
            text += &grid.text(2, self.width);
            text += &self.wrapped("  ", &self.bound(&frames.bound), 4);
            let on_cpus_lists = frames.on_cpus_lists.words(self.s.page_bytes);
            text += &on_cpus_lists.map_or(String::new(), |words| self.wrapped("  ", &words, 4));
            let mut grid = Grid::new(["in the way", "blocks", "alone", "memory"], &[0]);
            for kind in &b.kinds {
                let memory = size(kind.pages.saturating_mul(self.s.page_bytes));
                grid.row(vec![kind.kind.into(), grouped(kind.blocks), grouped(kind.alone), memory]);
            }
            if !b.kinds.is_empty() {
                text += &grid.text(2, self.width);
            }
        }
        text
    }

    /// The gain of moving pages, in one line.
    fn bound(&self, b: &Bound) -> String {
        let block = size(self.s.order_bytes);
        let gain = match b.more_at_most {
            0 => format!("no move of pages makes another block of {block}"),
            most => format!(
                "{} more blocks of {block} can be made at most, for {} page moves at least, half of them for {}; {} of \
                 them with the room that the kernel's compaction uses",
                grouped(most),
                grouped(b.fewest_moves),
                grouped(b.fewest_moves_for_half),
                grouped(b.more_in_compactions_room)
            ),
        };
        let (poisoned, saved) = (grouped(b.poisoned), grouped(b.saved));
        format!("{gain}; pages that stay poison {poisoned} blocks, of which perfect placement would save {saved}")
    }

    fn owners(&self) -> String {
        let Some(owners) = &self.s.owners else { return String::new() };
        let shared = owners.shared_bytes.map_or_else(none, size);
        let mut text = self.wrapped("", &format!("Memory by owner; {shared} of it is mapped more than once"), 0);
        let Some(cgroups) = &owners.cgroups else {
            return text + &self.wrapped("  ", "this kernel does not say of which control group a page is", 2);
        };
        let blocks = format!("in blocks of {}", size(self.s.order_bytes));
        let mut grid = Grid::new(["control group", "can be moved", "stays", &blocks], &[0]);
        for group in cgroups.iter().take(MOST_GROUPS) {
            let bytes = [group.movable_bytes, group.staying_bytes].map(size);
            grid.row([vec![group.path.clone()], bytes.to_vec(), vec![grouped(group.in_the_way_of)]].concat());
        }
        text += &grid.text(2, self.width);
        match cgroups.len().saturating_sub(MOST_GROUPS) {
            0 => text,
            more => text + &self.wrapped("  ", &format!("and {more} more (--json shows all)"), 2),
        }
    }

    fn pageblocks(&self) -> String {
        let zones = || self.s.nodes.iter().flat_map(|node| node.zones.iter().map(move |zone| (node, zone)));
        let mut types: Vec<&str> = Vec::new();
        for blocks in zones().filter_map(|(_, zone)| zone.pageblocks.as_ref()).flatten() {
            if blocks.blocks > 0 && !types.contains(&blocks.migratetype.as_str()) {
                types.push(&blocks.migratetype);
            }
        }
        if types.is_empty() {
            return String::new();
        }
        let mut grid = Grid::new(std::iter::once("node, zone").chain(types.iter().copied()), &[0]);
        for (node, zone) in zones() {
            let Some(blocks) = &zone.pageblocks else { continue };
            let of = |name: &&str| {
                let found = blocks.iter().find(|b| b.migratetype == *name);
                found.map_or_else(none, |b| grouped(b.blocks))
            };
            let name = format!("{} {}", node.node, zone.zone);
            grid.row(std::iter::once(name).chain(types.iter().map(of)).collect());
        }
        self.wrapped("", "Pageblocks, by the type the kernel has given them", 0) + &grid.text(2, self.width)
    }

    fn pools(&self) -> String {
        let in_use = |pool: &&kontig_live::status::Pool| {
            pool.pages.is_some_and(|pages| pages > 0) || pool.overcommit.is_some_and(|pages| pages > 0)
        };
        let pools: Vec<_> = self.s.pools.iter().filter(in_use).collect();
        if pools.is_empty() {
            return String::new();
        }
        let mut grid = Grid::new(["pages of", "in the pool", "free", "promised", "more on demand"], &[0]);
        let number = |n: Option<u64>| n.map_or_else(none, grouped);
        for p in pools {
            grid.row(vec![size(p.bytes), number(p.pages), number(p.free), number(p.reserved), number(p.overcommit)]);
        }
        format!("Pools of huge pages\n{}", grid.text(2, self.width))
    }

    fn events(&self) -> String {
        let events = &self.s.events;
        let interval = events.interval_s.map(|s| format!("in {}", time(s)));
        let head = ["counter", "of", "since boot"].into_iter().chain(interval.as_deref());
        let mut grid = Grid::new(head, &[0, 1]);
        for (name, of) in EVENTS {
            let Some(counter) = events.get(name) else { continue };
            let of_interval = interval.is_some().then(|| counter.interval.map_or_else(none, grouped));
            let cells = [name.to_string(), of.to_string(), grouped(counter.since_boot)];
            grid.row(cells.into_iter().chain(of_interval).collect());
        }
        if let Some(p) = &events.pressure {
            let of_interval = interval.is_some().then(|| p.some_interval_s.map_or_else(none, |s| format!("{s:.2}")));
            let cells = ["pressure/memory", "seconds that a task waited"].map(str::to_string);
            grid.row(cells.into_iter().chain([format!("{:.2}", p.some_s)]).chain(of_interval).collect());
        }
        format!("What has happened\n{}", grid.text(2, self.width))
    }

    fn stalls(&self) -> String {
        let Some(stalls) = &self.s.stalls else { return String::new() };
        if let Some(why) = &stalls.not_known {
            let said = format!("Who waited is not known, only how often and how long (above): {why}");
            return self.wrapped("", &said, 2);
        }
        let span = time(stalls.seconds);
        if stalls.processes.is_empty() && stalls.lost_events == 0 {
            let said = format!(
                "Nobody waited for compaction or reclaim in {span}, but perhaps at a control group's limit, which is \
                 not seen"
            );
            return self.wrapped("", &said, 2);
        }
        let mut grid = Grid::new(["process", "pid", "waited for", "order", "attempts", "seconds", "longest"], &[0, 2]);
        for s in &stalls.processes {
            grid.row(vec![
                s.name.clone(),
                s.pid.to_string(),
                s.waited_for.text().into(),
                s.order.to_string(),
                grouped(s.attempts),
                format!("{:.3}", s.seconds),
                format!("{:.3}", s.longest_s),
            ]);
        }
        let text = format!("Who waited, in {span}\n{}", grid.text(2, self.width));
        match stalls.lost_events {
            0 => text,
            n => text + &self.wrapped("  ", &format!("{} events were lost: there were more waits", grouped(n)), 2),
        }
    }

    fn settings(&self) -> String {
        let mut text = String::from("Settings\n");
        for (title, prefix) in [("vm", "vm."), ("transparent_hugepage", "transparent_hugepage/")] {
            let of_this = self.s.settings.iter().filter_map(|s| Some((s.name.strip_prefix(prefix)?, &s.value)));
            let (mut set, mut missing) = (String::new(), Vec::new());
            for (name, value) in of_this {
                match value {
                    // Of sizes that nobody gets, there are many.
                    Some(value) if name.starts_with("hugepages-") && value == "never" => {}
                    Some(value) => set += &format!(" {name}={value}"),
                    None => missing.push(name),
                }
            }
            text += &self.wrapped("  ", &format!("{title}:{set}"), 4);
            if !missing.is_empty() {
                text += &self.wrapped("    ", &format!("this kernel has no {}", missing.join(", ")), 4);
            }
        }
        text
    }

    fn not_read(&self) -> String {
        let Some(first) = self.s.not_read.first() else { return String::new() };
        let unpermitted = self.s.not_read.iter().filter(|f| f.why == "no permission").count();
        let lines =
            self.s.not_read.iter().take(SHOWN).map(|file| self.wrapped("  ", &file.text, 4)).collect::<String>();
        let more = match self.s.not_read.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!("  and {n} more (--json has all)\n"),
        };
        let title = if unpermitted == self.s.not_read.len() && first.why == "no permission" {
            "Root would see more"
        } else {
            "Not read"
        };
        format!("{title}\n{lines}{more}")
    }
}

/// Files that were not read, shown at most.
const SHOWN: usize = 4;

/// Control groups shown at most.
const MOST_GROUPS: usize = 12;

/// The counters shown, in their order.
const EVENTS: [(&str, &str); 11] = [
    ("compact_stall", "direct compactions"),
    ("compact_fail", "direct compactions that failed"),
    ("allocstall", "direct reclaims"),
    ("compact_daemon_wake", "wake-ups of kcompactd"),
    ("pgmigrate_success", "pages moved"),
    ("pgmigrate_fail", "pages that could not be moved"),
    ("thp_fault_alloc", "huge pages at first touch"),
    ("thp_fault_fallback", "small pages instead of huge ones"),
    ("thp_collapse_alloc", "huge pages by khugepaged"),
    ("thp_split_page", "huge pages split"),
    ("htlb_buddy_alloc_fail", "pages refused to pools"),
];
