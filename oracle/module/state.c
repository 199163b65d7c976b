// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of the observed nodes at one moment: each of their zones, and, where a trace has to do with reclaim, what
 * that knows of the node.
 */
#include <linux/kernel.h>
#include "kontig.h"

int state_prepare(struct state *s, bool with_lru)
{
	int node, error = 0;

	for_each_observed_node(node) {
		typeof(&s->nodes[0]) of = &s->nodes[node - observed_node()];

		of->lru.bytes = NULL;
		error = snapshot_prepare(&of->zone, normal_zone(node));
		if (!error && lower_zone(node))
			error = snapshot_prepare(&of->lower, lower_zone(node));
		if (!error && with_lru)
			error = lru_prepare(&of->lru, node);
		if (error)
			break;
	}
	return error;
}

void state_take(struct state *s)
{
	int node;

	for_each_observed_node(node) {
		typeof(&s->nodes[0]) of = &s->nodes[node - observed_node()];

		snapshot_take(&of->zone);
		if (lower_zone(node))
			snapshot_take(&of->lower);
		if (of->lru.bytes)
			lru_take(&of->lru, node);
	}
}

/* Only the files of further nodes name the node. */
int state_send(const struct state *s, const char *name)
{
	int node, error = 0;

	for_each_observed_node(node) {
		const typeof(s->nodes[0]) *of = &s->nodes[node - observed_node()];
		char own[32], lower[48];

		if (node == observed_node())
			snprintf(own, sizeof(own), "%s", name);
		else
			snprintf(own, sizeof(own), "%s.node%d", name, node);
		snprintf(lower, sizeof(lower), "%s.dma32", own);
		error = snapshot_send(&of->zone, own);
		if (!error && lower_zone(node))
			error = snapshot_send(&of->lower, lower);
		if (!error && of->lru.bytes)
			error = send_buffer(own, ".lru", &of->lru);
		if (error)
			break;
	}
	return error;
}
