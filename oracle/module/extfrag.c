// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts what the tracepoint kmem:mm_page_alloc_extfrag says: how often pages of one type were taken from a block of
 * another, by both types, and whether the block was as large as a pageblock.
 */
#include <linux/mmzone.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "kontig.h"

static unsigned long counts[MIGRATE_TYPES][MIGRATE_TYPES][2];

static void on_extfrag(void *unused, struct page *page, int order, int fallback_order, int type, int fallback)
{
	counts[type][fallback][fallback_order >= pageblock_order]++;
}

static void try_tracepoint(struct tracepoint *point, void *found)
{
	if (!strcmp(point->name, "mm_page_alloc_extfrag"))
		*(int *)found = tracepoint_probe_register(point, on_extfrag, NULL);
}

int extfrag_count(void)
{
	int found = -ENOENT;

	for_each_kernel_tracepoint(try_tracepoint, &found);
	return found;
}

/* A line each: type wanted, type of the block, smaller than a pageblock, as large. */
int extfrag_send(const char *name)
{
	static const char *const names[] = { "unmovable", "movable", "reclaimable" };
	static char text[1024];
	struct buffer b = { .bytes = text, .size = sizeof(text) };
	int type, fallback;

	for (type = 0; type < ARRAY_SIZE(names); type++)
		for (fallback = 0; fallback < ARRAY_SIZE(names); fallback++)
			put(&b, "%s %s %lu %lu\n", names[type], names[fallback], counts[type][fallback][0], counts[type][fallback][1]);
	return send_buffer(name, ".extfrag", &b);
}
