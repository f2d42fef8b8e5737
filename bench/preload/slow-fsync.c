/*
 * Makes each fsync and fdatasync of a process take longer, to simulate a disk without power-loss protection.
 * WAYPOST_FSYNC_DELAY_US: microseconds to wait before each call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void delay(void) {
  static long delay_us = -1;
  if (delay_us < 0) {
    const char *setting = getenv("WAYPOST_FSYNC_DELAY_US");
    delay_us = setting ? atol(setting) : 0;
  }
  if (delay_us == 0) return;
  struct timespec span = {delay_us / 1000000, (delay_us % 1000000) * 1000};
  while (nanosleep(&span, &span) != 0) {
  }
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  delay();
  return real(fd);
}

int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  delay();
  return real(fd);
}
