"""What the systems compute, the same for all: plain functions of plain arguments; nothing here knows of any system.

A flat workload maps a function over items.  A nested one is given by a function `visit` that takes a problem and
returns its own share of the sum, and the problems below it: a system makes a task of each problem.
"""
