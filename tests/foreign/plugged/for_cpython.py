"""A plugin for the pytest that runs CPython's tests; `startup.py` has put our executor into `concurrent.futures`."""
