"""Run cells in a real kernel, as a front end does."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from jupyter_client.manager import KernelManager

ANSI = re.compile(r"\x1b\[[0-9;]*m")

LONGEST_SECONDS = 60


@dataclass
class Outcome:
    """What a front end got for one cell.

    `outputs` are pairs of a kind (stdout, stderr, result, display or error) and the text, in the order in which a
    notebook shows them; streams are joined as a notebook joins them. `next_input` is what the kernel asks a front end
    to put into the next cell.
    """

    status: str = ""
    ename: str = ""
    evalue: str = ""
    execution_count: int | None = None
    outputs: list[tuple[str, str]] = field(default_factory=list)
    html: list[str] = field(default_factory=list)
    next_input: str | None = None

    @property
    def kinds(self):
        """The kinds of the outputs, in their order."""
        return [kind for kind, _ in self.outputs]

    def text(self, kind):
        """Return the text of all outputs of one kind."""
        return "".join(text for output, text in self.outputs if output == kind)

    def add(self, message):
        """Take in one message of the kernel."""
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            self._add_text(content["name"], content["text"])
        elif kind in {"execute_result", "display_data"}:
            name = "result" if kind == "execute_result" else "display"
            self.outputs.append((name, content["data"].get("text/plain", "")))
            self.html += [content["data"]["text/html"]] if "text/html" in content["data"] else []
        elif kind == "error":
            self.outputs.append(("error", ANSI.sub("", "\n".join(content["traceback"]))))

    def _add_text(self, name, text):
        if self.outputs and self.outputs[-1][0] == name:
            text = self.outputs.pop()[1] + text
        self.outputs.append((name, ANSI.sub("", text)))


class Kernel:
    """A running kernel of this environment's Python."""

    def __init__(self, manager, client):
        self.manager = manager
        self.client = client

    def run(self, code, interrupt_at=None, **options):
        """Run a cell and return its outcome; interrupt it as soon as it prints `interrupt_at`."""
        outcome = Outcome()
        sent = self.client.execute(code, allow_stdin=False, stop_on_error=False, **options)
        end = time.monotonic() + LONGEST_SECONDS
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.0, end - time.monotonic()))
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            outcome.add(message)
            if interrupt_at is not None and interrupt_at in outcome.text("stdout"):
                interrupt_at = None
                self.manager.interrupt_kernel()
        reply = self.client.get_shell_msg(timeout=LONGEST_SECONDS)
        while reply["parent_header"].get("msg_id") != sent:
            reply = self.client.get_shell_msg(timeout=LONGEST_SECONDS)
        outcome.status = reply["content"]["status"]
        outcome.ename = reply["content"].get("ename", "")
        outcome.evalue = reply["content"].get("evalue", "")
        outcome.execution_count = reply["content"].get("execution_count")
        for payload in reply["content"].get("payload", []):
            outcome.next_input = payload.get("text") if payload["source"] == "set_next_input" else outcome.next_input
        return outcome


@contextmanager
def running_kernel(folder):
    """Run a kernel whose settings and history live in `folder`."""
    manager = KernelManager()
    # No kernel that is installed elsewhere on this machine: the one of this environment.
    manager.kernel_spec_manager.kernel_dirs = []
    manager.start_kernel(extra_arguments=["--HistoryManager.enabled=False", f"--ipython-dir={folder}"])
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=LONGEST_SECONDS)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def is_quiet(text):
    """Tell whether a report has nothing to say."""
    return re.fullmatch(r"torchcheck: nothing wrong[^\n]*", text) is not None
