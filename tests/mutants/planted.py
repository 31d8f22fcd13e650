"""All planted bugs."""

from __future__ import annotations

from tests.mutants.patching import Mutant
from tests.mutants.published import PUBLISHED
from tests.mutants.slips import SLIPS

MUTANTS: tuple[Mutant, ...] = (*PUBLISHED, *SLIPS)
