// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * init: the first and only process beside a measuring program under another
 * kernel. Runs it, says how it ended, and resets the machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	/* The kernel gives to init what it does not know of its command line. */
	char *turns = getenv("turns");
	int status = -1;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		execl("/ioperm", "ioperm", turns ? turns : "1", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	printf("@@end %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 1;
}
