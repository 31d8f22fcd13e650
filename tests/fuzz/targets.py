"""All targets by name."""

from __future__ import annotations

from typing import Final

from tests.fuzz.core_target import CORE
from tests.fuzz.handshake_target import HANDSHAKE
from tests.fuzz.listener_target import LISTENER
from tests.fuzz.sealing_target import SEALING
from tests.fuzz.target import Target
from tests.fuzz.trace_target import TRACE
from tests.fuzz.wire_targets import CODEC, FRAMING, GREETING, OUTCOME, PIECES, SESSION, SETTINGS

_ALL: Final = (CODEC, FRAMING, PIECES, SESSION, HANDSHAKE, SEALING, GREETING, SETTINGS, OUTCOME, TRACE, CORE, LISTENER)
TARGETS: Final[dict[str, Target]] = {target.name: target for target in _ALL}
