// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of the observed node at one moment: each of its zones, and, where a trace has to do with reclaim, what that
 * knows of the node.
 */
#include <linux/kernel.h>
#include "kontig.h"

int state_prepare(struct state *s, bool with_lru)
{
	int error = snapshot_prepare(&s->zone, observed_zone());

	s->lru.bytes = NULL;
	if (!error && lower_zone())
		error = snapshot_prepare(&s->lower, lower_zone());
	return error ?: with_lru ? lru_prepare(&s->lru) : 0;
}

void state_take(struct state *s)
{
	snapshot_take(&s->zone);
	if (lower_zone())
		snapshot_take(&s->lower);
	if (s->lru.bytes)
		lru_take(&s->lru);
}

int state_send(const struct state *s, const char *name)
{
	int error = snapshot_send(&s->zone, name);
	char lower[32];

	snprintf(lower, sizeof(lower), "%s.dma32", name);
	if (!error && lower_zone())
		error = snapshot_send(&s->lower, lower);
	return error ?: s->lru.bytes ? send_buffer(name, ".lru", &s->lru) : 0;
}
