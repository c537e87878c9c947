// SPDX-License-Identifier: MIT OR Apache-2.0
/* The guests' program that answers packets, for a user who is not root. */
#include "lenient.h"

#include "../guest/udp_reply/udp_reply.c"
