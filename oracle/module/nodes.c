// SPDX-License-Identifier: GPL-2.0-only
/*
 * The observed nodes, and where the requests of a trace go: to one node alone, or to the one they prefer and then to
 * others, nearest first. The first node, where buffers live, is in no request's mask.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include "kontig.h"

#define FIRST (OWN_NODE + 1)

static int nodes = 1;
module_param(nodes, int, 0);

static int preferred = FIRST;
/* Empty: the preferred node alone. */
static nodemask_t allowed;

int observed_node(void)
{
	return FIRST;
}

int last_observed_node(void)
{
	return FIRST + nodes - 1;
}

bool nodes_are_observed(void)
{
	int node;

	if (nodes < 1 || nodes > MAX_NODES)
		return false;
	for_each_observed_node(node)
		if (!node_online(node) || !populated_zone(normal_zone(node)))
			return false;
	return true;
}

int nodes_preferred(void)
{
	return preferred;
}

/* Whether requests may go to several nodes. */
bool nodes_spread(void)
{
	return !nodes_empty(allowed);
}

/* The kernel from which on a request with a mask is for pages that nobody holds yet; its headers do not say how. */
#define FROZEN_ONLY (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0))
#if FROZEN_ONLY
struct page *__alloc_frozen_pages_noprof(gfp_t gfp, unsigned int order, int node, nodemask_t *mask);
#endif

/* From nodes of the mask, because no other is in the request's. */
static struct page *alloc_by_mask(gfp_t gfp, unsigned int order, nodemask_t *mask)
{
#if FROZEN_ONLY
	struct page *page = __alloc_frozen_pages_noprof(gfp, order, preferred, mask);

	if (page)
		init_page_count(page);
	return page;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0)
	return __alloc_pages(gfp, order, preferred, mask);
#else
	return __alloc_pages_nodemask(gfp, order, preferred, mask);
#endif
}

struct page *nodes_alloc(gfp_t gfp, unsigned int order, bool by_mask)
{
	nodemask_t mask = nodes_spread() ? allowed : nodemask_of_node(preferred);

	if (!by_mask && !nodes_spread())
		return alloc_pages_node(preferred, gfp, order);
	return alloc_by_mask(gfp & ~__GFP_THISNODE, order, &mask);
}

/* The node that requests prefer from now on, and above it a bit for each they may use; none for that node alone. */
u32 nodes_execute(const struct op *op)
{
	u32 id = le32_to_cpu(op->id), bits = id >> 8;
	int node;

	if ((id & 0xff) < observed_node() || (id & 0xff) > last_observed_node())
		return SKIPPED;
	preferred = id & 0xff;
	nodes_clear(allowed);
	for_each_observed_node(node)
		if (bits & 1 << node)
			node_set(node, allowed);
	return 0;
}
