"""The command line `python -m hdphrs.program PROG ARGS...`, started by `hdphrs run`: runs PROG, or `-m MODULE`, as
`__main__`.

Standard streams, arguments and exit status are the program's own; of its tracebacks our frames are cut off.  It is
started with SIGINT blocked: Ctrl-C ends it without a traceback as long as PROG has not begun.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import TracebackType

from hdphrs.api.future import state
from hdphrs.api.sequential import SequentialPort
from hdphrs.console import say
from hdphrs.errors import HdphrsError, RootLostError, StartError, TaskError, UsageError
from hdphrs.form import OUR_FILES
from hdphrs.program.attach import attach
from hdphrs.program.entry import MODULE_OPTION, Entry, become, entry_of
from hdphrs.room import OwnThread, start_thread
from hdphrs.wire.failing import tell_end
from hdphrs.wire.files import occupy_standard
from hdphrs.wire.settings import LEASH_FD_VARIABLE, SEQUENTIAL_VARIABLE
from hdphrs.wire.stacks import THREAD_STACK_BYTES


def main() -> None:
    """Attach, then become the program."""
    heeds_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    occupy_standard()
    os.environ.pop("PYTHONSAFEPATH", None)
    entry, arguments = _asked(sys.argv[1:])
    if os.environ.pop(SEQUENTIAL_VARIABLE, None):
        SequentialPort().take_over()
        threading.stack_size(THREAD_STACK_BYTES)  # else threads would get what the main one has
    else:
        try:
            _watch_leash()
            state.port = attach()
        except StartError as refused:
            if refused.__cause__ is not None:  # of what the launcher cannot know
                say(str(refused))
            sys.exit(1)  # else that says why
        except (OSError, RuntimeError, MemoryError) as error:
            tell_end("the program", error)
            sys.exit(1)
    if heeds_interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        become(entry, arguments)
    except BaseException:
        if sys.excepthook is sys.__excepthook__:  # not before: what a program puts there is its own
            sys.excepthook = _print_exception
        raise


def _asked(words: list[str]) -> tuple[Entry, list[str]]:
    """What to run, and its arguments."""
    is_module = words[0] == MODULE_OPTION
    name, *arguments = words[is_module:]
    try:
        return entry_of(name, module=is_module), arguments
    except UsageError as error:  # it was there when the launcher looked
        say(str(error))
        sys.exit(1)


def _watch_leash() -> None:
    """End with the launcher, even if it was killed."""
    descriptor = os.environ.pop(LEASH_FD_VARIABLE, None)
    if descriptor is None:
        return
    os.set_inheritable(int(descriptor), False)

    def watch() -> None:
        while os.read(int(descriptor), 1):
            pass
        os._exit(1)

    try:
        start_thread(OwnThread(watch, "hdphrs-leash"))
    except RuntimeError as error:
        say(f"the program cannot start the threads that it needs: {error}")
        sys.exit(1)


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One line for an error of the runtime; the program's traceback without our frames for any other."""
    place = ""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((*OUR_FILES, "<frozen runpy>")):
        trace = trace.tb_next
    if isinstance(error, RootLostError):
        return  # the launcher says how
    if isinstance(error, HdphrsError) and not isinstance(error, TaskError):
        step = trace
        while step is not None:
            code = step.tb_frame.f_code
            if not code.co_filename.startswith(OUR_FILES):
                place = f"{code.co_filename}:{step.tb_lineno}: "
            step = step.tb_next
        print(f"hdphrs: {place}{error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error.with_traceback(trace), trace)


main()
