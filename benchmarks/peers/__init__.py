"""The adapters: one system each, run by the Python of the system's own virtual environment.

An adapter has one function, `serve(job)`: it starts its system with `job.workers` workers, runs `job.run(peer)`, and
ends the system.  `peer.py` says what a peer can be asked to do.  Nothing but an adapter imports its system.
"""
