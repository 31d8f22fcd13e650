"""What programs of tests look at: the large data that their processes have.  Linux only."""

from __future__ import annotations

LOOK = """
import os

def processes(pid):
    yield pid
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in open(f"/proc/{pid}/task/{thread}/children").read().split():
                yield from processes(int(child))
    except OSError:
        pass

def held(pid):
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if "hdphrs-bulk" in os.readlink(f"/proc/{pid}/fd/{name}"):
                status = os.stat(f"/proc/{pid}/fd/{name}")
                found[status.st_ino] = status.st_size
        except OSError:
            pass
    return found
"""
"""`processes(pid)`: it and all below it.  `held(pid)`: the bytes of the large data that it has open, by inode."""
