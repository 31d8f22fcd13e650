"""The notebook is run by a real kernel, and comes to what stands in it."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient

from tests.docs.pages import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
STOP = "press the stop button"
UNDER_PYTEST = "PYTEST_CURRENT_TEST"
"""A kernel that finds this variable does not show what other processes print."""

pytestmark = pytest.mark.slow


class Reader(NotebookClient):
    """Runs all cells, presses the stop button when a cell asks for it, and hears what comes after a cell's end too."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.printed = ""
        self.stopping: asyncio.Task[None] | None = None

    async def async_start_new_kernel_client(self) -> Any:
        """With an ear at the channel on which the kernel tells what is printed."""
        client = await super().async_start_new_kernel_client()
        listen = client.iopub_channel.get_msg

        async def hear(*arguments: Any, **options: Any) -> dict[str, Any]:
            message: dict[str, Any] = await listen(*arguments, **options)
            if message["msg_type"] == "stream":
                self.printed += message["content"]["text"]
                if STOP in self.printed and self.stopping is None:
                    self.stopping = asyncio.create_task(self._stop())
            return message

        client.iopub_channel.get_msg = hear
        return client

    async def _stop(self) -> None:
        assert self.km is not None
        await ensure_async(self.km.interrupt_kernel())


def test_the_notebook_comes_to_what_stands_in_it(tmp_path: Path) -> None:
    shown = read_notebook()
    run = read_notebook()
    reader = Reader(run, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    environment = {name: value for name, value in os.environ.items() if name != UNDER_PYTEST}
    asyncio.run(reader.async_execute(env=environment))  # not by `execute`, which leaves a loop behind
    for before, after in zip(shown.cells, run.cells, strict=True):
        assert values(after) == values(before), before.source
    assert "hello from a task, Ada" in reader.printed
    tracebacks = [output["traceback"] for cell in run.cells for output in cell.get("outputs", ()) if "ename" in output]
    assert "in mean" in without_colours("\n".join(tracebacks[0]))


def read_notebook() -> Any:
    """The notebook, as it stands there."""
    notebook = nbformat.reads(NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def values(cell: Any) -> list[tuple[str, str]]:
    """What a cell comes to: its value or its exception.  What it prints may come a little later."""
    return [
        (output.get("ename", "value"), output.get("evalue") or output["data"]["text/plain"])
        if output["output_type"] == "execute_result"
        else (output["ename"], output["evalue"])
        for output in cell.get("outputs", ())
        if output["output_type"] != "stream"
    ]


def without_colours(text: str) -> str:
    """Text without the signs that colour it in a terminal."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)
