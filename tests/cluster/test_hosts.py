"""The hosts file: what it may say, and how it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.cluster.hosts import HOSTS_BYTES_MAX, SLOTS_MAX, Host, parse_hosts, read_hosts
from hdphrs.errors import UsageError

names = st.from_regex(r"[a-z0-9_]{1,8}(\.[a-z0-9-]{1,8}){0,2}|[a-z]{1,5}@[a-z0-9.]{1,9}", fullmatch=True)
hosts = st.builds(
    Host,
    names,
    st.none() | st.integers(1, SLOTS_MAX),
    st.none() | st.from_regex(r"[a-zA-Z0-9/._=-]{1,20}", fullmatch=True),
)
blanks = st.sampled_from(["", " ", "\t", "  \t"])


@st.composite
def written(draw: st.DrawFn) -> tuple[str, list[Host]]:
    """A well-formed file, and what it means."""
    lines, meant = [], draw(st.lists(hosts, min_size=1, max_size=6))
    for host in meant:
        options = [f"slots={host.slots}"] if host.slots is not None else []
        options += [f"python={host.python}"] if host.python is not None else []
        words = [host.name, *draw(st.permutations(options))]
        lines += draw(st.lists(st.sampled_from(["", "# a comment", "   ", "\t#x"]), max_size=2))
        lines.append(draw(blanks) + " \t".join(words) + draw(blanks) + draw(st.sampled_from(["", "#c", " # c"])))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"])), meant


@settings(deadline=None, derandomize=True)
@given(written())
def test_what_is_written_is_read(case: tuple[str, list[Host]]) -> None:
    text, meant = case
    assert parse_hosts(text, "hosts") == meant


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    refusal = None
    try:
        parse_hosts(text, "hosts")
    except UsageError as error:
        refusal = str(error)
    if refusal is not None:
        assert re.fullmatch(r"hosts(, line [0-9]+: expected .+| names no host; expected .+)", refusal)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("h slots=0", "expected slots=N with a whole number from 1 to 1024, not slots=0"),
        ("h slots=two", "expected slots=N with a whole number from 1 to 1024, not slots=two"),
        ("h slots=٣", "expected slots=N with a whole number from 1 to 1024, not slots=٣"),
        ("h slots=", "expected slots=N or python=PATH after the host, not 'slots='"),
        ("h slot=3", "expected slots=N or python=PATH after the host, not 'slot=3'"),
        ("h 3", "expected slots=N or python=PATH after the host, not '3'"),
        ("h slots=1 slots=2", "expected slots= once, not twice"),
        ("-oProxyCommand=evil", "expected the name or address of a host, not '-oProxyCommand=evil'"),
        ("slots=3", "expected the name or address of a host, not 'slots=3'"),
        ("a;b", "expected the name or address of a host, not 'a;b'"),
    ],
)
def test_a_malformed_line_is_named_with_file_and_number(line: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_hosts(f"# hosts\nlocalhost\n{line}\n", "some/hosts")
    assert str(caught.value) == f"some/hosts, line 3: {expected}"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"# nobody\n"])
def test_a_file_without_hosts_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"hosts names no host; expected lines of the form"):
        read_hosts(str(path))


def test_a_file_that_is_no_text_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"localhost\n\xff\xfe\n")
    with pytest.raises(UsageError, match=r"hosts, line 2: expected text in UTF-8"):
        read_hosts(str(path))


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"#" * (HOSTS_BYTES_MAX + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_hosts(str(path))


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the hosts file .*nowhere: No such file"):
        read_hosts(str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"cannot read the hosts file .*: Is a directory"):
        read_hosts(str(tmp_path))
