"""Recording: before anything is done, whatever the core or the disk does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hdphrs import __version__
from hdphrs.config import CoreConfig
from hdphrs.errors import StartError
from hdphrs.explore.work import task
from hdphrs.node import recorder as recording
from hdphrs.node.recorder import Recorder
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Term, TermAck, Welcome
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin
from hdphrs.wire.trace import Header, Record, TraceFile

HEADER = Header(b"run", True, "host", 4711, 0.0, 0.0, CoreConfig())
SPAWN = ev.Exported(PROGRAM, ((0, task()),))


def start(folder: Path, said: list[str]) -> Recorder:
    """A recorder of one life."""
    return Recorder(str(folder), HEADER, said.append)


def records_in(path: str) -> list[Record]:
    """What has been recorded by now."""
    return list(TraceFile(path, Path(path).read_bytes(), __version__).records())


def test_record_is_in_the_file_before_the_effects_are_returned(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = start(tmp_path, said)
    core = Node.root(CoreConfig(), recorder.watch(lambda n: n - 1))
    effects = recorder.handle(core, SPAWN, 1.5)
    assert records_in(recorder.path) == [Record(1.5, SPAWN, (), (), tuple(effects))]
    recorder.close()
    recorder.close()
    assert not said


def test_draws_belong_to_the_event_in_which_they_were_drawn(tmp_path: Path) -> None:
    recorder = start(tmp_path, [])
    core = Node.root(CoreConfig(), recorder.watch(lambda n: n - 1))
    for number in range(2):
        recorder.handle(core, ev.Arrived(number, "host", 1, ("host", 1), number), 0.0)
    recorder.handle(core, ev.SchedulerUp(Origin(1)), 0.0)
    recorder.handle(core, ev.Hungry(Origin(1), 1), 0.0)
    assert [record.draws for record in records_in(recorder.path)] == [(), (), (), (1, 0)]
    recorder.close()


def test_event_of_which_the_core_dies_is_recorded(tmp_path: Path) -> None:
    recorder = start(tmp_path, [])
    core = Node.root(CoreConfig(), recorder.watch(lambda n: 0))
    event = ev.Hungry(Origin(1), 1)  # of a scheduler that never came up
    with pytest.raises(KeyError):
        recorder.handle(core, event, 0.0)
    assert records_in(recorder.path) == [Record(0.0, event, (), (), None)]
    recorder.close()


def test_counters_of_the_schedulers_are_recorded_when_the_core_reports_them(tmp_path: Path) -> None:
    recorder = start(tmp_path, [])
    core = Node.newcomer(CoreConfig(), recorder.watch(lambda n: 0))
    recorder.handle(core, ev.Received(ROOT, Welcome(NodeId(1), 1, (), ())), 0.0)
    core.counters["tasks_run"] = 3
    _, send, _ = recorder.handle(core, ev.Received(ROOT, Term()), 0.0)
    welcome, term = records_in(recorder.path)
    assert welcome.counted == ()
    assert term.counted == (("tasks_run", 3),)
    assert isinstance(getattr(send, "message", None), TermAck)
    recorder.close()


def test_lives_of_one_process_have_a_file_each(tmp_path: Path) -> None:
    lives = [start(tmp_path / "new" / "folder", []) for _ in range(2)]
    assert [os.path.basename(life.path) for life in lives] == ["node-host-4711-1.trace", "node-host-4711-2.trace"]
    assert all(os.stat(life.path).st_mode & 0o077 == 0 for life in lives)
    for life in lives:
        life.close()


def test_folder_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=r"^host: cannot record the protocol in .*/file: File exists$"):
        start(tmp_path / "file", [])


def test_full_disk_ends_the_recording_after_a_whole_record_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    recorder = start(tmp_path, said)
    core = Node.root(CoreConfig(), recorder.watch(lambda n: 0))
    recorder.handle(core, SPAWN, 0.0)

    def write_half(fd: int, data: bytes) -> None:
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording, "_write", write_half)
    for _ in range(2):
        assert recorder.handle(core, ev.Tick(), 0.0) == []
    assert said == [f"the recording {recorder.path} ends here, the run goes on: No space left on device"]
    assert [record.event for record in records_in(recorder.path)] == [SPAWN]
