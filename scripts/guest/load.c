/* The load of `make kernel-order`: asynchronous direct I/O of 4 KiB at random addresses, submitted one by one.
 *
 *     load DEVICE REQUESTS OUTSTANDING READS PRIORITY SEED...
 *
 * READS is the share of reads in per cent. Each group of the last two arguments is a process of its own, with its
 * I/O priority (best effort, 0 to 7) and the seed of its draws; REQUESTS is the number of each. The processes
 * begin 200 ms apart, as bfq merges the queues of those that begin within 180 ms at one priority.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, MOST = 512 };

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void work(const char *device, long requests, long outstanding, uint64_t reads, int priority, uint64_t seed)
{
	static struct iocb blocks[MOST];
	struct iocb *free_blocks[MOST], *one;
	struct io_event events[MOST];
	aio_context_t context = 0;
	uint64_t size, state = seed * 0x9e3779b97f4a7c15u + 1;
	long sent = 0, ended = 0, left = outstanding;
	void *data;
	int file = open(device, O_RDWR | O_DIRECT);

	if (file < 0 || ioctl(file, BLKGETSIZE64, &size) || posix_memalign(&data, BYTES, BYTES))
		fail(device);
	memset(data, 1, BYTES);
	if (syscall(SYS_ioprio_set, 1, 0, 2 << 13 | priority) || syscall(SYS_io_setup, MOST, &context))
		fail("io_setup");
	for (long at = 0; at < outstanding; at++)
		free_blocks[at] = &blocks[at];
	while (ended < requests) {
		while (sent < requests && left > 0) {
			one = free_blocks[--left];
			memset(one, 0, sizeof *one);
			one->aio_fildes = file;
			one->aio_lio_opcode = draw(&state) % 100 < reads ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
			one->aio_buf = (uintptr_t)data;
			one->aio_nbytes = BYTES;
			one->aio_offset = (int64_t)(draw(&state) % (size / BYTES) * BYTES);
			if (syscall(SYS_io_submit, context, 1, &one) != 1)
				fail("io_submit");
			sent++;
		}
		long count = syscall(SYS_io_getevents, context, 1, MOST, events, NULL);
		if (count < 0)
			fail("io_getevents");
		for (long at = 0; at < count; at++)
			free_blocks[left++] = (struct iocb *)(uintptr_t)events[at].obj;
		ended += count;
	}
}

int main(int count, char **words)
{
	if (count < 7 || atol(words[3]) > MOST) {
		fprintf(stderr, "usage: load DEVICE REQUESTS OUTSTANDING READS PRIORITY SEED...\n");
		return 1;
	}
	for (int at = 5; at + 1 < count; at += 2) {
		if (fork() == 0) {
			work(words[1], atol(words[2]), atol(words[3]), strtoull(words[4], NULL, 10), atoi(words[at]),
			     strtoull(words[at + 1], NULL, 10));
			return 0;
		}
		nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	}
	int status, worst = 0;
	while (wait(&status) > 0)
		worst |= status;
	return worst != 0;
}
