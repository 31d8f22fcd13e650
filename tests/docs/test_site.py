"""The site is built as `make docs` does it, and hangs together: pages, links, names."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import hdphrs
import hdphrs.errors
import hdphrs.joblib
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"
WORDS_MIN = 5
"""A docstring of fewer words says little more than the name."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    completed = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return folder


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and what may be linked to."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        target = values.get("href", values.get("src"))
        if target is not None:
            (self.links if tag == "a" else self.loads).append(target)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in site.rglob("*.html"):
        if path.name != "404.html":  # its links are absolute, for a server
            found[path] = page = Page()
            page.feed(path.read_text())
    return found


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert {"0001-no-names-in-the-file-system.html", "first-program.html", "api.html"} <= {path.name for path in pages}
    assert [(path.name, load) for path, page in pages.items() for load in page.loads if urlsplit(load).netloc] == []


@pytest.mark.slow
def test_no_link_within_the_site_is_dead(pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append((path.name, link))
    assert dead == []


def public_names() -> Iterator[str]:
    """What programs may use, as they write it."""
    for name in hdphrs.__all__:
        yield f"hdphrs.{name}"
    for name, value in vars(hdphrs.errors).items():
        if isinstance(value, type) and value.__module__ == hdphrs.errors.__name__:
            yield f"hdphrs.errors.{name}"
    yield hdphrs.joblib.__name__


def test_every_public_name_is_in_the_reference() -> None:
    text = "\n".join(page.read_text() for page in REFERENCE.glob("*.md"))
    shown = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    mentioned = set(re.findall(r"`([\w.]+)`", text))
    for name in public_names():
        last = name.rpartition(".")[2]
        assert name in shown or {name, last} & mentioned or f"hdphrs.{last}" in shown, (
            f"{name}: docs/reference has it not"
        )


def test_the_reference_shows_nothing_twice() -> None:
    shown = re.findall(r"^::: ([\w.]+)$", "\n".join(page.read_text() for page in REFERENCE.glob("*.md")), re.MULTILINE)
    assert len(shown) == len(set(shown))


def test_every_public_name_and_method_says_what_it_means() -> None:
    for name in public_names():
        owner, _, last = name.rpartition(".")
        for part in _described(getattr(sys.modules[owner], last)):
            assert len((part.__doc__ or "").split()) >= WORDS_MIN, f"{name}: {part} has no docstring worth the name"


def _described(thing: object) -> list[object]:
    """What must have a docstring for this to be understood: of an object that is called, its class, and the call."""
    if inspect.isclass(thing):
        own = [key for key, member in vars(thing).items() if inspect.isfunction(member) and not key.startswith("_")]
        return [thing, *(vars(thing)[key] for key in own if not _inherits_docstring(thing, key))]
    if inspect.isfunction(thing) or inspect.ismodule(thing):
        return [thing]
    return [type(thing), type(thing).__call__]


def _inherits_docstring(owner: type, name: str) -> bool:
    return any(getattr(base.__dict__.get(name), "__doc__", None) for base in owner.__mro__[1:])


@pytest.mark.slow
def test_what_the_reference_shows_can_be_linked_to(site: Path, pages: dict[Path, Page]) -> None:
    anchors = {anchor for path, page in pages.items() if path.parent.name == "reference" for anchor in page.anchors}
    for page in REFERENCE.glob("*.md"):
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE):
            assert name in anchors
    for name in hdphrs.__all__:
        thing = getattr(hdphrs, name)
        for key, member in vars(thing).items() if inspect.isclass(thing) else ():
            assert key.startswith("_") or not inspect.isfunction(member) or f"hdphrs.{name}.{key}" in anchors
