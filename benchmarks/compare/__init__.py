"""hdphrs beside its peers: `python -m benchmarks peers`.

`systems.py` and `workloads.py` say who does what; `job.py` runs inside the system's own process and measures;
`launch.py` starts, watches and ends one such process; `command.py` has all of them done in turn; `report.py` makes
tables, and `plots.py` pictures.
"""
