"""What the runtime costs and what it gains, against budgets: `python -m benchmarks` (see README.md)."""
