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

/* A daemon, and whether it waits: before 4.6 kswapd is alone. */
#define KSWAPD(node) (NODE_DATA(node)->kswapd)
#define KSWAPD_WAITS(node) waitqueue_active(&NODE_DATA(node)->kswapd_wait)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 6, 0)
#define HAS_KCOMPACTD 1
#define KCOMPACTD(node) (NODE_DATA(node)->kcompactd)
#define KCOMPACTD_WAITS(node) waitqueue_active(&NODE_DATA(node)->kcompactd_wait)
#else
#define HAS_KCOMPACTD 0
#define KCOMPACTD(node) ((struct task_struct *)NULL)
#define KCOMPACTD_WAITS(node) true
#endif

void daemons_first(void)
{
	int node;

	for_each_observed_node(node) {
		sched_set_fifo(KSWAPD(node));
		if (HAS_KCOMPACTD)
			sched_set_fifo(KCOMPACTD(node));
	}
}

void daemons_run_on(int cpu)
{
	int node;

	for_each_observed_node(node) {
		set_cpus_allowed_ptr(KSWAPD(node), cpumask_of(cpu));
		if (HAS_KCOMPACTD)
			set_cpus_allowed_ptr(KCOMPACTD(node), cpumask_of(cpu));
	}
}

static bool all_wait(void)
{
	int node;

	for_each_observed_node(node)
		if (!KSWAPD_WAITS(node) || !KCOMPACTD_WAITS(node))
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
		all += KSWAPD(node)->nvcsw + (HAS_KCOMPACTD ? KCOMPACTD(node)->nvcsw : 0);
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

	put(&b, "kswapd %llu\n", KSWAPD(0)->se.sum_exec_runtime);
	put(&b, "kcompactd %llu\n", HAS_KCOMPACTD ? KCOMPACTD(0)->se.sum_exec_runtime : 0);
	return send_buffer(name, ".daemons", &b);
}
