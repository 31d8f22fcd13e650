"""`hdphrs.Executor`: the runtime behind the interface of `concurrent.futures`.

What lives here: the executor itself (`executor.py`); the desk where calls wait until there is room for them, in a
program (`desk.py`); the futures of calls that a task submits (`inside.py`); and what of it all runs in schedulers
(`calls.py`).
"""
