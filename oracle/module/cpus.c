// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations on a machine with several CPUs. The process moves to the CPU that an operation names, and the other CPUs
 * idle meanwhile. The daemons follow it, unless they have a CPU of their own (the parameter daemons_on): then a thread
 * that comes before them has that CPU while an operation runs, so that they begin when it has ended.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>
#include "kontig.h"

static int daemons_on = -1;
module_param(daemons_on, int, 0);

static void (*drain_all)(void);
static void (*drain_pages)(struct zone *zone);
static void (*fold)(struct work_struct *work);
/* 6.1 shows it to modules, 5.10 does not. */
static int (*set_policy)(struct task_struct *task, const struct sched_attr *attr);

static struct task_struct *gate, *tracer;
static bool is_closed, is_held;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
#define state_of(task) READ_ONCE((task)->__state)
#else
#define state_of(task) READ_ONCE((task)->state)
#endif

/* Holds the daemons' CPU, unless the operation sleeps: it may wait for them. */
static int hold(void *unused)
{
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!READ_ONCE(is_closed)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(is_held, true);
		while (READ_ONCE(is_closed)) {
			if (state_of(tracer) == TASK_RUNNING)
				cpu_relax();
			else
				schedule_timeout_interruptible(1);
		}
		WRITE_ONCE(is_held, false);
	}
	return 0;
}

void cpus_keep_daemons_waiting(void)
{
	if (!gate)
		return;
	WRITE_ONCE(is_closed, true);
	wake_up_process(gate);
	while (!READ_ONCE(is_held))
		cpu_relax();
}

void cpus_let_daemons_run(void)
{
	if (!gate)
		return;
	WRITE_ONCE(is_closed, false);
	while (READ_ONCE(is_held))
		cpu_relax();
}

static int run_on(int cpu)
{
	int error = set_cpus_allowed_ptr(current, cpumask_of(cpu));

	if (daemons_on < 0)
		daemons_run_on(cpu);
	return error;
}

int cpus_prepare(void)
{
	struct sched_attr first = { .size = sizeof(first), .sched_policy = SCHED_FIFO, .sched_priority = 99 };

	if (num_online_cpus() == 1)
		return 0;
	drain_all = hidden("lru_add_drain_all");
	drain_pages = hidden("drain_all_pages");
	fold = hidden("refresh_vm_stats");
	set_policy = hidden("sched_setattr_nocheck");
	if (!drain_all || !drain_pages || !fold || !set_policy)
		return -ENOENT;
	if (daemons_on >= 0) {
		if (!cpu_online(daemons_on))
			return -EINVAL;
		tracer = current;
		gate = kthread_create_on_node(hold, NULL, OWN_NODE, "kontig");
		if (IS_ERR(gate))
			return PTR_ERR(gate);
		kthread_bind(gate, daemons_on);
		if (set_policy(gate, &first))
			return -EINVAL;
		wake_up_process(gate);
		daemons_run_on(daemons_on);
	}
	return run_on(0);
}

void cpus_finish(void)
{
}

void cpus_drain(void)
{
	if (drain_all)
		drain_all();
}

u32 cpus_execute(const struct op *op)
{
	u32 cpu = le32_to_cpu(op->id);

	if (!drain_all || cpu >= num_online_cpus())
		return SKIPPED;
	switch (op->op) {
	case OP_CPU:
		return run_on(cpu) ? FAILED : 0;
	case OP_DRAIN_ALL:
		drain_all();
		return 0;
	case OP_DRAIN_PAGES:
		drain_pages(NULL);
		return 0;
	default:
		fold(NULL);
		return 0;
	}
}
