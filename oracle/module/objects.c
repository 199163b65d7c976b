// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cache that reclaim can shrink: every object is one page of the observed node, and the oldest goes first.
 */
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/vmalloc.h>
#include "kontig.h"

#define MAX_OBJECTS 65536
/* The kernel from which on a shrinker is made by the kernel. */
#define SHRINKERS_ALLOCATED (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0))

static struct page **objects;
static size_t from, to;

static unsigned long count(struct shrinker *s, struct shrink_control *sc)
{
	return sc->nid == observed_node() ? to - from : 0;
}

static unsigned long scan(struct shrinker *s, struct shrink_control *sc)
{
	unsigned long freed = 0;

	if (sc->nid != observed_node() || from == to)
		return SHRINK_STOP;
	for (; freed < sc->nr_to_scan && from != to; freed++)
		__free_page(objects[from++ % MAX_OBJECTS]);
	return freed;
}

int objects_prepare(void)
{
	if (objects)
		return 0;
	objects = vmalloc_node(MAX_OBJECTS * sizeof(*objects), OWN_NODE);
	if (!objects)
		return -ENOMEM;
#if SHRINKERS_ALLOCATED
	{
		struct shrinker *own = shrinker_alloc(SHRINKER_NUMA_AWARE, "kontig");

		if (!own)
			return -ENOMEM;
		own->count_objects = count;
		own->scan_objects = scan;
		shrinker_register(own);
		return 0;
	}
#else
	{
		static struct shrinker own = {
			.count_objects = count,
			.scan_objects = scan,
			.seeks = DEFAULT_SEEKS,
			.flags = SHRINKER_NUMA_AWARE,
		};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
		return register_shrinker(&own, "kontig");
#else
		return register_shrinker(&own);
#endif
	}
#endif
}

u32 objects_add(gfp_t gfp)
{
	struct page *page;

	if (to - from >= MAX_OBJECTS)
		return SKIPPED;
	page = alloc_pages_node(observed_node(), gfp, 0);
	if (!page)
		return FAILED;
	objects[to++ % MAX_OBJECTS] = page;
	return page_to_pfn(page);
}
