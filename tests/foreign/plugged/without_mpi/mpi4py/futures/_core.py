"""No pool is shared."""

from __future__ import annotations

SharedPool = None
