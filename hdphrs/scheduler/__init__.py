"""The per-core process that runs tasks.

What lives here: the hub (`hub.py`), the tasks that a node assigns to it (`assigned.py`), and the process around them
(`__main__.py`).  It must start fast: no trio, no command line.
"""
