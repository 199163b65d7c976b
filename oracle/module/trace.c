// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes a trace on the observed nodes and remembers what each operation got.
 *
 * A trace is records of eight bytes, little-endian: u8 op, u8 order, u16 flags, u32 id. Most are allocations and frees;
 * others are done to pages that reclaim can take, and say besides the page's number what became of it. The states
 * before and after enclose the operations and nothing else; a trace that has to do with reclaim has more of them sent
 * in between, and what reclaim knows of the node with each.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/migrate.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include "kontig.h"

/* In times.bin: the request failed. */
#define TIME_FAILED 0x80000000U

enum {
	FLAG_TYPE = 3,		/* 0 unmovable, 1 reclaimable, 2 movable */
	FLAG_KSWAPD = 4,	/* may wake kswapd */
	FLAG_DIRECT = 8,	/* may reclaim and compact by itself */
	FLAG_HIGH = 16,		/* may go below the low watermark */
	FLAG_OWNED = 32,	/* made migratable by this module */
	FLAG_TRY_HARD = 64,	/* without NORETRY and NOMEMALLOC */
	FLAG_ATOMIC = 128,	/* what marks an atomic request, where there is such a mark */
	FLAG_DMA32 = 256,	/* from that zone or below */
	FLAG_MAYFAIL = 512,	/* costly requests try again, too, and fail in the end */
	FLAG_NOFAIL = 1024,	/* tries again until there is a block */
	FLAG_NOFS = 2048,	/* may not enter a file system */
	FLAG_NOIO = 4096,	/* may do no I/O */
	FLAG_POLICY = 8192,	/* bound by a mask of nodes, as a process's memory is by its policy */
};

struct holding {
	u32 pfn;		/* FAILED: nothing */
	u8 order;
	bool owned;
};

struct move {
	u32 from, to;
};

static struct op *ops;
static size_t nr_ops, nr_ids;
static __le32 *results, *times;
static struct holding *holdings;
static struct move *moves;
static size_t nr_moves, max_moves, nr_isolated, nr_put_back;

/* Whether operations have to do with reclaim: then states hold what it knows, too. */
static bool uses_lru;
static void (*drain)(void);

static struct state *dumps;
static size_t nr_dumps, max_dumps;

static gfp_t gfp_of(u16 flags)
{
	gfp_t gfp = __GFP_THISNODE | __GFP_NOWARN | __GFP_NORETRY | __GFP_NOMEMALLOC;

	if ((flags & FLAG_TYPE) == 1)
		gfp |= __GFP_RECLAIMABLE;
	else if ((flags & FLAG_TYPE) == 2)
		gfp |= __GFP_MOVABLE;
	if (flags & FLAG_KSWAPD)
		gfp |= __GFP_KSWAPD_RECLAIM;
#ifdef __GFP_NO_KSWAPD
	else
		gfp |= __GFP_NO_KSWAPD;
#endif
	if (flags & FLAG_DIRECT) {
		gfp |= __GFP_DIRECT_RECLAIM | __GFP_IO | __GFP_FS;
		/* As a process's own memory is asked for. */
		if (gfp & __GFP_MOVABLE)
			gfp |= __GFP_HIGHMEM | __GFP_HARDWALL;
	}
	if (flags & FLAG_HIGH)
		gfp = (gfp | __GFP_HIGH) & ~__GFP_NOMEMALLOC;
#ifdef __GFP_ATOMIC
	if (flags & FLAG_ATOMIC)
		gfp = (gfp | __GFP_ATOMIC) & ~__GFP_NOMEMALLOC;
#endif
	if (flags & (FLAG_TRY_HARD | FLAG_MAYFAIL | FLAG_NOFAIL))
		gfp &= ~(__GFP_NORETRY | __GFP_NOMEMALLOC);
	if (flags & FLAG_MAYFAIL)
		gfp |= __GFP_RETRY_MAYFAIL;
	if (flags & FLAG_NOFAIL)
		gfp |= __GFP_NOFAIL;
	if (flags & FLAG_NOFS)
		gfp &= ~__GFP_FS;
	if (flags & FLAG_NOIO)
		gfp &= ~(__GFP_IO | __GFP_FS);
	if (flags & FLAG_POLICY)
		gfp &= ~__GFP_THISNODE;
	if (flags & FLAG_DMA32)
		gfp = (gfp | __GFP_DMA32) & ~__GFP_HIGHMEM;
	return gfp;
}

/*
 * Pages this module lets the kernel move. The latest kernels only allow that to balloons and the like, as those before
 * 4.8 did: there, a trace that asks for it is refused. Before 6.0 the owner's functions are those of an address space.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 8, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define CAN_OWN 1

static bool owner_isolate(struct page *page, isolate_mode_t mode)
{
	nr_isolated++;
	return true;
}

static void owner_put_back(struct page *page)
{
	nr_put_back++;
}

static int owner_migrate(struct page *to, struct page *from, enum migrate_mode mode);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 0, 0)
static int owner_migrate_in(struct address_space *space, struct page *to, struct page *from, enum migrate_mode mode)
{
	return owner_migrate(to, from, mode);
}

static const struct address_space_operations owner_functions = {
	.isolate_page = owner_isolate,
	.migratepage = owner_migrate_in,
	.putback_page = owner_put_back,
};

static struct address_space owner = { .a_ops = &owner_functions };
#else
static const struct movable_operations owner = {
	.isolate_page = owner_isolate,
	.migrate_page = owner_migrate,
	.putback_page = owner_put_back,
};
#endif

static int owner_migrate(struct page *to, struct page *from, enum migrate_mode mode)
{
	unsigned long id = page_private(from);

	if (nr_moves < max_moves) {
		moves[nr_moves].from = page_to_pfn(from);
		moves[nr_moves].to = page_to_pfn(to);
	}
	nr_moves++;
	/* The new page is held as the old one was; what is in it is nobody's concern. */
	get_page(to);
	set_page_private(to, id);
	__SetPageMovable(to, &owner);
	holdings[id].pfn = page_to_pfn(to);
	__ClearPageMovable(from);
	set_page_private(from, 0);
	put_page(from);
	return MIGRATEPAGE_SUCCESS;
}

/* In compound pages and slabs, the word that says so is about something else. */
bool trace_owns(struct page *page)
{
	return __PageMovable(page) && !PageCompound(page) && !PageSlab(page);
}

static void own(struct page *page, u32 id)
{
	lock_page(page);
	set_page_private(page, id);
	__SetPageMovable(page, &owner);
	unlock_page(page);
}

static struct page *disown(struct holding *h)
{
	/* Compaction may be about to move it. */
	while (PageIsolated(pfn_to_page(h->pfn)))
		yield();
	lock_page(pfn_to_page(h->pfn));
	__ClearPageMovable(pfn_to_page(h->pfn));
	unlock_page(pfn_to_page(h->pfn));
	return pfn_to_page(h->pfn);
}
#else
#define CAN_OWN 0

bool trace_owns(struct page *page)
{
	return false;
}

static void own(struct page *page, u32 id)
{
}

static struct page *disown(struct holding *h)
{
	return pfn_to_page(h->pfn);
}
#endif

static u32 execute_block(const struct op *op)
{
	u32 id = le32_to_cpu(op->id);
	u16 flags = le16_to_cpu(op->flags);
	struct holding *h = &holdings[id];
	struct page *page;

	if (op->op == OP_FREE) {
		u32 pfn = h->pfn;

		if (pfn == FAILED)
			return SKIPPED;
		page = h->owned ? disown(h) : pfn_to_page(pfn);
		pfn = h->pfn;
		h->pfn = FAILED;
		__free_pages(page, h->order);
		return pfn;
	}
	if (h->pfn != FAILED)
		return SKIPPED;
	page = nodes_alloc(gfp_of(flags), op->order, flags & FLAG_POLICY);
	if (!page)
		return FAILED;
	h->pfn = page_to_pfn(page);
	h->order = op->order;
	h->owned = flags & FLAG_OWNED;
	if (h->owned)
		own(page, id);
	return h->pfn;
}

/* Whether an operation may ask the allocator for memory: a page fault always may do all it can. */
static bool may_reclaim(const struct op *op)
{
	return (le16_to_cpu(op->flags) & (FLAG_KSWAPD | FLAG_DIRECT)) || op->op == OP_ANON_READ || op->op == OP_ANON_WRITE;
}

static u32 execute(const struct op *op)
{
	gfp_t gfp = gfp_of(le16_to_cpu(op->flags));

	switch (op->op) {
	case OP_ALLOC:
	case OP_FREE:
		return execute_block(op);
	case OP_ANON_READ:
	case OP_ANON_WRITE:
	case OP_ANON_DROP:
		return process_execute(op);
	case OP_OBJECT:
		return objects_add(gfp);
	case OP_DRAIN:
		drain();
		return 0;
	case OP_WAIT:
		daemons_sleep();
		return 0;
	case OP_DUMP:
		state_take(&dumps[nr_dumps]);
		return nr_dumps++;
	case OP_AGE:
	case OP_EVICT:
		return lru_gen_execute(op);
	case OP_ENTER:
	case OP_LIMIT:
	case OP_FLUSH:
		return groups_execute(op);
	case OP_CPU:
	case OP_DRAIN_ALL:
	case OP_DRAIN_PAGES:
	case OP_FOLD:
		return cpus_execute(op);
	case OP_NODE:
		return nodes_execute(op);
	default:
		return cache_execute(op, gfp);
	}
}

static void execute_all(void)
{
	unsigned long switches;
	size_t i;

	daemons_have_run(&switches);

	for (i = 0; i < nr_ops; i++) {
		u16 flags = le16_to_cpu(ops[i].flags);
		u64 start;
		u32 got, took;

		if (may_reclaim(&ops[i]))
			cpus_keep_daemons_waiting();
		start = rdtsc();
		got = execute(&ops[i]);
		/* One instruction is one tick here. */
		took = min_t(u64, rdtsc() - start, TIME_FAILED - 1);
		cpus_let_daemons_run();

		groups_return();
		results[i] = cpu_to_le32(got);
		times[i] = cpu_to_le32(got == FAILED ? took | TIME_FAILED : took);
		if (uses_lru && may_reclaim(&ops[i])) {
			daemons_finish();
			if (daemons_have_run(&switches)) {
				daemons_sleep();
				daemons_have_run(&switches);
			}
		} else if (flags & (FLAG_KSWAPD | FLAG_DIRECT)) {
			daemons_finish();
		}
	}
}

static bool is_known(u8 op)
{
	return (op >= OP_ALLOC && op <= OP_DEVICE) || (op >= OP_ANON_READ && op <= OP_ANON_DROP) ||
	       (op >= OP_OBJECT && op <= OP_EVICT) || (op >= OP_CPU && op <= OP_NODE) ||
	       (op >= OP_ENTER && op <= OP_FLUSH);
}

static int check_op(const struct op *op, size_t i)
{
	u16 flags = le16_to_cpu(op->flags);

	if (!is_known(op->op))
		pr_err("kontig: operation %zu: unknown operation %u\n", i, op->op);
	else if (op->order >= ARRAY_SIZE(observed_zone()->free_area))
		pr_err("kontig: operation %zu: order %u is too large\n", i, op->order);
	else if (op->op <= OP_FREE && le32_to_cpu(op->id) >= nr_ops)
		pr_err("kontig: operation %zu: id %u is not below the number of operations\n", i,
		       le32_to_cpu(op->id));
	else if ((flags & FLAG_OWNED) && (op->order || !CAN_OWN))
		pr_err("kontig: operation %zu: this kernel does not let a module own such a page\n", i);
	else
		return 0;
	return -EINVAL;
}

static int read_ops(struct file *file)
{
	size_t bytes = i_size_read(file_inode(file)), done = 0, i;
	loff_t at = 0;

	nr_ops = bytes / sizeof(*ops);
	ops = vmalloc_node(max_t(size_t, bytes, 1), OWN_NODE);
	if (!ops)
		return -ENOMEM;
	while (done < bytes) {
		ssize_t n = kernel_read(file, (char *)ops + done, bytes - done, &at);

		if (n <= 0)
			return n ?: -EIO;
		done += n;
	}
	nr_ids = 0;
	max_moves = 0;
	for (i = 0; i < nr_ops; i++) {
		if (check_op(&ops[i], i))
			return -EINVAL;
		if (ops[i].op <= OP_FREE)
			nr_ids = max_t(size_t, nr_ids, le32_to_cpu(ops[i].id) + 1);
		else
			uses_lru = true;
		max_dumps += ops[i].op == OP_DUMP;
		if (le16_to_cpu(ops[i].flags) & FLAG_OWNED)
			max_moves = 1024 * 1024;
	}
	return 0;
}

/* Zeroed by hand: pages touched now are not touched for the first time while the trace runs. */
static void *own_array(size_t n, size_t size, int fill)
{
	void *bytes = vmalloc_node(max_t(size_t, n * size, 1), OWN_NODE);

	if (bytes)
		memset(bytes, fill, n * size);
	return bytes;
}

int trace_load(const char *path)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	int error;

	if (IS_ERR(file))
		return PTR_ERR(file);
	error = read_ops(file);
	filp_close(file, NULL);
	if (error)
		return error;
	results = own_array(nr_ops, sizeof(*results), 0xff);
	times = own_array(nr_ops, sizeof(*times), 0);
	/* FAILED: nothing is held yet. */
	holdings = own_array(nr_ids, sizeof(*holdings), 0xff);
	moves = own_array(max_moves, sizeof(*moves), 0);
	if (!results || !times || !holdings || !moves)
		return -ENOMEM;
	return uses_lru ? cache_prepare() ?: objects_prepare() : 0;
}

/* Prepares what a trace with reclaim needs besides, in the process that touches memory. */
static int prepare_lru(void)
{
	bool touches = false, commands = false;
	size_t i;
	int error;

	for (i = 0; i < nr_ops; i++) {
		touches |= ops[i].op >= OP_ANON_READ && ops[i].op <= OP_ANON_DROP;
		commands |= ops[i].op == OP_AGE || ops[i].op == OP_EVICT;
	}
	error = touches ? process_prepare() : 0;
	if (!error && commands)
		error = lru_gen_prepare();
	if (!error && groups_on())
		error = groups_prepare();
	if (!error)
		error = lru_gen_begin();
	if (error)
		return error;
	drain = hidden("lru_add_drain");
	dumps = own_array(max_dumps, sizeof(*dumps), 0);
	if (!drain || !dumps)
		return -ENOENT;
	for (i = 0; !error && i < max_dumps; i++)
		error = state_prepare(&dumps[i], uses_lru);
	return error;
}

static int send_dumps(void)
{
	char name[16];
	size_t i;
	int error = 0;

	for (i = 0; !error && i < nr_dumps; i++) {
		snprintf(name, sizeof(name), "d%zu", i);
		error = state_send(&dumps[i], name);
	}
	return error;
}

int trace_run(const char *before, const char *after, bool timed)
{
	static struct state first, last;
	int error;

	if (!results)
		return -ENODATA;
	error = state_prepare(&first, uses_lru) ?: state_prepare(&last, uses_lru) ?: uses_lru ? prepare_lru() : 0;
	if (error)
		return error;
	daemons_first();
	error = cpus_prepare();
	if (error)
		return error;
	/* What the CPU has collected for the lists is of pages elsewhere. */
	if (uses_lru)
		drain();
	cpus_drain();

	state_take(&first);
	execute_all();
	state_take(&last);
	lru_gen_end();
	cpus_finish();

	error = state_send(&first, before) ?: send_dumps() ?: send("res.bin", results, nr_ops * sizeof(*results));
	if (!error && timed)
		error = send("times.bin", times, nr_ops * sizeof(*times));
	return error ?: state_send(&last, after);
}

int trace_send_migrations(void)
{
	unsigned long start = observed_zone()->zone_start_pfn;
	struct buffer text;
	size_t i;
	int error;

	if (nr_moves > max_moves) {
		pr_err("kontig: %zu migrations, but the log holds %zu\n", nr_moves, max_moves);
		return -ENOSPC;
	}
	error = buffer_prepare(&text, 128 + nr_moves * 24);
	if (error)
		return error;
	put(&text, "iso %zu put %zu mig %zu\n", nr_isolated, nr_put_back, nr_moves);
	for (i = 0; i < nr_moves; i++)
		put(&text, "%lx %lx\n", moves[i].from - start, moves[i].to - start);
	error = send_buffer("mig", ".txt", &text);
	buffer_free(&text);
	return error;
}
