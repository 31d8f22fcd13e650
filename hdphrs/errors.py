"""Every exception that hdphrs raises on purpose.

What lives here: the family under `HdphrsError` and nothing else.  An exception of any other class that comes out of
this package is a bug of ours.  The operating system's errors become ours in one place per driver.

`definite` tells whether the outcome is known: a definite error says that the thing did not and will not happen; an
indefinite one (a lost peer) leaves open how far it got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pickle import PicklingError


class HdphrsError(Exception):
    """Base of all errors of the runtime; `str(error)` is one clear line for a person."""

    definite = True


class UsageError(HdphrsError):
    """The caller's mistake: a bad option, a malformed hosts file, a call where it cannot be made."""


if TYPE_CHECKING:

    class CannotTravelError(HdphrsError, TypeError, PicklingError):
        """An argument, a function or a result that does not pickle was about to leave its process.

        It is a `pickle.PicklingError` too, for programs that expect one of an executor.
        """

else:

    def __getattr__(name: str) -> type[HdphrsError]:
        """The one error whose base comes with the unpickler, which no node loads: made when somebody asks for it."""
        if name != "CannotTravelError":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from pickle import PicklingError

        doc = "An argument, a function or a result that does not pickle was about to leave its process."
        made = type(name, (HdphrsError, TypeError, PicklingError), {"__module__": __name__, "__doc__": doc})
        return globals().setdefault(name, made)  # of two threads the second one gets the first one's


class MessageTooLargeError(HdphrsError):
    """A message is larger than what a process may send; nothing of it has been sent."""


class TaskError(HdphrsError):
    """A task raised an exception whose class does not travel; its remote traceback is the cause."""


class TaskCrashedError(HdphrsError):
    """A task took down every scheduler process that ran it, as often as its attempts allow, or that unpickled its
    arguments, or its value for another task.

    Attributes:
        attempts: one each: `host`, `pid`, `how` it ended, `arguments` (a summary; empty for the first attempt),
            `words`, the end of the process's standard error, and `cause`: 0 if it ran the task, 1 if it unpickled its
            arguments, 2 if its value.  Tracebacks show the words as notes.
    """

    def __init__(self, sentence: str, attempts: tuple[Any, ...] = ()) -> None:
        super().__init__(sentence)
        self.attempts = attempts


class TaskLostError(HdphrsError):
    """An unsupervised task was on a node that died; nobody keeps a copy of it."""

    definite = False


class TaskTimeoutError(HdphrsError, TimeoutError):
    """A task has run for longer than its `timeout`, and was ended; it is not tried again."""


class WaitTimeoutError(HdphrsError, TimeoutError):
    """Whoever waited has waited long enough; the task goes on."""

    definite = False


class Cancelled(BaseException):
    """A future was cancelled, or the task that runs is about to end because its own was.

    Not an `Exception`, so that a task which handles errors does not swallow it.
    """


class RootLostError(HdphrsError):
    """The root node, which everything may die around, is gone."""

    definite = False


class LedgerError(HdphrsError):
    """A ledger cannot be used, or only be read: no space, no permission, no answer, or others can change it.

    The run goes on with what it can read.
    """


class StartError(HdphrsError):
    """A node could not be started, or did not join within the deadline."""


class ProtocolError(HdphrsError):
    """A peer broke the wire format or the handshake; its connection is closed, nothing of it is unpickled."""


class InternalError(HdphrsError):
    """A broken promise of our own code; the process that notices ends itself (fail-stop)."""


class RemoteTraceback(Exception):  # noqa: N818 - it is the cause of an error, not an error of its own
    """The traceback of the process where a task raised; set as `__cause__` of what `get` raises."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"
