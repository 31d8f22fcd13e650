"""Bugs that a sloppy change could bring in, by the role in which they are planted.

What is not here: changes that only cost something and break no promise; each was tried, and found to be harmless.
"""

from __future__ import annotations

from tests.mutants.patching import Edit, Mutant

SUPERVISOR = (
    Mutant(
        "no-recovery",
        "a death re-creates nothing",
        (Edit("supervisor.Supervisor.on_death", "elif covers(record.location, dead):", "elif False:"),),
    ),
    Mutant(
        "replica-stays",
        "the re-created spark has the number of the lost one",
        (Edit("supervisor.Supervisor.on_death", "record.replica += 1", "pass"),),
    ),
    Mutant(
        "record-stays-there",
        "the record of a re-created spark still names the dead node",
        (Edit("supervisor.Supervisor.on_death", "record.location = self._here", "pass"),),
    ),
    Mutant(
        "threads-forgotten",
        "placed threads are not recovered",
        (Edit("supervisor.Supervisor.on_death", "elif covers(", "elif not record.placed and covers("),),
    ),
    Mutant(
        "victim-death",
        "a spark in transition is recovered when its thief dies, but not when its victim does",
        (Edit("supervisor._nodes", "(location.victim, location.thief)", "(location.thief,)"),),
    ),
    Mutant(
        "thief-death",
        "a spark in transition is recovered when its victim dies, but not when its thief does",
        (Edit("supervisor._nodes", "(location.victim, location.thief)", "(location.victim,)"),),
    ),
    Mutant(
        "second-write",
        "a second result is delivered too",
        (Edit("outcomes.Outcomes.fill", "return []", "return [self._schedulers.deliver(ref, outcome)]"),),
    ),
    Mutant(
        "record-kept",
        "the first result does not end supervision",
        (Edit("supervisor.Supervisor.on_result", "self._records.pop(ref, None)", "self._records.get(ref)"),),
    ),
    Mutant(
        "auth-unrecorded",
        "AUTH is given and the record stays as it was",
        (
            Edit(
                "supervisor.Supervisor.on_req", "record.location = InTransition(message.victim, message.thief)", "pass"
            ),
        ),
    ),
    Mutant(
        "gift-unrecorded",
        "a spark leaves its own supervisor's pool unrecorded",
        (Edit("supervisor.Supervisor.authorise", "record.location = InTransition(self._me, thief)", "pass"),),
    ),
    Mutant(
        "old-replica-moves",
        "REQ is granted to an older replica",
        (
            Edit(
                "supervisor.Supervisor.on_req", "record is None or message.replica != record.replica", "record is None"
            ),
        ),
    ),
    Mutant(
        "denied-for-obsolete",
        "a finished or obsolete copy is denied its leave and goes back to the pool, to be asked for again",
        (Edit("supervisor.Supervisor.on_req", "return Obsolete(message.request)", "return Denied(message.request)"),),
    ),
    Mutant(
        "obsolete-for-denied",
        "a spark that may not move now is dropped",
        (Edit("supervisor.Supervisor.on_req", "return Denied(message.request)", "return Obsolete(message.request)"),),
    ),
    Mutant(
        "left-unmarked",
        "an unsupervised task that left its node is not known to be lost when nodes die",
        (Edit("supervisor.Supervisor.authorise", "record.left = True", "pass"),),
    ),
    Mutant(
        "dead-futures-kept",
        "the futures of a dead scheduler stay supervised",
        (Edit("supervisor.Supervisor.forget", "if ref.origin == origin", "if False"),),
    ),
    Mutant(
        "charge-forgotten",
        "the record does not learn of a crash, so a re-creation starts with a full budget",
        (Edit("supervisor.Supervisor.charge", "record.crashes = spark.crashes", "pass"),),
    ),
)

VICTIM = (
    Mutant(
        "gift-to-the-dead",
        "AUTH for a thief that has died meanwhile sends the spark to it",
        (Edit("victim.Victim.on_auth", "if self._is_going(catch.thief):", "if False:"),),
    ),
    Mutant(
        "own-ack-lies",
        "a spark that stays because its thief died is acknowledged in the thief's name",
        (
            Edit(
                "victim.Victim.on_auth",
                "Ack(spark.ref, spark.replica, self._me)",
                "Ack(spark.ref, spark.replica, catch.thief)",
            ),
        ),
    ),
    Mutant(
        "own-ack-forgotten",
        "a spark that stays because its thief died is not reported to its supervisor",
        (
            Edit(
                "victim.Victim.on_auth",
                "return [Send(spark.ref.node, Ack(spark.ref, spark.replica, self._me))]",
                "return []",
            ),
        ),
    ),
    Mutant(
        "auth-drops",
        "a spark that stays because its thief died is not put back",
        (Edit("victim.Victim.on_auth", "self._pool.put_back([spark])", "pass"),),
    ),
    Mutant(
        "denied-drops",
        "a spark whose leave is denied is not put back",
        (Edit("victim.Victim.on_denied", "self._pool.put_back([guard.spark])", "pass"),),
    ),
    Mutant(
        "denied-sends",
        "a spark whose leave is denied goes away all the same",
        (
            Edit(
                "victim.Victim.on_denied",
                "return self._refuse(guard.catch)",
                "return self._send(guard.catch, [guard.spark])",
            ),
        ),
    ),
    Mutant(
        "asks-for-itself",
        "REQ names the victim where it should name the thief",
        (Edit("victim.Victim._reserve", "self._me, catch.thief)", "self._me, self._me)"),),
    ),
    Mutant(
        "guard-and-pool",
        "a spark that waits for its supervisor's answer stays in the pool as well",
        (Edit("victim.Victim._reserve", "catch.pending += 1", "catch.pending += 1; self._pool.add(spark)"),),
    ),
    Mutant(
        "guards-uncounted",
        "the guards of a fish are not counted",
        (Edit("victim.Victim._reserve", "catch.pending += 1", "pass"),),
    ),
    Mutant(
        "orphan-untold",
        "a guarded orphan is dropped, and the thief is not told",
        (
            Edit(
                "victim.Victim.drop",
                "effects += self._refuse(self._guards.pop(request).catch)",
                "self._guards.pop(request)",
            ),
        ),
    ),
    Mutant(
        "early-nowork",
        "NOWORK is sent while other guards of the same fish still wait for their answers",
        (Edit("victim.Victim._refuse", "catch.pending or ", ""),),
    ),
    Mutant(
        "nowork-after-gift",
        "NOWORK is sent although sparks have been",
        (Edit("victim.Victim._refuse", "catch.answered or ", ""),),
    ),
    Mutant(
        "refuses-the-dead",
        "NOWORK is sent to a dead thief",
        (Edit("victim.Victim._refuse", " or self._is_going(catch.thief)", ""),),
    ),
    Mutant(
        "parked-dead",
        "the parked fish of a dead thief is kept, and answered",
        (Edit("victim.Victim.forget", "if parked.message.thief != thief", ""),),
    ),
    Mutant(
        "parked-lost",
        "a fish that waits is forgotten when the spark it waited for turns out to be obsolete",
        (
            Edit(
                "victim.Victim.serve_parked",
                "if not answer:\n",
                "if not answer:\n                self._parked.popleft()\n",
            ),
        ),
    ),
    Mutant(
        "parked-twice",
        "a fish that waits is answered and goes on waiting",
        (
            Edit(
                "victim.Victim.serve_parked",
                "            self._parked.popleft()\n            effects += answer",
                "            effects += answer",
            ),
        ),
    ),
    Mutant(
        "expired-untold",
        "a fish that has waited long enough is dropped in silence",
        (Edit("victim.Victim.expire", "effects.append(self._nothing(message, now))", "pass"),),
    ),
    Mutant(
        "full-drops",
        "a spark for which there is no guard left is lost",
        (Edit("victim.Victim._answer", "self._pool.put_back([spark])\n", "pass\n"),),
    ),
)

THIEF = (
    Mutant(
        "never-rested",
        "a thief that rests never fishes again",
        (Edit("thief.Thief.expire", "self._resting_until_s <= now", "False"),),
    ),
    Mutant(
        "schedule-uncounted",
        "a fish that was answered with sparks counts as out until its deadline",
        (Edit("thief.Thief.on_schedule", "self._out.pop(fish, None)", "pass"),),
    ),
    Mutant(
        "fish-dead-counted",
        "a fish to a dead victim counts as out until its deadline",
        (Edit("thief.Thief.on_death", "if sent.victim != dead", ""),),
    ),
)

SCHEDULERS = (
    Mutant(
        "sate-forgotten",
        "a scheduler whose future is filled gets a task although it goes on",
        (Edit("schedulers.Schedulers.deliver", "self.sate(ref.origin)", "pass"),),
    ),
    Mutant(
        "fed-twice",
        "a scheduler that was given tasks counts as hungry still",
        (
            Edit(
                "schedulers.Schedulers.assign",
                "del self._hungry[origin]",
                "self._hungry[origin] = self._hungry.pop(origin)",
            ),
        ),
    ),
    Mutant(
        "hungry-corpse",
        "a dead scheduler stays among the hungry",
        (Edit("schedulers.Schedulers.fall", "self._hungry.pop(origin, None)", "pass"),),
    ),
    Mutant(
        "held-lost",
        "what a dead scheduler held besides the task it was running is lost",
        (Edit("schedulers.Schedulers.fall", "survivors.append(spark)\n", "pass\n"),),
    ),
    Mutant(
        "blame-elsewhere",
        "a crash is charged to the tasks that were waiting, not to the one that was running",
        (Edit("schedulers.Schedulers.fall", "key != running", "key == running"),),
    ),
    Mutant(
        "blame-forgotten",
        "the child that took its parent down starts from zero each time",
        (Edit("schedulers.Schedulers.fall", "self.charge(spark.task.path, blamed.crashes)", "pass"),),
    ),
    Mutant(
        "blame-stays",
        "what a child is charged with stays behind when its parent is stolen",
        (Edit("intake.Intake.on_schedule", "self._schedulers.charge(charge.path, charge.crashes)", "pass"),),
    ),
    Mutant(
        "value-charged-once",
        "of the schedulers that a value has taken down only the last one counts",
        (Edit("schedulers.Schedulers.accuse", "(*self._blame.get(path, ()), crash)", "(crash,)"),),
    ),
    Mutant(
        "deadly-piece-handed",
        "a task that is run again gets a piece that has taken down its reader",
        (Edit("schedulers.Schedulers._hold", "if self._blame and spark.pieces:", "if False:"),),
    ),
    Mutant(
        "deadly-piece-kept",
        "the root keeps a piece that has taken down its reader",
        (Edit("node.Node._take", "self.pieces.discard(path)", "pass"),),
    ),
    Mutant(
        "deadly-in-bundle",
        "a child whose value takes down its readers leaves in a bundle again",
        (Edit("schedulers.Schedulers.crashes_of", "if path.startswith(BUNDLE)", "if False"),),
    ),
    Mutant(
        "deadly-untold",
        "whoever runs a parent again on another node does not learn what its children's values have done",
        (Edit("reruns.Reruns.on_recalled", "self._schedulers.charge(charge.path, charge.crashes)", "pass"),),
    ),
    Mutant(
        "given-up-runs-on",
        "a copy of a task that has used up its attempts is started if it was waiting",
        (Edit("schedulers.Schedulers.assign", "if self.is_given_up(spark.task, crashes):", "if False:"),),
    ),
    Mutant(
        "blameless-blamed",
        "a scheduler that was killed from outside is charged to its task",
        (Edit("recovery.Recovery.on_scheduler_died", "None if event.blameless else event.crash", "event.crash"),),
    ),
    Mutant(
        "verdict-dropped",
        "a task that has used up its attempts is given up, and nobody is told",
        (Edit("recovery.Recovery.on_scheduler_died", "effects += self._reruns.answer(ref, replica, outcome)", "pass"),),
    ),
    Mutant(
        "given-back-copied",
        "tasks that a scheduler returns count as held still",
        (Edit("schedulers.Schedulers.give_back", "self._up[origin].take(spark)", "self._up[origin].held[spark]"),),
    ),
    Mutant(
        "given-back-lost",
        "tasks that a scheduler returns are dropped",
        (
            Edit(
                "node.Node._dispatch",
                "self.pool.put_back(self.unwanted.without_orphans(self.schedulers.give_back(scheduler, sparks)))",
                "self.schedulers.give_back(scheduler, sparks)",
            ),
        ),
    ),
    Mutant(
        "no-code",
        "a task is started before its scheduler has the code",
        (Edit("flow.Flow._hand_out", "effects.append(Teach(origin, digest, data))", "pass"),),
    ),
)

NODE = (
    Mutant(
        "ack-forgotten",
        "a stolen spark is not acknowledged",
        (
            Edit(
                "intake.Intake.on_schedule",
                "effects.append(Send(supervisor, Ack(spark.ref, spark.replica, me)))",
                "pass",
            ),
        ),
    ),
    Mutant(
        "ack-unsent-to-self",
        "a supervisor that steals its own spark back does not note it",
        (Edit("intake.Intake.on_schedule", "effects += self._say(me, Ack(spark.ref, spark.replica, me))", "pass"),),
    ),
    Mutant(
        "schedule-dropped",
        "SCHEDULE is dropped when no scheduler is hungry any more",
        (
            Edit(
                "intake.Intake.on_schedule",
                "        for spark in sparks:\n",
                "        for spark in sparks if self._schedulers.hungry else ():\n",
            ),
        ),
    ),
    Mutant(
        "purge-too-wide",
        "PURGE drops other sparks of the same supervisor as well",
        (
            Edit(
                "reruns.Reruns.disown",
                "purge(lambda spark: spark.ref in orphans)",
                "purge(lambda spark: spark.ref.node in {ref.node for ref in orphans})",
            ),
        ),
    ),
    Mutant(
        "purge-drops-results",
        "a node that is told of a death drops the results of a task that it runs for the living",
        (Edit("reruns.Reruns.answer", "self.is_orphan(ref)", "self._members._dead"),),
    ),
    Mutant(
        "stranger-ignored",
        "a result for a supervisor whose JOINED is still under way is dropped",
        (Edit("reruns.Reruns.answer", "self.is_orphan(ref)", "not self._members.is_live(ref.node)"),),
    ),
    Mutant(
        "code-after",
        "a spark is sent ahead of its code",
        (
            Edit(
                "victim.Victim._send",
                "[*self._code.ahead(catch.thief, sparks), Send(catch.thief, schedule)]",
                "[Send(catch.thief, schedule), *self._code.ahead(catch.thief, sparks)]",
            ),
        ),
    ),
    Mutant(
        "push-without-code",
        "a thread is pushed without its code",
        (
            Edit(
                "homes.Homes.push",
                "[*self._code.ahead(node, [spark]), Send(node, Push(spark))]",
                "[Send(node, Push(spark))]",
            ),
        ),
    ),
    Mutant(
        "recreated-lost",
        "re-created sparks do not reach the pool",
        (Edit("recovery.Recovery.on_dead_node", "effects += self._reruns.ask(recreated)", "pass"),),
    ),
    Mutant(
        "recalled-lost",
        "sparks that have waited for their pieces are dropped",
        (Edit("reruns.Reruns.on_recalled", "self._waiting.pop(message.recall, [])", "[]"),),
    ),
    Mutant(
        "waiting-orphans-kept",
        "sparks of a dead supervisor that wait for their pieces stay",
        (Edit("reruns.Reruns.purge", "[spark for spark in sparks if not is_orphan(spark)]", "list(sparks)"),),
    ),
    Mutant(
        "pieces-uncovered",
        "what is below a finished task of the program is kept for ever",
        (Edit("outcomes.Outcomes._learn", "self._pieces.cover(task.path)", "pass"),),
    ),
    Mutant(
        "orphans-unreported",
        "a node does not say after a death which orphans it has",
        (Edit("recovery.Recovery.on_dead_node", "effects += self._reruns.report(asked=self._me != ROOT)", "pass"),),
    ),
    Mutant(
        "gone-untold",
        "who waits for an orphan does not hear that it is gone",
        (Edit("orphans.Orphanage._give_up", "effects += self._gone(waiting)", "pass"),),
    ),
    Mutant(
        "orphan-awaited-for-ever",
        "an orphan that has ended before it was adopted is waited for",
        (Edit("orphans.Orphanage.on_await", "message.path not in self._running", "False"),),
    ),
    Mutant(
        "adopted-and-run",
        "a task waits for an orphan, and is run beside it",
        (
            Edit(
                "reruns.Reruns.resume",
                "self._supervisor.adopt(spark, itself.node)",
                "self._supervisor.adopt(spark, itself.node); unfinished.append(spark)",
            ),
        ),
    ),
    Mutant(
        "orphan-s-end-untold",
        "an orphan's end goes to its dead supervisor instead of the root",
        (Edit("reruns.Reruns.on_finished", "if self.is_orphan(ref):", "if False:"),),
    ),
    Mutant(
        "double-is-no-replica",
        "a task is started once more under the same replica number",
        (Edit("supervisor.Supervisor.double", "record.replica += 1", "pass"),),
    ),
    Mutant(
        "lost-untold",
        "the futures of lost unsupervised tasks stay empty",
        (Edit("recovery.Recovery.on_dead_node", "effects.append(self._outcomes.lose(ref, task, outcome))", "pass"),),
    ),
    Mutant(
        "the-dead-speak",
        "messages of the dead are handled",
        (Edit("node.Node._on_received", "self.members.is_dead(sender) or ", ""),),
    ),
    Mutant(
        "term-waits-for-the-dead",
        "the root waits for the acknowledgement of a node that died after TERM",
        (Edit("node.Node._on_suspicion", "return self._acknowledged(node)", "return []"),),
    ),
    Mutant(
        "parked-unserved",
        "a fish that waits is not answered when sparks arrive",
        (Edit("flow.Flow.settle", "effects += self._victim.serve_parked()", "pass"),),
    ),
)

MEMBERSHIP = (
    Mutant(
        "lost-for-good",
        "a node that has lost the root ends, and does not come back",
        (Edit("node.Node._cut_off", "self.me is None or not self.leaving.under_way", "False"),),
    ),
    Mutant(
        "leaver-returns",
        "a node that was told to leave, and is cut off, comes back",
        (Edit("node.Node._cut_off", "self.me is None or not self.leaving.under_way", "True"),),
    ),
    Mutant(
        "epoch-stays",
        "the epoch does not grow with a death",
        (Edit("membership.Membership.rule", "self.epoch += 1", "pass"),),
    ),
    Mutant(
        "deaths-half-told",
        "DEADNODE reaches only some of the nodes",
        (Edit("membership.Membership.rule", "if other != node]", "if other < node]"),),
    ),
    Mutant(
        "newcomer-untold",
        "a newcomer does not hear who is dead",
        (Edit("membership.Membership.on_welcome", "dict.fromkeys(message.dead)", "{}"),),
    ),
    Mutant(
        "id-reused",
        "a node that was buried is forgotten, and may return under its old name",
        (Edit("membership.Membership.bury", "self._dead[node] = None", "pass"),),
    ),
    Mutant(
        "newcomer-unknown",
        "the others do not hear of a newcomer",
        (
            Edit(
                "membership.Membership.on_arrived",
                "effects += [Send(other, Joined(self.epoch, member)) for other in self._others]",
                "pass",
            ),
        ),
    ),
)

LEAVING = (
    Mutant(
        "leave-unnoted",
        "a node goes before all have noted that it leaves",
        (Edit("leaving.Leaving.proceed", "self._quiet and not self._unnoted", "self._quiet"),),
    ),
    Mutant(
        "leave-guarded",
        "a node goes although sparks of it wait for their supervisors",
        (Edit("flow.Flow._holds_something", "guarded or ", ""),),
    ),
    Mutant(
        "leave-asked-once",
        "a node that had something when it began to leave does not ask the others again",
        (Edit("leaving.Leaving.proceed", "return self._ask(), None", "return [], Parting.LEFT_NOTHING"),),
    ),
    Mutant(
        "leave-exact",
        "unsupervised tasks are taken to be elsewhere although a node has left something behind",
        (Edit("supervisor.Supervisor.on_death", "is not Parting.LEFT_NOTHING", "is Parting.DIED"),),
    ),
)

CANCELLING = (
    Mutant(
        "cancelled-on-its-way",
        "a spark that was on its way when it was cancelled is forgotten when it has arrived",
        (Edit("node.Node._on_ack", "if self.supervisor.arrived(ref, replica, node):", "if False:"),),
    ),
    Mutant(
        "loser-on-its-way",
        "a copy that was on its way when another one ended is forgotten when it has arrived",
        (Edit("supervisor.Supervisor.on_result", "self._follow(ref, record)", "pass"),),
    ),
    Mutant(
        "survivor-is-forgotten",
        "a copy that has outlived one end of its way is forgotten",
        (Edit("supervisor.Supervisor.on_death", "node not in (dead, self._me)", "False"),),
    ),
    Mutant(
        "cancelled-and-dead",
        "a death does not settle where a cancelled spark is",
        (Edit("recovery.Recovery.on_dead_node", "effects += self._unwanted.settle(dead)", ""),),
    ),
    Mutant(
        "stopped-for-ever",
        "what a scheduler answers for a stopped task is taken for a result",
        (Edit("outcomes.Outcomes.on_finished", "if not self._unwanted.has_stopped(ref, replica):", "if True:"),),
    ),
    Mutant(
        "stopped-runs-again",
        "a task that was to be stopped is run again when its scheduler has died",
        (Edit("unwanted.Unwanted.without_orphans", "if not self.has_stopped(spark.ref, spark.replica)", ""),),
    ),
    Mutant(
        "cancelled-in-pool",
        "a cancelled spark stays in the pool of a node that has stolen it",
        (Edit("unwanted.Unwanted.on_cancel", "self._reruns.purge(is_cancelled)", ""),),
    ),
)

FORESIGHT = (
    Mutant(
        "foretold-twice",
        "it is foretold that a second result fills a future",
        (Edit("foresight.Foresight.fills", "self._supervisor.record(ref) is not None", "True"),),
    ),
)

MEMORY_AND_TURNS = (
    Mutant(
        "needed-code-dropped",
        "code is taken for unneeded though a task that runs here needs it",
        (
            Edit(
                "forgetting.Forgetting.needed",
                "digests.update(spark.task.code for spark in self._schedulers.held())",
                "pass",
            ),
        ),
    ),
    Mutant(
        "claims-not-counted",
        "a party has one claim however often the code has passed",
        (Edit("code.CodeStore._claim", "code.claims.get(receiver, 0) + 1", "1"),),
    ),
    Mutant(
        "forget-unanswered",
        "a node that is asked to forget keeps its own claim",
        (Edit("code.CodeStore.on_forget", "if mine else []", "if False else []"),),
    ),
    Mutant(
        "older-surroundings",
        "surroundings that come late replace newer ones",
        (Edit("code.CodeStore._take", "if digest > self._surroundings[0]:", "if True:"),),
    ),
    Mutant(
        "wanted-code-asked-back",
        "who has registered code and not released it is asked to let go of it",
        (Edit("code.CodeStore._is_wanted", "return True", "pass"),),
    ),
    Mutant(
        "coming-code-asked-back",
        "a record is not taken for a need of its code",
        (Edit("forgetting.Forgetting.needed", "digests.update(self._supervisor.codes())", "pass"),),
    ),
    Mutant(
        "never-beside",
        "a call without a core waits until somebody has nothing to do",
        (Edit("schedulers.Schedulers.squeeze", "if not busy or self.is_crowded:", "if True:"),),
    ),
    Mutant(
        "crowded-beside",
        "a node whose links are full starts more beside what runs",
        (Edit("schedulers.Schedulers.squeeze", "if not busy or self.is_crowded:", "if not busy:"),),
    ),
    Mutant(
        "crowded-unheard",
        "a node whose links are full begins whatever it gets",
        (Edit("node.Node._dispatch", "self.schedulers.is_crowded = is_crowded", "pass"),),
    ),
    Mutant(
        "crowded-for-ever",
        "a node whose links have been full once begins nothing any more",
        (Edit("node.Node._dispatch", "self.schedulers.is_crowded = is_crowded", "self.schedulers.is_crowded = True"),),
    ),
    Mutant(
        "beside-without-bound",
        "a scheduler gets any number of tasks to run beside what it runs",
        (Edit("schedulers.Schedulers.squeeze", "scheduler.beside[spark.ref, spark.replica] = None", "pass"),),
    ),
    Mutant(
        "one-call-first",
        "the call that came first has all turns",
        (Edit("sparkpool._Lane.take", "self.turns.append(call)", "self.turns.appendleft(call)"),),
    ),
)

SLIPS = (
    *SUPERVISOR,
    *VICTIM,
    *THIEF,
    *SCHEDULERS,
    *NODE,
    *MEMBERSHIP,
    *LEAVING,
    *CANCELLING,
    *FORESIGHT,
    *MEMORY_AND_TURNS,
)
