"""Its tests concern mpi4py alone, and are not run."""

from __future__ import annotations

from concurrent.futures import Future as ThenableFuture

__all__ = ["ThenableFuture"]
