/* Stands between a process and the C library, and makes calls on the files of one folder fail, or
 * writes them down. Compiled and loaded by interposing.py, which says what each function means.
 *
 * One thread at a time is at work in the processes that load it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS 1024 /* descriptors that are known */

/* Kinds of calls, the same in interposing.py. */
enum {
    OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, TRUNCATE = 16, UNLINK = 32, LOCK = 64, STAT = 128,
    CLOSE = 256, NAME = 512, MEMORY = 1024
};

#define SHORT (-1) /* in place of an errno: of what is to be written half arrives */

static char folder[PATH_MAX];
static size_t folder_length;
static char ours[NUMBERS]; /* whether a descriptor is of a file in the folder, or the folder */

static int kinds;     /* that are counted, and fail */
static long calls;    /* counted so far */
static long from;     /* the number of the first that fails, from 1; 0: none */
static int for_good;  /* whether all after it fail too */
static int error;     /* errno, or SHORT */
static long failures; /* calls that failed */

static long room = -1;     /* bytes by which files may still grow; -1: there is no limit */
static long least;         /* room that there was at least */
static int trace = -1;     /* where calls are written down */
static double clock_error; /* seconds by which the clock is wrong */

static uintptr_t sqlite_begin, sqlite_end;

/* What is controlled */

static int find_sqlite(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (!info->dlpi_name || !strstr(info->dlpi_name, "libsqlite3")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
        if (!sqlite_begin || begin < sqlite_begin) sqlite_begin = begin;
        if (end > sqlite_end) sqlite_end = end;
    }
    return 1;
}

int interposer_watch(const char *path) {
    folder_length = strlen(path);
    if (folder_length >= sizeof folder) abort();
    memcpy(folder, path, folder_length + 1);
    dl_iterate_phdr(find_sqlite, NULL);
    return sqlite_begin != 0;
}

void interposer_fail(int of_kinds, long at, int always, int with) {
    kinds = of_kinds, from = at, for_good = always, error = with, calls = failures = 0;
}

long interposer_calls(void) { return calls; }
long interposer_failures(void) { return failures; }

void interposer_room(long bytes) {
    kinds = 0, calls = failures = 0;
    room = least = bytes;
}

void interposer_clock(double seconds) { clock_error = seconds; }

static void put(const void *bytes, size_t length) {
    for (const char *next = bytes; length;) {
        long done = syscall(SYS_write, trace, next, length);
        if (done <= 0) abort();
        next += done, length -= (size_t)done;
    }
}

static void note(const char *format, ...) {
    if (trace < 0) return;
    char line[2 * PATH_MAX + 64];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(line, sizeof line, format, rest);
    va_end(rest);
    if (length < 0 || (size_t)length >= sizeof line) abort();
    put(line, (size_t)length);
}

void interposer_trace(int number) { trace = number; }
void interposer_mark(const char *text) { note("mark %s\n", text); }

/* What is decided */

static int is_inside(const char *path) {
    if (!folder_length || !path || strncmp(path, folder, folder_length)) return 0;
    return path[folder_length] == '/' || !path[folder_length];
}

static int is_ours(int number) { return number >= 0 && number < NUMBERS && ours[number]; }

/* Whether this call fails; then errno is set. */
static int fails(int kind) {
    if (!(kinds & kind)) return 0;
    calls++;
    if (!from || calls < from || (calls > from && !for_good)) return 0;
    failures++;
    errno = error == SHORT ? EIO : error;
    return 1;
}

/* Memory */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

#define CALLED_BY_SQLITE \
    ((uintptr_t)__builtin_return_address(0) - sqlite_begin < sqlite_end - sqlite_begin)

static int no_memory(void) {
    if (!fails(MEMORY)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return CALLED_BY_SQLITE && no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return CALLED_BY_SQLITE && no_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return CALLED_BY_SQLITE && no_memory() ? NULL : __libc_realloc(old, size);
}

/* Opening and closing */

static int opened(const char *path, int flags, mode_t mode) {
    int inside = is_inside(path);
    if (inside && fails(OPEN)) return -1;
    int known = errno;
    int created = inside && (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
    errno = known;
    int number = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (number >= 0 && number < NUMBERS) ours[number] = (char)inside;
    if (number >= 0 && inside) note("open %d %d %s\n", number, created, path);
    if (number >= 0 && inside && flags & O_TRUNC) note("truncate %d 0\n", number);
    return number;
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(path, flags | O_LARGEFILE, mode);
}

int close(int number) {
    int known = is_ours(number), failed = known && fails(CLOSE);
    if (known) ours[number] = 0, note("close %d\n", number);
    int done = (int)syscall(SYS_close, number); /* also where it fails: so does Linux */
    if (failed) errno = error;
    return failed ? -1 : done;
}

/* Reading and writing */

ssize_t read(int number, void *into, size_t length) {
    if (is_ours(number) && fails(READ)) return -1;
    return syscall(SYS_read, number, into, length);
}

ssize_t pread(int number, void *into, size_t length, off_t offset) {
    if (is_ours(number) && fails(READ)) return -1;
    return syscall(SYS_pread64, number, into, length, offset);
}

ssize_t pread64(int number, void *into, size_t length, off64_t offset) {
    return pread(number, into, length, offset);
}

static long size_of(int number) {
    struct stat status;
    return syscall(SYS_fstat, number, &status) ? 0 : (long)status.st_size;
}

static void take(long bytes) {
    if (room < 0) return;
    room -= bytes;
    if (room < least) calls += least - room, least = room;
}

/* How much of a write has room. What a file has already it keeps. */
static size_t roomy(int number, size_t length, off_t offset) {
    if (room < 0) return length;
    long more = (long)offset + (long)length - size_of(number);
    if (more <= 0) return length;
    long given = more < room ? more : room;
    take(given);
    if (given == more) return length;
    failures++;
    long some = (long)length - (more - given);
    return some > 0 ? (size_t)some : 0;
}

static ssize_t written(int number, const void *from, size_t length, off_t offset) {
    long done = syscall(SYS_pwrite64, number, from, length, offset);
    if (done > 0) {
        note("write %d %ld %ld\n", number, (long)offset, done);
        if (trace >= 0) put(from, (size_t)done);
    }
    return done;
}

ssize_t pwrite(int number, const void *from, size_t length, off_t offset) {
    if (!is_ours(number)) return syscall(SYS_pwrite64, number, from, length, offset);
    if (fails(WRITE)) {
        return error == SHORT && length > 1 ? written(number, from, length / 2, offset) : -1;
    }
    size_t some = roomy(number, length, offset);
    if (!some && length) {
        errno = ENOSPC;
        return -1;
    }
    return written(number, from, some, offset);
}

ssize_t pwrite64(int number, const void *from, size_t length, off64_t offset) {
    return pwrite(number, from, length, offset);
}

ssize_t write(int number, const void *from, size_t length) {
    if (!is_ours(number)) return syscall(SYS_write, number, from, length);
    long offset = syscall(SYS_lseek, number, 0, SEEK_CUR);
    ssize_t done = pwrite(number, from, length, offset);
    if (done > 0) syscall(SYS_lseek, number, offset + done, SEEK_SET);
    return done;
}

int ftruncate(int number, off_t length) {
    if (!is_ours(number)) return (int)syscall(SYS_ftruncate, number, length);
    if (fails(TRUNCATE)) return -1;
    long more = (long)length - size_of(number);
    if (room >= 0 && more > room) {
        failures++;
        errno = ENOSPC;
        return -1;
    }
    take(more);
    note("truncate %d %ld\n", number, (long)length);
    return (int)syscall(SYS_ftruncate, number, length);
}

int ftruncate64(int number, off64_t length) { return ftruncate(number, length); }

int fsync(int number) {
    if (!is_ours(number)) return (int)syscall(SYS_fsync, number);
    if (fails(SYNC)) return -1;
    note("sync %d\n", number);
    return (int)syscall(SYS_fsync, number);
}

int fdatasync(int number) {
    if (!is_ours(number)) return (int)syscall(SYS_fdatasync, number);
    if (fails(SYNC)) return -1;
    note("sync %d\n", number);
    return (int)syscall(SYS_fdatasync, number);
}

/* Names */

int unlink(const char *path) {
    if (!is_inside(path)) return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (fails(UNLINK)) return -1;
    struct stat status;
    int counted = !syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) && status.st_nlink == 1;
    long freed = counted ? (long)status.st_size : 0;
    int done = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!done) note("unlink %s\n", path);
    if (!done && room >= 0) room += freed;
    return done;
}

int linkat(int of, const char *old, int in, const char *new, int flags) {
    if (is_inside(new) && fails(NAME)) return -1;
    int done = (int)syscall(SYS_linkat, of, old, in, new, flags);
    if (!done && is_inside(new)) note("link %s %s\n", old, new);
    return done;
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int rename(const char *old, const char *new) {
    if (is_inside(new) && fails(NAME)) return -1;
    int done = (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
    if (!done && is_inside(new)) note("rename %s %s\n", old, new);
    return done;
}

/* Locks, and what the system says of a file */

static int controlled(int number, int command, void *with) {
    int locks = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
    if (locks && is_ours(number) && fails(LOCK)) return -1;
    return (int)syscall(SYS_fcntl, number, command, with);
}

int fcntl(int number, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *with = va_arg(rest, void *);
    va_end(rest);
    return controlled(number, command, with);
}

int fcntl64(int number, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *with = va_arg(rest, void *);
    va_end(rest);
    return controlled(number, command, with);
}

#define PATH_STATUS(name, flags) \
    int name(const char *path, struct stat *status) { \
        if (is_inside(path) && fails(STAT)) return -1; \
        return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, flags); \
    } \
    int name##64(const char *path, struct stat64 *status) { \
        return name(path, (struct stat *)status); \
    }

PATH_STATUS(stat, 0)
PATH_STATUS(lstat, AT_SYMLINK_NOFOLLOW)

int fstat(int number, struct stat *status) {
    if (is_ours(number) && fails(STAT)) return -1;
    return (int)syscall(SYS_fstat, number, status);
}

int fstat64(int number, struct stat64 *status) { return fstat(number, (struct stat *)status); }

int access(const char *path, int mode) {
    if (is_inside(path) && fails(STAT)) return -1;
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* The clock */

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *); /* which asks no system call */
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(which, now);
    if (!done && which == CLOCK_REALTIME) now->tv_sec += (time_t)clock_error;
    return done;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
