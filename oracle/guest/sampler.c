/*
 * Runs a program and looks at the machine's memory meanwhile.
 *
 *	sampler MS DIR PROGRAM ARGUMENT...	run PROGRAM with DIR as its root; have what the kernel counts sent before it
 *						begins (start.*), every MS (s00000, s00001, ...) and when it has ended (end.*)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char report[64 * 1024];
static uint64_t began;

static void die(const char *what)
{
	fprintf(stderr, "kontig: sampler: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

static void command(const char *what, const char *name)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %s", what, name), fd = open("/proc/kontig/command", O_WRONLY);

	if (fd < 0 || write(fd, line, len) != len)
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

/* Adds a file of /proc to the report. */
static size_t add(size_t len, const char *what)
{
	char path[64];
	ssize_t n;
	int from;

	snprintf(path, sizeof(path), "/proc/%s", what);
	from = open(path, O_RDONLY);
	if (from < 0)
		die(path);
	while ((n = read(from, report + len, sizeof(report) - len)) > 0)
		len += n;
	if (n)
		die(path);
	close(from);
	return len;
}

static void phase(const char *name)
{
	static const char *const whats[] = { "vmstat", "zoneinfo", "buddyinfo", "pagetypeinfo", "meminfo" };

	give(snprintf(report, sizeof(report), "%s.clock\nns %lu\n", name, now() - began));
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++)
		give(add(snprintf(report, sizeof(report), "%s.%s\n", name, whats[i]), whats[i]));
	command("extfrag", name);
	command("daemons", name);
}

static void sample(int number)
{
	size_t len = snprintf(report, sizeof(report), "s%05d\nns %lu\n", number, now() - began);

	give(add(add(len, "buddyinfo"), "vmstat"));
}

int main(int argc, char **argv)
{
	struct timespec pause;
	sigset_t ended;
	int status, number = 0;
	long ms = argc > 3 ? atol(argv[1]) : 0;
	pid_t pid;

	if (!ms) {
		fprintf(stderr, "kontig: sampler: asked wrongly\n");
		return 2;
	}
	/* It waits for no page while others do. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		die("mlockall");
	pause = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	began = now();
	phase("start");
	began = now();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &ended, NULL);
		if (chroot(argv[2]) || chdir("/"))
			die(argv[2]);
		execv(argv[3], argv + 3);
		die(argv[3]);
	}
	do {
		sample(number++);
		if (sigtimedwait(&ended, NULL, &pause) < 0 && errno != EAGAIN && errno != EINTR)
			die("sigtimedwait");
	} while (waitpid(pid, &status, WNOHANG) != pid);
	phase("end");
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
