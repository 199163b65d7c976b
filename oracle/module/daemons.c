// SPDX-License-Identifier: GPL-2.0-only
/*
 * The observed nodes' daemons, kswapd and kcompactd: they run as soon as they are woken, and whoever wakes them waits
 * until they have finished. Otherwise the scheduler's arithmetic would say when they run. A guest's daemons run as they
 * like; the time they have had is told.
 */
#include <linux/delay.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include "kontig.h"

/* Longer than kswapd naps before it sleeps. */
#define NAP_MS 120

void daemons_first(void)
{
	int node;

	for_each_observed_node(node) {
		sched_set_fifo(NODE_DATA(node)->kswapd);
		sched_set_fifo(NODE_DATA(node)->kcompactd);
	}
}

void daemons_run_on(int cpu)
{
	int node;

	for_each_observed_node(node) {
		set_cpus_allowed_ptr(NODE_DATA(node)->kswapd, cpumask_of(cpu));
		set_cpus_allowed_ptr(NODE_DATA(node)->kcompactd, cpumask_of(cpu));
	}
}

static bool all_wait(void)
{
	int node;

	for_each_observed_node(node)
		if (!waitqueue_active(&NODE_DATA(node)->kswapd_wait) ||
		    !waitqueue_active(&NODE_DATA(node)->kcompactd_wait))
			return false;
	return true;
}

void daemons_finish(void)
{
	while (!all_wait())
		yield();
}

static unsigned long switches(void)
{
	unsigned long all = 0;
	int node;

	for_each_observed_node(node)
		all += NODE_DATA(node)->kswapd->nvcsw + NODE_DATA(node)->kcompactd->nvcsw;
	return all;
}

bool daemons_have_run(unsigned long *since)
{
	unsigned long before = *since;

	*since = switches();
	return before != *since;
}

/* The machine is idle while kswapd naps, so that this takes no time. */
void daemons_sleep(void)
{
	unsigned long since = switches();

	do {
		msleep(NAP_MS);
		daemons_finish();
	} while (daemons_have_run(&since));
}

/* A line each: ns that a guest's daemons have been on the CPU. */
int daemons_send(const char *name)
{
	static char text[128];
	struct buffer b = { .bytes = text, .size = sizeof(text) };
	pg_data_t *node = NODE_DATA(0);

	put(&b, "kswapd %llu\n", node->kswapd->se.sum_exec_runtime);
	put(&b, "kcompactd %llu\n", node->kcompactd->se.sum_exec_runtime);
	return send_buffer(name, ".daemons", &b);
}
