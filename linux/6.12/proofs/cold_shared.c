// SPDX-License-Identifier: GPL-2.0-only
/* MADV_COLD of dirty shared pages, and what mprotect() costs before and behind it; with an argument there is a
 * second thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define N 256
static long us(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1000000+t.tv_nsec/1000;}
static void*w(void*a){pause();return a;}
int main(int c,char**v){pthread_t t;if(c>1)pthread_create(&t,0,w,0);int fd=memfd_create("f",0);if(ftruncate(fd,N*4096))return 2;
volatile char*m=mmap(0,N*4096,3,MAP_SHARED,fd,0);char*p=mmap(0,16*4096,3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
for(int i=0;i<N;i++)m[i*4096]=1; for(int i=0;i<16;i++)p[i*4096]=1;
long a=us();for(int k=0;k<50;k++){mprotect(p,4096,1);mprotect(p,4096,3);}long b=us();
long s=0;for(int k=0;k<10;k++){for(int i=0;i<N;i++)m[i*4096]=1;long x=us();madvise((void*)m,N*4096,20);s+=us()-x;}
long d=us();for(int k=0;k<50;k++){mprotect(p,4096,1);mprotect(p,4096,3);}long e=us();
printf("MADV_COLD of %d dirty shared pages %ld us; two mprotect of a page before %ld us, after %ld us\n",N,s/10,(b-a)/50,(e-d)/50);return 0;}
