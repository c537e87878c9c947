// SPDX-License-Identifier: GPL-2.0-only
/* FIFO 80 timer process T; M (SCHED_OTHER) changes page tables; Q (SCHED_OTHER) punches holes in a file that M has
 * mapped, so that M's tlb_flush_pending is up while Q is preempted. entered_late MODE [noq|q [WAKEUPS]] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define N 512
#define SZ (N*4096)
static char *al(char*m){return (char*)(((unsigned long)m+0x1fffff)&~0x1fffffUL);}
int main(int c,char**v){
	char mode=c>1?v[1][0]:'r'; int q=!(c>2&&!strcmp(v[2],"noq"));
	int fd=memfd_create("f",0), ff=memfd_create("g",0);
	if(ftruncate(fd,SZ)||ftruncate(ff,SZ))return 2;
	volatile long*ops=mmap(0,4096,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);
	pid_t pm=fork();
	if(!pm){
		prctl(PR_SET_PDEATHSIG,SIGKILL);
		char*f=mmap(0,SZ,3,MAP_SHARED,fd,0);
		char*area=mmap(0,4*SZ,0,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,-1,0);
		if(f==MAP_FAILED||area==MAP_FAILED){perror("mmap");_exit(2);}
		char*a=al(area),*b=a+SZ; 
		if(mode=='k'){
			int sk=socket(AF_PACKET,SOCK_RAW,0);struct tpacket_req g={65536,SZ/65536,2048,SZ/2048};
			if(sk<0||setsockopt(sk,SOL_PACKET,PACKET_RX_RING,&g,sizeof g)){perror("ring");_exit(2);}
			a=mmap(a,SZ,3,MAP_SHARED|MAP_FIXED,sk,0);if(a==MAP_FAILED){perror("mmap ring");_exit(2);}
		}else if(mode=='a'){
			a=mmap(a,SZ,1,MAP_SHARED|MAP_FIXED,ff,0);
			for(int i=0;i<N;i++)if(pwrite(ff,"x",1,i*4096)!=1)_exit(2);
		}else if(mode=='s'||mode=='t'||mode=='c'){
			a=mmap(a,SZ,3,MAP_SHARED|MAP_FIXED,ff,0);
			for(int i=0;i<N;i++)a[i*4096]=1;
		}else{
			a=mmap(a,SZ,3,MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED,-1,0);
			for(int i=0;i<N;i++)a[i*4096]=1;
		}
		for(long n=0;;n++){
			if(q&&n%20==0)for(int i=0;i<N;i++)((volatile char*)f)[i*4096];
			if(mode=='r'||mode=='t'||mode=='k'){
				if(mremap(a,SZ,SZ,MREMAP_MAYMOVE|MREMAP_FIXED,b)!=b){perror("mremap");_exit(2);}
				char*t=a;a=b;b=t;
			}else if(mode=='a'){
				madvise(a,SZ,MADV_DONTNEED);
				for(int i=0;i<N;i+=16)((volatile char*)a)[i*4096];
			}else if(mode=='p'){
				madvise(a,SZ,MADV_DONTNEED);
				if(madvise(a,SZ,23)){perror("populate");_exit(2);}
			}else if(mode=='m'||mode=='s'){
				mprotect(a,SZ,1);mprotect(a,SZ,3);
			}else if(mode=='c'){
				if(madvise(a,SZ,20)){perror("cold");_exit(2);}
				for(int i=0;i<N;i++)((volatile char*)a)[i*4096];
			}else if(mode=='d'){
				static int dm=-1;if(dm<0)dm=open("/dev/mem",O_RDWR);
				if(mmap(b,SZ,1,MAP_SHARED|MAP_FIXED,dm,0x20000000)!=b){perror("mem");_exit(2);}
			}else if(mode=='f'){
				pid_t k=fork();if(!k)_exit(0);waitpid(k,0,0);
			}
			ops[0]++;
		}
	}
	pid_t pq=0;
	if(q&&!(pq=fork())){
		prctl(PR_SET_PDEATHSIG,SIGKILL);
		for(;;){
			if(fallocate(fd,FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE,0,SZ)){perror("punch");_exit(2);}
			ops[1]++;
		}
	}
	struct sched_param p={80};struct timespec b,x;long max=0,over=0,sum=0;int it=c>3?atoi(v[3]):2000;
	mlockall(MCL_CURRENT);
	sched_setscheduler(0,SCHED_FIFO,&p);prctl(PR_SET_TIMERSLACK,1);
	usleep(200000);
	clock_gettime(CLOCK_MONOTONIC,&b);
	for(int i=0;i<it;i++){
		b.tv_nsec+=1370000+(rand()%4000)*1000;if(b.tv_nsec>=1000000000){b.tv_nsec-=1000000000;b.tv_sec++;}
		clock_nanosleep(CLOCK_MONOTONIC,TIMER_ABSTIME,&b,0);clock_gettime(CLOCK_MONOTONIC,&x);
		long l=(x.tv_sec-b.tv_sec)*1000000+(x.tv_nsec-b.tv_nsec)/1000;
		if(l>max)max=l; over+=l>500; sum+=l; if(l>1000)b=x;
	}
	printf("mode %c q %d: max %ld us, mean %ld, over 500us %ld of %d, M ops %ld Q ops %ld\n",mode,q,max,sum/it,over,it,ops[0],ops[1]);
	kill(pm,9);if(pq)kill(pq,9);
	return 0;
}
