/*
 * Plays a pattern: steps that a process of a guest takes, a line each, as crates/program/src/act.rs writes them and
 * crates/workload/src/player.rs plays them in the laboratory.
 *
 *	player prepare STEPS DIR	makes the files that the steps name, past the page cache
 *	player play STEPS DIR		takes the steps, and has what the kernel counts sent at each phase
 *	player go-on STEPS DIR LINE	what a process does that has replaced itself at this line
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
/* Pages of one read or write. */
#define CALL 32
/* Pages of one write past the page cache. */
#define LONG_CALL 1024
#define MOST_STEPS 4096
#define MOST_AREAS 16
#define MOST_FILES 16
#define NAME 24

struct step {
	char what[16], name[NAME];
	uint64_t n[5];
};

static struct step steps[MOST_STEPS];
static int nr_steps;
static char *areas[MOST_AREAS];
static uint64_t area_pages[MOST_AREAS];
static int files[MOST_FILES];
static char buffer[CALL * PAGE] __attribute__((aligned(PAGE)));
static char report[64 * 1024];
static const char *steps_file, *dir;
/* When the steps after the last phase began: by the clock, and by the time on the CPU of this process alone. */
static uint64_t since, cpu_since;

static void die(const char *what)
{
	fprintf(stderr, "kontig: player: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Below N, as the laboratory's programs have it. */
static uint64_t below(uint64_t *state, uint64_t n)
{
	return (unsigned __int128)next_random(state) * n >> 64;
}

static void read_steps(void)
{
	FILE *f = fopen(steps_file, "r");
	char line[160];

	if (!f)
		die(steps_file);
	while (fgets(line, sizeof(line), f)) {
		struct step *s = &steps[nr_steps++];
		int at = 0;

		if (nr_steps == MOST_STEPS || sscanf(line, "%15s%n", s->what, &at) != 1)
			die("a step");
		if (!strcmp(s->what, "phase"))
			sscanf(line + at, "%23s", s->name);
		else
			sscanf(line + at, "%lu %lu %lu %lu %lu", &s->n[0], &s->n[1], &s->n[2], &s->n[3], &s->n[4]);
	}
	fclose(f);
}

static bool is(const struct step *s, const char *what)
{
	return !strcmp(s->what, what);
}

static int open_file(uint64_t number, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%lu", dir, number);
	fd = open(path, flags, 0600);
	if (fd < 0)
		die(path);
	return fd;
}

static int opened(uint64_t number)
{
	if (!files[number])
		files[number] = open_file(number, O_RDWR | O_CREAT);
	return files[number];
}

/* What is read later is there, and nothing of it in memory. */
static void prepare(void)
{
	char *bytes = mmap(NULL, LONG_CALL * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(bytes, 1, LONG_CALL * PAGE);
	for (int i = 0; i < nr_steps; i++) {
		if (!is(&steps[i], "file"))
			continue;

		int fd = open_file(steps[i].n[0], O_RDWR | O_CREAT | O_DIRECT);

		for (uint64_t at = 0; at < steps[i].n[1]; at += LONG_CALL) {
			size_t pages = steps[i].n[1] - at < LONG_CALL ? steps[i].n[1] - at : LONG_CALL;

			if (pwrite(fd, bytes, pages * PAGE, at * PAGE) != (ssize_t)(pages * PAGE))
				die("preparing a file");
		}
		if (fsync(fd) || close(fd))
			die("preparing a file");
	}
}

static void command(const char *line)
{
	int fd = open("/proc/kontig/command", O_WRONLY);

	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		die(line);
	close(fd);
}

static void give(size_t len)
{
	int to = open("/proc/kontig/give", O_WRONLY);

	if (to < 0 || write(to, report, len) != (ssize_t)len)
		die("/proc/kontig/give");
	close(to);
}

static void send(const char *phase, const char *what)
{
	char path[64];
	int from;
	size_t head = snprintf(report, sizeof(report), "%s.%s\n", phase, what), len = head;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s", what);
	from = open(path, O_RDONLY);
	if (from < 0)
		die(path);
	while ((n = read(from, report + len, sizeof(report) - len)) > 0)
		len += n;
	if (n || len == head)
		die(path);
	close(from);
	give(len);
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

static void phase(const char *name)
{
	static const char *const whats[] = { "vmstat", "zoneinfo", "buddyinfo", "pagetypeinfo", "meminfo" };
	uint64_t ns = now(CLOCK_MONOTONIC) - since, cpu_ns = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_since;
	char line[64];

	give(snprintf(report, sizeof(report), "%s.clock\nns %lu\ncpu_ns %lu\n", name, ns, cpu_ns));
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++)
		send(name, whats[i]);
	snprintf(line, sizeof(line), "extfrag %s", name);
	command(line);
	snprintf(line, sizeof(line), "daemons %s", name);
	command(line);
	since = now(CLOCK_MONOTONIC);
	cpu_since = now(CLOCK_PROCESS_CPUTIME_ID);
}

static void transfer(int fd, uint64_t first, uint64_t pages, bool out)
{
	while (pages) {
		uint64_t some = pages < CALL ? pages : CALL;
		ssize_t n = out ? pwrite(fd, buffer, some * PAGE, first * PAGE) : pread(fd, buffer, some * PAGE, first * PAGE);

		if (n != (ssize_t)(some * PAGE))
			die(out ? "write" : "read");
		first += some;
		pages -= some;
	}
}

static volatile char *page_of(const uint64_t *n, uint64_t at)
{
	if (n[0] >= MOST_AREAS || !areas[n[0]] || at >= area_pages[n[0]])
		die("a page of no area");
	return areas[n[0]] + at * PAGE;
}

static void map(uint64_t area, uint64_t pages)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *at = mmap(NULL, (pages + 511) * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	/* At a huge page's begin, as the laboratory has it. */
	at += -(uintptr_t)at % (512 * PAGE);
	areas[area] = at;
	area_pages[area] = pages;
}

/* Waits for one child, or for all. */
static void wait_children(bool all)
{
	int status;

	do {
		pid_t pid = wait(&status);

		if (pid < 0 && errno == ECHILD && all)
			return;
		if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			die("a child");
	} while (all);
}

/* The step after the 'end' that belongs to the 'fork' at I. */
static int beyond(int i)
{
	int depth = 0;

	do {
		depth += is(&steps[i], "fork") - is(&steps[i], "end");
		i++;
	} while (depth);
	return i;
}

static void replace_oneself(int next)
{
	char line[16];

	snprintf(line, sizeof(line), "%d", next);
	execl("/bin/player", "player", "go-on", steps_file, dir, line, (char *)NULL);
	die("exec");
}

/* Takes the steps from I on, up to the end of them or of the child that this is. */
static void play(int i)
{
	while (i < nr_steps) {
		struct step *s = &steps[i++];
		const uint64_t *n = s->n;
		uint64_t random = n[4];

		if (is(s, "phase"))
			phase(s->name);
		else if (is(s, "file"))
			continue;
		else if (is(s, "map"))
			map(n[0], n[1]);
		else if (is(s, "advise-huge"))
			madvise(areas[n[0]], area_pages[n[0]] * PAGE, MADV_HUGEPAGE);
		else if (is(s, "touch"))
			for (uint64_t k = 0; k < n[2]; k++)
				*page_of(n, n[1] + k) = 1;
		else if (is(s, "load"))
			for (uint64_t k = 0; k < n[2]; k++)
				(void)*page_of(n, n[1] + k);
		else if (is(s, "touch-random"))
			for (uint64_t k = 0; k < n[3]; k++)
				*page_of(n, n[1] + below(&random, n[2])) = 1;
		else if (is(s, "unmap"))
			munmap(areas[n[0]], area_pages[n[0]] * PAGE);
		else if (is(s, "read"))
			transfer(opened(n[0]), n[1], n[2], false);
		else if (is(s, "read-random"))
			for (uint64_t k = 0; k < n[3]; k++)
				transfer(opened(n[0]), n[1] + below(&random, n[2]), 1, false);
		else if (is(s, "write"))
			transfer(opened(n[0]), n[1], n[2], true);
		else if (is(s, "fsync"))
			fsync(opened(n[0]));
		else if (is(s, "sleep"))
			usleep(n[0]);
		else if (is(s, "wait"))
			wait_children(false);
		else if (is(s, "wait-all"))
			wait_children(true);
		else if (is(s, "exec"))
			replace_oneself(i);
		else if (is(s, "end"))
			_exit(0);
		else if (is(s, "fork")) {
			pid_t pid = fork();

			if (pid < 0)
				die("fork");
			if (pid)
				i = beyond(i - 1);
		} else
			die(s->what);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "kontig: player: asked wrongly\n");
		return 2;
	}
	steps_file = argv[2];
	dir = argv[3];
	read_steps();
	since = now(CLOCK_MONOTONIC);
	cpu_since = now(CLOCK_PROCESS_CPUTIME_ID);
	if (!strcmp(argv[1], "prepare"))
		prepare();
	else
		play(argc > 4 ? atoi(argv[4]) : 0);
	return 0;
}
