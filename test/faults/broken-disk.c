/*
 * A disk that breaks when it is told to. While the folder BROKEN_DISK holds a file of that name:
 *   sync-fails   fsync and fdatasync answer EIO, as after a lost write
 *   disk-full    pwrite answers ENOSPC, but for the file -shm of SQLite, which keeps its blocks
 *   wal-full     pwrite into a write-ahead log of SQLite does
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_told(const char *fault) {
  const char *folder = getenv("BROKEN_DISK");
  char path[PATH_MAX];
  if (folder == NULL) return 0;
  snprintf(path, sizeof path, "%s/%s", folder, fault);
  int error = errno;
  int told = access(path, F_OK) == 0;
  errno = error;
  return told;
}

static int sync_or_fail(const char *name, int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (!is_told("sync-fails")) return real(fd);
  errno = EIO;
  return -1;
}

int fsync(int fd) { return sync_or_fail("fsync", fd); }
int fdatasync(int fd) { return sync_or_fail("fdatasync", fd); }

static int ends_in(int fd, const char *suffix) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path);
  return length > 4 && memcmp(path + length - 4, suffix, 4) == 0;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  int is_full = is_told("disk-full") ? !ends_in(fd, "-shm") : is_told("wal-full") && ends_in(fd, "-wal");
  if (!is_full) return real(fd, data, length, offset);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }
