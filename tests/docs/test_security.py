"""The page on security claims nothing without a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_CLAIM = re.compile(r"^\| (?!---|claim )(?P<claim>.+?) \| (?P<proof>.+) \|$", re.MULTILINE)


def test_every_claim_names_a_test_and_every_test_that_is_named_exists() -> None:
    claims = list(_CLAIM.finditer(PAGE.read_text()))
    assert len(claims) > 20
    unproved, missing = [], []
    for match in claims:
        tests = _TEST.findall(match["proof"])
        if not tests and not match["proof"].startswith("not claimed"):
            unproved.append(match["claim"])
        missing += [f"{file}::{name}" for file, name in tests if name not in _tests_of(ROOT / file)]
    assert unproved == []
    assert missing == []


def _tests_of(file: Path) -> set[str]:
    if not file.exists():
        return set()
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}
