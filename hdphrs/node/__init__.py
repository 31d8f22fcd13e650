"""The node process: drives the protocol core over real schedulers, timers and sockets.

What lives here: the driver (`driver.py`), the schedulers' processes and links (`processes.py`, `link.py`), and the life
of the process around them (`life.py`, `__main__.py`).  No user code runs here, ever.
"""
