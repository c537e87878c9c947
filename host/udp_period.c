// SPDX-License-Identifier: MIT OR Apache-2.0
/* The guests' program that sends a packet every 500 us, for a user who is not root. */
#include "lenient.h"

#include "../guest/udp_period/udp_period.c"
