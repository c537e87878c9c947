// SPDX-License-Identifier: GPL-2.0-only
/* Two threads: one gives pages back by madvise(), the other (FIFO) preempts it in small steps and stores to
 * them while they are there; when they are gone it stores again (a new page is entered) and reads a word of
 * a line that it did not touch: 0 shows the new page. Then its store must stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#define PAGE 4096
#define N 4
static volatile uint32_t *m; static sem_t go, fin; static volatile int inside;
static char evict[600*PAGE];
static void nap(long ns){struct timespec g={0,ns};clock_nanosleep(CLOCK_MONOTONIC,0,&g,0);}
static void*a(void*x)
{
	struct sched_param p={0};
	sched_setscheduler(0,SCHED_OTHER,&p);
	for(;;){sem_wait(&go);inside=1;madvise((void*)m,N*PAGE,MADV_DONTNEED);inside=0;sem_post(&fin);}
	return x;
}
int main(int c,char**v){
	int rounds=c>1?atoi(v[1]):500;long gap=c>2?atol(v[2]):20000,gs=c>3?atol(v[3]):30000;int wait=c>4;
	int pm=open("/proc/self/pagemap",O_RDONLY),r,i,met=0,fresh=0,lost=0,oldw=0,steps=0,other=0;pthread_t t;
	sem_init(&go,0,0);sem_init(&fin,0,0);prctl(PR_SET_TIMERSLACK,1);
	struct sched_param p={50};sched_setscheduler(0,SCHED_FIFO,&p);
	pthread_create(&t,0,a,0);
	m=mmap(0,N*PAGE,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
	volatile uint32_t*o=mmap(0,64*PAGE,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
	memset(evict,1,sizeof evict);srand(1);
	for(r=1;r<=rounds;r++){
		uint64_t e[N];int fr[N];int gone=0,k,bad=0,f=0,sem;
		for(i=0;i<N*1024;i++)m[i]=0x80000000u|r;
		sem_post(&go);
		for(k=0;k<400;k++){
			nap(gap+rand()%gs);
			if(pread(pm,e,8*N,(uintptr_t)m/PAGE*8)!=8*N)return 2;
			gone=1;for(i=0;i<N;i++)gone&=!(e[i]>>63);
			if(gone)break;
			if(inside)for(i=0;i<N;i++)if(e[i]>>63){(void)m[i*1024];m[i*1024]=0x40000000u|r;(void)m[i*1024+1000];}
			steps++;
		}
		met+=gone&&inside;
		if(wait){sem_wait(&fin);}
		/* out of the TLB */
		for(i=0;i<80;i++)(void)*(volatile char*)(evict+i*PAGE+(i*416&4064));
		for(i=0;i<N;i++){uint32_t was;m[i*1024+8*(1+i)]=r; m[i*1024]=r; was=m[i*1024+512]; fr[i]=was==0;f+=fr[i];
			if(fr[i]&&m[i*1024+1000]==(0x80000000u|r))oldw++;}
		fresh+=f;
		if(!wait)sem_wait(&fin);
		/* others get the freed pages, and lines are evicted */
		for(i=0;i<8;i++)o[i*1024]=r;
		for(i=0;i<(int)sizeof evict;i+=32)(void)*(volatile char*)(evict+i);
		for(i=0;i<N;i++)bad+=fr[i]&&m[i*1024]!=(uint32_t)r;
		for(i=0;i<8;i++)other+=o[i*1024]!=(uint32_t)r;
		if(bad&&++lost<=3)printf("round %d: %d stores lost: %x\n",r,bad,m[0]);
		madvise((void*)m,N*PAGE,MADV_DONTNEED);
		madvise((void*)o,64*PAGE,MADV_DONTNEED);
	}
	printf("%d rounds, %d steps, %d gone inside, %d pages fresh; stores to them lost in %d rounds, words of the old page in %d pages; other pages' words overwritten %d\n",rounds,steps,met,fresh,lost,oldw,other);
	return lost!=0;
}
