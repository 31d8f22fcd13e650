"""Why a process of ours ends: for want of something, which is a line, or by a mistake, which is to be reported."""

from __future__ import annotations

import errno
import os

import pytest

from hdphrs.errors import StartError
from hdphrs.wire.failing import sentence_of, tell_end, what_is_lacking


def oserror(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def caused_by(cause: BaseException) -> BaseException:
    try:
        try:
            raise cause
        except BaseException as error:
            raise RuntimeError("what follows from it") from error
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (oserror(errno.EMFILE), "raise `ulimit -n`"),
        (oserror(errno.EAGAIN), "raise `ulimit -u`"),
        (oserror(errno.ENOSPC), "No space left on device"),
        (MemoryError(), "out of memory"),
        (RuntimeError("can't start new thread"), "raise `ulimit -u`"),
        (ImportError(f"libx.so: cannot open shared object file: {os.strerror(errno.EMFILE)}"), "raise `ulimit -n`"),
        (BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [oserror(errno.EMFILE)])]), "raise `ulimit -n`"),
        (caused_by(oserror(errno.EMFILE)), "raise `ulimit -n`"),
    ],
)
def test_what_is_lacking_is_found_wherever_it_is_and_said_with_what_to_do(
    error: BaseException, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    lacking = what_is_lacking(error)
    assert lacking is not None
    assert what in lacking
    tell_end("a node", error)
    assert capfd.readouterr().err == f"hdphrs: a node ends: {lacking}\n"


@pytest.mark.parametrize("error", [ValueError("x"), oserror(errno.EBADF), RuntimeError("x"), KeyboardInterrupt()])
def test_mistake_of_ours_is_shown_once_and_is_to_be_reported(
    error: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    assert what_is_lacking(error) is None
    tell_end("a node", error)
    said = capfd.readouterr().err
    what = f"a mistake of hdphrs ({type(error).__name__})"
    assert said.endswith(f"\nhdphrs: a node ends by {what}; please report it, with the lines above\n")


def test_error_that_is_meant_for_a_person_is_its_own_sentence() -> None:
    assert sentence_of("a node", StartError("no such host")) == "no such host"


def test_errors_that_cause_each_other_in_a_circle_are_looked_at_once() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert what_is_lacking(first) is None
