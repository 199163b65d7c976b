// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands for the parts of the module that are not built for kernels before 5.10: whoever needs one of them is refused.
 */
#include <linux/errno.h>
#include <linux/sched.h>
#include "kontig.h"

/*
 * A machine of one CPU, whose daemons share it. Up to 5.0 an asynchronous compaction ends where a task waits for its
 * CPU, whichever it is: the trace's process gets most of it. Not by a real-time policy, which lets its requests use
 * reserves.
 */
int cpus_prepare(void)
{
	set_user_nice(current, -20);
	return 0;
}

void cpus_finish(void)
{
	set_user_nice(current, 0);
}

void cpus_drain(void)
{
}

void cpus_keep_daemons_waiting(void)
{
}

void cpus_let_daemons_run(void)
{
}

u32 cpus_execute(const struct op *op)
{
	return SKIPPED;
}

/* No reclaim: a trace that has to do with it is not loaded. */
int cache_prepare(void)
{
	return -EOPNOTSUPP;
}

u32 cache_execute(const struct op *op, gfp_t gfp)
{
	return SKIPPED;
}

int objects_prepare(void)
{
	return -EOPNOTSUPP;
}

u32 objects_add(gfp_t gfp)
{
	return SKIPPED;
}

int process_memory(unsigned long start, unsigned long pages)
{
	return -EOPNOTSUPP;
}

int process_prepare(void)
{
	return -EOPNOTSUPP;
}

u32 process_execute(const struct op *op)
{
	return SKIPPED;
}

int lru_prepare(struct buffer *b, int node)
{
	return -EOPNOTSUPP;
}

void lru_take(struct buffer *b, int node)
{
}

/* Neither generations nor control groups. */
int lru_gen_prepare(void)
{
	return -EOPNOTSUPP;
}

int lru_gen_begin(void)
{
	return 0;
}

void lru_gen_end(void)
{
}

u32 lru_gen_execute(const struct op *op)
{
	return SKIPPED;
}

bool groups_on(void)
{
	return false;
}

int groups_add(const char *path)
{
	return -EOPNOTSUPP;
}

int groups_prepare(void)
{
	return -EOPNOTSUPP;
}

u32 groups_execute(const struct op *op)
{
	return SKIPPED;
}

void groups_return(void)
{
}

/* No guests, and nothing that watches while time passes. */
int disk_add(const char *name, unsigned long at_mib, unsigned long mib)
{
	return -EOPNOTSUPP;
}

int extfrag_count(void)
{
	return -EOPNOTSUPP;
}

int extfrag_send(const char *name)
{
	return -EOPNOTSUPP;
}

int watch(unsigned int seconds)
{
	return -EOPNOTSUPP;
}
