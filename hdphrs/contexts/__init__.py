"""What Python code sets for whatever runs after it, and what tasks are to have for themselves (decision 49).

What lives here: context variables as children get them (`travel.py`), and what else is set aside while another task
runs: event loops, standard streams, filters of warnings (`aspects.py`).  What does not: when that is done, which
`hdphrs/api/isolation.py` says.
"""
