/* Loaded before the C library: lets the N-th write below a folder fail for want of room, or sends a signal before the
   N-th operation that changes a file there.  Told what to do through a file that all processes of a call map, so that
   they count together; see disk.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WATCH = 0, FAIL_ONCE = 1, FAIL_FROM = 2, SIGNAL = 3 };

struct control {
    int64_t mode;            /* what to do */
    int64_t at;              /* at which operation, from 1 */
    int64_t number;          /* of the signal */
    int64_t group;           /* whether it goes to the whole group */
    _Atomic int64_t writes;  /* counted so far */
    _Atomic int64_t changes; /* writes and all other operations */
    char folder[PATH_MAX];
};

static struct control *control;

void breaking_arm(const char *file) {
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int handle = real_open(file, O_RDWR | O_CLOEXEC);
    if (handle < 0) return;
    void *found = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (found != MAP_FAILED) control = found;
}

__attribute__((constructor)) static void arm_from_environment(void) {
    const char *file = getenv("BREAKING_CONTROL");
    if (file) breaking_arm(file);
}

static int below(const char *path) {
    size_t length = strlen(control->folder);
    return strncmp(path, control->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int handle_below(int handle) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

static int path_below(int folder, const char *path) {
    char here[PATH_MAX];
    if (path == NULL) return 0;
    if (path[0] == '/') return below(path);
    if (folder != AT_FDCWD) return handle_below(folder);
    return getcwd(here, sizeof here) != NULL && below(here);
}

/* Any operation that changes something: count it, and send the signal if it is its turn. */
static void change(void) {
    int64_t count = atomic_fetch_add(&control->changes, 1) + 1;
    if (control->mode == SIGNAL && count == control->at) kill(control->group ? 0 : getpid(), (int)control->number);
}

/* A write: whether there is no room for it. */
static int no_room(int handle) {
    struct stat about;
    if (!control || fstat(handle, &about) != 0 || !S_ISREG(about.st_mode) || !handle_below(handle)) return 0;
    change();
    int64_t count = atomic_fetch_add(&control->writes, 1) + 1;
    if ((control->mode == FAIL_ONCE && count == control->at) || (control->mode == FAIL_FROM && count >= control->at)) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int handle, const void *content, size_t size) {
    static __typeof__(&write) real;
    if (!real) real = REAL(write);
    return no_room(handle) ? -1 : real(handle, content, size);
}

ssize_t pwrite(int handle, const void *content, size_t size, off_t place) {
    return no_room(handle) ? -1 : REAL(pwrite)(handle, content, size, place);
}

ssize_t pwrite64(int handle, const void *content, size_t size, off64_t place) {
    return no_room(handle) ? -1 : REAL(pwrite64)(handle, content, size, place);
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    return no_room(handle) ? -1 : REAL(writev)(handle, parts, count);
}

ssize_t pwritev(int handle, const struct iovec *parts, int count, off_t place) {
    return no_room(handle) ? -1 : REAL(pwritev)(handle, parts, count, place);
}

int fallocate(int handle, int mode, off_t place, off_t size) {
    return no_room(handle) ? -1 : REAL(fallocate)(handle, mode, place, size);
}

int posix_fallocate(int handle, off_t place, off_t size) {
    return no_room(handle) ? ENOSPC : REAL(posix_fallocate)(handle, place, size);
}

ssize_t sendfile(int target, int source, off_t *place, size_t size) {
    ssize_t (*real)(int, int, off_t *, size_t) = dlsym(RTLD_NEXT, "sendfile");
    return no_room(target) ? -1 : real(target, source, place, size);
}

ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size, unsigned flags) {
    return no_room(target) ? -1 : REAL(copy_file_range)(source, from, target, to, size, flags);
}

/* Operations that need no room, before which a signal may come. */

#define OPENED(name, parameters, folder, arguments)                                                                  \
    int name parameters {                                                                                            \
        mode_t mode = 0;                                                                                             \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                                       \
            va_list rest;                                                                                            \
            va_start(rest, flags);                                                                                   \
            mode = va_arg(rest, mode_t);                                                                             \
            va_end(rest);                                                                                            \
        }                                                                                                            \
        if (control && (flags & (O_CREAT | O_TRUNC)) && path_below(folder, path)) change();                         \
        return REAL(name) arguments;                                                                                 \
    }

OPENED(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENED(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENED(openat, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))
OPENED(openat64, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))

#define CHANGES(kind, name, parameters, folder, path, arguments)                                                     \
    kind name parameters {                                                                                           \
        if (control && path_below(folder, path)) change();                                                           \
        return REAL(name) arguments;                                                                                 \
    }

CHANGES(int, rename, (const char *from, const char *to), AT_FDCWD, to, (from, to))
CHANGES(int, renameat, (int a, const char *from, int b, const char *to), b, to, (a, from, b, to))
CHANGES(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), b, to, (a, from, b, to, flags))
CHANGES(int, link, (const char *from, const char *to), AT_FDCWD, to, (from, to))
CHANGES(int, symlink, (const char *from, const char *to), AT_FDCWD, to, (from, to))
CHANGES(int, unlink, (const char *path), AT_FDCWD, path, (path))
CHANGES(int, unlinkat, (int folder, const char *path, int flags), folder, path, (folder, path, flags))
CHANGES(int, mkdir, (const char *path, mode_t mode), AT_FDCWD, path, (path, mode))
CHANGES(int, mkdirat, (int folder, const char *path, mode_t mode), folder, path, (folder, path, mode))
CHANGES(int, rmdir, (const char *path), AT_FDCWD, path, (path))

#define SYNCED(name)                                                                                                 \
    int name(int handle) {                                                                                           \
        if (control && handle_below(handle)) change();                                                               \
        return REAL(name)(handle);                                                                                   \
    }

SYNCED(fsync)
SYNCED(fdatasync)

int ftruncate(int handle, off_t size) {
    if (control && handle_below(handle)) change();
    return REAL(ftruncate)(handle, size);
}

int ftruncate64(int handle, off64_t size) {
    if (control && handle_below(handle)) change();
    return REAL(ftruncate64)(handle, size);
}
