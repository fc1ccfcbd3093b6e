/* Loaded before the C library (LD_PRELOAD): the n-th operation of a process on files below a folder fails.
 *
 * FAULT_FOLDER the folder, FAULT_AT n, FAULT_KIND one of enospc, eio, half (half of a write is done, then the process
 * is killed) and kill. Counted are write, pwrite, fsync, fdatasync, ftruncate and rename, also those of SQLite.
 * When a fault is injected, a line is appended to FAULT_LOG.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long count;

static int is_below(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int is_below_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static void note(const char *what) {
    const char *log = getenv("FAULT_LOG");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0) return;
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (plain(fd, what, strlen(what)) > 0) plain(fd, "\n", 1);
    close(fd);
}

/* Count an operation. Returns 0 where it is not the n-th, 1 where half of it is to be done; else it fails or kills. */
static int due(const char *what) {
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
    if (!at || !kind || __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != atol(at)) return 0;
    note(what);
    if (!strcmp(kind, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(kind, "half")) return 1;
    errno = strcmp(kind, "eio") ? ENOSPC : EIO;
    return -1;
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    int how = is_below_fd(fd) ? due("write") : 0;
    if (how < 0) return -1;
    if (how > 0) { plain(fd, data, size / 2); kill(getpid(), SIGKILL); }
    return plain(fd, data, size);
}

static ssize_t placed(const char *name, int fd, const void *data, size_t size, off64_t at) {
    ssize_t (*plain)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, name);
    int how = is_below_fd(fd) ? due("pwrite") : 0;
    if (how < 0) return -1;
    if (how > 0) { plain(fd, data, size / 2, at); kill(getpid(), SIGKILL); }
    return plain(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return placed("pwrite", fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return placed("pwrite64", fd, data, size, at); }

static int on_fd(const char *name, int fd) {
    int (*plain)(int) = dlsym(RTLD_NEXT, name);
    int how = is_below_fd(fd) ? due(name) : 0;
    if (how > 0) kill(getpid(), SIGKILL);
    return how < 0 ? -1 : plain(fd);
}

int fsync(int fd) { return on_fd("fsync", fd); }
int fdatasync(int fd) { return on_fd("fdatasync", fd); }

int ftruncate64(int fd, off64_t size) {
    int (*plain)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    int how = is_below_fd(fd) ? due("ftruncate") : 0;
    if (how > 0) kill(getpid(), SIGKILL);
    return how < 0 ? -1 : plain(fd, size);
}

int rename(const char *from, const char *to) {
    int (*plain)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    int how = is_below(to) ? due("rename") : 0;
    if (how > 0) kill(getpid(), SIGKILL);
    return how < 0 ? -1 : plain(from, to);
}
