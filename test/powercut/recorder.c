/*
 * Records what a process does to the files of its database, in order and with the data, so that a power cut can be
 * played at any moment afterwards. Records go to WAYPOST_RECORD_LOG; only files whose path begins with
 * WAYPOST_RECORD_PREFIX count. The shared-memory index (-shm) is left out: it does not survive a power cut.
 *
 * A record, little endian, without padding: op (1 byte), file name length (1), name, offset (8), length (4), data.
 *   W  data written at offset      T  file cut or grown to offset      S  file synced      U  file removed
 * Each record is one write to a file opened with O_APPEND, so that others (the client's acknowledgements) can append
 * to the same log. An operation and its record happen under one lock: the order of the log is the order on the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define KNOWN_FDS 4096
#define NOT_OURS ((char *)1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -2;
static const char *prefix;
static size_t prefix_length;
/* By descriptor: NULL when not looked at yet, NOT_OURS, or the part of the path after the prefix. */
static char *names[KNOWN_FDS];

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite64)(int, const void *, size_t, off64_t);
static int (*real_ftruncate64)(int, off64_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_close)(int);

static void resolve(void) {
  if (real_write) return;
  real_pwrite64 = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  real_ftruncate64 = (int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
  real_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
  real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
}

/* The name of a path that is to be recorded, or NULL. */
static const char *recorded_name(const char *path) {
  size_t length = strlen(path);
  if (strncmp(path, prefix, prefix_length) != 0) return NULL;
  if (length > 4 && strcmp(path + length - 4, "-shm") == 0) return NULL;
  return path + prefix_length;
}

static int enabled(void) {
  if (log_fd == -2) {
    const char *log_path = getenv("WAYPOST_RECORD_LOG");
    prefix = getenv("WAYPOST_RECORD_PREFIX");
    prefix_length = prefix ? strlen(prefix) : 0;
    log_fd = log_path && prefix ? open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  }
  return log_fd >= 0;
}

/* With the lock held. */
static const char *name_of(int fd) {
  if (fd < 0 || fd >= KNOWN_FDS || !enabled()) return NULL;
  if (names[fd] == NULL) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *name = NULL;
    if (length > 0) {
      path[length] = 0;
      name = recorded_name(path);
    }
    names[fd] = name ? strdup(name) : NOT_OURS;
  }
  return names[fd] == NOT_OURS ? NULL : names[fd];
}

/* With the lock held. A log that cannot be written would make the test lie: stop. */
static void record(char op, const char *name, uint64_t offset, const void *data, uint32_t length) {
  uint8_t head[2 + 255 + 12];
  size_t name_length = strlen(name);
  if (name_length > 255) abort();
  head[0] = (uint8_t)op;
  head[1] = (uint8_t)name_length;
  memcpy(head + 2, name, name_length);
  memcpy(head + 2 + name_length, &offset, 8);
  memcpy(head + 10 + name_length, &length, 4);
  struct iovec parts[2] = {{head, 14 + name_length}, {(void *)data, length}};
  if (writev(log_fd, parts, length ? 2 : 1) != (ssize_t)(14 + name_length + length)) abort();
}

ssize_t write(int fd, const void *data, size_t length) {
  resolve();
  pthread_mutex_lock(&lock);
  const char *name = name_of(fd);
  if (name == NULL) {
    /* Pipes and sockets may block: not under the lock. */
    pthread_mutex_unlock(&lock);
    return real_write(fd, data, length);
  }
  off64_t at = lseek64(fd, 0, SEEK_CUR);
  ssize_t written = real_write(fd, data, length);
  int error = errno;
  if (written > 0) record('W', name, (uint64_t)at, data, (uint32_t)written);
  pthread_mutex_unlock(&lock);
  errno = error;
  return written;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  resolve();
  pthread_mutex_lock(&lock);
  ssize_t written = real_pwrite64(fd, data, length, offset);
  int error = errno;
  const char *name = name_of(fd);
  if (name && written > 0) record('W', name, (uint64_t)offset, data, (uint32_t)written);
  pthread_mutex_unlock(&lock);
  errno = error;
  return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }

int ftruncate64(int fd, off64_t size) {
  resolve();
  pthread_mutex_lock(&lock);
  int result = real_ftruncate64(fd, size);
  int error = errno;
  const char *name = name_of(fd);
  if (name && result == 0) record('T', name, (uint64_t)size, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(int fd, int (*real)(int)) {
  pthread_mutex_lock(&lock);
  int result = real(fd);
  int error = errno;
  const char *name = name_of(fd);
  if (name && result == 0) record('S', name, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

int fsync(int fd) {
  resolve();
  return synced(fd, real_fsync);
}

int fdatasync(int fd) {
  resolve();
  return synced(fd, real_fdatasync);
}

int unlink(const char *path) {
  resolve();
  pthread_mutex_lock(&lock);
  int result = real_unlink(path);
  int error = errno;
  if (result == 0 && enabled()) {
    const char *name = recorded_name(path);
    if (name) record('U', name, 0, NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

int close(int fd) {
  resolve();
  pthread_mutex_lock(&lock);
  if (fd >= 0 && fd < KNOWN_FDS) {
    if (names[fd] != NULL && names[fd] != NOT_OURS) free(names[fd]);
    names[fd] = NULL;
  }
  pthread_mutex_unlock(&lock);
  return real_close(fd);
}
