"""Runs in virtual time, recorded and replayed: the core's own conform, and whatever is changed is found."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hdphrs import __version__
from hdphrs.config import CoreConfig
from hdphrs.errors import ProtocolError, UsageError
from hdphrs.node.recorder import Recorder
from hdphrs.observe.replay import Verdict, _place, replay
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.intake import Intake
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Outcome, Spark, TaskRef
from hdphrs.protocol.tasks import Verdict as Ending
from hdphrs.wire.bulk import BULK_BYTES_MIN
from hdphrs.wire.trace import Header, Record, TraceFile, encode_header, encode_record, first_line
from tests.node.test_whole_cluster import between
from tests.node.virtual import Happening, VirtualCluster, run_virtually, tree

LEVELS = 5
COST_S = 0.1

Disturb = Callable[[VirtualCluster], Sequence[Happening]]


def nothing(_: VirtualCluster) -> Sequence[Happening]:
    return []


def deaths(cluster: VirtualCluster) -> Sequence[Happening]:
    return [(0.4, partial(cluster.kill, 1)), (1.1, partial(cluster.kill, 3))]


def fenced_for_a_while(cluster: VirtualCluster) -> Sequence[Happening]:
    return [(0.3, between(cluster, "cut_one_way", 1, (0, 2, 3))), (1.2, between(cluster, "heal", 1, (0, 2, 3)))]


def flaps(cluster: VirtualCluster) -> Sequence[Happening]:
    cut, heal = between(cluster, "cut", 1, (2,)), between(cluster, "heal", 1, (2,))
    return [(0.2 + 0.6 * i, cut) for i in range(4)] + [(0.5 + 0.6 * i, heal) for i in range(4)]


def broken(cluster: VirtualCluster) -> Sequence[Happening]:
    return [(0.3, between(cluster, "cut", 1, (2,)))]


def record(folder: Path, disturb: Disturb = nothing, *, nodes: int = 4, seed: int = 0) -> None:
    """Run a tree of tasks while things happen."""
    cluster = VirtualCluster(nodes, detect_after_s=0.5, seed=seed, trace=str(folder))

    async def main() -> int:
        value, _ = await cluster.compute(tree(LEVELS, COST_S), lambda: disturb(cluster))
        return value

    assert run_virtually(main, seed) == 2**LEVELS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two deaths."""
    folder = tmp_path_factory.mktemp("recorded")
    record(folder, deaths)
    return folder


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(recorded, tmp_path / "run")


class Trace:
    """One file, to be changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = TraceFile(str(self.path), self.path.read_bytes(), __version__)
        assert file.header is not None
        self.header = file.header
        self.records = list(file.records())

    @classmethod
    def of(cls, folder: Path, node: int) -> Trace:
        """That of one node's first life."""
        (path,) = folder.glob(f"node-host {node}-*-1.trace")
        return cls(path)

    def find(self, wanted: Callable[[Record], object]) -> int:
        """The number of the first event of this kind, counted from 0."""
        return next(number for number, record in enumerate(self.records) if wanted(record))

    def write(self) -> None:
        """Put the changed records into the file."""
        begin = first_line(__version__) + encode_header(self.header)
        self.path.write_bytes(begin + b"".join(map(encode_record, self.records)))


def fault_of(folder: Path) -> str:
    """What the replay finds."""
    verdict = replay(str(folder))
    assert not verdict.conforming
    assert verdict.fault is not None
    assert verdict.sentences()[-1] == f"NOT CONFORMING: {verdict.fault}"
    return verdict.fault


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("disturb", [nothing, deaths, fenced_for_a_while, flaps, broken])
def test_recorded_run_conforms_whatever_happens(tmp_path: Path, disturb: Disturb, seed: int) -> None:
    record(tmp_path, disturb, seed=seed)
    verdict = replay(str(tmp_path))
    assert verdict.fault is None
    assert verdict.conforming
    assert verdict.tally.events > 200
    assert verdict.tally.deaths == {nothing: 0, deaths: 2, fenced_for_a_while: 1, flaps: 0, broken: 1}[disturb]


def test_replay_says_the_same_each_time(run: Path) -> None:
    def told(verdict: Verdict) -> list[str]:
        return [*verdict.tally.table(), *verdict.sentences()]

    assert told(replay(str(run))) == told(replay(str(run)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("disturb", [deaths, fenced_for_a_while])
def test_clocks_that_disagree_decide_nothing(tmp_path: Path, disturb: Disturb, seed: int) -> None:
    record(tmp_path, disturb, seed=seed)
    chance = random.Random(seed)
    for path in sorted(tmp_path.iterdir()):
        trace = Trace(path)
        skew_s = chance.choice([-10.0, -0.1, 0.0, 0.1, 10.0])
        trace.header = replace(trace.header, wall_s=trace.header.wall_s + skew_s)
        trace.write()
    assert replay(str(tmp_path)).sentences()[0].startswith("conforming: ")


def test_last_record_that_was_cut_by_a_kill_is_no_fault(run: Path) -> None:
    trace = Trace.of(run, 1)
    trace.path.write_bytes(trace.path.read_bytes() + b"\0\0\1")
    assert replay(str(run)).conforming


# ---- what is changed is found ------------------------------------------------------------------------------------


def test_changed_effect_is_found_with_its_node_and_event(run: Path) -> None:
    trace = Trace.of(run, 2)
    number = trace.find(lambda record: any(isinstance(effect, fx.Demand) for effect in record.effects or ()))
    old = trace.records[number]
    assert old.effects is not None
    changed = tuple(fx.Demand(not effect.wanted) if isinstance(effect, fx.Demand) else effect for effect in old.effects)
    trace.records[number] = replace(old, effects=changed)
    trace.write()
    fault = fault_of(run)
    assert fault.startswith(f"node 2 (host 2, process 1), event {number + 1}, ")
    assert "was Demand(wanted=False), and is Demand(wanted=True)" in fault


def test_effect_that_is_gone_is_found(run: Path) -> None:
    trace = Trace.of(run, 2)
    number = trace.find(lambda record: record.effects)
    trace.records[number] = replace(trace.records[number], effects=())
    trace.write()
    assert "it had 0 effects, and has" in fault_of(run)


def received(record: Record) -> bool:
    return isinstance(record.event, ev.Received) and not isinstance(record.event.message, msg.Welcome)


def test_message_that_came_twice_is_found(run: Path) -> None:
    trace = Trace.of(run, 2)
    number = trace.find(received)
    trace.records.insert(number, trace.records[number])
    trace.write()
    assert fault_of(run).startswith("node 2 ")


def test_message_that_overtook_another_is_found(run: Path) -> None:
    trace = Trace.of(run, 0)
    one = trace.find(received)
    first = trace.records[one].event
    assert isinstance(first, ev.Received)
    other = trace.find(
        lambda record: (
            received(record)
            and isinstance(record.event, ev.Received)
            and record.event.sender == first.sender
            and record.event != first
        )
    )
    events = trace.records[one].event, trace.records[other].event
    trace.records[other] = replace(trace.records[other], event=events[0])
    trace.records[one] = replace(trace.records[one], event=events[1])
    trace.write()
    assert fault_of(run).startswith(f"node 0 (host 0, process 1), event {one + 1}, Received(")


def test_what_overtakes_a_large_message_is_found_where_it_is_and_nothing_else_is() -> None:
    def result(size: int) -> msg.Result:
        return msg.Result(TaskRef(ROOT, PROGRAM, size), 0, Outcome(Ending.VALUE, bytes(size)))

    large, small = result(BULK_BYTES_MIN), result(1)
    fish, other = (msg.Fish(FishId(number), ROOT, 1, 0.0) for number in (1, 2))
    code, spark = msg.Code(b"d", bytes(BULK_BYTES_MIN)), msg.Schedule(FishId(1), ())
    assert _place([], fish) is None
    assert _place([large, small, fish, other], fish) == 2
    assert _place([large, small], fish) is None  # it is still to be sent
    assert _place([small, fish], fish) == 0
    assert _place([large, other, fish], fish) == 0
    assert _place([large], fish) is None
    assert _place([large, small], small) == 0
    assert _place([large, code, spark], spark) == 0
    assert _place([large, small, spark], spark) == 2


def test_event_that_was_lost_is_found(run: Path) -> None:
    trace = Trace.of(run, 2)
    del trace.records[trace.find(lambda record: isinstance(record.event, ev.SchedulerUp))]
    trace.write()
    assert fault_of(run).startswith("node 2 ")


@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda draws: (), "nothing was drawn"), (lambda draws: (99, *draws[1:]), "it was 99"), ((0,), "1 times more")],
)
def test_changed_draw_is_found(run: Path, change: object, told: str) -> None:
    trace = Trace.of(run, 2)
    number = trace.find(lambda record: record.draws)
    old = trace.records[number]
    draws = change(old.draws) if callable(change) else (*old.draws, 0)
    trace.records[number] = replace(old, draws=draws)
    trace.write()
    assert told in fault_of(run)


def test_time_that_runs_backwards_is_found(run: Path) -> None:
    trace = Trace.of(run, 2)
    trace.records[9] = replace(trace.records[9], now_s=trace.records[8].now_s - 1)
    trace.write()
    assert "event 10, " in fault_of(run)


def test_message_that_nobody_sent_is_found(run: Path) -> None:
    trace = Trace.of(run, 2)
    number = max(
        number
        for number, record in enumerate(trace.records)
        if any(isinstance(effect, fx.Send) and effect.to == 0 for effect in record.effects or ())
    )
    del trace.records[number:]
    trace.write()
    fault = fault_of(run)
    assert fault.startswith("node 0 ")
    assert fault.endswith(f"node 2 (host 2, process 1) has not sent it; its trace ends after {number} events")


def test_core_that_raised_in_the_run_is_told(run: Path) -> None:
    trace = Trace.of(run, 2)
    trace.records[9:] = [replace(trace.records[9], effects=None)]
    trace.write()
    assert fault_of(run).endswith("the core raised an error in the run, and does not now")


# ---- bugs are found ----------------------------------------------------------------------------------------------


def test_core_that_forgets_an_ack_does_not_conform(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Intake.on_schedule

    def wrong(core: Intake, victim: NodeId, fish: object, sparks: Sequence[Spark], blame: object) -> list[fx.Effect]:
        right(core, victim, fish, sparks, blame)  # type: ignore[arg-type]
        return []

    monkeypatch.setattr(Intake, "on_schedule", wrong)
    assert "effect 1 was Send(to=0, message=Ack(" in fault_of(run)


def test_core_that_dies_of_an_event_does_not_conform(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Supervisor, "on_ack")
    assert "the core raises AttributeError: " in fault_of(run)


def test_bug_that_is_in_the_run_too_is_found_by_the_invariants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(supervisor: Supervisor, spark: Spark, thief: NodeId) -> None:
        """The record does not learn that its task is on its way."""

    monkeypatch.setattr(Supervisor, "authorise", blind)
    record(tmp_path)
    assert "invariant 1: " in fault_of(tmp_path)


# ---- what is missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [0, 1, 2])
def test_missing_trace_is_told_and_the_others_are_compared_all_the_same(run: Path, node: int) -> None:
    Trace.of(run, node).path.unlink()
    verdict = replay(str(run))
    assert verdict.fault is None
    assert not verdict.conforming
    first, second = verdict.sentences()
    assert first == f"the trace of node {node} is missing"
    assert second.endswith("conforms, but the invariants were not checked")


def test_fault_beside_a_missing_trace_is_told_too(run: Path) -> None:
    Trace.of(run, 1).path.unlink()
    trace = Trace.of(run, 2)
    number = trace.find(lambda record: record.effects)
    trace.records[number] = replace(trace.records[number], effects=())
    trace.write()
    assert "it had 0 effects" in fault_of(run)


@pytest.mark.parametrize("recorded", [True, False])
def test_newcomer_that_was_killed_before_its_welcome_is_missed_only_if_it_left_no_file(
    tmp_path: Path, recorded: bool
) -> None:
    header = Header(b"run", True, "host", 1, 0.0, 0.0, CoreConfig())
    root = Recorder(str(tmp_path), header, pytest.fail)
    core = Node.root(header.config, root.watch(lambda n: 0))
    root.handle(core, ev.Arrived(1, "host", 1, ("host", 1), 2), 0.0)
    root.close()
    if recorded:
        Recorder(str(tmp_path), replace(header, root=False, pid=2), pytest.fail).close()
    verdict = replay(str(tmp_path))
    assert list(verdict.missing) == ([] if recorded else [1])


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the traces in .*/nowhere: No such file or directory"):
        replay(str(tmp_path / "nowhere"))
    (tmp_path / "node-host-1-1.trace").write_bytes(b"")
    with pytest.raises(UsageError, match=r"^there is no trace in "):
        replay(str(tmp_path))


def test_traces_of_two_runs_are_refused(run: Path) -> None:
    trace = Trace.of(run, 2)
    trace.header = replace(trace.header, run=b"another")
    trace.write()
    with pytest.raises(UsageError, match=r"holds the traces of several runs$"):
        replay(str(run))


def test_two_traces_of_one_node_are_refused(run: Path) -> None:
    shutil.copy(Trace.of(run, 2).path, run / "copy.trace")
    with pytest.raises(UsageError, match=r"holds two traces of node 2 \(host 2, process 1\)$"):
        replay(str(run))


def test_damaged_trace_is_refused(run: Path) -> None:
    path = Trace.of(run, 2).path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ProtocolError, match=r"node-host 2-1-1\.trace is damaged at byte \d+"):
        replay(str(run))
