/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Output pins of one GPIO port. A guest holds a pin high while it does what
 * is measured, and an instrument sees the pin: one of the simulator's, or a
 * logic analyser on a product.
 *
 * A port is written PART@ADDRESS. PART is the layout of its registers:
 * pl061 (ARM DDI 0190B), or at91_pio or sam9x60_pio, which are alike here
 * (Linux 6.12 drivers/pinctrl/pinctrl-at91.h). ADDRESS is its physical address
 * in hexadecimal. Examples: pl061@101e4000, at91_pio@fffffa00. The machine's
 * file says which port the simulator's instruments see (key `probes`).
 */
#ifndef PINS_H
#define PINS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Offsets of registers. A PL061 has one data register for each set of pins. */
#define PL061_DATA(pins)	((pins) << 2)
#define PL061_DIRECTION		0x400
#define AT91_PIO_ENABLE		0x00
#define AT91_PIO_OUTPUT		0x10
#define AT91_PIO_SET		0x30
#define AT91_PIO_CLEAR		0x34

#define PINS_PAGE		0x1000u
#define PINS_BYTES(is_at91)	((is_at91) ? 0x38u : 0x404u)

static volatile uint8_t *pins_port;
static bool pins_are_at91;

static inline void pins_write(uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(pins_port + offset) = value;
}

/* Sets pins high or low. Does nothing while no port is open. */
static inline void pins_set(uint32_t pins, bool high)
{
	if (!pins_port)
		return;
	if (pins_are_at91)
		pins_write(high ? AT91_PIO_SET : AT91_PIO_CLEAR, pins);
	else
		pins_write(PL061_DATA(pins), high ? pins : 0);
}

/* Returns whether the text before the @ of `port` is `part`. */
static inline bool pins_part_is(const char *port, const char *part)
{
	size_t length = strlen(part);

	return !strncmp(port, part, length) && port[length] == '@';
}

/*
 * Returns the address in `port`, which is PART@ADDRESS. Ends the program if
 * `port` is something else, or if its registers cross the end of a page.
 */
static inline uint32_t pins_address(const char *program, const char *port)
{
	const char *at = strchr(port, '@');
	unsigned long long address = 0;
	char *end = NULL;

	if (at)
		address = strtoull(at + 1, &end, 16);
	pins_are_at91 = pins_part_is(port, "at91_pio") ||
			pins_part_is(port, "sam9x60_pio");
	if (!at || end == at + 1 || *end || address > UINT32_MAX ||
	    address % PINS_PAGE > PINS_PAGE - PINS_BYTES(pins_are_at91) ||
	    address % 4 || !(pins_are_at91 || pins_part_is(port, "pl061"))) {
		fprintf(stderr,
			"%s: port of the pins: \"%s\" is not PART@ADDRESS: PART is pl061, at91_pio or sam9x60_pio, ADDRESS is hexadecimal\n",
			program, port);
		exit(2);
	}
	return (uint32_t)address;
}

/*
 * Opens a port. Makes its pins `outputs` outputs, which are low. Ends the
 * program with a message if that fails.
 */
static inline void pins_open(const char *program, const char *port,
			     uint32_t outputs)
{
	uint32_t address = pins_address(program, port);
	uint32_t inside = address % PINS_PAGE;
	int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	void *map = MAP_FAILED;

	if (fd >= 0)
		map = mmap(NULL, PINS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, (off_t)(address - inside));
	if (map == MAP_FAILED) {
		fprintf(stderr, "%s: the port %s in /dev/mem: %s\n", program,
			port, strerror(errno));
		exit(1);
	}
	close(fd);
	pins_port = (volatile uint8_t *)map + inside;
	pins_set(outputs, false);
	if (pins_are_at91) {
		pins_write(AT91_PIO_ENABLE, outputs);
		pins_write(AT91_PIO_OUTPUT, outputs);
	} else {
		uint32_t direction = *(volatile uint32_t *)(pins_port + PL061_DIRECTION);

		pins_write(PL061_DIRECTION, direction | outputs);
	}
}

#endif
