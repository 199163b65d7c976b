/*
 * The programs of a guest in which keepers of huge pages are compared (see run): one that fragments
 * memory, one that watches how many blocks are at hand, one that needs huge pages at random moments,
 * and the keepers that guard stands beside.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define BLOCK (2UL << 20)
#define ORDERS 11
#define BLOCK_ORDER 9
#define MOST_ZONES 8

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void nap(double seconds)
{
	struct timespec t;

	if (seconds <= 0)
		return;
	t.tv_sec = (time_t)seconds;
	t.tv_nsec = (long)((seconds - t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static uint64_t state;

/* Uniform in 0..1, the same numbers for the same seed. */
static double draw(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 11) / 9007199254740992.0;
}

static void *mapped(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static FILE *opened(const char *path)
{
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static long free_mib(void)
{
	FILE *f = opened("/proc/meminfo");
	char line[256];
	long kib = 0;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemFree: %ld", &kib) == 1)
			break;
	fclose(f);
	return kib / 1024;
}

/* Takes single pages until leave_mib are free, gives half of them back at random, and holds the others. */
static int fragment(long leave_mib, int seed, double seconds)
{
	double end = now() + seconds;
	size_t bytes = (size_t)(free_mib() - leave_mib) << 20;
	char *p = mapped(bytes, MAP_PRIVATE);

	state = seed;
	for (size_t at = 0; at < bytes; at += PAGE)
		p[at] = 1;
	for (size_t at = 0; at < bytes; at += PAGE)
		if (draw() < 0.5)
			madvise(p + at, PAGE, MADV_DONTNEED);
	nap(end - now());
	return 0;
}

/* The zones' low marks, in the order of /proc/buddyinfo. */
static int low_marks(long *low)
{
	FILE *f = opened("/proc/zoneinfo");
	char line[256];
	int zones = 0;

	while (fgets(line, sizeof(line), f))
		if (zones < MOST_ZONES && sscanf(line, " low %ld", &low[zones]) == 1)
			zones++;
	fclose(f);
	return zones;
}

/* The free blocks of a line of /proc/buddyinfo. */
static void free_blocks(const char *line, long *blocks)
{
	const char *at = strstr(line, "zone") + strlen("zone");

	at += strspn(at, " ");
	at += strcspn(at, " ");
	for (int order = 0; order < ORDERS; order++) {
		char *end;

		blocks[order] = strtol(at, &end, 10);
		at = end;
	}
}

/* Blocks of 2 MiB at hand above the low marks, and those that all free memory would make. */
static void look(const long *low, int zones, long *at_hand, long *possible)
{
	FILE *f = opened("/proc/buddyinfo");
	char line[256];

	*at_hand = *possible = 0;
	for (int zone = 0; zone < zones && fgets(line, sizeof(line), f); zone++) {
		long blocks[ORDERS], pages = 0, whole = 0, room;

		free_blocks(line, blocks);
		for (int order = 0; order < ORDERS; order++)
			pages += blocks[order] << order;
		for (int order = BLOCK_ORDER; order < ORDERS; order++)
			whole += blocks[order] << (order - BLOCK_ORDER);
		room = (pages - low[zone]) >> BLOCK_ORDER;
		room = room < 0 ? 0 : room;
		*at_hand += whole < room ? whole : room;
		*possible += room;
	}
	fclose(f);
}

/* Counts the half seconds with as many blocks at hand. */
static int watch(double seconds, long wanted)
{
	long low[MOST_ZONES], samples = 0, kept = 0, possible = 0, least = -1;
	int zones = low_marks(low);
	double begin = now();

	while (now() < begin + seconds) {
		long at_hand, most;

		look(low, zones, &at_hand, &most);
		samples++;
		kept += at_hand >= wanted;
		possible += most >= wanted;
		least = least < 0 || at_hand < least ? at_hand : least;
		nap(begin + samples * 0.5 - now());
	}
	printf("samples %ld kept %ld possible %ld least %ld\n", samples, kept, possible, least);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Touches memory on huge pages; the milliseconds that took, and the huge pages it got. */
static void touch(long mib, double *ms, long *huge)
{
	size_t bytes = (size_t)mib << 20;
	char *p = mapped(bytes + BLOCK, MAP_PRIVATE), line[256];
	double begin;
	FILE *f;

	p = (char *)(((uintptr_t)p + BLOCK - 1) / BLOCK * BLOCK);
	madvise(p, bytes, MADV_HUGEPAGE);
	begin = now();
	for (size_t at = 0; at < bytes; at += PAGE)
		p[at] = 1;
	*ms = (now() - begin) * 1e3;
	f = opened("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), f)) {
		long kib;

		if (sscanf(line, "AnonHugePages: %ld", &kib) == 1)
			*huge += kib / 2048;
	}
	fclose(f);
}

/* Starts a program that touches `mib` of memory, at random moments that are `mean` seconds apart. */
static int start(double seconds, int seed, long mib, double mean)
{
	double end = now() + seconds;
	size_t most = 10000, starts = 0;
	double *ms = mapped(most * sizeof(*ms), MAP_SHARED);
	long *huge = mapped(PAGE, MAP_SHARED);

	state = seed;
	for (;;) {
		double wait = -log(1 - draw()) * mean;
		pid_t child;

		if (now() + wait > end - 5 || starts == most)
			break;
		nap(wait);
		child = fork();
		if (child == 0) {
			touch(mib, &ms[starts], huge);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		starts++;
	}
	if (starts == 0)
		return 0;
	qsort(ms, starts, sizeof(*ms), by_value);
	printf("starts %zu huge %ld of %ld ms p50 %.1f", starts, *huge, (long)starts * mib / 2, ms[starts / 2]);
	/* Of fewer it would be the largest by another name. */
	if (starts >= 299)
		printf(" p99 %.1f", ms[starts * 99 / 100]);
	printf(" most %.1f\n", ms[starts - 1]);
	return 0;
}

static void compact(void)
{
	int f = open("/sys/devices/system/node/node0/compact", O_WRONLY);

	if (f < 0 || write(f, "1", 1) != 1)
		perror("compact");
	close(f);
}

/* The share of free memory in blocks that are too small, in percent, of the highest zone. */
static long score(void)
{
	FILE *f = opened("/proc/buddyinfo");
	char line[256];
	long percent = 0;

	while (fgets(line, sizeof(line), f)) {
		long blocks[ORDERS], pages = 0, small = 0;

		free_blocks(line, blocks);
		for (int order = 0; order < ORDERS; order++) {
			pages += blocks[order] << order;
			small += order < BLOCK_ORDER ? blocks[order] << order : 0;
		}
		percent = pages ? small * 100 / pages : 0;
	}
	fclose(f);
	return percent;
}

/*
 * cron compacts once a minute. katalyst is the rule of its fragmem handler: every 10 s, where the score is 80 or more;
 * and if it still is 72 or more 10 s later, it skips ten looks. Its rule about the load is left out.
 */
static int keep(const char *kind, double seconds)
{
	double end = now() + seconds;
	struct rusage used;
	int runs = 0, skip = 0;

	while (now() < end) {
		int every = strcmp(kind, "cron") == 0 ? 60 : 10;

		nap(every < end - now() ? every : end - now());
		if (now() >= end || strcmp(kind, "none") == 0)
			continue;
		if (strcmp(kind, "cron") == 0) {
			compact();
			runs++;
		} else if (skip > 0) {
			skip--;
		} else if (score() >= 80) {
			compact();
			runs++;
			nap(10);
			skip = score() >= 72 ? 10 : 0;
		}
	}
	getrusage(RUSAGE_SELF, &used);
	printf("keeper %s runs %d cpu_s %.2f\n", kind, runs,
	       used.ru_stime.tv_sec + used.ru_utime.tv_sec + (used.ru_stime.tv_usec + used.ru_utime.tv_usec) / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "fragment") == 0)
		return fragment(atol(argv[2]), atoi(argv[3]), atof(argv[4]));
	if (argc == 4 && strcmp(argv[1], "watch") == 0)
		return watch(atof(argv[2]), atol(argv[3]));
	if (argc == 6 && strcmp(argv[1], "start") == 0)
		return start(atof(argv[2]), atoi(argv[3]), atol(argv[4]), atof(argv[5]));
	if (argc == 4 && strcmp(argv[1], "keep") == 0)
		return keep(argv[2], atof(argv[3]));
	fprintf(stderr, "host fragment|watch|start|keep ...\n");
	return 2;
}
