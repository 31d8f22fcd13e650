"""The published protocol's own bugs, planted in the core: one or more for each known hole.

Not here, because the core has no say in it: R8 (where user code runs), R10 (detection), R11 (how a process exits), R12
(start-up), R19 (skeletons); and R20 (one fish at a time), which is a setting of the core and no bug.
"""

from __future__ import annotations

from tests.mutants.patching import Edit, Mutant

RELEASE_EARLY = Edit(
    "victim.Victim.on_death",
    "        return self.drop(",
    "        for request in [one for one, guard in self._guards.items() if guard.catch.thief == dead]:\n"
    "            if self._guards[request].spark.ref.node != dead:\n"
    "                self._pool.put_back([self._guards.pop(request).spark])\n"
    "        return self.drop(",
)
"""The published victim opens a guard at once when the thief dies, so the reply to its REQ comes late."""

ANY_GUARD = "self._guards.pop(next(iter(self._guards), request), None)"
"""A reply without a request id: it is for whatever is guarded now."""

PUBLISHED = (
    Mutant(
        "R1a",
        "the death of a supervisor leaves its guards shut and their thieves unanswered",
        (Edit("victim.Victim.on_death", "spark.ref.node == dead", "False"),),
    ),
    Mutant(
        "R1b",
        "sparks of a dead supervisor stay in the pool, and REQ is sent to a corpse",
        (Edit("recovery.Recovery.on_dead_node", "self._reruns.purge(lambda spark: spark.ref.node == dead)", "0"),),
    ),
    Mutant(
        "R1c",
        "sparks of a dead supervisor go back into the pool when a scheduler returns them",
        (Edit("reruns.Reruns.without_orphans", "if not self.is_orphan(spark.ref)", ""),),
    ),
    Mutant(
        "R1d",
        "sparks of a dead supervisor that are still under way enter the pool",
        (Edit("intake.Intake.on_schedule", "if self._members.is_dead(supervisor):", "if False:"),),
    ),
    Mutant(
        "R2",
        "spawn_at pushes to a node that is already dead",
        (
            Edit("intake.Intake.on_placed", "if self._members.is_going(node):", "if False:"),
            Edit("intake.Intake.on_placed", "if not self._members.is_live(node):", "if False:"),
        ),
    ),
    Mutant(
        "R3a",
        "a late OBSOLETE discards another, live spark",
        (RELEASE_EARLY, Edit("victim.Victim.on_obsolete", "self._guards.pop(request, None)", ANY_GUARD)),
    ),
    Mutant(
        "R3b",
        "a late DENIED takes back another spark, and its thief waits for ever",
        (RELEASE_EARLY, Edit("victim.Victim.on_denied", "self._guards.pop(request, None)", ANY_GUARD)),
    ),
    Mutant(
        "R3c",
        "a late AUTH sends another spark away",
        (RELEASE_EARLY, Edit("victim.Victim.on_auth", "self._guards.pop(request, None)", ANY_GUARD)),
    ),
    Mutant(
        "R4",
        "the victim that gave work the last time is not forgotten when it dies: the next FISH goes to a corpse",
        (
            Edit("thief.Thief.on_death", "if self._favourite == dead:", "if False:"),
            Edit(
                "thief.Thief._next_victim",
                "favourite in victims",
                "favourite not in [fish.victim for fish in self._out.values()]",
            ),
        ),
    ),
    Mutant(
        "R5",
        "a fish whose answer is lost counts as out for ever",
        (
            Edit("thief.Thief.on_death", "if sent.victim != dead", ""),
            Edit("thief.Thief.expire", "if sent.at_s + self._config.fish_deadline_s <= now", "if False"),
            Edit(
                "thief.Thief.next_deadline",
                "[sent.at_s + self._config.fish_deadline_s for sent in self._out.values()]",
                "[]",
            ),
        ),
    ),
    Mutant(
        "R6a",
        "REQ for a finished task raises in the handler",
        (Edit("supervisor.Supervisor.on_req", "record is None or ", ""),),
    ),
    Mutant(
        "R6b",
        "ACK for a finished task raises in the handler",
        (Edit("supervisor.Supervisor.on_ack", "record is None or ", ""),),
    ),
    Mutant(
        "R7",
        "a second result raises in the handler",
        (Edit("supervisor.Supervisor.on_result", "self._records.pop(ref, None)", "self._records.pop(ref)"),),
    ),
    Mutant(
        "R9",
        "recovered threads stay threads: only their supervisor can run them, one after another",
        (
            Edit(
                "supervisor.Supervisor.on_death",
                "record.replica, record.task, record.crashes)",
                "record.replica, record.task, record.crashes, record.placed)",
            ),
        ),
    ),
    Mutant(
        "R13",
        "TERM is not acknowledged, and the root waits for ever",
        (Edit("node.Node._take_news", "Send(ROOT, msg.TermAck(counters)), ", ""),),
    ),
    Mutant(
        "R14",
        "a late NOWORK ends a newer fish",
        (
            Edit(
                "thief.Thief.on_nowork",
                "self._out.pop(fish, None)",
                "self._out.pop(max(self._out, default=fish), None)",
            ),
        ),
    ),
    Mutant(
        "R15",
        "Algorithm 1, line 14, as printed: REQ is granted for a thief that is known to be dead",
        (Edit("supervisor.Supervisor.on_req", "thief_is_dead or ", ""),),
    ),
    Mutant(
        "R16",
        "the last spark of a pool cannot be stolen",
        (Edit("victim.Victim._half", "(self._pool.stealable + 1) // 2", "self._pool.stealable // 2"),),
    ),
    Mutant(
        "R17a",
        "finished and obsolete copies are started",
        (Edit("supervisor.Supervisor.is_wanted", "spark.ref.node != self._me or self.wants(spark)", "True"),),
    ),
    Mutant(
        "R17b",
        "finished and obsolete copies are given away",
        (Edit("victim.Victim._answer", "if not self._supervisor.wants(spark):", "if False:"),),
    ),
    Mutant(
        "R18a",
        "a poison task has no budget of attempts",
        (Edit("schedulers.Schedulers.fall", "if not self.is_given_up(spark.task, blamed.crashes):", "if True:"),),
    ),
    Mutant(
        "R21",
        "Algorithm 1, lines 26 and 27, as printed: ACK moves the record whatever its replica and location",
        (
            Edit(
                "supervisor.Supervisor.on_ack",
                "record is None or replica != record.replica or not isinstance(record.location, InTransition)",
                "record is None",
            ),
            Edit(
                "supervisor.Supervisor.on_ack",
                "if node not in (record.location.victim, record.location.thief):",
                "if False:",
            ),
        ),
    ),
    Mutant(
        "R21a",
        "ACK of an older replica moves the record",
        (Edit("supervisor.Supervisor.on_ack", "replica != record.replica or ", ""),),
    ),
    Mutant(
        "R22",
        "REQ is granted whichever node asks",
        (
            Edit(
                "supervisor.Supervisor.on_req",
                "record.location != OnNode(message.victim)",
                "not isinstance(record.location, OnNode)",
            ),
        ),
    ),
    Mutant(
        "R23",
        "two live nodes lose their connection, and each buries the other without asking the root",
        (
            Edit(
                "node.Node._on_suspicion",
                "return [*effects, *self.recovery.on_dead_node(node)] if self.me == ROOT else effects",
                "return [*(effects if self.me == ROOT else ()), *self.recovery.on_dead_node(node)]",
            ),
        ),
    ),
)
