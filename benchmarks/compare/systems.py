"""The systems that are compared: how each is installed, started, and what it is too slow for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from benchmarks.compare.workloads import LEAST, LESS
from benchmarks.launch import PROGRAMS, REPOSITORY

VENVS = REPOSITORY / "benchmarks" / ".venvs"
BASE = "base"
BASE_REQUIRES = (str(REPOSITORY), "numpy", "matplotlib")
"""hdphrs, as it is for users; also for the systems that need nothing, and for the plots."""

NUMPY = "numpy"
"""For the workload that has arrays."""

WORKERS = 2

NO_SIZES: Mapping[str, str] = MappingProxyType({})

NESTED = ("fib", "spin_1ms_nested", "all_wait", "queens_nested", "mandelbrot_nested", "uts_t1", "uts_t3")
SINGLE = ("round_trip", "startup", "waiting", "recovery", "no_recovery", "poison")
FAULTS = ("recovery", "poison")

SLOW_FLAT: Mapping[str, str] = dict.fromkeys(("noops", "waiting", "spin_100us"), LESS)
SLOW_NESTED: Mapping[str, str] = dict.fromkeys(NESTED, LEAST)


@dataclass(frozen=True, slots=True)
class System:
    """One of them."""

    name: str
    """For people."""
    adapter: str
    """Module of `benchmarks.peers`."""
    venv: str = BASE
    requires: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ("{bin}/python",)
    """What comes before the program; {bin} is the folder of the environment's programs."""
    sizes: Mapping[str, str] = field(default_factory=lambda: NO_SIZES)
    """Workloads that get another size than the full one."""
    skips: Mapping[str, str] = field(default_factory=lambda: NO_SIZES)
    """Workloads that make no sense here, and why."""

    def command(self, job: str) -> list[str]:
        """What runs one job."""
        names = {"bin": str(VENVS / self.venv / "bin"), "workers": WORKERS, "ranks": WORKERS + 1}
        return [part.format(**names) for part in self.launcher] + [str(PROGRAMS / "peer.py"), self.adapter, job]


def _skips(names: tuple[str, ...], why: str) -> Mapping[str, str]:
    return dict.fromkeys(names, why)


CANNOT_NEST = _skips(NESTED, "its tasks cannot wait for tasks of their own")

SYSTEMS: dict[str, System] = {
    "plain": System("plain Python", "plain", skips=_skips((*FAULTS, "no_recovery", "waiting"), "one process")),
    "ideal": System("ideal split in two", "ideal", skips=_skips((*SINGLE, "fib", "all_wait"), "no system")),
    "hdphrs": System("hdphrs (in a task)", "inside"),
    "hdphrs_program": System("hdphrs (from the program)", "outside"),
    "pool": System("multiprocessing.Pool", "pool", skips=CANNOT_NEST),
    "process_pool": System("ProcessPoolExecutor", "process_pool", skips=CANNOT_NEST),
    "threads": System(
        "ThreadPoolExecutor",
        "threads",
        skips={**CANNOT_NEST, **_skips((*FAULTS, "no_recovery", "waiting"), "one process")},
    ),
    "loky": System("joblib/loky", "loky", "joblib", ("joblib==1.6.0", NUMPY), skips=CANNOT_NEST),
    "mpire": System("mpire", "mpire", "mpire", ("mpire==2.10.2", NUMPY), skips=CANNOT_NEST),
    "scoop": System(
        "SCOOP",
        "scoop",
        "scoop",
        ("scoop==0.7.2.0", NUMPY),
        ("{bin}/python", "-m", "scoop", "--quiet", "-n", "{workers}"),
        sizes={**SLOW_FLAT, "fib": LESS},
    ),
    "charm": System(
        "Charm4py",
        "charm",
        "charm4py",
        ("charm4py==1.1", NUMPY),
        ("{bin}/python", "-m", "charmrun.start", "+p{ranks}"),
        sizes={**SLOW_FLAT, "fib": LESS},
    ),
    "mpi": System(
        "mpi4py.futures",
        "mpi",
        "mpi4py",
        ("mpi4py==4.1.2", "mpich==5.0.2", NUMPY),
        ("{bin}/mpiexec", "-n", "{ranks}", "{bin}/python", "-m", "mpi4py.futures"),
        skips=CANNOT_NEST,
        sizes={"waiting": LESS},
    ),
    "dask": System(
        "Dask",
        "dask",
        "dask",
        ("dask[distributed]==2026.8.0", NUMPY),
        sizes={**SLOW_FLAT, **SLOW_NESTED},
    ),
    "ray": System(
        "Ray",
        "ray",
        "ray",
        ("ray==2.60.0", NUMPY),
        sizes={**SLOW_FLAT, **SLOW_NESTED},
    ),
    "parsl": System(
        "Parsl",
        "parsl",
        "parsl",
        ("parsl==2026.10.26", NUMPY),
        skips=CANNOT_NEST,
        sizes=SLOW_FLAT,
    ),
    "scaler": System(
        "OpenGRIS Scaler",
        "scaler",
        "scaler",
        ("opengris-scaler==2.9.0", NUMPY),
        sizes={**SLOW_FLAT, **SLOW_NESTED},
    ),
}
