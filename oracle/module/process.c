// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the process that has the trace carried out, read and written as the process would.
 *
 * A processor notes an access in the page's entry when it loads that; afterwards it remembers the entry, and reclaim,
 * which takes the note away, does not make it forget. So it is made to forget before every access.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include "kontig.h"

static unsigned long start, pages;
static int (*advise)(struct mm_struct *mm, unsigned long start, size_t len, int behaviour);

int process_memory(unsigned long at, unsigned long nr)
{
	start = at;
	pages = nr;
	return nr ? 0 : -EINVAL;
}

int process_prepare(void)
{
	if (!pages)
		return -ENODATA;
	advise = hidden("do_madvise");
	return advise ? 0 : -ENOENT;
}

/* Whether a page that is number INDEX of its process's address space is one of those, and which. */
bool process_has(unsigned long index, unsigned long *at)
{
	*at = index - (start >> PAGE_SHIFT);
	return pages && index >= start >> PAGE_SHIFT && *at < pages;
}

/* The entry for a page; an empty one where there is no table for it. */
static pte_t entry(unsigned long address)
{
	pgd_t *pgd = pgd_offset(current->mm, address);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	if (pgd_none(*pgd))
		return __pte(0);
	p4d = p4d_offset(pgd, address);
	if (p4d_none(*p4d))
		return __pte(0);
	pud = pud_offset(p4d, address);
	if (pud_none(*pud))
		return __pte(0);
	pmd = pmd_offset(pud, address);
	if (pmd_none(*pmd))
		return __pte(0);
	return *pte_offset_kernel(pmd, address);
}

/* What there is to say of a page that is there: nothing of the page of zeroes, which is everybody's. */
static u32 says(pte_t e)
{
	return is_zero_pfn(pte_pfn(e)) ? 0 : page_says(pte_page(e));
}

u32 process_execute(const struct op *op)
{
	unsigned long at = le32_to_cpu(op->id), address = start + at * PAGE_SIZE;
	char __user *byte = (char __user *)address;
	pte_t before, after;
	u32 result = 0;
	char value;

	if (at >= pages)
		return SKIPPED;
	before = entry(address);
	if (pte_present(before))
		result |= SAYS_PRESENT;
	else if (!pte_none(before))
		result |= SAYS_SHADOW;
	if (op->op == OP_ANON_DROP) {
		if (pte_none(before))
			return SKIPPED;
		if (pte_present(before))
			result |= says(before);
		return advise(current->mm, address, PAGE_SIZE, MADV_DONTNEED) ? FAILED : result;
	}
	asm volatile("invlpg (%0)" : : "r" (address) : "memory");
	if (op->op == OP_ANON_READ ? get_user(value, byte) : put_user((char)at, byte))
		return FAILED;
	after = entry(address);
	return pte_present(after) ? result | says(after) : FAILED;
}

void process_put(struct buffer *b)
{
	put(b, "PROCESS %lx %lu\n", start >> PAGE_SHIFT, pages);
}

/* A line for each page that is not in memory: which, and where in swap it is. */
void process_put_swapped(struct buffer *b)
{
	unsigned long at;

	for (at = 0; at < pages; at++) {
		pte_t e = entry(start + at * PAGE_SIZE);

		if (pte_none(e) || pte_present(e))
			continue;
		put(b, "SWAPPED a:%lx %lx\n", at, (unsigned long)__swp_offset(__pte_to_swp_entry(e)));
	}
}
