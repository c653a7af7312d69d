/* Tries to get through the walls, by harmless stand-ins. Prints the name of each act that was possible.
   Arguments: a directory outside, the port of a TCP listener,
   that of a UDP one, a socket's path, an abstract socket's name, a
   hidden file. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char path[4096];
static const char *below(const char *directory, const char *name) {
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}
static void possible(const char *name, int was) { printf("%s: %s\n", was ? "possible" : "refused", name); }
static int opens(const char *file, int flags) {
    int fd = open(file, flags | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}
static int parent_of(int pid) {
    char stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t length = fread(stat, 1, sizeof stat - 1, file);
    stat[length] = 0;
    fclose(file);
    char *rest = strrchr(stat, ')');
    int parent = 0;
    if (rest) sscanf(rest, ") %*c %d", &parent);
    return parent;
}
/* Whether it is a launcher process, which was started as /proc/self/exe. */
static int is_launcher(int pid) {
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char *read = fgets(name, sizeof name, file);
    fclose(file);
    return read && strcmp(name, "exe\n") == 0;
}
static int unix_connects(const char *name, int is_abstract) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path + is_abstract, name, sizeof address.sun_path - 2);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name) + !is_abstract;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0;
}
static int inet_connects(int type, const char *port) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, type, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1;
}
#if defined(__x86_64__)
/* getpid by the 32-bit gate: the filter ends the process. */
static int old_gate(void) {
    pid_t child = fork();
    if (child == 0) {
        long result = 20;
        __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
        _exit(result > 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif
int main(int count, char **args) {
    if (count < 7) return 2;
    const char *outside = args[1];
    struct timespec now[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
    possible("write outside", opens(below(outside, "file"), O_WRONLY));
    possible("truncate outside", truncate(below(outside, "file"), 0) == 0);
    possible("create outside", opens(below(outside, "new"), O_CREAT | O_WRONLY));
    possible("remove outside", unlink(below(outside, "file")) == 0);
    possible("write through a link", opens("leads-outside", O_WRONLY | O_TRUNC));
    possible("hard link from outside", link(below(outside, "file"), "hard-link") == 0);
    possible("chmod outside", chmod(below(outside, "file"), 0644) == 0);
    possible("utimens outside", utimensat(AT_FDCWD, below(outside, "file"), now, 0) == 0);
    possible("attributes outside", setxattr(below(outside, "file"), "user.stand-in", "x", 1, 0) == 0);
    possible("chown outside", chown(below(outside, "file"), getuid(), getgid()) == 0);
    possible("a file without a name outside", (errno = 0, open(outside, O_TMPFILE | O_WRONLY, 0600)) >= 0);
    possible("write into a pipe outside", opens(below(outside, "pipe"), O_WRONLY));
    possible("exchange with outside", syscall(SYS_renameat2, AT_FDCWD, "notes.txt", AT_FDCWD, below(outside, "file"), 2) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(below(outside, "file"), O_PATH));
    possible("open again what was only named", opens(path, O_WRONLY));
    possible("read a hidden file", opens(args[6], O_RDONLY));
    possible("tcp", inet_connects(SOCK_STREAM, args[2]));
    possible("udp", inet_connects(SOCK_DGRAM, args[3]) && 0);
    possible("socket with a path", unix_connects(args[4], 0));
    possible("abstract socket", unix_connects(args[5], 1));
    possible("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
    possible("packet socket", socket(AF_PACKET, SOCK_RAW, 0) >= 0);
    possible("io_uring", syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != ENOSYS);
#if defined(__x86_64__)
    possible("x32", syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0) >= 0);
    possible("int 0x80", old_gate());
#endif
    possible("typing into the terminal", ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM);
    possible("opening the terminal", opens("/dev/tty", O_RDWR | O_NOCTTY));
    possible("a user namespace", unshare(CLONE_NEWUSER) == 0);
    possible("a mount namespace", unshare(CLONE_NEWNS) == 0);
    possible("mount", mount("none", "/mnt", "tmpfs", 0, "") == 0);
    possible("remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
    possible("a device", mknod("device", S_IFBLK | 0600, makedev(254, 0)) == 0);
    possible("a disk", opens("/dev/vda", O_RDONLY) || opens("/dev/sda", O_RDONLY));
    possible("a setting of the kernel", opens("/proc/sys/kernel/hostname", O_WRONLY));
    int guard = getppid();
    while (guard > 1 && !is_launcher(guard)) guard = parent_of(guard);
    if (guard < 1) return 3;
    // Above the guard is the process that it was split off from.
    int agent = parent_of(guard);
    while (agent > 1 && is_launcher(agent)) agent = parent_of(agent);
    snprintf(path, sizeof path, "/proc/%d/environ", guard);
    char byte;
    int fd = open(path, O_RDONLY);
    possible("the guard's environment", fd >= 0 && read(fd, &byte, 1) > 0);
    possible("trace the guard", ptrace(PTRACE_ATTACH, guard, NULL, NULL) == 0);
    struct iovec here = { &byte, 1 }, there = { args, 1 };
    possible("the guard's memory", process_vm_readv(guard, &here, 1, &there, 1, 0) >= 0 || errno != EPERM);
    int process = syscall(SYS_pidfd_open, guard, 0);
    possible("a descriptor of the guard", syscall(SYS_pidfd_getfd, process, 0, 0) >= 0);
    /* The first process of a namespace of our own may be asked; what a command does to it ends the command alone. */
    struct rlimit limit;
    int outside_view = guard > 1 && getrlimit(RLIMIT_CORE, &limit) == 0;
    int found = outside_view && (kill(guard, 0) == 0 || errno != ESRCH);
    found |= outside_view && (kill(-guard, 0) == 0 || errno != ESRCH);
    found |= outside_view && (syscall(SYS_tkill, guard, 0) == 0 || errno != ESRCH);
    found |= outside_view && (syscall(SYS_tgkill, guard, guard, 0) == 0 || errno != ESRCH);
    possible("signal the guard", found);
    possible("signal everything", outside_view && kill(-1, 0) == 0);
    possible("a handle of the guard", outside_view && process >= 0);
    possible("have the guard signalled", outside_view && fcntl(0, F_SETOWN, guard) == 0);
    snprintf(path, sizeof path, "/proc/%d", guard);
    process = open(path, O_RDONLY | O_DIRECTORY);
    possible("signal the guard by its directory", outside_view && (syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) == 0 || errno != ESRCH));
    possible("limits of the guard", outside_view && prlimit(guard, RLIMIT_CORE, &limit, NULL) == 0);
    snprintf(path, sizeof path, "/proc/%d/environ", agent);
    possible("the agent's environment", agent > 1 && (fd = open(path, O_RDONLY)) >= 0 && read(fd, &byte, 1) > 0);
    possible("signal the agent", agent > 1 && (kill(agent, 0) == 0 || (outside_view && errno != ESRCH)));
    puts("done");
    return 0;
}
