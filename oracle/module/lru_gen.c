// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generations of the observed node's pages, where the multi-generational LRU is on: what it knows of them as text,
 * and the two commands it takes, to age and to evict.
 *
 * The commands are written as a user would write them to the kernel's debugging file, by the function behind that file.
 * It reads from the memory of a process; a page of the process that runs the trace holds the command.
 */
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/mmzone.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include "kontig.h"

#if defined(CONFIG_LRU_GEN) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
/* The kernel from which on protected pages of the first tier are counted, too. */
#define PROTECTS_FIRST_TIER (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0))

#define SWAPPINESS_SHIFT 24

static const char * const kinds[] = { "anon", "file" };
/* The process that runs the trace, and what has it found used whenever aging begins. */
static struct mm_struct *process;
static ssize_t (*command)(struct file *file, const char __user *from, size_t len, loff_t *at);
static int *machines_swappiness;
static char __user *scratch;

static struct lruvec *observed(void)
{
	/* Where there are control groups, nobody's pages are on the node's own lists. */
	return groups_on() ? groups_lruvec(0) : &NODE_DATA(observed_node())->__lruvec;
}

bool lru_gen_is_on(void)
{
	return observed()->lrugen.enabled;
}

/* The generation that the page's flags say, or none, and how often it was used beyond what two flags say. */
void lru_gen_put_page(struct buffer *b, struct page *page)
{
	unsigned long flags = *(const unsigned long *)&page->flags;
	unsigned long gen = (flags & LRU_GEN_MASK) >> LRU_GEN_PGOFF;

	put_char(b, ' ');
	put_char(b, gen ? '0' + gen - 1 : '-');
	put(b, ".%lu", (flags & LRU_REFS_MASK) >> LRU_REFS_PGOFF);
}

static unsigned long protected_pages(struct lru_gen_folio *gens, int hist, int type, int tier)
{
#if PROTECTS_FIRST_TIER
	return gens->protected[hist][type][tier];
#else
	return tier ? gens->protected[hist][type][tier - 1] : 0;
#endif
}

static void put_tiers(struct buffer *b, struct lru_gen_folio *gens, int type)
{
	int tier, hist = gens->min_seq[type] % NR_HIST_GENS;

	for (tier = 0; tier < MAX_NR_TIERS; tier++) {
		/* Most of many groups have none. */
		if (groups_on() && !gens->avg_refaulted[type][tier] && !gens->avg_total[type][tier] &&
		    !atomic_long_read(&gens->refaulted[hist][type][tier]) &&
		    !atomic_long_read(&gens->evicted[hist][type][tier]) && !protected_pages(gens, hist, type, tier))
			continue;
		put(b, "TIER %s %d avg_refaulted %lu avg_total %lu refaulted %ld evicted %ld protected %lu\n",
		    kinds[type], tier, gens->avg_refaulted[type][tier], gens->avg_total[type][tier],
		    atomic_long_read(&gens->refaulted[hist][type][tier]),
		    atomic_long_read(&gens->evicted[hist][type][tier]), protected_pages(gens, hist, type, tier));
	}
}

static void put_generation(struct buffer *b, struct lru_gen_folio *gens, int gen, int type, int zone)
{
	struct list_head *list = &gens->folios[gen][type][zone];
	struct page *page;
	unsigned long n = 0;

	list_for_each_entry(page, list, lru)
		n++;
	if (!n && !gens->nr_pages[gen][type][zone])
		return;
	put(b, "GEN %s %d %s size %ld %lu\n", kinds[type], gen, NODE_DATA(observed_node())->node_zones[zone].name,
	    gens->nr_pages[gen][type][zone], n);
	list_for_each_entry(page, list, lru)
		lru_put_page(b, page);
}

/* The generations of the node's pages, or of those of a group that are there. */
void lru_gen_put(struct buffer *b, struct lruvec *lruvec)
{
	struct lru_gen_folio *gens = &lruvec->lrugen;
	int gen, type, zone;

	if (!gens->enabled)
		return;
	put(b, "LRUGEN max_seq %lu anon_min_seq %lu file_min_seq %lu hist_gens %d refs_width %d", gens->max_seq,
	    gens->min_seq[0], gens->min_seq[1], NR_HIST_GENS, LRU_REFS_WIDTH);
#ifdef CONFIG_LRU_GEN_WALKS_MMU
	put(b, " walk_seq %lu", lruvec->mm_state.seq);
#endif
	if (groups_on())
		put(b, " segment %u", gens->seg);
	put_char(b, '\n');
	if (lruvec == observed())
		process_put(b);
	for (type = 0; type < ARRAY_SIZE(kinds); type++)
		put_tiers(b, gens, type);
	for (type = 0; type < ARRAY_SIZE(kinds); type++)
		for (gen = 0; gen < MAX_NR_GENS; gen++)
			for (zone = 0; zone < MAX_NR_ZONES; zone++)
				put_generation(b, gens, gen, type, zone);
}

/*
 * A walk of page tables passes over processes that have not run since the last one. Whether this one has been switched
 * to in between depends on threads of which a replay knows nothing; so it counts as used.
 */
static int note_use(struct kprobe *probe, struct pt_regs *regs)
{
	lru_gen_use_mm(process);
	return 0;
}

static struct kprobe aging = { .symbol_name = "try_to_inc_max_seq", .pre_handler = note_use };

/*
 * Which bin a group is put into, and with which reclaim begins, the kernel draws at random: a byte, of which the
 * highest bits are the bin. So that a replay can draw the same, reclaim of the observed node gets bytes of a generator
 * that begins anew with each trace.
 */
static u64 drawn;
static bool rotates_elsewhere;

static int note_rotation(struct kprobe *probe, struct pt_regs *regs)
{
	struct lruvec *lruvec = (struct lruvec *)regs_get_kernel_argument(regs, 0);

	rotates_elsewhere = lruvec->pgdat->node_id != observed_node();
	return 0;
}

static int draw(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	char caller[KSYM_SYMBOL_LEN];
	bool rotates;

	if (!in_task())
		return 0;
	snprintf(caller, sizeof(caller), "%ps", (void *)get_kretprobe_retaddr(instance));
	rotates = strstr(caller, "rotate_memcg");
	if (!rotates && !strstr(caller, "shrink_"))
		return 0;
	if (rotates && rotates_elsewhere) {
		regs_set_return_value(regs, 0);
		return 0;
	}
	drawn = drawn * 6364136223846793005ULL + 1442695040888963407ULL;
	regs_set_return_value(regs, drawn >> 56);
	return 0;
}

static struct kprobe rotation = { .symbol_name = "lru_gen_rotate_memcg", .pre_handler = note_rotation };
static struct kretprobe byte = { .kp.symbol_name = "get_random_u8", .handler = draw, .maxactive = 8 };

int lru_gen_begin(void)
{
	int error;

	if (!lru_gen_is_on() || !current->mm)
		return 0;
	process = current->mm;
	error = register_kprobe(&aging);
	if (error)
		pr_err("kontig: the start of aging cannot be watched\n");
	if (error || !groups_on())
		return error;
	drawn = 0;
	error = register_kprobe(&rotation) ?: register_kretprobe(&byte);
	if (error)
		pr_err("kontig: it cannot be said what the kernel draws\n");
	return error;
}

void lru_gen_end(void)
{
	if (process) {
		unregister_kprobe(&aging);
		if (groups_on()) {
			unregister_kretprobe(&byte);
			unregister_kprobe(&rotation);
			if (byte.nmissed)
				pr_err("kontig: %d random bins are the kernel's own\n", byte.nmissed);
		}
	}
	process = NULL;
}

int lru_gen_prepare(void)
{
	unsigned long at;

	if (command)
		return 0;
	command = hidden("lru_gen_seq_write");
	machines_swappiness = hidden("vm_swappiness");
	at = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (!command || !machines_swappiness || IS_ERR_VALUE(at))
		return -ENOENT;
	scratch = (char __user *)at;
	/* So that the page is there. */
	return put_user(0, scratch);
}

/*
 * The machine's own swappiness, as reclaim reads it: a command that leaves it out can have no option, and from 6.16 on
 * no number stands for it.
 */
static u32 machines_own(void)
{
	return get_nr_swap_pages() < MIN_LRU_BATCH ? 0 : *machines_swappiness;
}

/* 0, or what the kernel says is wrong, as a positive number. */
static u32 give_command(char what, unsigned long seq, u32 swappiness, u32 option)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%c %llu %d %lu %u %u", what, groups_entered_id(), observed_node(), seq,
			   swappiness > MAX_SWAPPINESS ? machines_own() : swappiness, option);
	ssize_t done;

	if (copy_to_user(scratch, line, len))
		return EFAULT;
	done = command(NULL, scratch, len, NULL);
	return done < 0 ? -done : 0;
}

u32 lru_gen_execute(const struct op *op)
{
	/* Commands are for the group that the process is in. */
	struct lru_gen_folio *gens = groups_on() ? &groups_lruvec(groups_entered())->lrugen : &observed()->lrugen;
	/* An operation's id is a swappiness, and pages or whether it is forced. */
	u32 id = le32_to_cpu(op->id), swappiness = id >> SWAPPINESS_SHIFT, option = id & ((1U << SWAPPINESS_SHIFT) - 1);

	if (!gens->enabled)
		return SKIPPED;
	if (op->op == OP_AGE)
		return give_command('+', gens->max_seq, swappiness, option);
	/* From the oldest generation of files on, and some more. */
	return give_command('-', gens->min_seq[1] + op->order, swappiness, option);
}
#else
bool lru_gen_is_on(void)
{
	return false;
}

void lru_gen_put_page(struct buffer *b, struct page *page)
{
}

void lru_gen_put(struct buffer *b, struct lruvec *lruvec)
{
}

int lru_gen_begin(void)
{
	return 0;
}

void lru_gen_end(void)
{
}

int lru_gen_prepare(void)
{
	return -EOPNOTSUPP;
}

u32 lru_gen_execute(const struct op *op)
{
	return SKIPPED;
}
#endif
