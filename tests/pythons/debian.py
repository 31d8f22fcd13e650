"""Pythons of Debian's newer suites, in a folder of their own that is entered with chroot.

What lives here: how the folder is made and kept, and how a command runs in it.  It is filled from where this machine
gets its own packages.  What a command needs of the machine is mounted in a namespace of that command, and is gone with
it, however it ends: nothing stays mounted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDERS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hdphrs", "pythons")
"""They are used again; whoever deletes them gets new ones."""

SUITES = ("forky", "sid", "trixie")
"""Where a version is looked for, in this order: the first has several of them."""

SCRIPTS = Path("/usr/share/debootstrap/scripts")
ANY_SUITE = "sid"
"""The script for suites that are newer than debootstrap."""

TOOLS = ("ca-certificates", "gcc", "libc6-dev", "openssh-client", "openssh-server", "procps")
"""What tests want, and what compiles hdphrs."""

FORM = "1"
"""Another number makes all folders anew."""

_APT = (
    "apt-get",
    "-qq",
    "-o",
    "Dpkg::Use-Pty=0",
    *("-o", "Acquire::Check-Valid-Until=false", "-o", "Dpkg::Options::=--force-unsafe-io"),
)
"""A mirror may be a while behind: these Pythons need not be of today."""


class CannotHaveError(Exception):
    """Why a Python cannot be had here."""


def mirror() -> str:
    """Where this machine gets Debian's packages from.

    Raises:
        CannotHaveError: it does not.
    """
    try:
        targets = subprocess.check_output(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"], text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotHaveError(f"apt does not tell where it gets its packages: {error}") from None
    for line in targets.splitlines():
        address, _, source = line.partition(" ")
        if source == "Debian Debian":
            return address
    raise CannotHaveError("apt has no lists of Debian's packages: run apt-get update")


class Folder:
    """One suite of Debian."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.path = FOLDERS / suite
        self._ready = self.path / "hdphrs-ready"

    def make(self) -> None:
        """Have it there, with no Python yet.

        Raises:
            CannotHaveError: that is not possible here.
        """
        if os.geteuid() != 0:
            raise CannotHaveError("only root can enter another system")
        if self._ready.exists() and self._ready.read_text() == FORM:
            return
        if shutil.which("debootstrap") is None:
            _call("apt-get", "-qq", "update", what="apt has no lists")
            _call(*_APT, "install", "-y", "--no-install-recommends", "debootstrap", what="there is no debootstrap")
        source = mirror()
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        script = SCRIPTS / self.suite
        options = ["--variant=minbase", "--include=ca-certificates"]
        script = script if script.exists() else SCRIPTS / ANY_SUITE
        _call("debootstrap", *options, self.suite, self.path, source, script, what=f"{self.suite} cannot be had")
        for line in subprocess.check_output(["apt-config", "dump"], text=True).splitlines():
            if line.startswith("Acquire::") and "proxy" in line.lower():
                with open(self.path / "etc/apt/apt.conf.d/90machine", "a") as file:
                    file.write(f"{line}\n")
        self._ready.write_text(FORM)

    def install(self, versions: Sequence[str]) -> list[str]:
        """Those of these versions of Python that this suite has, installed."""
        wanted = [version for version in versions if not (self.path / f"usr/bin/python{version}").exists()]
        if wanted:
            self.check(*_APT, "update")
            here = [version for version in wanted if self._has(f"python{version}-venv")]
            if here:
                packages = [f"{name}{version}{end}" for version in here for name, end in _PACKAGES]
                found = [package for package in packages if self._has(package)]
                self.check("env", "DEBIAN_FRONTEND=noninteractive", *_APT, *_INSTALL, *TOOLS, *found)
                self.check("apt-get", "clean")
        return [version for version in versions if (self.path / f"usr/bin/python{version}").exists()]

    def _has(self, package: str) -> bool:
        return self.call("apt-cache", "show", package, quiet=True) == 0

    def check(self, *command: object) -> None:
        """Run it there.

        Raises:
            CannotHaveError: it has failed.
        """
        if status := self.call(*command, brief=True):
            raise CannotHaveError(f"{self.suite}: {' '.join(map(str, command))[:200]} ended with status {status}")

    def call(self, *command: object, folder: str = "/", quiet: bool = False, brief: bool = False) -> int:
        """Run it there; its exit status.  It sees the paths of the machine that pip is told of.

        Args:
            quiet: nothing that it says is shown,
            brief: or only what it says on its standard error.
        """
        _copy_settings(self.path)
        paths = [str(path) for path in _named_to_pip()]
        for path in paths:
            target = Path(f"{self.path}{path}")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.mkdir() if os.path.isdir(path) else target.touch()
        script = [
            "root=$1 folder=$2 count=$3; shift 3",
            "for part in proc sys dev; do mount --rbind /$part $root/$part; done",
            "mount -t tmpfs tmpfs $root/tmp",
            'while [ $count -gt 0 ]; do mount --rbind "$1" "$root$1"; shift; count=$((count - 1)); done',
            'exec chroot "$root" sh -c \'cd "$0" && exec "$@"\' "$folder" "$@"',
        ]
        return subprocess.run(
            [
                *("unshare", "--mount", "--propagation", "private", "sh", "-e", "-c", "\n".join(script), "sh"),
                *(str(self.path), folder, str(len(paths)), *paths, *map(str, command)),
            ],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if quiet or brief else None,
            stderr=subprocess.DEVNULL if quiet else None,
            env={
                **os.environ,
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LC_ALL": "C.UTF-8",
            },
        ).returncode


_PACKAGES = (("python", "-venv"), ("python", "-dev"), ("libpython", "-testsuite"))
_INSTALL = ("install", "-y", "--no-install-recommends")


def _call(*command: object, what: str) -> None:
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise CannotHaveError(f"{what}: {' '.join(last)}")


def _copy_settings(folder: Path) -> None:
    """How this machine finds others, and what it has told pip."""
    places = [
        *("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/xdg/pip/constraints.txt")
    ]
    places += [str(Path.home() / ".config/pip/pip.conf"), str(Path.home() / ".pip/pip.conf")]
    for place in places:
        if os.path.exists(place):
            target = Path(f"{folder}{place}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(place, target)


def _named_to_pip() -> Iterator[Path]:
    """Files and folders that pip's settings on this machine name."""
    settings = subprocess.run(["pip", "config", "list"], check=False, capture_output=True, text=True).stdout
    indexes = {os.path.dirname(index.rstrip("/")) for index in re.findall(r"file://(/[\w./+-]+)", settings)}
    for named in sorted(indexes | set(re.findall(r"['\" ](/[\w./+-]+)", settings))):  # an index has its files beside it
        if named != "/" and os.path.exists(named):
            yield Path(named)
