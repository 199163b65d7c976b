/*
 * The process that has a trace carried out: its memory is what the trace's operations on a process's pages touch.
 *
 *	runner PAGES	PAGES of memory of node 1, none of them there yet; then the trace, from t0 to t1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE 1
#define PAGE 4096UL

static void die(const char *what)
{
	fprintf(stderr, "kontig: runner: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void command(const char *line)
{
	int fd = open("/proc/kontig/command", O_WRONLY);

	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		die(line);
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned long pages = argc == 2 ? strtoul(argv[1], NULL, 10) : 0, mask = 1UL << NODE;
	char line[96];

	if (pages) {
		char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
				0);

		if (at == MAP_FAILED)
			die("mmap");
		/* 2: MPOL_BIND. Of this memory only: page tables come from the other node. */
		if (syscall(SYS_mbind, at, pages * PAGE, 2, &mask, 8 * sizeof(mask), 0))
			die("mbind");
		if (madvise(at, pages * PAGE, MADV_NOHUGEPAGE))
			die("madvise");
		snprintf(line, sizeof(line), "memory %lx %lu", (unsigned long)at, pages);
		command(line);
	}
	command("run t0 t1");
	return 0;
}
