/* The programs beside the driver: memory that rests, processes that fill memory and end, a reader of a file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&time, NULL);
}

/* Fills this many MiB, one after the other. */
static void fill(int mib, long ms)
{
	for (int i = 0; i < mib; i++) {
		char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			_exit(1);
		memset(at, i + 1, MIB);
		sleep_ms(ms);
	}
}

static void read_at_random(const char *path, int mib, long ms)
{
	static char into[MIB];
	int file = open(path, O_RDONLY);
	if (file < 0)
		_exit(1);
	srand(7);
	for (;; sleep_ms(ms))
		if (pread(file, into, MIB, (off_t)(rand() % mib) * MIB) <= 0)
			_exit(1);
}

/* hold MIB MS | churn MIB MS | read MIB MS FILE */
int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int mib = atoi(argv[2]);
	long ms = atol(argv[3]);
	if (!strcmp(argv[1], "hold")) {
		fill(mib, ms);
		pause();
	} else if (!strcmp(argv[1], "churn")) {
		for (;;) {
			pid_t child = fork();
			if (child == 0) {
				fill(mib, ms);
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
	} else if (argc > 4) {
		read_at_random(argv[4], mib, ms);
	}
	return 2;
}
