"""Launching: from a hosts file to running nodes, and from the program's end to nothing left.

`launch.py` is the whole course of `hdphrs run`; the rest is what it needs: the hosts file, the plan of the nodes, the
settings of each, the processes themselves, and what travels to other hosts.  What is not here: what a node does
(hdphrs.node), and who wants it dead (hdphrs.chaos).
"""
