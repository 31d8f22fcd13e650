"""How a node process is started, and what it is told.

What lives here: the settings of one node, their form on its standard input, and the one place that starts a node
process afresh (the root forks others of its host, `hdphrs/node/life.py`).  A node reads one frame of settings from its
standard input and then keeps that stream as its *leash*: its end means that the launcher is gone, the byte `LEASH_KILL`
means "kill -9 yourself" (test mode).  So no secret is ever in an argument, an environment listing or a file, and no
node outlives its launcher.
"""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from enum import IntEnum
from math import ceil, inf
from typing import IO, Any

from hdphrs.config import (
    ATTEMPTS_MAX,
    DETECT_AFTER_S,
    GRACE_S,
    JOIN_DEADLINE_S,
    LEDGER_BYTES_MAX,
    REJOIN_FOR_S,
    WIRE_VERSION,
)
from hdphrs.errors import LedgerError, ProtocolError, StartError, UsageError
from hdphrs.records import dataclass
from hdphrs.room import wait_for_room
from hdphrs.wire.cpu_quota import quota_cores
from hdphrs.wire.framing import HEADER_BYTES, FrameDecoder, encode_frame
from hdphrs.wire.interpreter import interpreter_options
from hdphrs.wire.stacks import room_for_children

LEASH_KILL = b"K"
LEAVE_SIGNAL = signal.SIGUSR1
"""Tells a node process to leave; other than SIGTERM it may be sent again."""

NODE_MODULE = "hdphrs.node"
ROOT_NODE = "root"
MEMBER = "member"
"""A node process is `python OPTIONS -m hdphrs.node KIND`: the kind is for who looks at the processes of a host.  That
of a root which forks others goes on with their number."""

READY = "ready"
FAILED = "failed"
"""Said by the root node to the launcher; a sentence that says why follows the latter."""

JOINED_AGAIN = b"has joined again, as node "
"""Said on the standard error by a node that was out of the run, or was started again by the launcher."""

TOLD_STATUS = 128 + signal.SIGTERM
"""Exit status of a root node that has ended the run because it was told to, by SIGTERM."""

LINKS_LOST_STATUS = 76
"""Exit status of a scheduler process that finds the descriptors of its links to the node closed or replaced."""

PROGRAM_FD_VARIABLE = "HDPHRS_PROGRAM_FD"
"""Tells a program started by `hdphrs run` which descriptor is its link to the root node."""

LEASH_FD_VARIABLE = "HDPHRS_LEASH_FD"
"""Tells it which pipe ends with the launcher."""

SEQUENTIAL_VARIABLE = "HDPHRS_SEQUENTIAL"
"""Set if there is no node, and everything runs in the program."""

PATH_VARIABLE = "HDPHRS_PROGRAM_PATH"
"""Tells a scheduler where the program's modules are."""

PYTHON_VARIABLE = "HDPHRS_PYTHON"
"""What a node on another host is started with, for `hdphrs drain`: the interpreter, as the hosts file names it."""

OUTPUT_VARIABLE = "HDPHRS_OUTPUT"
"""What --output says, where it is not given: `RAW` or `PREFIXED`."""

RAW = "raw"
PREFIXED = "prefixed"

ADVICE_VARIABLE = "HDPHRS_ADVICE"
"""0 for no advice."""

DETECT_STOPPED_VARIABLE = "HDPHRS_DETECT_STOPPED"
"""What --detect-stopped says, where it is not given: seconds."""

DETECT_STOPPED_S_MIN = 0.1

LEDGER_VARIABLE = "HDPHRS_LEDGER"
"""Names the ledger of a run for which --ledger is not given."""

LEDGER_KEY_VARIABLE = "HDPHRS_LEDGER_KEY"
"""Names the file with the key of the ledger where --ledger-key is not given; the key itself is in no environment."""

LEDGER_KEY_BYTES_MIN = 16
LEDGER_KEY_BYTES_MAX = 4096

SETTINGS_BYTES_MAX = 64 << 20

_NO_SETTINGS = "hdphrs.node is started by hdphrs itself; its standard input holds no settings"


class Streams(IntEnum):
    """Which standard streams of tasks go to the program, which shows them with a prefix (decision 22)."""

    NONE = 0
    ERROR = 1
    BOTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The certificate of one node and the authority of its run, PEM each."""

    certificate: bytes
    key: bytes
    authority: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """All that a node process needs to know when it starts."""

    root: bool
    host: str
    """The name under which people know this host ("localhost", or as in the hosts file)."""
    slots: int
    """Schedulers to run, one a core; 0 for all cores that are usable there."""
    secret: bytes
    """Known to all nodes of the run and to nobody else."""
    reliable: bool = True
    speculate: bool = False
    attempts_max: int = ATTEMPTS_MAX
    memory_bytes_max: int | None = None
    """What each scheduler may allocate; None for all there is."""
    detect_after_s: float = DETECT_AFTER_S
    detect_stopped_s: float | None = None
    """For how long the process of a scheduler may be stopped before it is replaced; None: for ever."""
    join_deadline_s: float = JOIN_DEADLINE_S
    rejoin_s: float = REJOIN_FOR_S
    """Others: for how long to try to join again after the root was lost; 0 for not at all."""
    comeback: bool = False
    """Others: the launcher has lost this node's predecessor, and tries to bring it back."""
    grace_s: float = GRACE_S
    """How long it may take to leave when it is told to."""
    seed: int = 0
    """Draws the victims."""
    verbose: bool = False
    expected: int = 0
    """Root: other nodes to wait for before the program starts."""
    program_fd: int | None = None
    """Root: the inherited socket to the program."""
    listen_fd: int | None = None
    """Root: the inherited listening socket; None for a run of one node, which listens nowhere."""
    status_fd: int | None = None
    """Root: where to write a line with the process id of each node that it has forked, in the order of `forks`, and the
    line `READY` when all expected nodes have joined."""
    forks: tuple[int, ...] = ()
    """Root: the leashes, inherited pipes, of other nodes of this host, which it forks (decision 35)."""
    report: str | None = None
    """Root: the file for the report in JSON."""
    root_addresses: tuple[tuple[str, int], ...] = ()
    """Others: where the root may listen, to be tried in order."""
    root_host: str = ""
    root_slots: int = 0
    """Others: its host and its schedulers."""
    bind: str = "127.0.0.1"
    """Others: the address to listen on for peers."""
    credentials: Credentials | None = None
    """Mutual TLS; None where no other host takes part (decision 41)."""
    program_path: tuple[str, ...] = ()
    """On the program's host: where its modules are, for functions that travel inline."""
    program_archive: bytes | None = None
    """Remote nodes: the Python files of the program's directory, as a zip archive."""
    ledger: bool = False
    """Whether tasks have memos, for the root has a ledger."""
    ledger_location: str | None = None
    """Root: the directory or URL of the ledger."""
    ledger_bytes_max: int = LEDGER_BYTES_MAX
    ledger_key: bytes | None = None
    """Root: what signs the entries of the ledger; None for entries that are believed as they are."""
    advice: bool = True
    """Whether to give hints (decision 23)."""
    explain: bool = False
    """Whether to find out what becomes of the time, and, at the root, to say so at the end."""
    contexts: bool = True
    """Whether each task has a context of its own (decision 49)."""
    prefixed: Streams = Streams.NONE
    """The others go where those of the node go."""
    trace: str | None = None
    """The folder for the record of what the core of this node is fed and wants done."""

    def forget_secrets(self) -> None:
        """In a process that is to know them no more."""
        object.__setattr__(self, "secret", b"")
        object.__setattr__(self, "credentials", None)
        object.__setattr__(self, "ledger_key", None)


def _versions() -> dict[str, Any]:
    return {"wire": WIRE_VERSION, "python": ".".join(platform.python_version_tuple()[:2])}


def encode_settings(settings: NodeSettings) -> bytes:
    """The settings as the first frame on a node's standard input."""
    return encode_frame({"versions": _versions(), "settings": asdict(settings)})


def read_settings(stream: IO[bytes]) -> NodeSettings:
    """Read the settings from an unbuffered standard input.

    Raises:
        StartError: these are no settings, or the launcher runs another version of Python or of hdphrs.
    """
    header = _read_exactly(stream, HEADER_BYTES)
    length = int.from_bytes(header, "big")
    if length > SETTINGS_BYTES_MAX:
        raise StartError(_NO_SETTINGS)
    try:
        (message,) = FrameDecoder(SETTINGS_BYTES_MAX).feed(header + _read_exactly(stream, length))
        _check_versions(message["versions"])
        return _unpack(message["settings"])
    except (ProtocolError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StartError(_NO_SETTINGS) from error


def _check_versions(theirs: dict[str, Any]) -> None:
    ours = _versions()
    for what, label in (("python", "Python"), ("wire", "hdphrs wire format")):
        if theirs.get(what) != ours[what]:
            raise StartError(
                f"this host runs {label} {ours[what]}, the program's host runs {theirs.get(what)}; "
                f"install the same version on both, or name it with python=PATH in the hosts file"
            )


def _unpack(values: dict[str, Any]) -> NodeSettings:
    if values["credentials"] is not None:
        values["credentials"] = Credentials(**values["credentials"])
    values["root_addresses"] = tuple((host, port) for host, port in values["root_addresses"])
    values["program_path"] = tuple(values["program_path"])
    values["forks"] = tuple(values["forks"])
    values["prefixed"] = Streams(values["prefixed"])
    values["slots"] = values["slots"] or usable_cores()
    return NodeSettings(**{field.name: values[field.name] for field in fields(NodeSettings)})


def prefixed_streams(given: str | None, *, for_people: bool) -> Streams:
    """What of the tasks' standard streams is prefixed.

    Args:
        given: `RAW`, `PREFIXED`, or None.
        for_people: whether the program's standard output goes to a terminal, or a notebook, and not into a file or
            to another program.
    """
    if given == RAW:
        return Streams.NONE
    return Streams.BOTH if given == PREFIXED or for_people else Streams.ERROR


def ledger_location(given: str | None) -> str | None:
    """The directory or URL of a ledger as the root node is to have it; None for no ledger."""
    if not given:
        return None
    return given if "://" in given else os.path.abspath(given)


def read_ledger_key(path: str) -> bytes:
    """The key of a ledger, from its file.

    Raises:
        LedgerError: it cannot be read, others can read or change it, or it is too short.
    """
    from hdphrs.owned import Distrust, read_secret  # few runs have a key

    try:
        return read_secret(path, LEDGER_KEY_BYTES_MIN, LEDGER_KEY_BYTES_MAX)
    except FileNotFoundError as error:
        how = f"make one: hdphrs ledger key {shlex.quote(path)}"
        raise LedgerError(f"the key of the ledger cannot be read: there is no file {path}; {how}") from error
    except OSError as error:
        raise LedgerError(f"the key of the ledger, {path}, cannot be read: {error.strerror}") from error
    except Distrust as error:
        raise LedgerError(f"the key of the ledger cannot be trusted: {error}") from error


def stopped_s(given: str | None) -> float | None:
    """For how long a scheduler may be stopped, as `DETECT_STOPPED_VARIABLE` says, in seconds; None for ever.

    Raises:
        UsageError: that is no number of seconds, or too small.
    """
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not DETECT_STOPPED_S_MIN <= seconds < inf:
        raise UsageError(
            f"{DETECT_STOPPED_VARIABLE} is {given!r}; it must be a number of seconds, {DETECT_STOPPED_S_MIN:g} or more"
        )
    return seconds


def usable_cores() -> int:
    """Cores that this process may use: those that it may run on, or what a quota amounts to, rounded up, if that is
    less."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = quota_cores()
    return allowed if quota is None else max(1, min(allowed, ceil(quota)))


def _read_exactly(stream: IO[bytes], count: int) -> bytes:
    chunks = []
    while count:
        chunk = stream.read(count)
        if not chunk:
            raise StartError("hdphrs.node is started by hdphrs itself; its standard input ended early")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def start_node(
    settings: NodeSettings,
    *,
    python: str = sys.executable,
    pass_fds: Sequence[int] = (),
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a node process; its standard input stays open as the leash.

    It runs in a session of its own, so that a Ctrl-C at the terminal reaches the program alone.

    Args:
        python: the interpreter.
        pass_fds: the descriptors that the settings name.
        stderr: as for `subprocess.Popen`.

    Raises:
        OSError: it cannot be started, or there was no room for it for a while.
    """
    kind = [ROOT_NODE if settings.root else MEMBER, *([f"+{len(settings.forks)}"] if settings.forks else [])]
    with room_for_children():

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [python, *interpreter_options(), "-m", NODE_MODULE, *kind],
                bufsize=0,
                stdin=subprocess.PIPE,
                stderr=stderr,
                pass_fds=pass_fds,
                start_new_session=True,
                env=os.environ | {"PYTHONSAFEPATH": "1"},
            )

        process = wait_for_room(start, "another process")
    assert process.stdin is not None
    frame = memoryview(encode_settings(settings))
    try:
        while frame:
            frame = frame[process.stdin.write(frame) or 0 :]
    except BrokenPipeError:
        pass  # it has died already; whoever waits for it will see how
    return process
