//! Random texts: what is printed parses to the same values, and prints the same text again.

use kontig_procfs::buddyinfo::FreeBlocks;
use kontig_procfs::extfrag::ZoneIndex;
use kontig_procfs::meminfo::{Field, Value};
use kontig_procfs::pagetypeinfo::{BlockTable, FreeOfType, Listed, NodeTypes};
use kontig_procfs::pressure::{Average, Stall};
use kontig_procfs::slabinfo::Cache;
use kontig_procfs::zoneinfo::{PageSet, Populated, Zone};
use kontig_procfs::{
    BuddyInfo, Choice, Counters, ExtfragIndex, MemInfo, PageTypeInfo, Pressure, SlabInfo, Smaps, UnusableIndex, VmStat,
    ZoneAt, ZoneInfo,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A value small or as large as the kernel's counters get.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..1000u64, any::<u64>()]
}

fn word() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9_]{0,30}"
}

fn at() -> impl Strategy<Value = ZoneAt> {
    (0..1100u32, "[A-Z][A-Za-z0-9]{1,9}").prop_map(|(node, zone)| ZoneAt { node, zone })
}

fn counters(names: impl Strategy<Value = Vec<String>>) -> impl Strategy<Value = Counters> {
    names.prop_flat_map(|names| {
        let len = names.len();
        (Just(names), vec(number(), len)).prop_map(|(names, values)| names.into_iter().zip(values).collect())
    })
}

/// The same names for every zone, as in one kernel.
fn zoneinfo() -> impl Strategy<Value = ZoneInfo> {
    let names = || vec(word(), 1..8);
    let kernel = (names(), names(), names(), names(), 1..5usize);
    kernel.prop_flat_map(|(sizes, items, lists, last, cpus)| {
        let last = [last, vec!["start_pfn".to_string()]].concat();
        let cpu = (any::<u16>(), counters(Just(lists)), proptest::option::of(number()));
        let cpu = cpu.prop_map(|(cpu, lists, stat_threshold)| PageSet { cpu: cpu.into(), lists, stat_threshold });
        let populated = (counters(Just(items.clone())), vec(cpu, cpus), counters(Just(last)));
        let populated = populated.prop_map(|(counters, cpus, last)| Populated { counters, cpus, last });
        let stats = proptest::option::of(counters(Just(items)));
        let zone = (at(), stats, number(), counters(Just(sizes)), vec(number(), 1..6), populated);
        let zone = zone.prop_map(|(at, node_stats, free, sizes, protection, populated)| Zone {
            at,
            node_stats,
            free,
            sizes,
            protection,
            populated: Some(populated),
        });
        vec(zone, 1..5).prop_map(|zones| ZoneInfo { zones })
    })
}

fn pagetypeinfo() -> impl Strategy<Value = PageTypeInfo> {
    let shape = (vec("[A-Z][A-Za-z]{0,11}", 1..7), vec(at(), 1..4), 1..12usize, proptest::bool::ANY);
    let node = shape.prop_filter("zones differ", |(_, zones, ..)| zones.windows(2).all(|w| w[0] != w[1]));
    let node = node.prop_flat_map(|(types, zones, orders, mixed)| {
        let listed = (number(), any::<bool>());
        let listed = listed.prop_map(|(blocks, more)| Listed { blocks, more: more && blocks >= 100_000 });
        let free = vec(vec(listed, orders), types.len() * zones.len());
        let tables = vec(vec(vec(number(), types.len()), zones.len()), 1 + usize::from(mixed));
        (Just((types, zones, orders)), free, tables, 1..20u32, number())
    });
    let node = node.prop_map(|((types, zones, orders), free, tables, block_order, pages_per_block)| {
        let rows = zones.iter().flat_map(|at| types.iter().map(move |t| (at.clone(), t.clone())));
        let row = |((at, migratetype), of_order)| FreeOfType { at, migratetype, of_order };
        let table = |(heading, rows): (&str, Vec<Vec<u64>>)| BlockTable {
            heading: heading.into(),
            types: types.clone(),
            zones: zones.iter().cloned().zip(rows).collect(),
        };
        let headings = ["Number of blocks type", "Number of mixed blocks"];
        NodeTypes {
            block_order,
            pages_per_block,
            orders,
            free: rows.zip(free).map(row).collect(),
            blocks: headings.into_iter().zip(tables).map(table).collect(),
        }
    });
    vec(node, 1..3).prop_map(|nodes| PageTypeInfo { nodes })
}

fn meminfo() -> impl Strategy<Value = MemInfo> {
    vec(("[A-Z][A-Za-z0-9_()]{0,25}", number(), any::<bool>()), 1..50).prop_map(|fields| {
        let field = |(name, n, kb)| Field { name, value: if kb { Value::Kb(n) } else { Value::Pages(n) } };
        MemInfo { fields: fields.into_iter().map(field).collect() }
    })
}

fn cache() -> impl Strategy<Value = Cache> {
    let name = "[a-z:]([a-z0-9_() -]{0,24}[a-z)])?";
    (name, [(); 5].map(|()| number()), [(); 6].map(|()| number()), "(globalstat [0-9]{1,4})?").prop_map(
        |(name, [active_objects, objects, object_size, objects_per_slab, pages_per_slab], [a, b, c, d, e, f], rest)| {
            Cache {
                name,
                active_objects,
                objects,
                object_size,
                objects_per_slab,
                pages_per_slab,
                tunables: [a, b, c],
                active_slabs: d,
                slabs: e,
                shared_available: f,
                rest,
            }
        },
    )
}

/// A host's smaps with a part replaced by something else.
fn damaged_smaps() -> impl Strategy<Value = String> {
    let text = include_str!("../../../live/hosts/6.12.txt");
    let smaps = text.split("=== ").find_map(|t| t.strip_prefix("/proc/self/smaps\n")).expect("a host's smaps");
    (0..smaps.len(), 0..200usize, "[0-9a-fA-Z :\n-]{0,40}").prop_map(move |(at, len, instead)| {
        let end = (at + len).min(smaps.len());
        format!("{}{instead}{}", &smaps[..at], &smaps[end..])
    })
}

proptest! {
    #[test]
    fn smaps_with_any_damage_is_read_or_refused_at_one_of_its_lines(text in damaged_smaps()) {
        if let Err(e) = Smaps::parse("smaps", &text) {
            prop_assert!((1..=text.lines().count().max(1)).contains(&e.line), "{e}");
        }
    }
}

fn indices() -> impl Strategy<Value = Vec<ZoneIndex>> {
    let index = prop_oneof![-1000..1001i64, any::<i32>().prop_map(i64::from)];
    (1..12usize).prop_flat_map(move |orders| {
        let zone = (at(), vec(index.clone(), orders)).prop_map(|(at, of_order)| ZoneIndex { at, of_order });
        vec(zone, 1..5)
    })
}

macro_rules! survives {
    ($($name:ident: $type:ty, $strategy:expr;)*) => {
        proptest! {
            $(#[test]
            fn $name(value in $strategy) {
                let text = value.to_string();
                let parsed = <$type>::parse("file", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                prop_assert_eq!(&parsed, &value, "{}", text);
                prop_assert_eq!(parsed.to_string(), text);
            })*
        }
    };
}

survives! {
    buddyinfo_survives: BuddyInfo, (1..12usize).prop_flat_map(|orders| {
        let zone = (at(), vec(number(), orders)).prop_map(|(at, of_order)| FreeBlocks { at, of_order });
        vec(zone, 1..6).prop_map(|zones| BuddyInfo { zones })
    });
    pagetypeinfo_survives: PageTypeInfo, pagetypeinfo();
    zoneinfo_survives: ZoneInfo, zoneinfo();
    vmstat_survives: VmStat, counters(vec(word(), 1..50)).prop_map(VmStat);
    meminfo_survives: MemInfo, meminfo();
    slabinfo_survives: SlabInfo, ("[0-9][.][0-9]( [(]statistics[)])?", vec(cache(), 0..8)).prop_map(|(version, all)| {
        SlabInfo { version, columns: "# name            <active_objs>".into(), caches: all }
    });
    pressure_survives: Pressure, vec((word(), vec((1..1000u32, 0..10_001u32), 1..5), number()), 1..3).prop_map(|all| {
        let stall = |(who, averages, total_us): (String, Vec<(u32, u32)>, u64)| Stall {
            who,
            averages: averages.into_iter().map(|(seconds, share)| Average { seconds, share }).collect(),
            total_us,
        };
        Pressure { stalls: all.into_iter().map(stall).collect() }
    });
    choice_survives: Choice, (vec("[a-z+]{1,9}", 0..4), "[a-z+]{1,9}", vec("[a-z+]{1,9}", 0..4))
        .prop_map(|(before, chosen, after)| Choice { before, chosen, after });
    unusable_index_survives: UnusableIndex, indices().prop_map(|zones| UnusableIndex { zones });
    extfrag_index_survives: ExtfragIndex, indices().prop_map(|zones| ExtfragIndex { zones });
}
