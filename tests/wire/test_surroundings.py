"""The record of a program's surroundings, and what of the environment is for which host."""

from __future__ import annotations

import pytest

from hdphrs.wire.surroundings import (
    Surroundings,
    decode_surroundings,
    encode_surroundings,
    is_of_one_host,
    split_environ,
)


def test_a_record_arrives_as_it_was_sent() -> None:
    sent = Surroundings(
        argv=("prog.py", "ü", "\udcff"),
        environ={b"A": b"\xff"},
        environ_here={b"PATH": b"/bin"},
        unset=(b"B",),
        directory=b"/tmp/\xff",
        umask=0o22,
        locale="C.UTF-8",
        recursion_limit=1000,
        digits_max=0,
        filters=(("error", ("a.*", 2), b"pickle", None, 3),),
        path=("/a", "/b"),
        prefix="/usr",
        dlopen_flags=2,
        writes_bytecode=False,
        start_method="spawn",
    )
    assert decode_surroundings(encode_surroundings(sent)) == sent


@pytest.mark.parametrize("name", ["PATH", "HOME", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK", "CONDA_PREFIX", "VIRTUAL_ENV"])
def test_a_variable_that_says_where_things_are_is_of_one_host(name: str) -> None:
    assert is_of_one_host(name.encode())


@pytest.mark.parametrize("name", ["MINE", "OMP_NUM_THREADS", "TZ", "LANG", "AWS_REGION", "PATHS", "PYTHONWARNINGS"])
def test_any_other_variable_is_for_all_hosts(name: str) -> None:
    assert not is_of_one_host(name.encode())


def test_what_the_program_has_changed_is_for_all_hosts() -> None:
    at_start = {b"PATH": b"/bin", b"HOME": b"/root", b"MINE": b"1", b"HDPHRS_OUTPUT": b"raw", b"OLD": b"2"}
    environ = {b"PATH": b"/bin", b"HOME": b"/else", b"MINE": b"1", b"HDPHRS_OUTPUT": b"raw", b"HDPHRS_X": b"1"}
    everywhere, here, unset = split_environ(environ, at_start, [b"LATER", b"HDPHRS_LATER"])
    assert everywhere == {b"HOME": b"/else", b"MINE": b"1"}
    assert here == {b"PATH": b"/bin"}
    assert unset == (b"LATER", b"OLD")
