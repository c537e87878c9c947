// SPDX-License-Identifier: GPL-2.0-only
/* M, one thread, has pages of a block device mapped privately (readable only). Q writes to that device
 * directly (O_DIRECT), which takes the pages out of M's page tables: flush of the caches, entries cleared,
 * flush of the TLB and the caches. M preempts Q again and again; between two flushes it reads, and when the
 * entries are gone discards the blocks itself. Then its mapping must show zeros. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <linux/fs.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#define PAGE 4096
static int N = 4;
static int done[2];
static int inside(void){int n=0;ioctl(done[0],FIONREAD,&n);return !n;}
static void nap(long ns){struct timespec g={0,ns};clock_nanosleep(CLOCK_MONOTONIC,0,&g,0);}
int main(int c,char**v)
{
	int rounds=c>1?atoi(v[1]):1000;
	long d1=c>2?atol(v[2]):100000,spread=c>3?atol(v[3]):60000;
	long gap=c>4?atol(v[4]):20000,gspread=c>5?atol(v[5]):30000;
	int stores=c>6;
	int go[2],i,r,stale=0,met=0,steps=0,lost=0;
	FILE*f=fopen("/sys/block/zram0/disksize","w"); if(f){fprintf(f,"4M");fclose(f);}
	int fd=open("/dev/zram0",O_RDWR),dfd=open("/dev/zram0",O_RDWR|O_DIRECT),pm=open("/proc/self/pagemap",O_RDONLY);
	if(fd<0||dfd<0||pm<0){perror("open");return 2;}
	if(pipe(go)||pipe(done))return 2;
	uint32_t*buf=mmap(0,N*PAGE,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
	memset(buf,0,N*PAGE);
	pid_t q=fork();
	if(!q){
		char x;
		prctl(PR_SET_PDEATHSIG,SIGKILL);
		for(;;){
			if(read(go[0],&x,1)!=1)exit(0);
			if(write(done[1],&x,1)!=1)exit(2);
			if(pwrite(dfd,buf,N*PAGE,0)!=N*PAGE){perror("pwrite");exit(2);}
			if(write(done[1],&x,1)!=1)exit(2);
		}
	}
	struct sched_param p={50}; if(sched_setscheduler(0,SCHED_FIFO,&p))perror("fifo");
	prctl(PR_SET_TIMERSLACK,1);
	volatile uint32_t*m=mmap(0,N*PAGE,stores?PROT_READ|PROT_WRITE:PROT_READ,stores?MAP_SHARED:MAP_PRIVATE,fd,0);
	if(m==MAP_FAILED)return 2;
	srand(1);
	for(r=1;r<=rounds;r++){
		char x=0; uint32_t s=0; uint64_t e[4]; int gone=0;
		for(i=0;i<N*1024;i++)buf[i]=r;
		if(pwrite(fd,buf,N*PAGE,0)!=N*PAGE)return 2;
		for(i=0;i<N;i++)s+=m[i*1024];
		if(s!=(uint32_t)N*r){printf("before: %x\n",s);}
		if(write(go[1],&x,1)!=1)return 2;
		if(read(done[0],&x,1)!=1)return 2;
		nap(d1+rand()%spread);
		for(int k=0;k<1000&&inside();k++){
			if(pread(pm,e,8*N,(uintptr_t)m/PAGE*8)!=8*N)return 2;
			if(!(e[0]>>63)){gone=1;break;}
			for(i=0;i<N;i++)s+=m[i*1024]+m[i*1024+1016];
			steps++;
			nap(gap+rand()%gspread);
		}
		if(gone&&inside()){if(r<6)printf("k %d\n",steps);
			int bad=0;
			met++;
			uint64_t ra[2]={0,N*PAGE};
			if(ioctl(fd,BLKDISCARD,ra)){perror("discard");return 2;}
			if(!stores)for(i=0;i<N;i++)bad+=(m[i*1024]!=0)+(m[i*1024+1016]!=0);
			if(bad){if(++stale<=3)printf("round %d: of %d words %d are old\n",r,2*N,bad);}
			if(stores){for(i=0;i<N;i++)m[i*1024]=m[i*1024+1016]=~r;}
		} else gone=0;
		if(read(done[0],&x,1)!=1)return 2;
		if(gone&&stores){
			if(pread(fd,buf,N*PAGE,0)!=N*PAGE)return 2;
			for(i=0;i<N;i++)lost+=(buf[i*1024]!=~(uint32_t)r)+(buf[i*1024+1016]!=~(uint32_t)r);}
		if(stores)madvise((void*)m,N*PAGE,MADV_DONTNEED);
		if(0){int bad=0;for(i=0;i<N;i++)bad+=(m[i*1024]!=~(uint32_t)r)+(m[i*1024+1016]!=~(uint32_t)r);lost+=bad!=0&&bad!=2*N;}
	}
	printf("%d rounds, %d steps, %d saw the entries gone; old words in %d, words stored and not in the file %d\n",rounds,steps,met,stale,lost);
	kill(q,9);
	return stale!=0;
}
