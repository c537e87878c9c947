// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast Context Switch Extension: the mode, as asked for and as possible; whose
 * lines the caches may have; the life of PIDs.
 */
#define pr_fmt(fmt) "FCSE: " fmt

#include <linux/cache.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/string.h>

#include <asm/cp15.h>
#include <asm/fcse.h>

enum fcse_mode {
	FCSE_OFF,
	FCSE_GUARANTEED,
};

/* Off until fcse_init(), which runs before the first process. */
static enum fcse_mode fcse_mode __ro_after_init;
bool fcse_is_active __ro_after_init;

static const char * const mode_names[] = {
	[FCSE_OFF]		= "off",
	[FCSE_GUARANTEED]	= "guaranteed",
};

static enum fcse_mode wanted_mode __initdata =
	IS_ENABLED(CONFIG_ARM_FCSE_GUARANTEED) ? FCSE_GUARANTEED : FCSE_OFF;

static int __init fcse_param(char *value)
{
	int mode = value ? match_string(mode_names, ARRAY_SIZE(mode_names),
					value) : -EINVAL;

	if (mode < 0) {
		pr_err("no mode \"%s\"\n", value ?: "");
		return mode;
	}
	wanted_mode = mode;
	return 0;
}
early_param("fcse", fcse_param);

static int __init fcse_init(void)
{
	/* Vectors at address 0 would be relocated. */
	if (wanted_mode != FCSE_OFF && !vectors_high()) {
		pr_info("vectors are at address 0, off\n");
		return 0;
	}
	fcse_mode = wanted_mode;
	fcse_is_active = fcse_mode != FCSE_OFF;
	pr_info("%s\n", mode_names[fcse_mode]);
	return 0;
}
early_initcall(fcse_init);
