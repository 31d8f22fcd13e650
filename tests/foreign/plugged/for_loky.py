"""A plugin for the pytest that runs loky's tests; `startup.py` has put our executor into its modules."""
