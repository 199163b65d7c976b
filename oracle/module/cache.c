// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of a file system of its own, whose pages come and go as the trace says and as reclaim decides.
 *
 * There is no data and no device: a page added is up to date, and one that reclaim has written is clean as soon as its
 * device says so, at once or when the trace has it finish. Nodes of the page cache's trees come from the other node.
 */
#include <linux/backing-dev.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <linux/writeback.h>
#include "kontig.h"

#define MAGIC 0x6b6f6e74
/* An operation's id is a file and a page of it. */
#define FILE_SHIFT 24
/* What a request says of reclaim, and nothing of where its memory comes from. */
#define RECLAIM_BITS (GFP_KERNEL | __GFP_HIGH | __GFP_NOWARN | __GFP_NORETRY | __GFP_RETRY_MAYFAIL | __GFP_NOFAIL)
/* Pages that reclaim may have under writeback at a time. */
#define MAX_WRITING 65536
#define HAS_FOLIOS (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0))
/* The kernel from which on reclaim does not write pages of files. */
#define HAS_WRITEPAGE (LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0))

static struct inode *files[MAX_FILES];
/* Whether a file's device takes until it is told to finish. */
static bool slow[MAX_FILES];
/* What reclaim has given to slow devices, in order. */
static struct page **writing;
static size_t writing_from, writing_to;

struct address_space *cache_space(unsigned int file)
{
	return file < MAX_FILES && files[file] ? files[file]->i_mapping : NULL;
}

static void begin_writeback(struct page *page)
{
#if HAS_FOLIOS
	folio_start_writeback(page_folio(page));
#else
	set_page_writeback(page);
#endif
}

static void end_writeback(struct page *page)
{
#if HAS_FOLIOS
	folio_end_writeback(page_folio(page));
#else
	end_page_writeback(page);
#endif
}

#if HAS_WRITEPAGE
static int write_page(struct page *page, struct writeback_control *wbc)
{
	unsigned int file;

	begin_writeback(page);
	unlock_page(page);
	for (file = 0; cache_space(file) != page->mapping; file++)
		;
	if (!slow[file]) {
		end_writeback(page);
	} else {
		get_page(page);
		BUG_ON(writing_to - writing_from >= MAX_WRITING);
		writing[writing_to++ % MAX_WRITING] = page;
	}
	return 0;
}
#endif

static const struct address_space_operations space_functions = {
#if HAS_WRITEPAGE
	.writepage = write_page,
#endif
#if HAS_FOLIOS
	.dirty_folio = filemap_dirty_folio,
#else
	.set_page_dirty = __set_page_dirty_nobuffers,
#endif
};

static int init_context(struct fs_context *context)
{
	return init_pseudo(context, MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type type = {
	.name = "kontig",
	.init_fs_context = init_context,
	.kill_sb = kill_anon_super,
};

int cache_prepare(void)
{
	struct vfsmount *mount;
	unsigned int file;
	int error;

	if (files[0])
		return 0;
	writing = vmalloc_node(MAX_WRITING * sizeof(*writing), OWN_NODE);
	mount = kern_mount(&type);
	if (!writing || IS_ERR(mount))
		return -ENOMEM;
	/* With a device of its own, so that dirty pages and those under writeback are counted. */
	error = super_setup_bdi(mount->mnt_sb);
	if (error)
		return error;
	for (file = 0; file < MAX_FILES; file++) {
		struct inode *inode = alloc_anon_inode(mount->mnt_sb);

		if (IS_ERR(inode))
			return PTR_ERR(inode);
		i_size_write(inode, 1LL << (FILE_SHIFT + PAGE_SHIFT));
		inode->i_mapping->a_ops = &space_functions;
#if HAS_FOLIOS
		mapping_set_large_folios(inode->i_mapping);
#endif
		files[file] = inode;
	}
	return 0;
}

u32 page_says(struct page *page)
{
	u32 says = page_to_pfn(page);

	if (page_bit(page, PG_active))
		says |= SAYS_ACTIVE;
	if (page_bit(page, PG_workingset))
		says |= SAYS_WORKINGSET;
	if (page_bit(page, PG_referenced))
		says |= SAYS_REFERENCED;
	if (page_bit(page, PG_dirty))
		says |= SAYS_DIRTY;
	if (page_bit(page, PG_writeback))
		says |= SAYS_WRITEBACK;
	return says;
}

static struct page *allocate(gfp_t gfp, unsigned int order)
{
#if HAS_FOLIOS
	struct folio *folio;

	/* Single pages alone can come from several nodes. */
	if (nodes_spread())
		return order ? NULL : nodes_alloc(gfp, order, true);
	folio = __folio_alloc_node(gfp, order, nodes_preferred());
	return folio ? &folio->page : NULL;
#else
	return nodes_alloc(gfp, order, false);
#endif
}

/* A new page, held and unlocked; none if there is one already, or no memory. */
static struct page *add(struct address_space *space, pgoff_t index, unsigned int order, gfp_t gfp, u32 *result)
{
	struct page *page = allocate(gfp, order);
	void *there = xa_load(&space->i_pages, index);

	*result = FAILED;
	if (!page)
		return NULL;
	/* What a control group does for the page's charge depends on the caller's rights. */
	if (add_to_page_cache_lru(page, space, index, groups_on() ? gfp & RECLAIM_BITS : GFP_KERNEL)) {
		put_page(page);
		return NULL;
	}
	SetPageUptodate(page);
	unlock_page(page);
	*result = xa_is_value(there) ? SAYS_SHADOW : 0;
	return page;
}

static u32 read(struct address_space *space, pgoff_t index, unsigned int order, gfp_t gfp, bool add_only)
{
	struct page *page = pagecache_get_page(space, index, 0, 0);
	u32 result = SAYS_PRESENT;

	if (page && add_only) {
		put_page(page);
		return SKIPPED;
	}
	if (!page)
		page = add(space, index & ~((1UL << order) - 1), order, gfp, &result);
	if (!page)
		return result;
	page = compound_head(page);
	if (!add_only)
		mark_page_accessed(page);
	result |= page_says(page);
	put_page(page);
	return result;
}

/* What is done to a page that is there: all but adding it. */
static u32 change(struct address_space *space, pgoff_t index, const struct op *op)
{
	struct page *page = pagecache_get_page(space, index, 0, 0);
	loff_t from = (loff_t)index << PAGE_SHIFT;
	u32 result;

	if (!page)
		return SKIPPED;
	page = compound_head(page);
	result = page_says(page);
	switch (op->op) {
	case OP_TOUCH:
		mark_page_accessed(page);
		break;
	case OP_TRUNCATE:
		put_page(page);
		/* The kernel would wait for a device that waits for the trace. */
		if (result & SAYS_WRITEBACK)
			return SKIPPED;
		truncate_inode_pages_range(space, from, from + (PAGE_SIZE << op->order) - 1);
		return result;
	case OP_DIRTY:
		lock_page(page);
		set_page_dirty(page);
		unlock_page(page);
		break;
	case OP_WRITE:
		lock_page(page);
		if (!page_bit(page, PG_writeback) && clear_page_dirty_for_io(page))
			begin_writeback(page);
		unlock_page(page);
		break;
	case OP_WRITTEN:
		if (page_bit(page, PG_writeback))
			end_writeback(page);
		break;
	}
	result = page_says(page);
	put_page(page);
	return result;
}

/* Completes the writeback of at most MOST pages that reclaim gave to slow devices, oldest first; how many it did. */
static u32 finish(u32 most)
{
	u32 done = 0;

	while (done < most && writing_from != writing_to) {
		struct page *page = writing[writing_from++ % MAX_WRITING];

		/* The trace may have had it written already. */
		if (page_bit(page, PG_writeback))
			end_writeback(page);
		put_page(page);
		done++;
	}
	return done;
}

u32 cache_execute(const struct op *op, gfp_t gfp)
{
	u32 id = le32_to_cpu(op->id), file = id >> FILE_SHIFT;
	struct address_space *space = cache_space(file);
	pgoff_t index = id & ((1U << FILE_SHIFT) - 1);

	switch (op->op) {
	case OP_ADD:
	case OP_READ:
		return read(space, index, op->order, gfp, op->op == OP_ADD);
	case OP_FINISH:
		return finish(id);
	case OP_DEVICE:
		slow[file] = index;
		return 0;
	default:
		return change(space, index, op);
	}
}
