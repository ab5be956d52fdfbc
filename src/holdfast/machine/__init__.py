"""What the kernel reports of running processes: read from /proc, netlink and the cgroup tree. Only `places` uses it."""
