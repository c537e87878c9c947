// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The pin that is high while what is measured runs, so that an instrument
 * knows which cycles are meant. Without -g there is none.
 */
#include "overhead.h"
#include "pins.h"

#define PIN	1u

void pin_open(const char *port)
{
	pins_open("overhead", port, PIN);
}

void pin_set(int high)
{
	pins_set(PIN, high);
}
