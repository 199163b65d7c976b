// SPDX-License-Identifier: GPL-2.0-only
/*
 * Disks of a guest: memory that the kernel was told to leave alone, with the times of a flash disk.
 *
 * The kernel allocates none of what a disk holds, and waits for every request. A block alone takes its latency;
 * requests together wait for one another, each for at least what a full queue needs for a request or for its data. The
 * laboratory's flash disks obey the same rule.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/slab.h>
#include "kontig.h"

/* In 5.10 a disk has its queue from elsewhere, and no guest is recorded of it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
/* Requests the host may have under way. */
#define QUEUE_DEPTH 64
#define MIB (1UL << 20)
#define BLOCK 4096
/* Of reading and of writing: 4 KiB at 500 MB/s, a request of a full queue, a request alone. In ns. */
static const u64 block_ns[] = { 8192, 8192 }, request_ns[] = { 10000, 10000 }, alone_ns[] = { 80000, 20000 };

struct disk {
	struct blk_mq_tag_set tags;
	struct gendisk *disk;
	char *bytes;
	/* When what all requests share is free again. */
	u64 free_ns;
};

static enum hrtimer_restart is_through(struct hrtimer *timer)
{
	blk_mq_complete_request(blk_mq_rq_from_pdu(timer));
	return HRTIMER_NORESTART;
}

static void disk_complete(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static u64 serve(struct disk *d, unsigned int bytes, bool write)
{
	u64 takes = max(block_ns[write] * DIV_ROUND_UP(bytes, BLOCK), request_ns[write]);

	d->free_ns = max(d->free_ns, ktime_get_ns() + alone_ns[write] - request_ns[write]) + takes;
	return d->free_ns;
}

static blk_status_t disk_queue(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct request *rq = data->rq;
	struct disk *d = rq->q->queuedata;
	struct hrtimer *timer = blk_mq_rq_to_pdu(rq);
	char *at = d->bytes + (blk_rq_pos(rq) << SECTOR_SHIFT);
	struct req_iterator each;
	struct bio_vec part;

	blk_mq_start_request(rq);
	rq_for_each_segment(part, rq, each) {
		if (op_is_write(req_op(rq)))
			memcpy_from_bvec(at, &part);
		else
			memcpy_to_bvec(&part, at);
		at += part.bv_len;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, is_through, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = is_through;
#endif
	hrtimer_start(timer, ns_to_ktime(serve(d, blk_rq_bytes(rq), op_is_write(req_op(rq)))), HRTIMER_MODE_ABS);
	return BLK_STS_OK;
}

static const struct blk_mq_ops disk_ops = {
	.queue_rq = disk_queue,
	.complete = disk_complete,
};

static const struct block_device_operations block_ops = { .owner = THIS_MODULE };

int disk_add(const char *name, unsigned long at_mib, unsigned long mib)
{
	struct disk *d = kzalloc(sizeof(*d), GFP_KERNEL);
	int error;

	if (!d)
		return -ENOMEM;
	d->bytes = memremap(at_mib * MIB, mib * MIB, MEMREMAP_WB);
	if (!d->bytes)
		return -ENXIO;
	d->tags.ops = &disk_ops;
	d->tags.nr_hw_queues = 1;
	d->tags.queue_depth = QUEUE_DEPTH;
	d->tags.numa_node = NUMA_NO_NODE;
	d->tags.cmd_size = sizeof(struct hrtimer);
	/* The host orders nothing. */
	d->tags.flags = BLK_MQ_F_NO_SCHED_BY_DEFAULT;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	d->tags.flags |= BLK_MQ_F_SHOULD_MERGE;
#endif
	error = blk_mq_alloc_tag_set(&d->tags);
	if (error)
		return error;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	struct queue_limits limits = { .logical_block_size = BLOCK, .physical_block_size = BLOCK };

	d->disk = blk_mq_alloc_disk(&d->tags, &limits, d);
#else
	d->disk = blk_mq_alloc_disk(&d->tags, d);
#endif
	if (IS_ERR(d->disk))
		return PTR_ERR(d->disk);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	blk_queue_logical_block_size(d->disk->queue, BLOCK);
	blk_queue_physical_block_size(d->disk->queue, BLOCK);
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	blk_queue_flag_set(QUEUE_FLAG_NONROT, d->disk->queue);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, d->disk->queue);
#endif
	strscpy(d->disk->disk_name, name, sizeof(d->disk->disk_name));
	d->disk->fops = &block_ops;
	set_capacity(d->disk, mib * MIB >> SECTOR_SHIFT);
	/* A machine has its disks to the end: nothing is taken away again. */
	return add_disk(d->disk);
}
#else
int disk_add(const char *name, unsigned long at_mib, unsigned long mib)
{
	return -EOPNOTSUPP;
}
#endif
