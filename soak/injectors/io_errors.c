/* Makes reads, writes and syncs of a store's files fail with EIO: one call in SOAK_IO_EVERY, chosen by SOAK_IO_SEED. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_uint_fast64_t calls;

/* Files of a store have ".db" in their names. */
static int of_a_store(int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0) return 0;
    name[length] = 0;
    return strstr(name, ".db") != NULL;
}

static int fails(int file) {
    const char *every = getenv("SOAK_IO_EVERY"), *seed = getenv("SOAK_IO_SEED");
    if (!every || !seed || !of_a_store(file)) return 0;
    uint64_t number = atomic_fetch_add(&calls, 1) + strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15u;
    number = (number ^ (number >> 31)) * 0xBF58476D1CE4E5B9u;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
    if ((number ^ (number >> 31)) % strtoull(every, NULL, 10)) return 0;
    errno = EIO;
    return 1;
}

#define BROKEN(type, name, parameters, arguments, file)                        \
    type name parameters {                                                     \
        static type (*real) parameters;                                        \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                  \
        return fails(file) ? -1 : real arguments;                              \
    }

BROKEN(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), (f, b, n, o), f)
BROKEN(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), (f, b, n, o), f)
BROKEN(ssize_t, pread, (int f, void *b, size_t n, off_t o), (f, b, n, o), f)
BROKEN(ssize_t, pread64, (int f, void *b, size_t n, off64_t o), (f, b, n, o), f)
BROKEN(int, fsync, (int f), (f), f)
BROKEN(int, fdatasync, (int f), (f), f)
BROKEN(int, ftruncate, (int f, off_t n), (f, n), f)
BROKEN(int, ftruncate64, (int f, off64_t n), (f, n), f)
