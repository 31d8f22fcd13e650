"""One target under one engine, in a process of its own: `python -m tests.fuzz.worker TARGET ENGINE INPUTS`.

What lives here: the limits of that process and its report, a line of JSON.  Nothing of hdphrs is imported before
atheris has had the chance to instrument it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from tests.fuzz.target import Finding

GROWTH_BYTES_MAX: Final = 256 << 20
"""What the process may grow by, in all; more, and the input of that moment gets a MemoryError, which is a finding."""


def main(name: str, engine: str, count: int) -> None:
    """Run, report, and end the process."""
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["hdphrs"]):
            from tests.fuzz.targets import TARGETS
    else:
        from tests.fuzz.targets import TARGETS
    from tests.fuzz import engines, tripwire
    from tests.fuzz.target import Finding

    target = TARGETS[name]
    tally = engines.Tally()
    with tripwire.laid():
        for data in target.seeds():
            target.run(data)  # so that what is made once is not counted as growth
        tripwire.sprung.clear()
        _limit_memory()
        begun, before = time.process_time(), _peak_bytes()

        def end(finding: Finding | None) -> NoReturn:
            report = {
                "inputs": tally.inputs,
                "accepted": tally.accepted,
                "kinds": len(tally.outcomes),
                "growth_bytes": _peak_bytes() - before,
                "cpu_s": time.process_time() - begun,
                "what": None if finding is None else str(finding.args[0]),
                "data": None if finding is None else finding.data.hex(),
            }
            print(json.dumps(report), flush=True)
            os._exit(0 if finding is None else 1)

        try:
            match engine:
                case "atheris":
                    engines.atheris(target, count, tally, end)
                case "hypothesis":
                    engines.hypothesis(target, count, tally)
                case "mutations":
                    engines.mutations(target, count, tally)
                case "unmeasured":
                    engines.mutations(target, count, tally, measured=False)
        except Finding as finding:
            end(finding)
        end(None)


def _limit_memory() -> None:
    with suppress(OSError):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + GROWTH_BYTES_MAX, resource.RLIM_INFINITY))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
