"""Messages between nodes: reliable and in order between any two that live, whatever happens to connections.

* `interface.py`: what a driver sees, whichever of the two it uses.
* `tcp.py`: nodes over sockets.  Its parts: `streams.py` opens and authenticates connections, `greeting.py`
  says who dials and why, `link.py` moves frames, `peer.py` redials and probes, `listener.py` accepts,
  `tls.py` makes contexts.
* `session.py` and `detector.py`, both pure: what must be resent; who has been silent for too long.
* `memory.py`: the same interface in virtual time, for tests.
"""

from hdphrs.transport.interface import Deliver, Fenced, Noted, Said, Told, Transport, TransportEvent

__all__ = ["Deliver", "Fenced", "Noted", "Said", "Told", "Transport", "TransportEvent"]
