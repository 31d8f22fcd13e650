"""The ledger: results that outlive the run, so that the next one need not compute them again (decision 9).

What lives here: entries and where they are stored, a SQLite file or the objects below a URL.  What does not: which
results are worth it and what becomes of them, see `hdphrs.node.ledger`; how a call is known again, see
`hdphrs.wire.meaning`.
"""

from __future__ import annotations

from hdphrs.ledger.entry import Damage, Entry, Label
from hdphrs.ledger.store import Store, is_here, is_url, open_store

__all__ = ["Damage", "Entry", "Label", "Store", "is_here", "is_url", "open_store"]
