"""Hearing log records and warnings, where a program does not see it.

What lives here: the places at which `logging` and `warnings` are listened to.  What does not: what becomes of what is
heard (`voice.py`).

There is no handler in any logger, since `logging.basicConfig` does nothing where there is one, and `dictConfig` removes
it; and `warnings.showwarning` is as it was.  Once a task has configured logging, which gives the root logger a handler,
records are its own business; until then they are ours, as far as they come up to the root logger.  (`logging.warning`
and its like configure logging if nobody has; here they need not.)
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

Warned = Callable[[Any, type[Warning], str, int], None]

_IMPLEMENTATION: Final = "_showwarnmsg_impl"
"""What `warnings.showwarning` calls, unless somebody has replaced that; it is as old as Python 3.6."""


def install(shipper: logging.Handler, warned: Warned, *, is_ours: Callable[[], bool]) -> None:
    """Listen from now on.

    Args:
        shipper: gets the log records.
        warned: gets the warnings that are to be shown.
        is_ours: whether this process is still the one that has asked for it, and no copy.
    """
    _hear_records(shipper, is_ours)
    _keep_unconfigured(is_ours)
    _hear_warnings(warned, is_ours)


def _hear_records(shipper: logging.Handler, is_ours: Callable[[], bool]) -> None:
    call_handlers = logging.Logger.callHandlers

    def callHandlers(logger: logging.Logger, record: logging.LogRecord) -> None:  # noqa: N802 - it takes its place
        """Pass a record to all relevant handlers."""
        if is_ours() and _comes_to_nobody(logger):
            shipper.handle(record)
            if not logger.hasHandlers():
                return  # else the handler of last resort would print it
        call_handlers(logger, record)

    callHandlers.__module__, callHandlers.__qualname__ = logging.__name__, call_handlers.__qualname__
    logging.Logger.callHandlers = callHandlers  # type: ignore[method-assign,assignment]


def _keep_unconfigured(is_ours: Callable[[], bool]) -> None:
    configure = logging.basicConfig

    @functools.wraps(configure)
    def basicConfig(**kwargs: Any) -> None:  # noqa: N802 - it takes its place
        if kwargs or not is_ours() or sys._getframe(1).f_globals is not vars(logging):
            configure(**kwargs)

    logging.basicConfig = basicConfig


def _comes_to_nobody(logger: logging.Logger) -> bool:
    """Whether a record gets as far as the root logger, and that has no handler."""
    here: logging.Logger | None = logger
    while here is not None and here.propagate and here.parent is not None:
        here = here.parent
    return here is not None and here.parent is None and not here.handlers


def _hear_warnings(warned: Warned, is_ours: Callable[[], bool]) -> None:
    module: Any = warnings
    show = getattr(module, _IMPLEMENTATION)

    def _showwarnmsg_impl(msg: Any) -> None:
        if msg.file is not None or not is_ours():
            show(msg)
        else:
            warned(msg.message, msg.category, msg.filename, msg.lineno)

    setattr(module, _IMPLEMENTATION, _showwarnmsg_impl)
