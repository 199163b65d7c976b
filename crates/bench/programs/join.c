/* The probe of a hash join: keys of one table, read in order, are looked up in a hash table of the
 * other. No lookup waits for another. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct entry {
	uint64_t key, value;
};

static uint64_t hash(uint64_t key, int bits)
{
	return key * 0x9e3779b97f4a7c15u >> (64 - bits);
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int bits = argc > 1 ? atoi(argv[1]) : 20, passes = argc > 2 ? atoi(argv[2]) : 1;
	uint64_t slots = 1ull << bits, rows = slots / 2, found = 0, state = 1;
	struct entry *table = calloc(slots, sizeof *table);
	uint64_t *keys = malloc(rows * sizeof *keys);

	if (!table || !keys)
		return 1;
	for (uint64_t key = 1; key <= rows; key++) {
		uint64_t slot = hash(key, bits);

		while (table[slot].key)
			slot = (slot + 1) & (slots - 1);
		table[slot] = (struct entry){ key, key };
	}
	for (uint64_t row = 0; row < rows; row++) {
		state = state * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
		keys[row] = 1 + (state >> 33) % rows;
	}
	puts("ready");
	fflush(stdout);
	getchar();
	for (int pass = 0; pass < passes; pass++) {
		uint64_t begin = thread_ns();

		for (uint64_t row = 0; row < rows; row++) {
			uint64_t key = keys[row], slot = hash(key, bits);

			while (table[slot].key != key)
				slot = (slot + 1) & (slots - 1);
			found += table[slot].value;
		}
		printf("round_ns %llu %llu\n", (unsigned long long)(thread_ns() - begin), (unsigned long long)found);
	}
	return 0;
}
