/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ALSA's loopback card: a process plays numbered frames through its mapping of one ring, and reads them from its
 * mapping of the other one. The kernel copies between both.
 *
 * sound_ring PERIODS [switch]
 *	switch: another process runs before and after the rings are used
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sound/asound.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FRAMES	2048	/* of a ring */
#define PERIOD	256
#define RATE	32000

struct stream {
	int fd;
	volatile uint32_t *ring;
	uint32_t at;
};

static int ask[2], answer[2], switches;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void other(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask[0], &byte, 1) == 1)
		write(answer[1], &byte, 1);
	_exit(0);
}

static void let_run(void)
{
	char byte = 0;

	if (!switches)
		return;
	write(ask[1], &byte, 1);
	read(answer[0], &byte, 1);
}

static void interval(struct snd_pcm_hw_params *p, int which, unsigned int value)
{
	struct snd_interval *one = &p->intervals[which - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL];

	one->min = one->max = value;
	one->integer = 1;
}

static void mask(struct snd_pcm_hw_params *p, int which, int bit)
{
	struct snd_mask *one = &p->masks[which - SNDRV_PCM_HW_PARAM_FIRST_MASK];

	memset(one, 0, sizeof(*one));
	one->bits[bit / 32] = 1u << bit % 32;
}

static void open_stream(struct stream *s, const char *device)
{
	struct snd_pcm_hw_params p;
	struct snd_pcm_sw_params sw = { 0 };
	int i;

	s->fd = open(device, O_RDWR | O_NONBLOCK);
	if (s->fd < 0)
		fail(device);
	memset(&p, 0xff, sizeof(p));
	p.flags = p.cmask = p.info = 0;
	for (i = SNDRV_PCM_HW_PARAM_FIRST_INTERVAL; i <= SNDRV_PCM_HW_PARAM_LAST_INTERVAL; i++)
		p.intervals[i - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL] = (struct snd_interval){ .max = ~0u };
	mask(&p, SNDRV_PCM_HW_PARAM_ACCESS, SNDRV_PCM_ACCESS_MMAP_INTERLEAVED);
	mask(&p, SNDRV_PCM_HW_PARAM_FORMAT, SNDRV_PCM_FORMAT_S16_LE);
	interval(&p, SNDRV_PCM_HW_PARAM_CHANNELS, 2);
	interval(&p, SNDRV_PCM_HW_PARAM_RATE, RATE);
	interval(&p, SNDRV_PCM_HW_PARAM_PERIOD_SIZE, PERIOD);
	interval(&p, SNDRV_PCM_HW_PARAM_BUFFER_SIZE, FRAMES);
	if (ioctl(s->fd, SNDRV_PCM_IOCTL_HW_PARAMS, &p))
		fail("HW_PARAMS");
	sw.avail_min = sw.period_step = 1;
	sw.start_threshold = sw.boundary = sw.stop_threshold = 0x40000000;
	sw.proto = SNDRV_PCM_VERSION;
	if (ioctl(s->fd, SNDRV_PCM_IOCTL_SW_PARAMS, &sw))
		fail("SW_PARAMS");
	s->ring = mmap(NULL, FRAMES * 4, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, SNDRV_PCM_MMAP_OFFSET_DATA);
	if (s->ring == MAP_FAILED)
		fail("mmap of the ring");
	if (ioctl(s->fd, SNDRV_PCM_IOCTL_PREPARE))
		fail("PREPARE");
}

/* Where the kernel is; we are at `s->at`. */
static uint32_t kernel_at(struct stream *s)
{
	struct snd_pcm_sync_ptr both = { .flags = SNDRV_PCM_SYNC_PTR_HWSYNC };

	both.c.control.appl_ptr = s->at;
	both.c.control.avail_min = 1;
	if (ioctl(s->fd, SNDRV_PCM_IOCTL_SYNC_PTR, &both))
		fail("SYNC_PTR");
	return both.s.status.hw_ptr;
}

int main(int argc, char **argv)
{
	uint32_t frames = PERIOD * (argc > 1 ? atoi(argv[1]) : 20), last = 0, got = 0, wrong = 0;
	struct stream out = { 0 }, in = { 0 };

	switches = argc > 2;
	pipe(ask);
	pipe(answer);
	if (!fork())
		other();
	open_stream(&out, "/dev/snd/pcmC0D0p");
	open_stream(&in, "/dev/snd/pcmC0D1c");
	for (; out.at < FRAMES - PERIOD; out.at++)
		out.ring[out.at] = out.at + 1;
	let_run();
	kernel_at(&out);
	if (ioctl(in.fd, SNDRV_PCM_IOCTL_START) || ioctl(out.fd, SNDRV_PCM_IOCTL_START))
		fail("START");
	while (got < frames) {
		uint32_t there;

		usleep(PERIOD * 1000000ll / RATE);
		there = kernel_at(&in);
		let_run();
		for (; in.at != there; in.at++) {
			uint32_t frame = in.ring[in.at % FRAMES];

			/* There is silence before the first one. */
			if (!got && !frame)
				continue;
			got++;
			wrong += frame != last + 1;
			last++;
		}
		there = kernel_at(&out);
		for (; out.at - there < FRAMES - PERIOD; out.at++)
			out.ring[out.at % FRAMES] = out.at + 1;
		let_run();
		kernel_at(&out);
	}
	printf("%u frames, of which %u are wrong\n", got, wrong);
	return wrong != 0;
}
