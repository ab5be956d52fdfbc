/* The fork server: runs commands for the keeper, as children of the keeper.

   The keeper sends one datagram per command (fork_server.py describes it) and gets one answer, in the same order. The
   child is in its cgroup from its first instruction, because joining one later stops every fork on the machine for some
   milliseconds. It sends its descriptors to the holders, records its identity in the bundle, claims the bundle by a
   rename and execs. Nothing here allocates memory, and a fork of this small process copies next to nothing. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 3
#define SLOT_SIZE 1024
#define LARGEST (256 << 10)
#define MOST_FDS 24
#define MOST_WORDS (LARGEST / 2)
#define MOST_PATH 4096

enum flag { TERMINAL = 1, STDIN = 2, SPLIT = 4, IN_MEMFD = 8 };

/* One page that server and child share: how far the child came. */
struct progress {
    char stage[16];
    int error;
    int claimed;
    int missed; /* a bit per holder that did not take the descriptors */
    long long start;
};

static struct progress *progress;
static char inline_payload[LARGEST];
static char *words[MOST_WORDS + 3];

/* The request, in the order in which its parts come. */
struct request {
    int flags, fd_count, holder_count;
    int fds[MOST_FDS];
    char *directory, *pending, *cgroup, *born, *hold, *cwd;
    int umask;
    char *nice;
    char **joins, **argv, **env;
};

static char *next(char **at, const char *end)
{
    char *word = *at;
    if (word >= end)
        _exit(3);
    *at += strlen(word) + 1;
    return word;
}

/* The next words, all of them where the count is negative; NULL where they are too many. */
static char **list(char **at, const char *end, int count, char ***free_word)
{
    char **first = *free_word;
    while (count < 0 ? *at < end : count-- > 0) {
        if (*free_word >= words + MOST_WORDS)
            return NULL;
        *(*free_word)++ = next(at, end);
    }
    *(*free_word)++ = NULL;
    return first;
}

static int parse(struct request *request, char *payload, size_t size)
{
    char *at = payload, *end = payload + size, **free_word = words;
    int joins, arguments;
    if (size == 0 || end[-1] != 0)
        return EINVAL;
    request->holder_count = atoi(next(&at, end));
    request->directory = next(&at, end);
    request->pending = next(&at, end);
    request->cgroup = next(&at, end);
    request->born = next(&at, end);
    request->hold = next(&at, end);
    request->cwd = next(&at, end);
    request->umask = atoi(next(&at, end));
    request->nice = next(&at, end);
    joins = atoi(next(&at, end));
    arguments = atoi(next(&at, end));
    request->joins = list(&at, end, joins, &free_word);
    request->argv = list(&at, end, arguments, &free_word);
    request->env = list(&at, end, -1, &free_word);
    return request->joins && request->argv && request->env ? 0 : E2BIG;
}

static void fail(const char *stage, int error)
{
    strncpy(progress->stage, stage, sizeof progress->stage - 1);
    progress->error = error;
    _exit(127);
}

static void check(int result, const char *stage)
{
    if (result < 0)
        fail(stage, errno);
}

/* A test can kill a process here, as failpoints.py describes. */
static void reach(const char *point, pid_t killed)
{
    const char *die_at = getenv("HOLDFAST_DIE_AT"), *mark = getenv("HOLDFAST_DIE_MARK");
    if (die_at && mark && !strcmp(die_at, point) && open(mark, O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
        kill(killed, SIGKILL);
}

static void open_as(int directory, const char *name, int flags, int number)
{
    int fd = openat(directory, name, flags | O_CLOEXEC);
    check(fd, "setup");
    check(dup2(fd, number), "setup");
}

static void take_streams(const struct request *request, int directory)
{
    if (request->flags & TERMINAL) {
        int terminal = request->fds[request->holder_count];
        check(ioctl(terminal, TIOCSCTTY, 0), "terminal");
        for (int number = 0; number < 3; number++)
            check(dup2(terminal, number), "terminal");
        return;
    }
    if (request->flags & STDIN)
        open_as(directory, "in.fifo", O_RDONLY, 0);
    /* Read-write, so that a moment without a reader does not cause a SIGPIPE in the command. */
    open_as(directory, "out.fifo", O_RDWR, 1);
    if (request->flags & SPLIT)
        open_as(directory, "err.fifo", O_RDWR, 2);
    else
        check(dup2(1, 2), "setup");
}

static long long start_time(void)
{
    char text[1024], *at;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    check(size < 0 ? -1 : 0, "setup");
    close(fd);
    text[size] = 0;
    at = strrchr(text, ')');
    for (int field = 0; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        fail("setup", EINVAL);
    return atoll(at);
}

static void send_to_holders(const struct request *request)
{
    int first = request->holder_count + (request->flags & TERMINAL ? 1 : 0);
    int count = request->fd_count - first;
    int fds[MOST_FDS + 1];
    char header[8192], control[CMSG_SPACE(sizeof fds)];
    int size = snprintf(header, sizeof header, "%s%d}", request->hold, (int)getpid());
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    check(pidfd, "setup");
    if (size >= (int)sizeof header)
        fail("setup", E2BIG);
    memcpy(fds, request->fds + first, count * sizeof(int));
    fds[count++] = pidfd;
    for (int holder = 0; holder < request->holder_count; holder++) {
        struct iovec data = {header, size};
        struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control};
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
        if (sendmsg(request->fds[holder], &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            continue;
        if (holder == 0 && errno == EPIPE)
            fail("killed", 0); /* the anchor has given up on this keeper, or is dead: the next keeper decides anew */
        progress->missed |= 1 << holder;
    }
    close(pidfd);
}

static void record_birth(const struct request *request, int directory)
{
    char slot[SLOT_SIZE];
    int state = openat(directory, request->pending, O_WRONLY | O_CLOEXEC);
    check(state, "claim");
    memset(slot, ' ', sizeof slot);
    int size = snprintf(slot, sizeof slot, "{\"pid\":%d,\"start\":%lld,%s\n", (int)getpid(), progress->start, request->born);
    if (size >= (int)sizeof slot)
        fail("born", ENAMETOOLONG);
    slot[size] = ' ';
    check((int)pwrite(state, slot, sizeof slot, 0), "setup");
    close(state);
}

static void join(const char *cgroup)
{
    char path[MOST_PATH];
    snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fd, "limits");
    check((int)write(fd, "0", 1), "limits");
    close(fd);
}

/* As execvp finds it: a name with a slash is a path, any other is looked up in the command's own PATH. */
static const char *find_program(const struct request *request, char *path, size_t size)
{
    const char *name = request->argv[0], *at = "/bin:/usr/bin";
    int is_forbidden = 0;
    if (!name)
        fail("exec", EINVAL);
    if (strchr(name, '/'))
        return name;
    for (char **variable = request->env; *variable; variable++)
        if (!strncmp(*variable, "PATH=", 5))
            at = *variable + 5;
    for (;; at++) {
        size_t length = strcspn(at, ":");
        struct stat found;
        if (snprintf(path, size, "%.*s/%s", length ? (int)length : 1, length ? at : ".", name) < (int)size &&
            !stat(path, &found) && S_ISREG(found.st_mode)) {
            if (!access(path, X_OK))
                return path;
            is_forbidden = 1;
        }
        at += length;
        if (!*at)
            fail("exec", is_forbidden ? EACCES : ENOENT);
    }
}

static void run(const struct request *request)
{
    char program_path[MOST_PATH];
    const char *program;
    int directory = open(request->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    check(directory, "claim");
    prctl(PR_SET_NAME, "holdfast-start"); /* it is the command soon: not to be taken for the fork server */
    setsid();
    progress->start = start_time();
    send_to_holders(request);
    reach("child-deposited", getppid()); /* the keeper */
    record_birth(request, directory);
    take_streams(request, directory);
    check(chdir(request->cwd), "cwd");
    umask(request->umask);
    program = find_program(request, program_path, sizeof program_path);
    if (*request->nice)
        check(setpriority(PRIO_PROCESS, 0, atoi(request->nice)), "nice");
    for (char **cgroup = request->joins; *cgroup; cgroup++)
        join(*cgroup);
    reach("child-ready", getpid());
    check(renameat(directory, request->pending, directory, "state"), "claim");
    progress->claimed = 1;
    reach("child-claimed", getppid());
    execve(program, request->argv, request->env);
    int error = errno;
    renameat(directory, "state", directory, "void");
    progress->claimed = 0;
    fail("exec", error);
}

/* The pid of the child, or a negative error number. Returns when the child has called exec, or is dead. */
static int start(struct request *request, int *pidfd)
{
    struct clone_args arguments = {.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_VFORK, .pidfd = (uintptr_t)pidfd};
    int cgroup = -1;
    if (*request->cgroup) {
        cgroup = open(request->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cgroup < 0)
            return -errno;
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = cgroup;
    }
    memset(progress, 0, sizeof *progress);
    int pid = (int)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid < 0 && errno == ENOSYS && cgroup < 0) /* containers of Docker refuse clone3 */
        pid = (int)syscall(SYS_clone, arguments.flags, NULL, pidfd, NULL, NULL);
    if (pid == 0) {
        run(request);
        _exit(127);
    }
    if (pid < 0)
        pid = -errno;
    if (cgroup >= 0)
        close(cgroup);
    return pid;
}

/* The next datagram with its descriptors. Returns its size, 0 at the end. */
static ssize_t receive(struct request *request, char **payload)
{
    char control[CMSG_SPACE(sizeof request->fds)];
    uint32_t flags;
    struct iovec parts[] = {{&flags, sizeof flags}, {inline_payload, sizeof inline_payload}};
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size;
    do
        size = recvmsg(LINE, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size <= (ssize_t)sizeof flags || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return 0;
    request->flags = (int)flags;
    request->fd_count = 0;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_type == SCM_RIGHTS) {
        request->fd_count = (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(request->fds, CMSG_DATA(rights), request->fd_count * sizeof(int));
    }
    *payload = inline_payload;
    return size - (ssize_t)sizeof flags;
}

/* A request that is too long for a datagram comes in a memfd: the last descriptor. */
static ssize_t map(struct request *request, char **payload)
{
    struct stat found;
    int fd = request->fds[--request->fd_count];
    *payload = MAP_FAILED;
    if (!fstat(fd, &found) && found.st_size > 0)
        *payload = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    return *payload == MAP_FAILED ? -1 : (ssize_t)found.st_size;
}

static void answer(int pid, int pidfd)
{
    char text[128], control[CMSG_SPACE(sizeof pidfd)];
    struct iovec data = {text, 0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    data.iov_len = (size_t)snprintf(text, sizeof text, "[%d,%lld,%d,\"%s\",%d,%d]", pid, progress->start,
                                    progress->claimed, progress->stage, progress->error, progress->missed);
    if (pid > 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof pidfd);
        memcpy(CMSG_DATA(rights), &pidfd, sizeof pidfd);
    }
    if (sendmsg(LINE, &message, MSG_NOSIGNAL) < 0)
        _exit(0);
}

/* A keeper that is gone has no use for what is still queued: its successor decides anew. */
static int keeper_is_gone(void)
{
    struct pollfd line = {.fd = LINE, .events = POLLIN};
    return poll(&line, 1, -1) < 0 ? errno != EINTR : (line.revents & (POLLHUP | POLLERR)) != 0;
}

static void set_up(char **arguments)
{
    struct rlimit limit = {strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10)};
    const uint64_t none[4] = {0}; /* of the kernel's type: the C library keeps two signals to itself */
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, none, NULL, sizeof none[0]);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, sizeof none[0]);
    prctl(PR_SET_NAME, "holdfast-fork");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int number = 0; number < 3; number++)
        dup2(null, number);
    close(null);
    fcntl(LINE, F_SETFD, FD_CLOEXEC);
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        _exit(1);
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fputs("usage: fork_server DIRECTORY SOFT HARD, with the keeper's socket as descriptor 3\n", stderr);
        return 2;
    }
    set_up(arguments);
    while (!keeper_is_gone()) {
        static struct request request;
        char *payload;
        int pidfd = -1, pid, error = EINVAL;
        ssize_t size = receive(&request, &payload);
        if (size <= 0)
            break;
        if (request.flags & IN_MEMFD)
            size = request.fd_count ? map(&request, &payload) : -1;
        if (size > 0)
            error = parse(&request, payload, (size_t)size);
        memset(progress, 0, sizeof *progress);
        pid = error ? -error : start(&request, &pidfd);
        answer(pid, pidfd);
        if (pidfd >= 0)
            close(pidfd);
        while (request.fd_count > 0)
            close(request.fds[--request.fd_count]);
        if (request.flags & IN_MEMFD && size > 0)
            munmap(payload, (size_t)size);
    }
    return 0;
}
