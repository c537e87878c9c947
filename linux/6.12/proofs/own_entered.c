// SPDX-License-Identifier: GPL-2.0-only
/* Q (thread, SCHED_OTHER): MADV_DONTNEED of N pages. M (FIFO) preempts it (zap_pte_range breaks off at need_resched, its
 * gather stays open), stores to pages that are there, and enters many new ones where they are gone, in one go without a
 * switch. MODE: a anonymous memory; p a private file; u userfaultfd, pages by UFFDIO_COPY of M itself and of another
 * process R. own_entered MODE ROUNDS GAP_NS SPREAD_NS SEED */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/userfaultfd.h>
#include <time.h>
#include <unistd.h>
#define PAGE 4096
#define N 96
static volatile uint32_t *m; static sem_t go, fin; static volatile int inside;
static char evict[300*PAGE];
static int uf=-1,torp[2],fromr[2];
static void nap(long ns){struct timespec g={0,ns};clock_nanosleep(CLOCK_MONOTONIC,0,&g,0);}
static void*a(void*x){struct sched_param p={0};sched_setscheduler(0,SCHED_OTHER,&p);
	for(;;){sem_wait(&go);inside=1;madvise((void*)m,N*PAGE,MADV_DONTNEED);inside=0;sem_post(&fin);}return x;}
struct job{int n;uint16_t at[N];uint32_t v[N];};
static uint32_t src[1024] __attribute__((aligned(4096)));
static int copy1(int i,uint32_t v,uint32_t r){
	memset(src,0,sizeof src);src[0]=v;src[512]=v^1;src[1000]=0xe3a00000|(v&255);src[1001]=0xe12fff1e;
	struct uffdio_copy c={(uintptr_t)(m+i*1024),(uintptr_t)src,PAGE,UFFDIO_COPY_MODE_DONTWAKE,0};
	return ioctl(uf,UFFDIO_COPY,&c);}
static uint32_t exp_[N][3];static char st[N];
int main(int c,char**v){
	char mode=c>1?v[1][0]:'a';int rounds=c>2?atoi(v[2]):300;long gap=c>3?atol(v[3]):20000,gs=c>4?atol(v[4]):60000;
	int pm=open("/proc/self/pagemap",O_RDONLY),r,i,j,met=0,partial=0,fresh=0,lost=0,oldw=0,codebad=0,steps=0,other=0,ops[8]={0};pthread_t t;
	int pp[2];if(pipe(pp)||pipe(torp)||pipe(fromr))return 2;
	sem_init(&go,0,0);sem_init(&fin,0,0);prctl(PR_SET_TIMERSLACK,1);
	m=mmap(0,N*PAGE,7,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
	if(mode=='p'){int f=memfd_create("f",0);static char z[PAGE];for(i=0;i<N;i++)if(write(f,z,PAGE)!=PAGE)return 2;m=mmap((void*)m,N*PAGE,7,MAP_PRIVATE|MAP_FIXED,f,0);}
	if(mode=='u'){
		uf=syscall(__NR_userfaultfd,O_CLOEXEC|O_NONBLOCK);struct uffdio_api api={UFFD_API,UFFD_FEATURE_SIGBUS,0};
		if(uf<0||ioctl(uf,UFFDIO_API,&api)){perror("uffd");return 2;}
		struct uffdio_register g={{(uintptr_t)m,N*PAGE},UFFDIO_REGISTER_MODE_MISSING,0};
		if(ioctl(uf,UFFDIO_REGISTER,&g)){perror("register");return 2;}
		if(!fork()){struct job b;struct sched_param p={60};sched_setscheduler(0,SCHED_FIFO,&p);prctl(PR_SET_PDEATHSIG,SIGKILL);
			for(;;){if(read(torp[0],&b,sizeof b)!=sizeof b)_exit(0);
				for(j=0;j<b.n;j++)if(copy1(b.at[j],b.v[j],0))b.at[j]=0xffff;
				if(write(fromr[1],&b,sizeof b)!=sizeof b)_exit(1);}}
	}
	struct sched_param p={50};if(sched_setscheduler(0,SCHED_FIFO,&p))perror("fifo");
	pthread_create(&t,0,a,0);
	volatile uint32_t*o=mmap(0,128*PAGE,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
	memset(evict,1,sizeof evict);srand(c>5?atoi(v[5]):1);
	uint32_t buf[8];
	for(r=1;r<=rounds;r++){
		uint64_t e[N];int gone,k,bad=0;
		if(mode=='u'){madvise((void*)m,N*PAGE,MADV_DONTNEED);for(i=0;i<N;i++)copy1(i,r,r);}
		for(i=0;i<N;i++){st[i]=0;m[i*1024]=m[i*1024+512]=m[i*1024+700]=0x80000000u|r;m[i*1024+1000]=0xe3a00000|(r&255);m[i*1024+1001]=0xe12fff1e;}
		__builtin___clear_cache((char*)m,(char*)m+N*PAGE);
		sem_post(&go);
		for(k=0;k<400;k++){
			nap(gap+rand()%gs);
			int sv;sem_getvalue(&fin,&sv);if(sv>0)break;
			if(!inside)continue;
			if(pread(pm,e,8*N,(uintptr_t)m/PAGE*8)!=8*N)return 2;
			gone=0;for(i=0;i<N;i++)gone+=!(e[i]>>63)&&!st[i];
			steps++;
			if(gone){met++;partial+=gone<N;}
			for(i=0;i<200;i++)(void)*(volatile char*)(evict+i*PAGE+(i*416&4064));
			if(mode=='u'&&inside)for(i=0;i<N;i++)if(e[i]>>63&&!st[i]){volatile uint32_t*x=m+i*1024;(void)x[700];x[0]=x[512]=0x40000000u|r;if(x[1000]==(0xe3a00000|(r&255)))((int(*)(void))(x+1000))();}
			struct job b={0};
			int from=rand()%N;
			for(j=0;j<N;j++){
				i=(from+j)%N;
				volatile uint32_t*x=m+i*1024;
				if(e[i]>>63&&!st[i]){if(mode=='u')continue;
					if(gone<N){(void)x[700];x[0]=x[512]=0x40000000u|r;if(x[1000]==(0xe3a00000|(r&255)))((int(*)(void))(x+1000))();}
					continue;}
				if(st[i]){ if(rand()%8)continue;
					if(rand()%2)madvise((void*)(m+(i&~7)*1024),8*PAGE,20);
					if(rand()%2)continue;
					madvise((void*)x,PAGE,MADV_DONTNEED); }
				uint32_t val=rand();
				exp_[i][0]=val;exp_[i][1]=val^1;exp_[i][2]=0;
				if(mode=='u'){
					if(rand()%2){b.at[b.n]=i;b.v[b.n++]=val;ops[0]++;st[i]=2;continue;}
					if(copy1(i,val,r)){printf("copy: %d\n",errno);return 2;}
					ops[1]++;st[i]=1;
				}else switch(rand()%5){
				case 0:x[0]=val;x[512]=val^1;st[i]=1;ops[0]++;break;
				case 1:if(x[0]|x[512]|x[700])oldw++;x[0]=val;x[512]=val^1;st[i]=1;ops[1]++;break;
				case 2:buf[0]=val;if(write(pp[1],buf,4)!=4||read(pp[0],(void*)x,4)!=4)return 2;
					x[512]=val^1;st[i]=1;ops[2]++;break;
				case 3:{buf[0]=val;struct iovec l={buf,4},q={(void*)x,4};if(process_vm_writev(getpid(),&l,1,&q,1,0)!=4)return 2;
					x[512]=val^1;st[i]=1;ops[3]++;}break;
				case 4:if(x[700])oldw++;st[i]=1;exp_[i][0]=exp_[i][1]=0;if(x[0]|x[512])oldw++;ops[4]++;break;
				}
				fresh++;
				if(x[700]){if(++oldw<4)printf("round %d page %d: old %x\n",r,i,x[700]);}
				if(x[0]!=exp_[i][0]||x[512]!=exp_[i][1]){if(++lost<4)printf("round %d page %d op: %x %x not %x\n",r,i,x[0],x[512],val);}
				if(mode=='u'&&((int(*)(void))(x+1000))()!=(int)(val&255))codebad++;
			}
			if(b.n){if(write(torp[1],&b,sizeof b)!=sizeof b||read(fromr[0],&b,sizeof b)!=sizeof b)return 2;
				for(j=0;j<b.n;j++){if(b.at[j]==0xffff){printf("R\n");return 2;}
					i=b.at[j];volatile uint32_t*x=m+i*1024;st[i]=1;fresh++;
					if(x[700])oldw++;if(x[0]!=exp_[i][0]||x[512]!=exp_[i][1])lost++;
					if(((int(*)(void))(x+1000))()!=(int)(b.v[j]&255))codebad++;}}
		}
		sem_wait(&fin);
		for(i=0;i<128;i++)o[i*1024]=o[i*1024+512]=o[i*1024+700]=r;
		for(i=0;i<(int)sizeof evict;i+=32)(void)*(volatile char*)(evict+i);
		for(i=0;i<N;i++)if(st[i]){volatile uint32_t*x=m+i*1024;
			bad+=x[0]!=exp_[i][0]||x[512]!=exp_[i][1]||x[700]!=0;}
		for(i=0;i<128;i++)other+=(o[i*1024]!=(uint32_t)r)+(o[i*1024+512]!=r)+(o[i*1024+700]!=r);
		if(bad&&lost++<3)printf("round %d: %d pages wrong at the end\n",r,bad);
		if(mode!='u')madvise((void*)m,N*PAGE,MADV_DONTNEED);
		madvise((void*)o,128*PAGE,MADV_DONTNEED);
	}
	printf("%d rounds, %d steps, %d with pages gone (%d partly), %d pages fresh (%d %d %d %d %d); old words %d, lost %d, old code %d, others overwritten %d\n",
	rounds,steps,met,partial,fresh,ops[0],ops[1],ops[2],ops[3],ops[4],oldw,lost,codebad,other);
	return lost||oldw||codebad||other;
}
