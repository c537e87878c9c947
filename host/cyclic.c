// SPDX-License-Identifier: MIT OR Apache-2.0
/* The guests' cyclic, for a user who may lock some memory and not all. */
#define _GNU_SOURCE
#include "lock.h"

#define mlockall lock_that_lasts
#include "../guest/cyclic/cyclic.c"
