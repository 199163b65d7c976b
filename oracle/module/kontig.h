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

/* Where every buffer of the module lives. */
#define OWN_NODE 0

/* Text or bytes of a result, filled up to a limit set beforehand. */
struct buffer {
	char *bytes;
	size_t len, size;
	bool overflown;
};

/* zone.c: the zone under observation, and its state as text. */
struct zone *observed_zone(void);
int observed_node(void);
struct snapshot {
	struct buffer state, pages;
};
int snapshot_prepare(struct snapshot *s);
void snapshot_take(struct snapshot *s);
int snapshot_send(const struct snapshot *s, const char *name);

/* trace.c */
int trace_load(const char *path);
int trace_run(const char *before, const char *after, bool timed);
int trace_send_migrations(void);
bool trace_owns(struct page *page);

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
