// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pin 0 of GPIO 0 of the board, high while what is measured runs, so that
 * whoever looks on knows which cycles are meant. Without -g there is none.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "overhead.h"

/* A PL061: Versatile PB, ARM DDI 0190B. */
#define GPIO_BASE	0x101e4000
#define GPIO_BYTES	0x1000
#define GPIO_DATA(pins)	((pins) << 2)
#define GPIO_DIR	0x400
#define PIN		1u

static volatile uint32_t *gpio;

void pin_open(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	void *map;

	if (fd < 0)
		failed("/dev/mem");
	map = mmap(NULL, GPIO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, GPIO_BASE);
	if (map == MAP_FAILED)
		failed("the map of the GPIO");
	close(fd);
	gpio = map;
	gpio[GPIO_DATA(PIN) / 4] = 0;
	gpio[GPIO_DIR / 4] |= PIN;
}

void pin_set(int high)
{
	if (gpio)
		gpio[GPIO_DATA(PIN) / 4] = high ? PIN : 0;
}
