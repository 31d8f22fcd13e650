"""The user's process, attached to the root node: it spawns and waits, and runs no task.

What lives here: the port of a program (`port.py`), how it gets its node (`attach.py`), and the process that
`hdphrs run` starts for it (`__main__.py`).
"""
