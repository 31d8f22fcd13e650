"""Homes: where a copy that is to be run waits until then.

What lives here: this node's sparkpool for what may run anywhere, and for a task that is pinned one of its nodes.  What
does not: the first home of a new task (`intake.py`), and all later ones that thieves choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Push, Result
from hdphrs.protocol.orphans import Say
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Outcome, Spark, Verdict


class Homes:
    """Those that one node chooses."""

    def __init__(
        self,
        members: Membership,
        choose: Callable[[int], int],
        pool: Sparkpool,
        supervisor: Supervisor,
        code: CodeStore,
        say: Say,
    ) -> None:
        self._me = members.me
        self._members = members
        self._choose = choose
        self._pool = pool
        self._supervisor = supervisor
        self._code = code
        self._say = say

    def put_back(self, sparks: Sequence[Spark]) -> list[Effect]:
        """These are to be run: here, or where they are pinned."""
        effects: list[Effect] = []
        unpinned: list[Spark] = []
        for spark in sparks:
            if not spark.task.pin or spark.placed:
                unpinned.append(spark)
            elif self._supervisor.is_wanted(spark):
                effects += self.pin(spark)
        self._pool.put_back(unpinned)
        return effects

    def pin(self, spark: Spark) -> list[Effect]:
        """A task of this node that runs on certain nodes only goes to one of them."""
        task = spark.task
        homes = [node for node in task.pin if node == self._me or node in self._members.staying()]
        if not homes:
            named = ", ".join(map(str, task.pin))
            sentence = f"task {task.name} is pinned to node {named}, and there is no such node any more"
            outcome = Outcome(Verdict.LOST, sentence.encode())
            return self._say(self._me, Result(spark.ref, spark.replica, outcome))
        node = homes[self._choose(len(homes))] if len(homes) > 1 else homes[0]
        spark = self._supervisor.pin(spark, node)
        return self.push(node, spark)

    def push(self, node: NodeId, spark: Spark) -> list[Effect]:
        """A thread goes to the node that runs it, be it this one."""
        if node != self._me:
            return [*self._code.ahead(node, [spark]), Send(node, Push(spark))]
        self._pool.add(spark)
        return []
