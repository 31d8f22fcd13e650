"""A virtual task that is run again, and the parts of it that are finished already (`scheduler/reuse.py`).

What lives here: the meeting of children and pieces.  As in the real one, only children of interior tasks are looked at,
those that have pieces below them; but threads always.
"""

from __future__ import annotations

from bisect import bisect_right

from hdphrs.protocol.pieces import check_of_task
from hdphrs.protocol.tasks import Outcome, Piece, Spark
from hdphrs.sim.errors import Wrong
from hdphrs.sim.program import Program


class Reuse:
    """What one assigned task need not compute again."""

    def __init__(self, spark: Spark, program: Program) -> None:
        self._program = program
        self._top = spark.task.path
        self._pieces = {piece.path: piece for piece in spark.pieces}
        self._paths = sorted(self._pieces)
        if self._paths != [piece.path for piece in spark.pieces]:
            raise Wrong(f"{spark.ref} has a piece twice, or not in the order of their paths")

    def met(self, parent: int) -> dict[int, Outcome | None]:
        """The children of `parent`, which runs for the assigned task, that are finished, and what they have come to;
        None for those that still run somewhere."""
        program = self._program
        interior = self._is_interior(program.task[parent].path)
        found: dict[int, Outcome | None] = {}
        for child in program.children[parent]:
            task = program.task[child]
            piece = self._pieces.get(task.path)
            if piece is not None and (interior or program.place[child] >= 0):
                if piece.check != check_of_task(task):
                    raise Wrong(f"the piece at the path of task {child} is of another call")
                found[child] = piece.outcome if isinstance(piece, Piece) else None
        return found

    def _is_interior(self, path: bytes) -> bool:
        place = bisect_right(self._paths, path)
        return path == self._top or (place < len(self._paths) and self._paths[place].startswith(path))
