// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a script in the machine can ask for, a line each, written to /proc/kontig/command:
 *
 *	load FILE		read a trace
 *	run BEFORE AFTER	execute it between two snapshots of these names; send them and the results
 *	time BEFORE AFTER	the same, with what each operation took
 *	snap NAME		send a snapshot
 *	memory ADDRESS PAGES	what the trace may touch of the memory of the process that asks; ADDRESS in hex
 *	group PATH		the trace's next memory control group, from number 1 on
 *	migrations		send the log of migrations
 *	watch SECONDS		sample the zone, and send the samples
 *	disk NAME AT MIB	a disk of a guest, from the MiB AT of memory on
 *	extfrag			count what falls back to another type's blocks from now on
 *	extfrag NAME		send the counts
 *	end			no more is to come
 *
 * With the parameter guest=1 nothing is observed: the machine is as its own one node has it.
 *
 * A file is sent by writing its name, a newline and its contents to /proc/kontig/give and closing it.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include "kontig.h"

#define MAX_COMMAND 128
#define MAX_GIVEN (32 * 1024 * 1024)
/* A guest's memory is its own. */
#define MAX_GIVEN_BY_GUEST (64 * 1024)

static bool guest;
module_param(guest, bool, 0);

static int snap(const char *name)
{
	static struct snapshot snapshot;
	int error = snapshot.pages.bytes ? 0 : snapshot_prepare(&snapshot, observed_zone());

	if (error)
		return error;
	snapshot_take(&snapshot);
	return snapshot_send(&snapshot, name);
}

static int obey(char *line)
{
	char *what = strsep(&line, " "), *first = strsep(&line, " "), *second = strsep(&line, " ");
	unsigned int seconds;
	unsigned long address, pages, at, mib;

	if (!strcmp(what, "load") && first)
		return trace_load(first);
	if ((!strcmp(what, "run") || !strcmp(what, "time")) && second)
		return trace_run(first, second, what[0] == 't');
	if (!strcmp(what, "snap") && first)
		return snap(first);
	if (!strcmp(what, "memory") && second && !kstrtoul(first, 16, &address) && !kstrtoul(second, 10, &pages))
		return process_memory(address, pages);
	if (!strcmp(what, "group") && first)
		return groups_add(first);
	if (!strcmp(what, "migrations"))
		return trace_send_migrations();
	if (!strcmp(what, "watch") && first && !kstrtouint(first, 10, &seconds))
		return watch(seconds);
	if (!strcmp(what, "disk") && second && line && !kstrtoul(second, 10, &at) && !kstrtoul(line, 10, &mib))
		return disk_add(first, at, mib);
	if (!strcmp(what, "extfrag"))
		return first ? extfrag_send(first) : extfrag_count();
	if (!strcmp(what, "daemons") && first)
		return daemons_send(first);
	if (!strcmp(what, "end")) {
		send_end();
		return 0;
	}
	return -EINVAL;
}

static ssize_t command_write(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	char line[MAX_COMMAND];
	int error;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	error = obey(strim(line));
	if (error)
		pr_err("kontig: '%s' failed: %d\n", line, error);
	return error ?: len;
}

static const struct proc_ops command_ops = { .proc_write = command_write };

/* One file is given at a time. */
static struct buffer given;

static int give_open(struct inode *inode, struct file *file)
{
	given.len = 0;
	given.overflown = false;
	return given.bytes ? 0 : buffer_prepare(&given, guest ? MAX_GIVEN_BY_GUEST : MAX_GIVEN);
}

static ssize_t give_write(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	if (len > given.size - given.len) {
		given.overflown = true;
		return -ENOSPC;
	}
	if (copy_from_user(given.bytes + given.len, from, len))
		return -EFAULT;
	given.len += len;
	return len;
}

static int give_release(struct inode *inode, struct file *file)
{
	char *newline = memchr(given.bytes, '\n', given.len);

	/* Nobody looks at what is returned here: a file that could not be sent is missed by the count. */
	if (given.overflown || !newline) {
		pr_err("kontig: a file given is too large or has no name\n");
		return 0;
	}
	*newline++ = 0;
	return send(given.bytes, newline, given.bytes + given.len - newline);
}

static const struct proc_ops give_ops = {
	.proc_open = give_open,
	.proc_write = give_write,
	.proc_release = give_release,
};

static int __init kontig_init(void)
{
	struct proc_dir_entry *dir;

	if (guest ? num_online_cpus() != 1 : !nodes_are_observed()) {
		pr_err("kontig: a guest needs one CPU, and whatever is observed memory on nodes %d to %d\n",
		       observed_node(), last_observed_node());
		return -ENODEV;
	}
	dir = proc_mkdir("kontig", NULL);
	if (!dir || !proc_create("command", 0200, dir, &command_ops) || !proc_create("give", 0200, dir, &give_ops))
		return -ENOMEM;
	return 0;
}
module_init(kontig_init);

MODULE_LICENSE("GPL v2");
MODULE_DESCRIPTION("Records what a zone's page allocator does");
