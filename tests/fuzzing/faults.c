/* Loaded before the C library (LD_PRELOAD): the n-th operation of a process on files below a folder fails.
 *
 * FAULT_FOLDER the folder, FAULT_AT n, FAULT_KIND one of
 *   enospc, eio, erofs, eacces, edquot   the operation fails, once
 *   full, broken, readonly   it and all after it fail: ENOSPC, EIO, EROFS
 *   eintr, short             it is interrupted before anything is done; a write does half and says so
 *   half, torn               the first or the second half of a write is done, then the process is killed
 *   kill                     the process is killed before it
 *   lies                     what is written from here on is not on the disk: the folder is copied to FAULT_COPY, and
 *                            the process is killed FAULT_THEN operations later; who restores files has a power cut
 *   lost                     the same at the next rename, of which FAULT_LOG has the paths
 *   sigint, sigterm, sighup  it gets that signal FAULT_THEN milliseconds later; twice: SIGINT, and SIGTERM as much later
 *   stop                     it is stopped then, and goes on a third of a second later
 *   closed                   nothing but the line in FAULT_LOG, on which others close its terminal
 *   forward, back            the clock on the wall is 8 hours ahead, or behind, from here on; swings: every second time
 *                            that it is read
 * Counted are write, pwrite, fsync, fdatasync, ftruncate, rename, unlink, mkdir and opening that creates, also those of
 * SQLite; from the write on that holds the text FAULT_FROM, and in processes whose command line holds FAULT_PROCESS.
 * What an operation cannot do happens at the next that can. When a fault is injected, FAULT_LOG is written; while it is
 * there no other process gets one.
 * FAULT_TRACE gets a line for each operation. Before each, the process sleeps FAULT_SLOW microseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN, HALF, TORN, SHORT, FAIL };

static long count, fatal, ahead, readings;
static int is_swinging;
static int has_come, is_mine;

static int is_below(const char *path) {
    const char *folder = getenv("FAULT_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int is_below_fd(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return size > 0 && is_below(path);
}

static void note(const char *where, const char *what, const char *path, const void *data, size_t size) {
    const char *log = getenv(where);
    int (*opened)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    int fd = log ? opened(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0) return;
    char line[2 * PATH_MAX + 256];
    int length = snprintf(line, sizeof line, "%s\t%s\t%.*s", what, path, (int)(size < 150 ? size : 150), data ? (const char *)data : "");
    for (int k = 0; k < length; k++) if ((line[k] < ' ' && line[k] != '\t') || line[k] == 127) line[k] = ' ';
    line[length++] = '\n';
    if (plain(fd, line, length) < 0) abort();
    close(fd);
}

static void copy_folder(void) {
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "unset LD_PRELOAD; cp -a '%s' '%s' || test -d '%s'", getenv("FAULT_FOLDER"), getenv("FAULT_COPY"), getenv("FAULT_COPY"));
    if (system(command)) abort();
}

/* Send this process signals later, from a child that holds none of its files. */
static void send_later(const char *kind, int milliseconds) {
    pid_t to = getpid();
    if (fork()) return;
    for (int fd = 0; fd < 1024; fd++) close(fd);
    usleep(1000 * milliseconds);
    kill(to, !strcmp(kind, "stop") ? SIGSTOP : !strcmp(kind, "sigterm") ? SIGTERM : !strcmp(kind, "sighup") ? SIGHUP : SIGINT);
    usleep(*kind == 't' ? 1000 * milliseconds : 300000);
    if (!strcmp(kind, "twice")) kill(to, SIGTERM);
    if (!strcmp(kind, "stop")) kill(to, SIGCONT);
    _exit(0);
}

/* Return whether this process is one in which faults are injected, and what they begin with has been written. */
static int has_begun(const void *data, size_t size) {
    static int is_meant = -1, is_reached;
    const char *from = getenv("FAULT_FROM"), *process = getenv("FAULT_PROCESS");
    if (is_meant < 0) {
        char line[4096] = "";
        int (*opened)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
        int fd = opened("/proc/self/cmdline", O_RDONLY);
        ssize_t length = read(fd, line, sizeof line);
        close(fd);
        is_meant = !process || (length > 0 && memmem(line, length, process, strlen(process)));
    }
    is_reached = is_reached || !from || (data && memmem(data, size, from, strlen(from)));
    return is_meant && is_reached;
}

/* Return whether a kind of fault can come at an operation. */
static int is_possible(const char *kind, const char *what) {
    int writes = strstr(what, "write") != NULL;
    if (!strcmp(kind, "lost")) return !strcmp(what, "rename");
    if (!strcmp(kind, "short") || !strcmp(kind, "half") || !strcmp(kind, "torn")) return writes;
    return strcmp(kind, "eintr") || writes || strstr(what, "sync");
}

/* Count an operation. Returns how it is to be done; else it fails with errno, or kills. */
static int due(const char *what, const char *path, const void *data, size_t size) {
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND"), *then = getenv("FAULT_THEN");
    const char *slow = getenv("FAULT_SLOW");
    int saved = errno;
    if (!has_begun(data, size)) return PLAIN;
    if (slow) usleep(atoi(slow));
    if (getenv("FAULT_TRACE")) note("FAULT_TRACE", what, path, data, size);
    errno = saved;
    if (!at || !kind) return PLAIN;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    int lasts = !strcmp(kind, "full") || !strcmp(kind, "broken") || !strcmp(kind, "readonly");
    if (fatal && now >= fatal) kill(getpid(), SIGKILL);
    if (now < atol(at) || !is_possible(kind, what)) return PLAIN;
    int is_first = !__atomic_exchange_n(&has_come, 1, __ATOMIC_SEQ_CST);
    if (is_first && access(getenv("FAULT_LOG"), F_OK)) note("FAULT_LOG", what, path, NULL, 0), is_mine = 1;
    errno = saved;
    if (!is_mine || !(is_first || lasts)) return PLAIN;
    if (!strcmp(kind, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(kind, "lies") || !strcmp(kind, "lost")) {
        copy_folder();
        fatal = now + atol(then);
    }
    if (!strncmp(kind, "sig", 3) || !strcmp(kind, "twice") || !strcmp(kind, "stop")) send_later(kind, atoi(then));
    is_swinging = !strcmp(kind, "swings");
    if (is_swinging || !strcmp(kind, "forward")) ahead = 8 * 3600;
    if (!strcmp(kind, "back")) ahead = -8 * 3600;
    errno = saved;
    if (!strcmp(kind, "short")) return SHORT;
    if (!strcmp(kind, "half")) return HALF;
    if (!strcmp(kind, "torn")) return TORN;
    errno = !strcmp(kind, "eio") || !strcmp(kind, "broken") ? EIO : !strcmp(kind, "readonly") || !strcmp(kind, "erofs") ? EROFS
            : !strcmp(kind, "eacces") ? EACCES : !strcmp(kind, "edquot") ? EDQUOT : !strcmp(kind, "eintr") ? EINTR : !strcmp(kind, "enospc") || !strcmp(kind, "full") ? ENOSPC : 0;
    if (errno) return FAIL;
    errno = saved;
    return PLAIN;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*plain)(clockid_t, struct timespec *);
    if (!plain) plain = dlsym(RTLD_NEXT, "clock_gettime");
    int result = plain(clock, now);
    if (!result && clock == CLOCK_REALTIME && !(is_swinging && readings++ % 2)) now->tv_sec += ahead;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    if (!clock_gettime(CLOCK_REALTIME, &precise)) *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    char path[PATH_MAX];
    int how = is_below_fd(fd, path) ? due("write", path, data, size) : PLAIN;
    if (how == FAIL) return -1;
    if (how == SHORT && size > 1) return plain(fd, data, size / 2);
    if (how == HALF) plain(fd, data, size / 2);
    if (how == TORN && lseek(fd, size / 2, SEEK_CUR) >= 0) plain(fd, (const char *)data + size / 2, size - size / 2);
    if (how == HALF || how == TORN) kill(getpid(), SIGKILL);
    return plain(fd, data, size);
}

static ssize_t placed(const char *name, int fd, const void *data, size_t size, off64_t at) {
    ssize_t (*plain)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, name);
    char path[PATH_MAX];
    int how = is_below_fd(fd, path) ? due("pwrite", path, NULL, 0) : PLAIN;
    if (how == FAIL) return -1;
    if (how == SHORT && size > 1) return plain(fd, data, size / 2, at);
    if (how == HALF) plain(fd, data, size / 2, at);
    if (how == TORN) plain(fd, (const char *)data + size / 2, size - size / 2, at + size / 2);
    if (how == HALF || how == TORN) kill(getpid(), SIGKILL);
    return plain(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return placed("pwrite", fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return placed("pwrite64", fd, data, size, at); }

static int on_fd(const char *name, int fd) {
    int (*plain)(int) = dlsym(RTLD_NEXT, name);
    char path[PATH_MAX];
    return is_below_fd(fd, path) && due(name, path, NULL, 0) == FAIL ? -1 : plain(fd);
}

int fsync(int fd) { return on_fd("fsync", fd); }
int fdatasync(int fd) { return on_fd("fdatasync", fd); }

int ftruncate64(int fd, off64_t size) {
    int (*plain)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    char path[PATH_MAX];
    return is_below_fd(fd, path) && due("ftruncate", path, NULL, 0) == FAIL ? -1 : plain(fd, size);
}

int rename(const char *from, const char *to) {
    int (*plain)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    char paths[2 * PATH_MAX];
    snprintf(paths, sizeof paths, "%s\t%s", from, to);
    return is_below(to) && due("rename", paths, NULL, 0) == FAIL ? -1 : plain(from, to);
}

int unlink(const char *path) {
    int (*plain)(const char *) = dlsym(RTLD_NEXT, "unlink");
    return is_below(path) && due("unlink", path, NULL, 0) == FAIL ? -1 : plain(path);
}

int mkdir(const char *path, mode_t mode) {
    int (*plain)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    return is_below(path) && due("mkdir", path, NULL, 0) == FAIL ? -1 : plain(path, mode);
}

static int opening(const char *name, const char *path, int flags, mode_t mode) {
    int (*plain)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
    return flags & O_CREAT && is_below(path) && due("create", path, NULL, 0) == FAIL ? -1 : plain(path, flags, mode);
}

static mode_t mode_of(int flags, va_list more) { return flags & O_CREAT ? va_arg(more, mode_t) : 0; }

#define OPENING(name)                                   \
    int name(const char *path, int flags, ...) {        \
        va_list more;                                   \
        va_start(more, flags);                          \
        mode_t mode = mode_of(flags, more);             \
        va_end(more);                                   \
        return opening(#name, path, flags, mode);       \
    }
OPENING(open)
OPENING(open64)
