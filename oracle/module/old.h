/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kernels before 5.10 have under another name, in another form, or not at all. kontig.h includes it last, so that
 * the kernel's own headers do not see these names.
 */
#ifndef KONTIG_OLD_H
#define KONTIG_OLD_H

#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pageblock-flags.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/sched/rt.h>
#include <linux/timex.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 11, 0)
#include <uapi/linux/sched/types.h>
#endif

/* Files of /proc have the functions of any file. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 6, 0)
#define proc_ops file_operations
#define proc_open open
#define proc_write write
#define proc_release release
#endif

static inline void old_sched_set_fifo(struct task_struct *task)
{
	struct sched_param middle = { .sched_priority = MAX_RT_PRIO / 2 };

	sched_setscheduler(task, SCHED_FIFO, &middle);
}
#define sched_set_fifo old_sched_set_fifo

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 0, 0)
#define _watermark watermark
#define zone_managed_pages(zone) ((zone)->managed_pages)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 14, 0)
static inline ssize_t old_kernel_read(struct file *file, char *to, size_t bytes, loff_t *at)
{
	int n = kernel_read(file, *at, to, bytes);

	*at += n > 0 ? n : 0;
	return n;
}
#define kernel_read old_kernel_read
#endif

/* The nodes a request may have are those of a list of zones. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 12, 0)
#define __alloc_pages_nodemask(gfp, order, node, mask) \
	(__alloc_pages_nodemask)(gfp, order, node_zonelist(node, gfp), mask)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 13, 0)
#define __GFP_RETRY_MAYFAIL __GFP_REPEAT
#endif

/* There waking kswapd is the rule, and to leave it alone is what a request says; see gfp_of(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 4, 0)
#define __GFP_KSWAPD_RECLAIM 0
#define __GFP_DIRECT_RECLAIM __GFP_WAIT
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 3, 0)
#define rdtsc() native_read_tsc()
#endif

/*
 * What is kept about a pageblock, of which these are its words and the number of its first bit. Up to 5.8 a group of
 * bits is read from the top of its word; before 3.16 bit by bit, as today.
 */
#define BLOCK_WORDS(pfn) (__pfn_to_section(pfn)->pageblock_flags)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 16, 0)
#define BLOCK_TYPE_BIT(first, i) (((first) & ~63UL) + 63 - ((first) & 63) - PB_migrate_end + (i))
#define BLOCK_SKIP_BIT(first) (((first) & ~63UL) + 63 - ((first) & 63) - PB_migrate_skip)
#endif

/*
 * Before 4.4 reclaimable comes before movable, and pageblocks are reserved for any request that fails, as they are for
 * atomic ones today. Recordings have today's numbers.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 4, 0)
#define SHOWN_TYPE(type) ((type) == MIGRATE_MOVABLE ? 1 : (type) == MIGRATE_RECLAIMABLE ? 2 : (type))
#endif

#endif
