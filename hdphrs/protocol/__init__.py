"""The protocol core: pure state machines, driven unchanged by the node process, simulator and explorer.

Rules of this package
---------------------

* No clock, no randomness, no sockets, no logging, no pickling.  Time arrives as `now` (seconds, any epoch), chance as a
  chooser given at construction, identities as arguments.
* `Node.handle(event, now)` returns the effects to carry out, in order.  `Node.next_deadline()` says when to send a
  `Tick` at the latest.  That is the whole interface.
* One module, one noun: the thief is in `thief.py`.  A role has one method per message; stale input is legal, ignored
  and counted.  What no interleaving can produce is asserted.
* No iteration over sets: two runs with the same input give the same effects under any `PYTHONHASHSEED`.
"""
