// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory control groups: a tree of them that a script has made below /sys/fs/cgroup. The process that runs the trace
 * moves from one to another, and what it allocates is charged to the group it is in.
 *
 * What reclaim reads of a group's counters is not what they are but what they were when the kernel last added up the
 * parts of its CPUs. It does so by the clock; while a trace runs, it does so when the trace says.
 */
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_counter.h>
#include <linux/rculist_nulls.h>
#include <linux/sched.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>
#include "kontig.h"

#define IS(major, minor) (LINUX_VERSION_CODE >> 8 == KERNEL_VERSION(major, minor, 0) >> 8)

#if defined(CONFIG_MEMCG) && (IS(6, 12) || IS(7, 2))
#define MAX_GROUPS 512
/* An operation's id is a group and a number of pages, the largest of which stands for no limit. */
#define GROUP_SHIFT 20
#define NO_LIMIT ((1U << GROUP_SHIFT) - 1)
#define MOUNTED "/sys/fs/cgroup"

#if IS(6, 12)
/* As the kernel's own file has it, without the lock, which takes no room. */
struct stock {
	struct mem_cgroup *group;
	unsigned int pages;
};
#define FLUSH "cgroup_rstat_flush"
#define flushed_of(memcg) ((memcg)->css.cgroup)
#define OVER_HIGH "mem_cgroup_handle_over_high"
#define id_of(memcg) mem_cgroup_id(memcg)
#else
#define NR_STOCKS 7
/* As the kernel's own file has it. */
struct stock {
	u8 lock, pages[NR_STOCKS];
	struct mem_cgroup *group[NR_STOCKS];
	struct work_struct work;
	unsigned long flags;
	u8 next;
};
#define FLUSH "css_rstat_flush"
#define flushed_of(memcg) (&(memcg)->css)
#define OVER_HIGH "__mem_cgroup_handle_over_high"
#define id_of(memcg) mem_cgroup_private_id(memcg)
#endif

static struct group {
	struct mem_cgroup *memcg;
	char path[64];
} groups[MAX_GROUPS];
/* The root group is number 0, and there once any other is. */
static unsigned int nr_groups;
static unsigned int entered;

static const char * const limits[] = { "max", "high", "low", "min" };
static struct stock __percpu *stocks;
static u64 *flushed_last;
static unsigned long (*state_of)(struct lruvec *lruvec, enum node_stat_item item);
static void (*flush)(void *of);
static void (*over_high)(gfp_t gfp);

bool groups_on(void)
{
	return nr_groups;
}

int groups_add(const char *path)
{
	struct mem_cgroup **root = hidden("root_mem_cgroup");
	struct cgroup *cgroup;

	if (!root || nr_groups >= MAX_GROUPS - 1 || strlen(path) >= sizeof(groups->path))
		return -EINVAL;
	cgroup = cgroup_get_from_path(path);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	groups[0].memcg = *root;
	nr_groups = max(nr_groups, 1U);
	groups[nr_groups].memcg = mem_cgroup_from_css(rcu_access_pointer(cgroup->subsys[memory_cgrp_id]));
	if (!groups[nr_groups].memcg)
		return -ENODEV;
	strscpy(groups[nr_groups].path, path, sizeof(groups->path));
	nr_groups++;
	return 0;
}

int groups_prepare(void)
{
	struct delayed_work *by_the_clock = hidden("stats_flush_dwork");

	stocks = (void __percpu *)(unsigned long)hidden("memcg_stock");
	flushed_last = hidden("flush_last_time");
	state_of = hidden("lruvec_page_state");
	flush = hidden(FLUSH);
	over_high = hidden(OVER_HIGH);
	if (!by_the_clock || !stocks || !flushed_last || !state_of || !flush || !over_high)
		return -ENOENT;
	cancel_delayed_work_sync(by_the_clock);
	/* So that nobody finds it late. */
	*flushed_last = jiffies_64 + (1ULL << 40);
	flush(flushed_of(groups[0].memcg));
	return 0;
}

struct lruvec *groups_lruvec(unsigned int group)
{
	return &groups[group].memcg->nodeinfo[observed_node()]->lruvec;
}

unsigned int groups_nr(void)
{
	return nr_groups;
}

unsigned int groups_entered(void)
{
	return entered;
}

u64 groups_entered_id(void)
{
	return nr_groups ? mem_cgroup_id(groups[entered].memcg) : 0;
}

static int number_of(const struct mem_cgroup *memcg)
{
	int i;

	for (i = 0; i < nr_groups; i++)
		if (groups[i].memcg == memcg)
			return i;
	return -1;
}

int groups_number_of_id(unsigned short id)
{
	int i;

	for (i = 0; i < nr_groups; i++)
		if (id_of(groups[i].memcg) == id)
			return i;
	return -1;
}

static void put_limit(struct buffer *b, const char *name, unsigned long pages)
{
	if (pages >= PAGE_COUNTER_MAX)
		put(b, " %s max", name);
	else
		put(b, " %s %lu", name, pages);
}

static void put_group(struct buffer *b, int number)
{
	struct mem_cgroup *memcg = groups[number].memcg, *parent = number ? parent_mem_cgroup(memcg) : NULL;
	struct mem_cgroup_reclaim_iter *iter = &memcg->nodeinfo[observed_node()]->iter;
	struct page_counter *memory = &memcg->memory;
	atomic_long_t *events = memcg->memory_events_local;

	put(b, "GROUP %d parent %d usage %ld", number, parent ? number_of(parent) : -1, atomic_long_read(&memory->usage));
	put_limit(b, "max", memory->max);
	put_limit(b, "high", memory->high);
	put_limit(b, "low", memory->low);
	put_limit(b, "min", memory->min);
	put_limit(b, "elow", memory->elow);
	put_limit(b, "emin", memory->emin);
	put(b, " low_events %ld high_events %ld max_events %ld oom_events %ld", atomic_long_read(&events[MEMCG_LOW]),
	    atomic_long_read(&events[MEMCG_HIGH]), atomic_long_read(&events[MEMCG_MAX]),
	    atomic_long_read(&events[MEMCG_OOM]));
	put(b, " position %d round %d\n", number_of(READ_ONCE(iter->position)), atomic_read(&iter->generation));
}

void groups_put_states(struct buffer *b, unsigned int number, const char * const *names)
{
	static const enum node_stat_item items[] = {
		NR_INACTIVE_ANON, NR_ACTIVE_ANON, NR_INACTIVE_FILE, NR_ACTIVE_FILE, WORKINGSET_REFAULT_ANON,
		WORKINGSET_REFAULT_FILE, WORKINGSET_ACTIVATE_ANON, WORKINGSET_ACTIVATE_FILE, WORKINGSET_RESTORE_ANON,
		WORKINGSET_RESTORE_FILE,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(items); i++) {
		unsigned long state = state_of(groups_lruvec(number), items[i]);

		if (state)
			put(b, "STATE %u %s %lu\n", number, names[items[i]], state);
	}
}

/* What the first CPU has been charged in advance. */
static void put_stocks(struct buffer *b)
{
	struct stock *own = per_cpu_ptr(stocks, 0);
#ifdef NR_STOCKS
	int i;

	for (i = 0; i < NR_STOCKS; i++)
		if (own->group[i])
			put(b, "STOCK %d %d %u\n", i, number_of(own->group[i]), own->pages[i]);
	put(b, "NEXTSTOCK %u\n", own->next);
#else
	put(b, "STOCK %d %u\n", number_of(own->group), own->group ? own->pages : 0);
#endif
}

/* In which order reclaim for the whole machine comes to groups, where pages are in generations. */
static void put_bins(struct buffer *b)
{
#ifdef CONFIG_LRU_GEN
	struct lru_gen_memcg *order = &NODE_DATA(observed_node())->memcg_lru;
	struct hlist_nulls_node *at;
	struct lru_gen_folio *gens;
	int gen, bin;

	if (!lru_gen_is_on())
		return;
	put(b, "BINS seq %lu\n", order->seq);
	for (gen = 0; gen < MEMCG_NR_GENS; gen++) {
		for (bin = 0; bin < MEMCG_NR_BINS; bin++) {
			if (hlist_nulls_empty(&order->fifo[gen][bin]))
				continue;
			put(b, "BIN %d %d", gen, bin);
			hlist_nulls_for_each_entry(gens, at, &order->fifo[gen][bin], list)
				put(b, " %d", number_of(container_of(gens, struct mem_cgroup_per_node,
								     lruvec.lrugen)->memcg));
			put_char(b, '\n');
		}
	}
#endif
}

void groups_put(struct buffer *b)
{
	int i;

	for (i = 0; i < nr_groups; i++)
		put_group(b, i);
	put_stocks(b);
	put_bins(b);
}

/* Writes to one of a group's files, as a user would. */
static u32 group_write(unsigned int group, const char *name, const char *text)
{
	char path[128];
	struct file *file;
	loff_t at = 0;
	ssize_t done;

	snprintf(path, sizeof(path), MOUNTED "%s/%s", groups[group].path, name);
	file = filp_open(path, O_WRONLY, 0);
	if (IS_ERR(file))
		return -PTR_ERR(file);
	done = kernel_write(file, text, strlen(text), &at);
	filp_close(file, NULL);
	return done < 0 ? -done : 0;
}

u32 groups_execute(const struct op *op)
{
	u32 id = le32_to_cpu(op->id), group = id >> GROUP_SHIFT, pages = id & NO_LIMIT;
	char name[16], text[24];

	if (op->op == OP_FLUSH) {
		flush(flushed_of(groups[0].memcg));
		return 0;
	}
	if (group >= nr_groups)
		return SKIPPED;
	if (op->op == OP_ENTER) {
		u32 error = group_write(group, "cgroup.procs", "0");

		if (!error)
			entered = group;
		return error;
	}
	if (!group)
		return SKIPPED;
	if (pages == NO_LIMIT)
		strscpy(text, "max", sizeof(text));
	else
		snprintf(text, sizeof(text), "%lu", pages * PAGE_SIZE);
	snprintf(name, sizeof(name), "memory.%s", limits[op->order % ARRAY_SIZE(limits)]);
	return group_write(group, name, text);
}

/* What a process does for its group before it returns from the kernel. */
void groups_return(void)
{
	if (nr_groups && current->memcg_nr_pages_over_high)
		over_high(GFP_KERNEL);
}
#else
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

struct lruvec *groups_lruvec(unsigned int group)
{
	return NULL;
}

unsigned int groups_nr(void)
{
	return 0;
}

unsigned int groups_entered(void)
{
	return 0;
}

u64 groups_entered_id(void)
{
	return 0;
}

int groups_number_of_id(unsigned short id)
{
	return -1;
}

void groups_put_states(struct buffer *b, unsigned int number, const char * const *names)
{
}

void groups_put(struct buffer *b)
{
}

u32 groups_execute(const struct op *op)
{
	return SKIPPED;
}

void groups_return(void)
{
}
#endif
