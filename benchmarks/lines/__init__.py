"""The bounds that hdphrs is held to, one line each: `python -m benchmarks lines`.

`bounds.py` says what is measured for each line, and what it must be; `own.py` has what only hdphrs does; `judge.py`
makes samples of the rounds, and a verdict of the samples; `command.py` has it all done, and shown.
"""
