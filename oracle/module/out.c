// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results leave the machine through a debug port, one byte a write, each file in a frame:
 *
 *	"KTG1", u8 length of the name, the name, u64 length, u64 checksum (FNV-1a), the bytes
 *
 * A last frame named "end" holds the number of frames before it (u64), so that whoever reads them knows they are all
 * there. Numbers are little-endian.
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "kontig.h"

#define DEBUG_PORT 0xe9
#define CHUNK (64 * 1024)

static u64 frames_sent;
/* One frame after the other: a script may have something sent while something else runs beside it. */
static DEFINE_MUTEX(port);

int buffer_prepare(struct buffer *b, size_t size)
{
	b->bytes = vmalloc_node(size, OWN_NODE);
	b->len = 0;
	b->size = size;
	b->overflown = false;
	return b->bytes ? 0 : -ENOMEM;
}

void buffer_free(struct buffer *b)
{
	vfree(b->bytes);
	b->bytes = NULL;
}

void put(struct buffer *b, const char *format, ...)
{
	va_list args;
	size_t room = b->size - b->len;
	int n;

	va_start(args, format);
	n = vsnprintf(b->bytes + b->len, room, format, args);
	va_end(args);
	if (n >= room)
		b->overflown = true;
	else
		b->len += n;
}

void put_char(struct buffer *b, char c)
{
	if (b->len >= b->size)
		b->overflown = true;
	else
		b->bytes[b->len++] = c;
}

/* Lists hold hundreds of thousands of these: a good deal cheaper than a format. */
void put_hex(struct buffer *b, unsigned long value)
{
	int digits = value ? fls64(value) + 3 : 4;

	for (digits /= 4; digits > 0; digits--)
		put_char(b, "0123456789abcdef"[(value >> (4 * (digits - 1))) & 15]);
}

static void port_write(const void *bytes, size_t len)
{
	while (len) {
		size_t n = min_t(size_t, len, CHUNK);

		outsb(DEBUG_PORT, bytes, n);
		bytes += n;
		len -= n;
		cond_resched();
	}
}

static u64 fnv1a(const u8 *bytes, size_t len)
{
	u64 hash = 0xcbf29ce484222325ULL;

	while (len--) {
		hash ^= *bytes++;
		hash *= 0x100000001b3ULL;
	}
	return hash;
}

int send(const char *name, const void *bytes, size_t len)
{
	u8 name_len = strlen(name);
	__le64 head[2] = { cpu_to_le64(len), cpu_to_le64(fnv1a(bytes, len)) };

	mutex_lock(&port);
	port_write("KTG1", 4);
	port_write(&name_len, 1);
	port_write(name, name_len);
	port_write(head, sizeof(head));
	port_write(bytes, len);
	frames_sent++;
	mutex_unlock(&port);
	return 0;
}

int send_buffer(const char *name, const char *suffix, const struct buffer *b)
{
	char full[64];

	if (b->overflown) {
		pr_err("kontig: %s%s does not fit its buffer of %zu bytes\n", name, suffix, b->size);
		return -ENOSPC;
	}
	snprintf(full, sizeof(full), "%s%s", name, suffix);
	return send(full, b->bytes, b->len);
}

void send_end(void)
{
	__le64 count = cpu_to_le64(frames_sent);

	send("end", &count, sizeof(count));
}
