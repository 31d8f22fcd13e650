"""`python -m tests.compiled`: builds the compiled form, installs it as `pip install .` does, and runs tests against it.

What lives here: the environment, which has the packages of the one that runs this, but not its hdphrs; the copy of this
repository without the package, in which nothing can be imported in place of what is installed; and which tests run.
What does not: which tests cannot hold there (`plugin.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

TESTS = (
    "tests/api",
    "tests/audit",
    "tests/compiled",
    "tests/e2e/test_bundles.py",
    "tests/e2e/test_failures.py",
    "tests/e2e/test_large_data.py",
    "tests/e2e/test_leaving.py",
    "tests/e2e/test_output.py",
    "tests/e2e/test_programs.py",
    "tests/e2e/test_robustness.py",
    "tests/node",
    "tests/paper",
    "tests/program",
    "tests/protocol",
    "tests/scheduler",
    "tests/skeletons",
    "tests/transport",
    "tests/wire",
)
"""What reaches compiled code from all sides.  What is left out knows nothing of its form, or takes long."""

MORE = (
    ("hdphrs", "sim", "--seeds", "0..299", "--jobs", "2"),
    ("hdphrs", "explore", "--scope", "crash"),
    ("tests.fuzz", "--share", "0.02"),
)
"""Parts of the proof, run as modules; the explorer searches the sources, whatever the form."""


def main() -> int:
    """Exit status 0: all is well; else the first that was not."""
    with tempfile.TemporaryDirectory(prefix="hdphrs-compiled-") as folder:
        python = _install(Path(folder, "venv"))
        tree = Path(folder, "tree")
        shutil.copytree(REPOSITORY, tree, ignore=_left_out)
        pytest = ("pytest", "-p", "tests.compiled.plugin", "--numprocesses", "2", "-rs", *TESTS)
        for command in (("hdphrs", "--version"), *MORE, pytest):
            print(f"compiled: {' '.join(command)}", flush=True)
            status = subprocess.run([python, "-m", *command], cwd=tree, check=False).returncode
            if status:
                return status
    return 0


def _install(folder: Path) -> str:
    """A python that has what this one has, and hdphrs compiled."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    where = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    Path(where.strip(), "ours.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n"
    )  # the paths in its .pth do not count
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"]
    before = _files()
    subprocess.run([*pip, str(REPOSITORY)], check=True, env=os.environ | {"HDPHRS_PURE": "0"})
    if left := _files() - before:
        sys.exit(f"the build has left in the checkout: {', '.join(sorted(left))}")
    return python


def _files() -> set[str]:
    """What may come of a build; environments of other tests (`tests/foreign`) are none of it."""
    folders = ("build", "hdphrs", "*.egg-info")
    found = (
        file for pattern in folders for folder in REPOSITORY.glob(pattern) for file in [folder, *folder.rglob("*")]
    )
    apart = REPOSITORY / "build" / "foreign"
    return {str(file) for file in found if "__pycache__" not in file.parts and not file.is_relative_to(apart)}


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Of the copy: the package, and what git does not know."""
    package = {"hdphrs"} if Path(folder) == REPOSITORY else set()
    return package | {"build", "__pycache__"} | {name for name in names if name.startswith(".")}


if __name__ == "__main__":
    sys.exit(main())
