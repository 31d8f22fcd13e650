"""A program's surroundings: what its process has, beside its code and data, on which the outcome of a task may depend.

What lives here: the record, its form on the wire, and which of the environment concerns one host alone.  What does not:
taking one from the program (`hdphrs/program/surroundings.py`), putting one on (`hdphrs/scheduler/surroundings.py`), and
that no task overtakes it (`hdphrs/protocol/code.py`).  Decision 48 says what belongs to it, and what does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

import msgpack

from hdphrs.records import dataclass

OURS: Final = b"HDPHRS_"
"""Variables that begin with this are for processes of this package; they never travel."""

AWAY_VARIABLE: Final = "HDPHRS_AWAY"
"""Set in the schedulers of a node that was reached with ssh: what concerns the program's host alone is not for them."""

OF_ONE_HOST: Final = frozenset(
    b"PATH HOME USER LOGNAME SHELL HOSTNAME HOST PWD OLDPWD TMPDIR TMP TEMP MAIL DISPLAY WAYLAND_DISPLAY XAUTHORITY "
    b"PYTHONPATH PYTHONHOME PYTHONSAFEPATH PYTHONUSERBASE PYTHONPYCACHEPREFIX VIRTUAL_ENV VIRTUAL_ENV_PROMPT "
    b"MANPATH INFOPATH CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES "
    b"_ SHLVL TERM TERMINFO TERM_PROGRAM COLUMNS LINES TTY WINDOWID STY TMUX TMUX_PANE INVOCATION_ID "
    b"JOURNAL_STREAM NOTIFY_SOCKET PS1 PS2 PS4 PROMPT_COMMAND EDITOR PAGER BASH_ENV ENV".split()
)
"""Variables that say where things are on a host, who is logged in there, and what hardware and terminal it has."""

OF_ONE_HOST_PREFIXES: Final = (
    b"LD_ DYLD_ SSH_ XDG_ DBUS_ CONDA_ MODULE LMOD SLURM_ PBS_ LSB_ SGE_ PMI_ PMIX_ OMPI_ SYSTEMD_ SUDO_ GPG_".split()
)
"""And all that begin with one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All of it; None stands for what the program's process cannot tell."""

    argv: tuple[str, ...] = ()
    environ: dict[bytes, bytes]
    """Variables for all hosts."""
    environ_here: dict[bytes, bytes]
    """Those for the program's host alone."""
    unset: tuple[bytes, ...] = ()
    """Variables that the program had, and has no more."""
    directory: bytes | None = None
    """The working directory."""
    umask: int | None = None
    locale: str | None = None
    """All categories, as `locale.setlocale` takes and gives them."""
    recursion_limit: int
    digits_max: int
    """Of `sys.set_int_max_str_digits`."""
    filters: tuple[tuple[str, Any, bytes, Any, int], ...] | None = None
    """Those of warnings: action, pattern of the message, the pickled category, pattern of the module, line; a pattern
    is None, a text, or a list of the text of a regular expression and its flags."""
    path: tuple[str, ...] = ()
    """`sys.path`, without relative entries."""
    prefix: str = ""
    """Of the interpreter: with another one, `path` has nothing but what that one has not."""
    dlopen_flags: int | None = None
    writes_bytecode: bool = True
    start_method: str | None = None
    """Of `multiprocessing`; None if the program has chosen none."""


_FIELDS: Final = tuple(field.name for field in fields(Surroundings))


def encode_surroundings(surroundings: Surroundings) -> bytes:
    """For `decode_surroundings`."""
    packed: bytes = msgpack.packb(
        {name: getattr(surroundings, name) for name in _FIELDS}, unicode_errors="surrogatepass"
    )
    return packed


def decode_surroundings(data: bytes) -> Surroundings:
    """What `encode_surroundings` has made, in a process of the same version."""
    values = msgpack.unpackb(data, use_list=False, strict_map_key=False, unicode_errors="surrogatepass")
    return Surroundings(**values)


def is_of_one_host(name: bytes) -> bool:
    """Whether a variable of the environment concerns the host of the process alone."""
    return name in OF_ONE_HOST or name.startswith(tuple(OF_ONE_HOST_PREFIXES))


def split_environ(
    environ: Mapping[bytes, bytes], at_start: Mapping[bytes, bytes], before: Iterable[bytes]
) -> tuple[dict[bytes, bytes], dict[bytes, bytes], tuple[bytes, ...]]:
    """What of an environment is for all hosts, what for the program's alone, and what is to be unset.

    What the program has changed itself is for all hosts, whatever it is.

    Args:
        environ: as it is.
        at_start: as it was when the run began.
        before: names of variables that have been there since.
    """
    everywhere: dict[bytes, bytes] = {}
    here: dict[bytes, bytes] = {}
    for name, value in environ.items():
        if not name.startswith(OURS):
            of_one_host = is_of_one_host(name) and at_start.get(name) == value
            (here if of_one_host else everywhere)[name] = value
    gone = {*at_start, *before}.difference(environ)
    return everywhere, here, tuple(sorted(name for name in gone if not name.startswith(OURS)))
