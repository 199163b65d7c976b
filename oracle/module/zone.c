// SPDX-License-Identifier: GPL-2.0-only
/*
 * The complete allocator state of one zone as text, and what each of its pages is used for.
 *
 * A snapshot is taken with interrupts off, while other CPUs idle. No lock is needed then: nobody can hold one and still
 * be in the middle of something, because whoever holds one cannot be preempted.
 */
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>
#include "kontig.h"

/* The kernel from which on per-CPU lists and counters are two things, and the lists hold more than single pages. */
#define PCP_APART (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0))
/* The kernel from which on there is a mark above high, for promotion. */
#define HAS_PROMO (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0))
/* The kernel from which on the per-CPU lists size themselves. */
#define SELF_SIZING_PCP (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0))
/* The kernel from which on the free part of the high-atomic reserve is counted. */
#define COUNTS_FREE_HIGHATOMIC (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))
/* The kernel from which on a pageblock's bits are numbered one by one. */
#define BLOCK_BITS_NUMBERED (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0))

#if BLOCK_BITS_NUMBERED
#define TYPE_BIT PB_migrate_0
#define SKIP_BIT PB_compact_skip
#else
#define TYPE_BIT PB_migrate
#define SKIP_BIT PB_migrate_skip
#endif
#define TYPE_BITS 3

/* Where the words of those bits are, and the places of two groups in them. old.h has its own of both. */
#ifndef BLOCK_WORDS
#define BLOCK_WORDS(pfn) (__pfn_to_section(pfn)->usage->pageblock_flags)
#endif
#ifndef BLOCK_TYPE_BIT
#define BLOCK_TYPE_BIT(first, i) ((first) + TYPE_BIT + (i))
#define BLOCK_SKIP_BIT(first) ((first) + SKIP_BIT)
#endif
/* A type's number in recordings. */
#ifndef SHOWN_TYPE
#define SHOWN_TYPE(type) (type)
#endif

struct zone *normal_zone(int node)
{
	return &NODE_DATA(node)->node_zones[ZONE_NORMAL];
}

struct zone *observed_zone(void)
{
	return normal_zone(observed_node());
}

struct zone *lower_zone(int node)
{
	struct zone *zone = &NODE_DATA(node)->node_zones[ZONE_DMA32];

	return populated_zone(zone) ? zone : NULL;
}

/* The number of the first bit of what is kept about the pageblock of a page. */
static unsigned long first_bit(unsigned long pfn)
{
	return ((pfn & (PAGES_PER_SECTION - 1)) >> pageblock_order) * NR_PAGEBLOCK_BITS;
}

/* 0 where the zone has a hole, as below. */
static int block_type(unsigned long pfn)
{
	int i, type = 0;

	if (!pfn_valid(pfn))
		return 0;
	for (i = 0; i < TYPE_BITS; i++)
		type |= !!test_bit(BLOCK_TYPE_BIT(first_bit(pfn), i), BLOCK_WORDS(pfn)) << i;
	return SHOWN_TYPE(type);
}

static bool block_skip(unsigned long pfn)
{
	return pfn_valid(pfn) && test_bit(BLOCK_SKIP_BIT(first_bit(pfn)), BLOCK_WORDS(pfn));
}

/* A CPU's part of a counter that has not been added to the zone's yet. */
long zone_unfolded(struct zone *zone, int cpu, enum zone_stat_item item)
{
#if PCP_APART
	return per_cpu_ptr(zone->per_cpu_zonestats, cpu)->vm_stat_diff[item];
#else
	return per_cpu_ptr(zone->pageset, cpu)->vm_stat_diff[item];
#endif
}

/* How large a CPU's part becomes before it is added. */
int zone_threshold(struct zone *zone, int cpu)
{
#if PCP_APART
	return per_cpu_ptr(zone->per_cpu_zonestats, cpu)->stat_threshold;
#else
	return per_cpu_ptr(zone->pageset, cpu)->stat_threshold;
#endif
}

static void put_list(struct buffer *b, struct zone *zone, struct list_head *list)
{
	struct page *page;

	list_for_each_entry(page, list, lru) {
		put_char(b, ' ');
		put_hex(b, page_to_pfn(page) - zone->zone_start_pfn);
	}
	put_char(b, '\n');
}

static void put_watermarks(struct buffer *b, struct zone *zone)
{
	put(b, "WM min %lu low %lu high %lu", zone->_watermark[WMARK_MIN], zone->_watermark[WMARK_LOW],
	    zone->_watermark[WMARK_HIGH]);
#if HAS_PROMO
	put(b, " promo %lu", zone->_watermark[WMARK_PROMO]);
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 0, 0)
	put(b, " boost %lu", zone->watermark_boost);
#else
	put(b, " boost 0");
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 4, 0)
	put(b, " highatomic %lu", zone->nr_reserved_highatomic);
#else
	put(b, " highatomic 0");
#endif
#if COUNTS_FREE_HIGHATOMIC
	put(b, " nr_free_highatomic %lu", zone->nr_free_highatomic);
#endif
	/* Before 5.0 they are about other things. */
	put(b, " flags %lx\n", LINUX_VERSION_CODE >= KERNEL_VERSION(5, 0, 0) ? zone->flags : 0);
}

static void put_compaction(struct buffer *b, struct zone *zone)
{
	put(b, "COMPACT free_pfn %lx", zone->compact_cached_free_pfn);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 16, 0)
	put(b, " migrate_pfn %lx %lx", zone->compact_cached_migrate_pfn[0], zone->compact_cached_migrate_pfn[1]);
#else
	/* One for both modes. */
	put(b, " migrate_pfn %lx %lx", zone->compact_cached_migrate_pfn, zone->compact_cached_migrate_pfn);
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 1, 0)
	put(b, " init_migrate %lx init_free %lx", zone->compact_init_migrate_pfn, zone->compact_init_free_pfn);
#else
	/* The zone's ends, where every scan of all begins. */
	put(b, " init_migrate %lx init_free %lx", zone->zone_start_pfn,
	    (zone_end_pfn(zone) - 1) & ~(pageblock_nr_pages - 1));
#endif
	put(b, " considered %u defer_shift %u order_failed %d\n", zone->compact_considered, zone->compact_defer_shift,
	    zone->compact_order_failed);
}

static void put_counters(struct buffer *b, struct zone *zone)
{
	int item, cpu;

	put(b, "VMSTAT");
	for (item = 0; item < NR_VM_ZONE_STAT_ITEMS; item++) {
		long pages = atomic_long_read(&zone->vm_stat[item]);

		for_each_online_cpu(cpu)
			pages += zone_unfolded(zone, cpu, item);
		put(b, " %ld", pages);
	}
	put(b, "\nNRFREE_RAW %ld\n", atomic_long_read(&zone->vm_stat[NR_FREE_PAGES]));
}

/* How large each CPU's part of a counter becomes, and below what the parts are read, too. */
static void put_drift(struct buffer *b, struct zone *zone)
{
	int cpu;

	if (num_online_cpus() == 1)
		return;
	put(b, "DRIFT mark %lu thresholds", zone->percpu_drift_mark);
	for_each_online_cpu(cpu)
		put(b, " %d", zone_threshold(zone, cpu));
	put_char(b, '\n');
}

static void put_cpu_lists(struct buffer *b, struct zone *zone, int cpu)
{
#if PCP_APART
	struct per_cpu_pages *pcp = per_cpu_ptr(zone->per_cpu_pageset, cpu);
#else
	struct per_cpu_pages *pcp = &per_cpu_ptr(zone->pageset, cpu)->pcp;
#endif
	int i;

	put(b, "PCP cpu %d count %d batch %d high %d", cpu, pcp->count, pcp->batch, pcp->high);
#if SELF_SIZING_PCP
	put(b, " hmin %d hmax %d free_count %d alloc_factor %d expire %d flags %d", pcp->high_min, pcp->high_max,
	    pcp->free_count, pcp->alloc_factor, pcp->expire, pcp->flags);
#elif PCP_APART
	put(b, " free_factor %d expire %d", pcp->free_factor, pcp->expire);
#endif
	put(b, " diff %ld\n", zone_unfolded(zone, cpu, NR_FREE_PAGES));
	for (i = 0; i < ARRAY_SIZE(pcp->lists); i++) {
		if (list_empty(&pcp->lists[i]))
			continue;
		put(b, "PL %d %d", cpu, SHOWN_TYPE(i));
		put_list(b, zone, &pcp->lists[i]);
	}
}

static void put_free_lists(struct buffer *b, struct zone *zone)
{
	int order, type;

	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++) {
		for (type = 0; type < MIGRATE_TYPES; type++) {
			struct list_head *list = &zone->free_area[order].free_list[type];

			if (list_empty(list))
				continue;
			put(b, "FL %d %d", order, SHOWN_TYPE(type));
			put_list(b, zone, list);
		}
	}
}

static void put_state(struct buffer *b, struct zone *zone)
{
	unsigned long pfn, end = zone_end_pfn(zone);
	int i, cpu;

	put(b, "ZONE start %lx spanned %lu present %lu managed %lu\n", zone->zone_start_pfn, zone->spanned_pages,
	    zone->present_pages, zone_managed_pages(zone));
	put_watermarks(b, zone);
	put(b, "RESERVE");
	for (i = 0; i < MAX_NR_ZONES; i++)
		put(b, " %ld", zone->lowmem_reserve[i]);
	put_char(b, '\n');
	put_compaction(b, zone);
	put_counters(b, zone);
	put_drift(b, zone);
	for_each_online_cpu(cpu)
		put_cpu_lists(b, zone, cpu);
	put_free_lists(b, zone);
	put(b, "PBO %d\nPB ", pageblock_order);
	for (pfn = zone->zone_start_pfn; pfn < end; pfn += pageblock_nr_pages)
		put_char(b, '0' + block_type(pfn));
	put(b, "\nSKIP ");
	for (pfn = zone->zone_start_pfn; pfn < end; pfn += pageblock_nr_pages)
		put_char(b, '0' + block_skip(pfn));
	put(b, "\nEND %zu\n", b->len + 1);
}

static char use_of(struct page *page)
{
	if (PageReserved(page))
		return 'r';
	if (trace_owns(page))
		return 'm';
	if (PageLRU(page))
		return 'l';
	/* Slabs among them: compaction steps over a head's tails. */
	if (PageTail(page))
		return 't';
	if (PageHead(page))
		return 'c';
	return page_count(page) ? 'u' : 'p';
}

static void put_pages(struct buffer *b, struct zone *zone)
{
	unsigned long pfn = zone->zone_start_pfn, end = zone_end_pfn(zone);

	while (pfn < end) {
		struct page *page = pfn_to_page(pfn);
		unsigned long rest;

		/* Where there is no memory, there is none for anybody. */
		if (!pfn_valid(pfn)) {
			put_char(b, 'r');
			pfn++;
			continue;
		}
		if (!PageBuddy(page)) {
			put_char(b, use_of(page));
			pfn++;
			continue;
		}
		put_char(b, 'b');
		for (rest = (1UL << page_private(page)) - 1; rest; rest--)
			put_char(b, '.');
		pfn += 1UL << page_private(page);
	}
}

int snapshot_prepare(struct snapshot *s, struct zone *zone)
{
	/* Every page on a list of its own, five digits and a space, and the blocks' digits. */
	size_t state = zone->spanned_pages * 6 + 256 * 1024;

	s->zone = zone;
	s->pages.bytes = NULL;
	if (buffer_prepare(&s->state, state))
		return -ENOMEM;
	return buffer_prepare(&s->pages, zone->spanned_pages);
}

void snapshot_take(struct snapshot *s)
{
	unsigned long flags;

	s->state.len = s->pages.len = 0;
	s->state.overflown = s->pages.overflown = false;
	local_irq_save(flags);
	put_state(&s->state, s->zone);
	put_pages(&s->pages, s->zone);
	local_irq_restore(flags);
}

int snapshot_send(const struct snapshot *s, const char *name)
{
	return send_buffer(name, ".snap", &s->state) ?: send_buffer(name, ".pages", &s->pages);
}
