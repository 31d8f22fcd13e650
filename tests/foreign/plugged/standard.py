"""`hdphrs.Executor` with the arguments and the name of the standard executor of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hdphrs


class ProcessPoolExecutor(hdphrs.Executor):
    """How its processes start, and when they are replaced, is the runtime's own affair."""

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: object = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
    ) -> None:
        super().__init__(max_workers, initializer=initializer, initargs=initargs)

    def terminate_workers(self) -> None:
        """As in Python 3.14: at once."""
        self.abandon()

    kill_workers = terminate_workers
