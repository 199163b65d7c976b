// SPDX-License-Identifier: GPL-2.0-only
/*
 * What reclaim knows of an observed node: its lists of pages in order, with what is noted at each page, what has been
 * collected for the lists but is not on them yet, costs and ages, and the shadows evicted pages have left.
 *
 * Taken with interrupts off while other CPUs idle, like a snapshot of the allocator. The list of pages that cannot
 * be evicted is left out: from 6.1 on it is none.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page-flags.h>
#include <linux/pagemap.h>
#if __has_include(<linux/folio_batch.h>)
#include <linux/folio_batch.h>
#else
#include <linux/pagevec.h>
#endif
#include <linux/percpu.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/vmstat.h>
#include <linux/xarray.h>
#include "kontig.h"

#define HAS_FOLIOS (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0))
/* The kernel from which on all batches of a CPU stand together. */
#define BATCHES_TOGETHER (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

/* The kernel from which on costs are told from counters, when reclaim asks for them. */
#define COSTS_FROM_COUNTERS (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0))

#if HAS_FOLIOS
typedef struct folio_batch batch_t;
#define batch_size(b) folio_batch_count(b)
#define batch_page(b, i) (&(b)->folios[i]->page)
#define BATCHES "cpu_fbatches"
#else
typedef struct pagevec batch_t;
#define batch_size(b) pagevec_count(b)
#define batch_page(b, i) ((b)->pages[i])
#define BATCHES "lru_pvecs"
#endif

/* As the kernel's own file has them, without the locks, which take no room. */
struct batches {
	batch_t lru_add, lru_deactivate_file, lru_deactivate, lru_lazyfree, activate;
#if BATCHES_TOGETHER
	batch_t rotate;
#endif
};

static struct batches __percpu *batches;
static batch_t __percpu *rotate;
/* Of all counters: the zones' first, the node's behind those of NUMA. */
static const char * const *names;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
#define NUMA_ITEMS NR_VM_NUMA_EVENT_ITEMS
#define numa_blocks(zone, item) (&(zone)->vm_numa_event[item])
#define numa_unfolded(zone, cpu, item) (per_cpu_ptr((zone)->per_cpu_zonestats, cpu)->vm_numa_event[item])
#else
#define NUMA_ITEMS NR_VM_NUMA_STAT_ITEMS
#define numa_blocks(zone, item) (&(zone)->vm_numa_stat[item])
#define numa_unfolded(zone, cpu, item) (per_cpu_ptr((zone)->pageset, cpu)->vm_numa_stat_diff[item])
#endif
#define NODE_NAMES (NR_VM_ZONE_STAT_ITEMS + NUMA_ITEMS)
/* Events come last. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define EVENT_NAMES (NODE_NAMES + NR_VM_NODE_STAT_ITEMS + NR_VM_STAT_ITEMS)
#else
#define EVENT_NAMES (NODE_NAMES + NR_VM_NODE_STAT_ITEMS + NR_VM_WRITEBACK_STAT_ITEMS)
#endif
/* A shadow is, from the lowest bit on: of the working set or not, the node, its control group, the age. */
#define SHADOW_GROUP_SHIFT (1 + NODES_SHIFT)
#define SHADOW_AGE_SHIFT (1 + NODES_SHIFT + MEM_CGROUP_ID_SHIFT)

static const struct {
	enum lru_list list;
	const char *name;
} lists[] = {
	{ LRU_INACTIVE_ANON, "inactive_anon" },
	{ LRU_ACTIVE_ANON, "active_anon" },
	{ LRU_INACTIVE_FILE, "inactive_file" },
	{ LRU_ACTIVE_FILE, "active_file" },
};

static const struct {
	int bit;
	char letter;
} flags[] = {
	{ PG_active, 'A' },
	{ PG_referenced, 'R' },
	{ PG_workingset, 'W' },
	{ PG_swapbacked, 'S' },
	{ PG_dirty, 'D' },
	{ PG_writeback, 'B' },
	{ PG_reclaim, 'C' },
	{ PG_locked, 'L' },
};

static bool is_mapped(struct page *page)
{
#if HAS_FOLIOS
	return folio_mapped(page_folio(page));
#else
	return page_mapped(page);
#endif
}

static unsigned long index_of(struct page *page)
{
#if HAS_FOLIOS
	return page_folio(page)->index;
#else
	return page->index;
#endif
}

static void put_owner(struct buffer *b, struct page *page)
{
	struct address_space *space = page->mapping;
	unsigned long at;
	unsigned int file;

	if ((unsigned long)space & 3) {
		if (process_has(index_of(page), &at))
			put(b, " a:%lx", at);
		else
			put(b, " ?");
		if (page_bit(page, PG_swapcache) && page_bit(page, PG_swapbacked)) {
			swp_entry_t slot = { .val = page_private(page) };

			put(b, "@%lx", (unsigned long)swp_offset(slot));
		}
		return;
	}
	for (file = 0; file < MAX_FILES && cache_space(file); file++) {
		if (cache_space(file) == space) {
			put(b, " f%u:%lx", file, index_of(page));
			return;
		}
	}
	put(b, " ?");
}

/* A page: its number, its order if it is not a single one, what is noted at it, and whose it is. */
void lru_put_page(struct buffer *b, struct page *page)
{
	size_t before;
	int i;

	put_hex(b, page_to_pfn(page));
	if (PageHead(page))
		put(b, "+%u", compound_order(page));
	put_char(b, ' ');
	before = b->len;
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (page_bit(page, flags[i].bit))
			put_char(b, flags[i].letter);
	if (is_mapped(page))
		put_char(b, 'M');
	if (b->len == before)
		put_char(b, '-');
	put_owner(b, page);
	if (lru_gen_is_on())
		lru_gen_put_page(b, page);
	put_char(b, '\n');
}

static void put_batch(struct buffer *b, const char *name, batch_t *batch)
{
	int i;

	put(b, "BATCH %s %u\n", name, batch_size(batch));
	for (i = 0; i < batch_size(batch); i++)
		lru_put_page(b, batch_page(batch, i));
}

static void put_batches(struct buffer *b, int cpu)
{
	struct batches *own = per_cpu_ptr(batches, cpu);

	if (cpu)
		put(b, "CPU %d\n", cpu);
	put_batch(b, "lru_add", &own->lru_add);
	put_batch(b, "deactivate_file", &own->lru_deactivate_file);
	put_batch(b, "deactivate", &own->lru_deactivate);
	put_batch(b, "lazyfree", &own->lru_lazyfree);
	put_batch(b, "activate", &own->activate);
	put_batch(b, "rotate", per_cpu_ptr(rotate, cpu));
}

static long node_unfolded(pg_data_t *node, int cpu, int item)
{
	return per_cpu_ptr(node->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
}

/* A counter that is not 0, and what each CPU has not added to it yet. */
static void put_counter(struct buffer *b, pg_data_t *node, struct zone *zone, int item, const char *name)
{
	long pages = atomic_long_read(zone ? &zone->vm_stat[item] : &node->vm_stat[item]), any = pages;
	int cpu;

	for_each_online_cpu(cpu)
		any |= zone ? zone_unfolded(zone, cpu, item) : node_unfolded(node, cpu, item);
	if (!any)
		return;
	put(b, "STAT %s %s %ld", zone ? zone->name : "node", name, pages);
	for_each_online_cpu(cpu)
		put(b, " %ld", zone ? zone_unfolded(zone, cpu, item) : node_unfolded(node, cpu, item));
	put_char(b, '\n');
}

/* Counters of the node and of its zones. */
static void put_counters(struct buffer *b, pg_data_t *node)
{
	int item, z;

	put(b, "STAT node threshold %d\n", per_cpu_ptr(node->per_cpu_nodestats, 0)->stat_threshold);
	for (item = 0; item < NR_VM_NODE_STAT_ITEMS; item++)
		put_counter(b, node, NULL, item, names[NODE_NAMES + item]);
	for (z = 0; z < MAX_NR_ZONES; z++) {
		struct zone *zone = &node->node_zones[z];

		if (!populated_zone(zone))
			continue;
		put(b, "STAT %s threshold %d\n", zone->name, zone_threshold(zone, 0));
		for (item = 0; item < NR_VM_ZONE_STAT_ITEMS; item++)
			put_counter(b, node, zone, item, names[item]);
	}
}

/*
 * Where requests that begin at the node go, the first node left out, and the blocks that each zone gave, by whether
 * they were wanted there.
 */
static void put_placement(struct buffer *b, pg_data_t *node)
{
	struct zoneref *ref = node->node_zonelists[ZONELIST_FALLBACK]._zonerefs;
	int item, cpu, z;

	put(b, "ZONELIST");
	for (; ref->zone; ref++)
		if (zone_to_nid(ref->zone) != OWN_NODE)
			put(b, " %d.%s", zone_to_nid(ref->zone), ref->zone->name);
	put_char(b, '\n');
	for (z = 0; z < MAX_NR_ZONES; z++) {
		struct zone *zone = &node->node_zones[z];

		for (item = 0; populated_zone(zone) && item < NUMA_ITEMS; item++) {
			long blocks = atomic_long_read(numa_blocks(zone, item));

			for_each_online_cpu(cpu)
				blocks += numa_unfolded(zone, cpu, item);
			put(b, "NUMA %s %s %ld\n", zone->name, names[NR_VM_ZONE_STAT_ITEMS + item], blocks);
		}
	}
}

/* What has happened since the first state, on all nodes. */
static void put_events(struct buffer *b)
{
	static unsigned long first[NR_VM_EVENT_ITEMS], events[NR_VM_EVENT_ITEMS];
	static bool begun;
	int item;

	all_vm_events(events);
	if (!begun)
		memcpy(first, events, sizeof(first));
	begun = true;
	for (item = 0; item < NR_VM_EVENT_ITEMS; item++)
		if (events[item] != first[item])
			put(b, "EVENT %s %lu\n", names[EVENT_NAMES + item], events[item] - first[item]);
}

/* What an evicted page has left in its file: the node's age then, and whether it was of the working set. */
static void put_shadows(struct buffer *b, int node)
{
	unsigned int file;

	for (file = 0; file < MAX_FILES && cache_space(file); file++) {
		struct xarray *pages = &cache_space(file)->i_pages;
		unsigned long index;
		void *entry;

		xa_for_each(pages, index, entry) {
			unsigned long value;

			if (!xa_is_value(entry))
				continue;
			value = xa_to_value(entry);
			if ((value >> 1 & ((1UL << NODES_SHIFT) - 1)) != node)
				continue;
			put(b, "SHADOW f%u:%lx %lx %lu", file, index, value >> SHADOW_AGE_SHIFT, value & 1);
			if (groups_on())
				put(b, " %d", groups_number_of_id(value >> SHADOW_GROUP_SHIFT));
			put_char(b, '\n');
		}
	}
}

static void put_list(struct buffer *b, struct list_head *list, const char *name)
{
	struct page *page;
	unsigned long n = 0;

	list_for_each_entry(page, list, lru)
		n++;
	put(b, "LIST %s %lu\n", name, n);
	list_for_each_entry(page, list, lru)
		lru_put_page(b, page);
}

static void put_lists(struct buffer *b, struct lruvec *lruvec)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(lists); i++)
		put_list(b, &lruvec->lists[lists[i].list], lists[i].name);
}

/* Of a variable that each CPU has its own of. By way of a number: such pointers are not like others. */
static void __percpu *per_cpu_hidden(const char *name)
{
	return (void __percpu *)(unsigned long)hidden(name);
}

int lru_prepare(struct buffer *b, int node)
{
	if (!batches) {
		names = hidden("vmstat_text");
		batches = per_cpu_hidden(BATCHES);
#if BATCHES_TOGETHER
		rotate = &batches->rotate;
#else
		rotate = per_cpu_hidden("lru_rotate");
#endif
	}
	if (!names || !batches || !rotate)
		return -ENOENT;
	/* Every page a line, or its shadow. */
	return buffer_prepare(b, NODE_DATA(node)->node_spanned_pages * 48 + 256 * 1024);
}

/* Runs of kswapd in a row that freed nothing. */
static int kswapd_failures(pg_data_t *node)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return atomic_read(&node->kswapd_failures);
#else
	return node->kswapd_failures;
#endif
}

/* The cost of reclaiming anonymous pages and those of files; where counters tell, also how far they have been read. */
static void put_costs(struct buffer *b, struct lruvec *lruvec)
{
#if COSTS_FROM_COUNTERS
	struct lru_cost *anon = &lruvec->cost[WORKINGSET_ANON], *file = &lruvec->cost[WORKINGSET_FILE];

	put(b, " anon_cost %lu file_cost %lu", anon->count, file->count);
	put(b, " anon_rotated %lu file_rotated %lu", anon->last_rotated, file->last_rotated);
	put(b, " anon_io %lu file_io %lu", anon->last_io, file->last_io);
#else
	put(b, " anon_cost %lu file_cost %lu", lruvec->anon_cost, lruvec->file_cost);
#endif
}

static void put_lruvec(struct buffer *b, struct lruvec *lruvec)
{
	put(b, "LRUVEC");
	put_costs(b, lruvec);
	put(b, " nonresident_age %ld refaults %lu %lu flags %lx\n", atomic_long_read(&lruvec->nonresident_age),
	    lruvec->refaults[0], lruvec->refaults[1], lruvec->flags);
}

/* All groups, and what each that has or had pages has of this node. */
static void put_groups(struct buffer *b)
{
	unsigned int i;

	if (!groups_on())
		return;
	groups_put(b);
	for (i = 0; i < groups_nr(); i++) {
		put(b, "OF %u\n", i);
		groups_put_states(b, i, names + NODE_NAMES);
		if (i) {
			put_lruvec(b, groups_lruvec(i));
			put_lists(b, groups_lruvec(i));
			lru_gen_put(b, groups_lruvec(i));
		}
	}
}

void lru_take(struct buffer *b, int nid)
{
	pg_data_t *node = NODE_DATA(nid);
	struct lruvec *lruvec = groups_on() ? groups_lruvec(0) : &node->__lruvec;
	unsigned long flags;
	int cpu;

	b->len = 0;
	b->overflown = false;
	put_events(b);
	local_irq_save(flags);
	put(b, "NODE %d flags %lx kswapd_order %d kswapd_highest_zoneidx %d kswapd_failures %d\n", node->node_id,
	    node->flags, node->kswapd_order, node->kswapd_highest_zoneidx, kswapd_failures(node));
	put_lruvec(b, lruvec);
	put_counters(b, node);
	if (last_observed_node() > observed_node())
		put_placement(b, node);
	put_lists(b, lruvec);
	lru_gen_put(b, lruvec);
	for_each_online_cpu(cpu)
		put_batches(b, cpu);
	put_shadows(b, nid);
	process_put_swapped(b);
	put_groups(b);
	put(b, "END %zu\n", b->len);
	local_irq_restore(flags);
}
