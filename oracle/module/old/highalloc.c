// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of MMTests' stress-highalloc, for a kernel of 3.13.
 *
 * "ATTEMPTS MS" written to /proc/highalloc asks for that many huge pages, MS milliseconds from one to the next, and
 * frees them; meanwhile the driver keeps its CPU. What the last pass obtained is read from there.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define HUGE_ORDER 9

static char obtained[64];

static int pass(unsigned int attempts, unsigned int ms)
{
	struct page **pages = vzalloc(attempts * sizeof(*pages));
	unsigned long next = jiffies;
	unsigned int i, ok = 0;

	if (!pages)
		return -ENOMEM;
	for (i = 0; i < attempts && !signal_pending(current); i++) {
		next += msecs_to_jiffies(ms);
		pages[i] = alloc_pages(GFP_HIGHUSER_MOVABLE | __GFP_NOWARN, HUGE_ORDER);
		ok += pages[i] != NULL;
		while (time_before(jiffies, next))
			schedule();
	}
	snprintf(obtained, sizeof(obtained), "attempts %u obtained %u\n", i, ok);
	while (i--)
		if (pages[i])
			__free_pages(pages[i], HUGE_ORDER);
	vfree(pages);
	return 0;
}

static ssize_t highalloc_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	unsigned int attempts, ms;
	char text[64];
	int failed;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = 0;
	if (sscanf(text, "%u %u", &attempts, &ms) != 2 || attempts > 1 << 20)
		return -EINVAL;
	failed = pass(attempts, ms);
	return failed ? failed : length;
}

static ssize_t highalloc_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
	return simple_read_from_buffer(to, length, at, obtained, strlen(obtained));
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = highalloc_read,
	.write = highalloc_write,
};

static int __init highalloc_init(void)
{
	return proc_create("highalloc", 0600, NULL, &operations) ? 0 : -ENOMEM;
}

static void __exit highalloc_exit(void)
{
	remove_proc_entry("highalloc", NULL);
}

module_init(highalloc_init);
module_exit(highalloc_exit);
MODULE_LICENSE("GPL v2");
