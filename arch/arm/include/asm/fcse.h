/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fast Context Switch Extension: the processor adds the PID register to every
 * virtual address (VA) below 32 MB. Caches, TLB and the MMU's table walk see
 * the sum, the modified virtual address (MVA). Operations on caches and TLB by
 * address take MVAs. See Documentation/arch/arm/fcse.rst.
 */
#ifndef __ASM_ARM_FCSE_H
#define __ASM_ARM_FCSE_H

#include <linux/const.h>

#define FCSE_PID_SHIFT		25
#define FCSE_SLOT_SIZE		(UL(1) << FCSE_PID_SHIFT)

#ifndef __ASSEMBLY__

#include <linux/types.h>

#ifdef CONFIG_ARM_FCSE

extern bool fcse_is_active;

/*
 * Do address spaces have PIDs? What is declared below is called only then, and
 * needs no stub.
 */
static inline bool fcse_active(void)
{
	return fcse_is_active;
}

static inline unsigned long fcse_relocate(unsigned long mva_base,
					  unsigned long va)
{
	return va < FCSE_SLOT_SIZE ? va + mva_base : va;
}

/* The end of a range may be 32 MB: add its size to the MVA of its start. */
#define fcse_va_to_mva(mm, va) \
	fcse_relocate((mm)->context.fcse.mva_base, (va))

#else /* !CONFIG_ARM_FCSE */

static inline bool fcse_active(void)
{
	return false;
}

#define fcse_va_to_mva(mm, va)	((void)(mm), (va))

#endif /* CONFIG_ARM_FCSE */

#endif /* __ASSEMBLY__ */

#endif /* __ASM_ARM_FCSE_H */
