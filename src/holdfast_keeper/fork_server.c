/* The fork server: runs commands for the keeper, as children of the keeper.

   The keeper sends one datagram per command (fork_server.py describes it) and gets one answer, in the same order. The
   child is in its cgroup from its first instruction, because joining one later stops every fork on the machine for some
   milliseconds. It sends its descriptors to the holders, records its identity in the bundle, claims the bundle by a
   rename and execs. Until then it mostly shares the memory of this process, which waits; nothing here allocates memory.

   A command in a sandbox is a child of the keeper like any other. Bubblewrap makes the namespaces and runs this program
   in them as their init (`keep_sandbox`); the child enters them before its exec. So its exit status, its pid and the
   reason why it did not start are its own, and bubblewrap has ended by then. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE 3
#define SLOT_SIZE 1024
#define LARGEST (256 << 10)
#define MOST_FDS 24
#define MOST_WORDS (LARGEST / 2)
#define MOST_PATH 4096
#define MOST_MESSAGE 256
/* The arguments with which this program is the init of a sandbox, and its descriptor to the helper. */
#define INIT_TITLE "holdfast: sandbox"
#define INIT_LINE 3

enum flag { TERMINAL = 1, STDIN = 2, SPLIT = 4, IN_MEMFD = 8 };

/* One page that server and child share: how far the child came. */
struct progress {
    char stage[16];
    int error;
    int claimed;
    int missed; /* a bit per holder that did not take the descriptors */
    int pid;    /* of the command, where another process than the server forks it */
    int init;   /* the init of its sandbox, and its start time */
    long long start, init_start;
    char message[MOST_MESSAGE]; /* why there is no sandbox */
};

/* The namespaces of a sandbox, in the order in which its init sends them. */
enum space { USER, MOUNT, PID, IPC, NET, SPACES };
static const char *const space_files[SPACES] = {"/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/pid",
                                                "/proc/self/ns/ipc", "/proc/self/ns/net"};

static struct progress *progress;
static char inline_payload[LARGEST];
static char *words[MOST_WORDS + 6];

/* The request, in the order in which its parts come. */
struct request {
    int flags, fd_count, holder_count;
    int fds[MOST_FDS];
    char *directory, *pending, *cgroup, *born, *hold, *cwd;
    int umask;
    char *nice;
    char **joins, **sandbox, **argv, **env;
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
    int joins, sandbox, arguments;
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
    sandbox = atoi(next(&at, end));
    arguments = atoi(next(&at, end));
    request->joins = list(&at, end, joins, &free_word);
    request->sandbox = list(&at, end, sandbox, &free_word);
    free_word += 3; /* for what is added to the command line of bubblewrap */
    request->argv = list(&at, end, arguments, &free_word);
    request->env = list(&at, end, -1, &free_word);
    return request->joins && request->sandbox && request->argv && request->env ? 0 : E2BIG;
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
    if (!killed)
        return; /* the keeper, seen from the pid namespace of a sandbox */
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

static long long start_time(const char *path)
{
    char text[1024], *at;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
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

static int send_with(int to, const char *text, size_t size, const int *fds, int count, int flags)
{
    char control[CMSG_SPACE((MOST_FDS + 1) * sizeof(int))];
    struct iovec data = {(void *)text, size};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
    }
    return (int)sendmsg(to, &message, MSG_NOSIGNAL | flags);
}

/* Returns how many descriptors came; `sender` gets the pid of a sender that says it. */
static int receive_fds(int from, int *fds, int *sender)
{
    char byte, control[CMSG_SPACE(MOST_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int count = 0;
    ssize_t size;
    do
        size = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    struct cmsghdr *part = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    for (; part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_type == SCM_RIGHTS) {
            count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fds, CMSG_DATA(part), count * sizeof(int));
        } else if (part->cmsg_type == SCM_CREDENTIALS && sender) {
            struct ucred found;
            memcpy(&found, CMSG_DATA(part), sizeof found);
            *sender = found.pid;
        }
    }
    return count;
}

/* `init` is the descriptor to the init of its sandbox, -1 without one: it ends when the command has ended. */
static void send_to_holders(const struct request *request, int pid, int init)
{
    int first = request->holder_count + (request->flags & TERMINAL ? 1 : 0);
    int count = request->fd_count - first;
    int fds[MOST_FDS + 1];
    char header[8192];
    int size = snprintf(header, sizeof header, "%s%d}", request->hold, pid);
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    check(pidfd, "setup");
    if (size >= (int)sizeof header)
        fail("setup", E2BIG);
    memcpy(fds, request->fds + first, count * sizeof(int));
    fds[count++] = pidfd;
    for (int holder = 0; holder < request->holder_count; holder++) {
        if (send_with(request->fds[holder], header, (size_t)size, fds, count, MSG_DONTWAIT) >= 0)
            continue;
        if (holder == 0 && errno == EPIPE)
            fail("killed", 0); /* the anchor has given up on this keeper, or is dead: the next keeper decides anew */
        progress->missed |= 1 << holder;
    }
    if (init >= 0) {
        char end;
        check(send_with(init, "c", 1, &pidfd, 1, 0), "sandbox");
        while (read(init, &end, 1) < 0 && errno == EINTR) /* until it has closed what it held of ours, this line last */
            ;
    }
    close(pidfd);
}

static void record_birth(const struct request *request, int directory, int pid)
{
    char slot[SLOT_SIZE], init[64] = "";
    int state = openat(directory, request->pending, O_WRONLY | O_CLOEXEC);
    check(state, "claim");
    memset(slot, ' ', sizeof slot);
    if (progress->init)
        snprintf(init, sizeof init, "\"init\":[%d,%lld],", progress->init, progress->init_start);
    int size =
        snprintf(slot, sizeof slot, "{\"pid\":%d,\"start\":%lld,%s%s\n", pid, progress->start, init, request->born);
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

/* The message of bubblewrap, as text that fits into a JSON string. */
static void read_message(int from)
{
    ssize_t size = 0, more;
    while (size < MOST_MESSAGE - 1 && (more = read(from, progress->message + size, MOST_MESSAGE - 1 - size)) > 0)
        size += more;
    progress->message[size] = 0;
    for (char *at = progress->message; *at; at++)
        if (*at == '\n')
            *at = 0;
        else if (*at == '"' || *at == '\\' || *at < ' ' || *at > '~')
            *at = '?';
}

/* What becomes bubblewrap, which becomes the init of the sandbox. */
static void run_bubblewrap(const struct request *request, int init_line, int errors)
{
    static char *no_variables[] = {NULL};
    static char program_link[] = "/proc/self/fd/4", title[] = INIT_TITLE, separator[] = "--";
    int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    char **end = request->sandbox;
    while (*end)
        end++;
    *end++ = separator;
    *end++ = program_link;
    *end++ = title;
    *end = NULL;
    check(chdir("/"), "sandbox");
    if (request->flags & TERMINAL) /* bubblewrap shows the terminal of its stdout as /dev/console */
        check(dup2(request->fds[request->holder_count], 1), "sandbox");
    check(dup2(errors, 2), "sandbox");
    /* Above all numbers that are assigned here. */
    init_line = fcntl(init_line, F_DUPFD_CLOEXEC, 10);
    program = fcntl(program, F_DUPFD_CLOEXEC, 10);
    check(dup2(init_line, INIT_LINE), "sandbox");
    check(dup2(program, INIT_LINE + 1), "sandbox");
    execve(request->sandbox[0], request->sandbox, no_variables);
    fail("sandbox", errno);
}

/* Has bubblewrap make a sandbox. Returns the descriptor to its init, and its namespaces. */
static int make_sandbox(const struct request *request, int *spaces)
{
    int line[2], errors[2], init = 0, yes = 1;
    char path[64];
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line), "sandbox");
    check(setsockopt(line[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes), "sandbox");
    check(pipe2(errors, O_CLOEXEC), "sandbox");
    pid_t bubblewrap = fork();
    check(bubblewrap, "sandbox");
    if (bubblewrap == 0) {
        run_bubblewrap(request, line[1], errors[1]);
        _exit(127);
    }
    close(line[1]);
    close(errors[1]);
    if (receive_fds(line[0], spaces, &init) != SPACES) {
        read_message(errors[0]);
        waitpid(bubblewrap, NULL, 0);
        fail("sandbox", progress->error);
    }
    close(errors[0]);
    snprintf(path, sizeof path, "/proc/%d/stat", init);
    progress->init_start = start_time(path);
    progress->init = init;
    kill(bubblewrap, SIGKILL); /* it only waits for the init, which lives on without it */
    waitpid(bubblewrap, NULL, 0);
    return line[0];
}

/* Everything that a program in the sandbox could use to change it. */
static void drop_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "sandbox");
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        check(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "sandbox");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    check((int)syscall(SYS_capset, &header, none), "sandbox");
}

/* The network may be that of the machine, and the user namespace the one that was entered already. */
static void enter(const int *spaces, enum space space)
{
    struct stat own, other;
    check(fstat(spaces[space], &other), "sandbox");
    check(stat(space_files[space], &own), "sandbox");
    if (own.st_ino != other.st_ino)
        check(setns(spaces[space], 0), "sandbox");
}

/* The child enters its files last: until then, it works with those of the keeper. */
static void enter_files(const int *spaces)
{
    enter(spaces, MOUNT);
    enter(spaces, USER); /* bubblewrap makes two where it needs privileges of its own, one below the other */
    drop_privileges();
}

/* The child: becomes the command. In a sandbox, `pid` is its pid as the keeper sees it. */
static void run(const struct request *request, int directory, int pid, int init, const int *spaces)
{
    char program_path[MOST_PATH];
    const char *program;
    prctl(PR_SET_NAME, "holdfast-start"); /* it is the command soon: not to be taken for the fork server */
    setsid();
    progress->start = start_time("/proc/self/stat");
    send_to_holders(request, pid, init);
    reach("child-deposited", getppid()); /* the keeper */
    record_birth(request, directory, pid);
    take_streams(request, directory);
    if (!spaces)
        check(chdir(request->cwd), "cwd");
    umask(request->umask);
    if (!spaces && *request->nice)
        check(setpriority(PRIO_PROCESS, 0, atoi(request->nice)), "nice");
    for (char **cgroup = request->joins; *cgroup; cgroup++)
        join(*cgroup);
    if (spaces) {
        enter_files(spaces);
        check(chdir(request->cwd), "cwd");
    }
    program = find_program(request, program_path, sizeof program_path);
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

/* As the system call, but in the frame of the caller, which a child that shares the memory must not leave. */
static inline __attribute__((always_inline)) long clone_here(struct clone_args *arguments)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_clone3), "D"(arguments), "S"(sizeof *arguments)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clone3;
    register long result __asm__("x0") = (long)arguments;
    register long size __asm__("x1") = sizeof *arguments;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number), "r"(size) : "memory");
    return result;
#else
    arguments->flags &= ~(uint64_t)CLONE_VM;
    long result = syscall(SYS_clone3, arguments, sizeof *arguments);
    return result < 0 ? -errno : result;
#endif
}

/* The pid of the child, or a negative error number. With CLONE_VM the child shares the memory, so that no page tables
   are copied; this process waits meanwhile. The child calls a function that does not return, and nothing before. */
static inline __attribute__((always_inline)) int fork_child(uint64_t flags, int cgroup, int *pidfd)
{
    struct clone_args arguments = {.flags = flags | CLONE_PARENT | CLONE_PIDFD | CLONE_VFORK,
                                   .pidfd = (uintptr_t)pidfd,
                                   .parent_tid = (uintptr_t)&progress->pid};
    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (uint64_t)cgroup;
    }
    int pid = (int)clone_here(&arguments);
    if (pid == -ENOSYS && cgroup < 0 && !(flags & ~(uint64_t)CLONE_VM)) { /* containers of Docker refuse clone3 */
        pid = (int)syscall(SYS_clone, arguments.flags & ~(uint64_t)CLONE_VM, NULL, pidfd, NULL, NULL);
        return pid < 0 ? -errno : pid;
    }
    return pid;
}

/* The helper: has the sandbox made, and forks the command in it, as a child of the keeper. A process enters a pid
   namespace only with its children, and never leaves a user namespace. */
static void fork_in_sandbox(const struct request *request, int directory, int cgroup)
{
    int spaces[SPACES], pidfd, init = make_sandbox(request, spaces);
    int owner = ioctl(spaces[MOUNT], NS_GET_USERNS);
    check(owner, "sandbox");
    if (*request->nice) /* the privilege for it stays outside */
        check(setpriority(PRIO_PROCESS, 0, atoi(request->nice)), "nice");
    check(setns(owner, CLONE_NEWUSER), "sandbox");
    enter(spaces, PID);
    enter(spaces, IPC);
    enter(spaces, NET);
    int pid = fork_child(CLONE_PARENT_SETTID, cgroup, &pidfd);
    if (pid < 0)
        fail("sandbox", -pid);
    if (pid == 0)
        run(request, directory, progress->pid, init, spaces);
    _exit(0);
}

/* What the child does. */
static __attribute__((noinline, noreturn)) void live(const struct request *request, int cgroup)
{
    int directory = open(request->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    check(directory, "claim");
    if (*request->sandbox)
        fork_in_sandbox(request, directory, cgroup);
    run(request, directory, (int)getpid(), -1, NULL);
    _exit(127);
}

/* The pid of the child, or a negative error number. Returns when the child has called exec, or is dead. */
static int start(struct request *request, int *pidfd)
{
    int is_sandboxed = *request->sandbox != NULL, cgroup = -1;
    memset(progress, 0, sizeof *progress);
    if (*request->cgroup) {
        cgroup = open(request->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cgroup < 0)
            return -errno;
    }
    /* Not with a limit: for want of memory, the kernel would kill all processes that share it. */
    int shares_memory = !is_sandboxed && !*request->joins;
    int pid = fork_child(shares_memory ? CLONE_VM : 0, is_sandboxed ? -1 : cgroup, pidfd);
    if (pid == 0)
        live(request, cgroup);
    if (cgroup >= 0)
        close(cgroup);
    if (pid > 0 && progress->pid > 0) { /* the helper has forked it; the keeper does not reap it before the answer */
        close(*pidfd);
        pid = progress->pid;
        *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    }
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
    char text[128 + MOST_MESSAGE];
    size_t size = (size_t)snprintf(text, sizeof text, "[%d,%lld,%d,\"%s\",%d,%d,\"%s\"]", pid, progress->start,
                                   progress->claimed, progress->stage, progress->error, progress->missed,
                                   progress->message);
    if (send_with(LINE, text, size, &pidfd, pid > 0 && pidfd >= 0, 0) < 0)
        _exit(0);
}

/* A keeper that is gone has no use for what is still queued: its successor decides anew. */
static int keeper_is_gone(void)
{
    struct pollfd line = {.fd = LINE, .events = POLLIN};
    return poll(&line, 1, -1) < 0 ? errno != EINTR : (line.revents & (POLLHUP | POLLERR)) != 0;
}

/* As the keeper does (kernel.py): run soon after being woken. A child has a normal slice. */
static void shorten_slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof attributes, .policy = SCHED_OTHER, .flags = 1 /* reset on fork */, .runtime = 100000};
    if (sched_getscheduler(0) == SCHED_OTHER) {
        attributes.nice = getpriority(PRIO_PROCESS, 0);
        syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
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
    shorten_slice();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int number = 0; number < 3; number++)
        dup2(null, number);
    close(null);
    fcntl(LINE, F_SETFD, FD_CLOEXEC);
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        _exit(1);
}

/* The init of a sandbox, pid 1 of its pid namespace: sends the namespaces to the helper, reaps orphans, and ends when
   the command and all that it started have ended. Were it killed, the kernel would kill all of them. */
static int keep_sandbox(char **arguments)
{
    int spaces[SPACES], command;
    sigset_t child;
    /* For `ps`: both arguments are one piece of memory. */
    memset(arguments[0], 0, (size_t)(arguments[1] + strlen(arguments[1]) - arguments[0]));
    memcpy(arguments[0], INIT_TITLE, sizeof INIT_TITLE);
    prctl(PR_SET_NAME, "holdfast-init");
    /* It must not hold the terminal, nor anything else from outside. */
    syscall(SYS_close_range, 0, INIT_LINE - 1, 0);
    syscall(SYS_close_range, INIT_LINE + 1, ~0U, 0);
    for (int space = 0; space < SPACES; space++)
        if ((spaces[space] = open(space_files[space], O_RDONLY | O_CLOEXEC)) < 0)
            return 1;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    if (send_with(INIT_LINE, "s", 1, spaces, SPACES, 0) < 0 || receive_fds(INIT_LINE, &command, NULL) != 1)
        return 1;
    for (int space = 0; space < SPACES; space++)
        close(spaces[space]);
    close(INIT_LINE);
    struct pollfd fds[] = {{.fd = command, .events = POLLIN},
                           {.fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN}};
    while (!fds[0].revents) {
        struct signalfd_siginfo seen;
        while (read(fds[1].fd, &seen, sizeof seen) > 0)
            ;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        poll(fds, 2, -1);
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) /* what the command left behind is a child of this process now */
        ;
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 2 && !strcmp(arguments[1], INIT_TITLE))
        return keep_sandbox(arguments);
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
