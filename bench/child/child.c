/* What the benchmarks run as a held command. child.py does the same where there is no C compiler. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static char block[65536 + 128];

static int put(long long size) {
    for (char *at = block; size > 0;) {
        ssize_t written = write(1, at, size);
        if (written < 0) return 1;
        at += written;
        size -= written;
    }
    return 0;
}

/* Fills the block with whole lines; the first has this number. */
static int fill(unsigned line) {
    int size = 0;
    for (unsigned i = line; size < 65536; i++)
        size += sprintf(block + size, "12:00:%02u.%03u INFO worker[%u] request id=%08x status=200 took=%ums\n", i % 60,
                        i % 1000, i % 16, i * 2654435761u, i % 977);
    return size;
}

/* produce BYTES: that many bytes of log lines, each made anew, as a program that logs does */
static int produce(long long left) {
    for (unsigned line = 0; left > 0; line += 1024) {
        long long size = fill(line);
        if (put(size < left ? size : left)) return 1;
        left -= size;
    }
    return 0;
}

/* copy BYTES: the same block again and again, as fast as the reader allows */
static int copy(long long left) {
    for (fill(0); left > 0; left -= 65536)
        if (put(left < 65536 ? left : 65536)) return 1;
    return 0;
}

/* leave FILE MS: after MS milliseconds write the time into FILE and exit with 7 */
static int leave(const char *path, long ms) {
    char line[32];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pause_ms(ms);
    int size = sprintf(line, "%lld", now());
    if (write(fd, line, size) != size) return 1;
    _exit(7);
}

/* tick COUNT MS: the time as a line of its own on stdout, COUNT times, MS milliseconds apart */
static int tick(long count, long ms) {
    char line[32];
    while (count-- > 0) {
        pause_ms(ms);
        int size = sprintf(line, "%lld\n", now());
        if (write(1, line, size) != size) return 1;
    }
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "produce")) return produce(atoll(words[2]));
    if (count == 3 && !strcmp(words[1], "copy")) return copy(atoll(words[2]));
    if (count == 4 && !strcmp(words[1], "leave")) return leave(words[2], atol(words[3]));
    if (count == 4 && !strcmp(words[1], "tick")) return tick(atol(words[2]), atol(words[3]));
    return 2;
}
