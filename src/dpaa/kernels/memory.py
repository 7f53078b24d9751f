"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path


def memory_at_hand() -> int:
    """Bytes this process may still take without swapping: what the system has, or the rest of a container's limit."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = meminfo.read_text(encoding="ascii").splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text(encoding="ascii").strip().isdigit():
        found.append(int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    return min(found)
