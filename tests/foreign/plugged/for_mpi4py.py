"""A plugin for the pytest that runs mpi4py's tests of its executors: it has an `mpi4py` without MPI."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "without_mpi"))
