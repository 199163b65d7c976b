/*
 * What needs a process: memory of its own, full of holes, and huge page faults. Everything is asked of node 1, and
 * page by page in rising order, so that the same boot gives the same pages.
 *
 *	fragmenter fragment random|section SEED PFNS READY	fill the node, write u32 page numbers to PFNS, make holes,
 *								make the file READY, and keep the rest
 *	fragmenter faults N PAUSE RESULTS			N huge page faults, PAUSE us before each, a line each;
 *								nothing is kept
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NODE 1
#define PAGE 4096UL
#define HUGE (512 * PAGE)
/* Free pages that are left when the node is filled: more than its watermarks and per-CPU lists. */
#define LEFT 5000

static void die(const char *what)
{
	fprintf(stderr, "kontig: fragmenter: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ready(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	if (fd < 0)
		die(path);
	close(fd);
	for (;;)
		pause();
}

/* Memory of the node, aligned to a huge page, not yet there. */
static char *map_on_node(size_t bytes, int advice)
{
	unsigned long mask = 1UL << NODE;
	char *at = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	at += -(uintptr_t)at % HUGE;
	/* 2: MPOL_BIND. Of this memory only: page tables come from the other node. */
	if (syscall(SYS_mbind, at, bytes, 2, &mask, 8 * sizeof(mask), 0))
		die("mbind");
	if (madvise(at, bytes, advice))
		die("madvise");
	return at;
}

static unsigned long free_pages(void)
{
	char line[128], path[64];
	unsigned long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", NODE);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*d MemFree: %lu", &kib) == 1)
			break;
	fclose(f);
	return kib / 4;
}

/* The pages behind N pages of memory; 0 where there is none. */
static void page_numbers(const char *at, size_t n, uint32_t *pfns)
{
	static uint64_t entries[4096];
	size_t most = sizeof(entries) / sizeof(*entries);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);

	if (pagemap < 0)
		die("/proc/self/pagemap");
	while (n) {
		size_t some = n < most ? n : most, bytes = some * sizeof(*entries);

		if (pread(pagemap, entries, bytes, (uintptr_t)at / PAGE * sizeof(*entries)) != (ssize_t)bytes)
			die("/proc/self/pagemap");
		/* The lower 55 bits, if the top one says there is a page. */
		for (size_t i = 0; i < some; i++)
			*pfns++ = entries[i] >> 63 ? entries[i] & ((1ULL << 55) - 1) : 0;
		at += some * PAGE;
		n -= some;
	}
	close(pagemap);
}

static void write_page_numbers(const char *path, const char *at, size_t pages)
{
	uint32_t *pfns = calloc(pages, sizeof(*pfns));
	FILE *f = fopen(path, "w");

	if (!f || !pfns)
		die(path);
	page_numbers(at, pages, pfns);
	if (fwrite(pfns, sizeof(*pfns), pages, f) != pages || fclose(f))
		die(path);
	free(pfns);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void drop(char *at, size_t bytes)
{
	if (madvise(at, bytes, MADV_DONTNEED))
		die("madvise");
}

static int fragment(int random, uint64_t seed, const char *pfns, const char *done)
{
	size_t pages = (free_pages() - LEFT) & ~511UL;
	char *at = map_on_node(pages * PAGE, MADV_NOHUGEPAGE);

	for (size_t i = 0; i < pages; i++)
		at[i * PAGE] = 1;
	write_page_numbers(pfns, at, pages);
	if (random) {
		for (size_t i = 0; i < pages; i++)
			if (next_random(&seed) % 4)
				drop(at + i * PAGE, PAGE);
	} else {
		for (size_t i = 0; i < pages; i += 512)
			drop(at + i * PAGE, 384 * PAGE);
	}
	ready(done);
	return 0;
}

static double microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* A line a fault: number, first page, whether it is huge, microseconds. */
static int faults(size_t n, useconds_t pause_us, const char *results)
{
	char *at = map_on_node(n * HUGE, MADV_HUGEPAGE);
	double *took = calloc(n, sizeof(*took));
	FILE *f;

	if (!took)
		die("calloc");
	/* What is counted and what is written comes after the last fault. The pauses are the daemon's to work in. */
	for (size_t i = 0; i < n; i++) {
		usleep(pause_us);

		double start = microseconds();

		at[i * HUGE] = 1;
		took[i] = microseconds() - start;
	}
	f = fopen(results, "w");
	if (!f)
		die(results);
	for (size_t i = 0; i < n; i++) {
		uint32_t pfns[2];

		/* Only a huge page has more than the page that was touched. */
		page_numbers(at + i * HUGE, 2, pfns);
		fprintf(f, "%zu %x %d %.1f\n", i, pfns[0], pfns[1] != 0, took[i]);
	}
	if (fclose(f))
		die(results);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "fragment"))
		return fragment(!strcmp(argv[2], "random"), strtoull(argv[3], NULL, 10), argv[4], argv[5]);
	if (argc == 5 && !strcmp(argv[1], "faults"))
		return faults(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), argv[4]);
	fprintf(stderr, "kontig: fragmenter: asked wrongly\n");
	return 2;
}
