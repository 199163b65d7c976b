// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples the observed zone every 50 ms: its fragmentation as proactive compaction scores it, free blocks by order,
 * and compaction's counters. Done in here because a process doing it would run, fork and read files in between.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/vmstat.h>
#include "kontig.h"

#define PERIOD_MS 50
#define HUGE_ORDER 9

static const struct {
	enum vm_event_item event;
	const char *name;
} counters[] = {
	{ COMPACTMIGRATE_SCANNED, "compact_migrate_scanned" },
	{ COMPACTFREE_SCANNED, "compact_free_scanned" },
	{ COMPACTISOLATED, "compact_isolated" },
	{ COMPACTSTALL, "compact_stall" },
	{ COMPACTFAIL, "compact_fail" },
	{ COMPACTSUCCESS, "compact_success" },
	{ KCOMPACTD_WAKE, "compact_daemon_wake" },
	{ KCOMPACTD_MIGRATE_SCANNED, "compact_daemon_migrate_scanned" },
	{ KCOMPACTD_FREE_SCANNED, "compact_daemon_free_scanned" },
	{ PGMIGRATE_SUCCESS, "pgmigrate_success" },
	{ PGMIGRATE_FAIL, "pgmigrate_fail" },
};

static void put_sample(struct buffer *b, u64 ms)
{
	static unsigned long events[NR_VM_EVENT_ITEMS];
	struct zone *zone = observed_zone();
	unsigned long free = 0, in_huge = 0;
	int order, i;

	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++) {
		unsigned long pages = zone->free_area[order].nr_free << order;

		free += pages;
		if (order >= HUGE_ORDER)
			in_huge += pages;
	}
	put(b, "%llu.%03llu %lu %lu", ms / 1000, ms % 1000, free ? (free - in_huge) * 100 / free : 0,
	    zone_page_state_snapshot(zone, NR_FREE_PAGES));
	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++)
		put(b, " %lu", zone->free_area[order].nr_free);
	all_vm_events(events);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		put(b, " %lu", events[counters[i].event]);
	put_char(b, '\n');
}

int watch(unsigned int seconds)
{
	u64 start = ktime_get_ns();
	struct buffer text;
	int i, error = buffer_prepare(&text, 4096 + seconds * (1000 / PERIOD_MS + 1) * 512);

	if (error)
		return error;
	put(&text, "#t score free");
	for (i = 0; i < ARRAY_SIZE(observed_zone()->free_area); i++)
		put(&text, " b%d", i);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		put(&text, " %s", counters[i].name);
	put_char(&text, '\n');
	for (i = 0; i <= seconds * 1000 / PERIOD_MS; i++) {
		put_sample(&text, div_u64(ktime_get_ns() - start, NSEC_PER_MSEC));
		msleep(PERIOD_MS);
	}
	error = send_buffer("monitor", ".txt", &text);
	buffer_free(&text);
	return error;
}
