"""The compiled form of the package (decision 33); all else about it stands in pyproject.toml.

`pip install .` and wheels hold these modules compiled by mypyc, and beside them the sources that they were made of.  An
editable install holds the sources only, so what is edited is what runs.  Where nothing can be compiled the package is
installed as it is, and one line says so.  `hdphrs --version` says which form it is.

HDPHRS_PURE: 1 compiles nothing; 0 fails where nothing can be compiled.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

COMPILED = {
    "hdphrs/protocol": (
        "cancelling code counters fairness flow foresight forgetting homes intake leaving membership node orphans "
        "outcomes paths pieces quiet recovery reruns retained rights schedulers sparkpool stragglers supervisor "
        "surroundings thief unwanted victim"
    ),
    "hdphrs/wire": "framing items local page passing sealing tray values",
    "hdphrs/transport": "link peer session streams tcp",
    "hdphrs/node": "ahead books crew driver exchange hunger link links nudges scheduler",
}
"""By package, each of which becomes one shared library; decision 33 says why no others."""

REASON_CHARS_MAX = 160

OPTIONS = (
    "--config-file=",  # `make check` is strict; here a type that is not installed must not matter
    "--no-site-packages",  # so that what is made is the same wherever it is made
    "--ignore-missing-imports",
    "--explicit-package-bases",
)


class BuildOrNot(build_ext):
    """All of it, or nothing: half of a package compiled is no form that anybody has tested."""

    def run(self) -> None:
        """Compile, or say why not."""
        try:
            self.extensions = _extensions(self.build_temp)
            for each in self.extensions:
                each._needs_stub = False
                if "-Werror" in each.extra_compile_args:  # what another compiler warns of is no reason to do without
                    each.extra_compile_args.remove("-Werror")
            self.parallel = self.parallel or os.cpu_count()
            super().run()
        except (Exception, SystemExit) as error:
            if os.environ.get("HDPHRS_PURE") == "0":
                raise
            for made in Path(self.build_lib).glob("hdphrs/**/*" + sysconfig.get_config_var("EXT_SUFFIX")):
                made.unlink()
            self.extensions = []
            why = f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
            print(f"hdphrs: not compiled, so installed as pure Python ({why})", file=sys.stderr)


def _extensions(folder: str) -> list[Extension]:
    from mypyc.build import mypycify

    groups = [
        ([f"{package}/{name}.py" for name in names.split()], f"{package}/compiled".replace("/", "."))
        for package, names in COMPILED.items()
    ]
    cache = f"--cache-dir={folder}/mypy"
    files = [file for group, _ in groups for file in group]
    return mypycify([*OPTIONS, cache, *files], opt_level="1", debug_level="0", separate=groups, target_dir=folder)


def main() -> None:
    """What pip calls."""
    wheel = "bdist_wheel" in sys.argv
    wanted = wheel and os.environ.get("HDPHRS_PURE") != "1" and sys.implementation.name == "cpython"
    with tempfile.TemporaryDirectory(prefix="hdphrs-build-") as folder:
        setup(
            cmdclass={"build_ext": BuildOrNot},
            ext_modules=[Extension("hdphrs.any", [])] if wanted else [],
            options={} if "sdist" in sys.argv else {"build": {"build_base": folder}, "egg_info": {"egg_base": folder}},
        )


main()
