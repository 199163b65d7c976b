/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the module share.
 *
 * The rule they all obey: the observed node is changed by the trace alone. Every buffer comes from the other node, and
 * between two snapshots nothing is allocated.
 */
#ifndef KONTIG_H
#define KONTIG_H

#include <linux/mmzone.h>
#include <linux/types.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 10, 0)
#include "old.h"
#endif

/* Where every buffer of the module lives. */
#define OWN_NODE 0

/* An operation of a trace: trace.c says what is in it. */
struct op {
	u8 op, order;
	__le16 flags;
	__le32 id;
} __packed;

enum {
	OP_ALLOC = 1,
	OP_FREE = 2,
	/* Of pages of files. */
	OP_ADD = 3,
	OP_READ = 4,
	OP_TOUCH = 5,
	OP_TRUNCATE = 6,
	OP_DIRTY = 7,
	OP_WRITE = 8,
	OP_WRITTEN = 9,
	OP_FINISH = 10,
	OP_DEVICE = 11,
	/* Of the process's pages. */
	OP_ANON_READ = 16,
	OP_ANON_WRITE = 17,
	OP_ANON_DROP = 18,
	/* Of neither. */
	OP_OBJECT = 24,
	OP_DRAIN = 25,
	OP_WAIT = 26,
	OP_DUMP = 27,
	/* Commands to the multi-generational LRU. */
	OP_AGE = 28,
	OP_EVICT = 29,
	/* Of a machine with several CPUs. */
	OP_CPU = 40,
	OP_DRAIN_ALL = 41,
	OP_DRAIN_PAGES = 42,
	OP_FOLD = 43,
	/* Of a machine with several observed nodes. */
	OP_NODE = 44,
	/* Of memory control groups. */
	OP_ENTER = 48,
	OP_LIMIT = 49,
	OP_FLUSH = 50,
};

#define FAILED 0xffffffffU
#define SKIPPED 0xfffffffeU
/* What a result says of a page beside its number. */
enum {
	SAYS_SHADOW = 1 << 24,		/* it was evicted before: its shadow was found, or its swap entry */
	SAYS_PRESENT = 1 << 25,		/* it was there already */
	SAYS_ACTIVE = 1 << 26,
	SAYS_WORKINGSET = 1 << 27,
	SAYS_REFERENCED = 1 << 28,
	SAYS_DIRTY = 1 << 29,
	SAYS_WRITEBACK = 1 << 30,
};

/* The flags of a page, whatever they are wrapped in. */
#define page_bit(page, bit) test_bit(bit, (const unsigned long *)&(page)->flags)
u32 page_says(struct page *page);

/* Text or bytes of a result, filled up to a limit set beforehand. */
struct buffer {
	char *bytes;
	size_t len, size;
	bool overflown;
};

/* nodes.c: the nodes under observation, from the first one on, and where requests go. */
#define MAX_NODES 4
int observed_node(void);
int last_observed_node(void);
#define for_each_observed_node(node) for (node = observed_node(); node <= last_observed_node(); node++)
bool nodes_are_observed(void);
bool nodes_spread(void);
int nodes_preferred(void);
struct page *nodes_alloc(gfp_t gfp, unsigned int order, bool by_mask);
u32 nodes_execute(const struct op *op);

/* zone.c: the zones under observation, and their state as text. */
struct zone *observed_zone(void);
long zone_unfolded(struct zone *zone, int cpu, enum zone_stat_item item);
int zone_threshold(struct zone *zone, int cpu);
/* A node's Normal zone, and the one below it, where the node has one. */
struct zone *normal_zone(int node);
struct zone *lower_zone(int node);
struct snapshot {
	struct zone *zone;
	struct buffer state, pages;
};
int snapshot_prepare(struct snapshot *s, struct zone *zone);
void snapshot_take(struct snapshot *s);
int snapshot_send(const struct snapshot *s, const char *name);

/* lru.c: a node's lists of pages that reclaim works on, as text. */
int lru_prepare(struct buffer *b, int node);
void lru_take(struct buffer *b, int node);
void lru_put_page(struct buffer *b, struct page *page);

/* lru_gen.c: the same by generations, where they are on. */
bool lru_gen_is_on(void);
void lru_gen_put(struct buffer *b, struct lruvec *lruvec);
void lru_gen_put_page(struct buffer *b, struct page *page);
int lru_gen_begin(void);
void lru_gen_end(void);
int lru_gen_prepare(void);
u32 lru_gen_execute(const struct op *op);

/* groups.c: memory control groups, where a script has made some. The root is number 0. */
bool groups_on(void);
int groups_add(const char *path);
int groups_prepare(void);
unsigned int groups_nr(void);
struct lruvec *groups_lruvec(unsigned int group);
/* The group that the process is in, and what the kernel calls it in commands. */
unsigned int groups_entered(void);
u64 groups_entered_id(void);
int groups_number_of_id(unsigned short id);
void groups_put_states(struct buffer *b, unsigned int number, const char * const *names);
void groups_put(struct buffer *b);
u32 groups_execute(const struct op *op);
void groups_return(void);

/* cache.c: files in the page cache of which only the trace adds, touches and removes pages. */
#define MAX_FILES 16
int cache_prepare(void);
u32 cache_execute(const struct op *op, gfp_t gfp);
struct address_space *cache_space(unsigned int file);

/* process.c: memory of the process that has the trace carried out. */
int process_memory(unsigned long start, unsigned long pages);
int process_prepare(void);
u32 process_execute(const struct op *op);
bool process_has(unsigned long index, unsigned long *at);
void process_put_swapped(struct buffer *b);
/* Where its memory begins, in pages, and how much there is. */
void process_put(struct buffer *b);

/* cpus.c: which CPU operations run on, and what is done to all CPUs or to one. */
int cpus_prepare(void);
void cpus_finish(void);
/* Puts the batches of every CPU onto the lists. */
void cpus_drain(void);
u32 cpus_execute(const struct op *op);
/* Where the daemons have a CPU of their own, they do not get it between these two. */
void cpus_keep_daemons_waiting(void);
void cpus_let_daemons_run(void);

/* objects.c: pages that a shrinker frees. */
int objects_prepare(void);
u32 objects_add(gfp_t gfp);

/* hidden.c: what the kernel does not offer to modules. */
void *hidden(const char *name);

/* state.c: the nodes at one moment. */
struct state {
	struct {
		struct snapshot zone, lower;
		struct buffer lru;
	} nodes[MAX_NODES];
};
int state_prepare(struct state *s, bool with_lru);
void state_take(struct state *s);
int state_send(const struct state *s, const char *name);

/* daemons.c: kswapd and kcompactd of the nodes. */
void daemons_first(void);
void daemons_run_on(int cpu);
/* Until they have done what they were woken for; kswapd may be at its nap. */
void daemons_finish(void);
/* Until they sleep for good. */
void daemons_sleep(void);
/* Whether one has run since this was asked last. */
bool daemons_have_run(unsigned long *since);
/* What time a guest's have had. */
int daemons_send(const char *name);

/* trace.c */
int trace_load(const char *path);
int trace_run(const char *before, const char *after, bool timed);
int trace_send_migrations(void);
bool trace_owns(struct page *page);

/* disk.c: disks of a guest. */
int disk_add(const char *name, unsigned long at_mib, unsigned long mib);

/* extfrag.c: how often pages are taken from another type's blocks. */
int extfrag_count(void);
int extfrag_send(const char *name);

/* watch.c */
int watch(unsigned int seconds);

/* out.c */
int buffer_prepare(struct buffer *b, size_t size);
void buffer_free(struct buffer *b);
__printf(2, 3) void put(struct buffer *b, const char *format, ...);
void put_char(struct buffer *b, char c);
void put_hex(struct buffer *b, unsigned long value);
int send(const char *name, const void *bytes, size_t len);
int send_buffer(const char *name, const char *suffix, const struct buffer *b);
void send_end(void);

#endif
