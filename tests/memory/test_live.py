"""`%gpumem --live`: a panel that refreshes while a cell is busy, at most one, and what it leaves behind."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import pytest

from torchmagic.holdings import DeviceMemory, Memory
from torchmagic.measuring.bar import with_parts
from torchmagic.panel.history import History
from torchmagic.render.memory_live import curve_html, curve_text, last_look, live_html, live_text

WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass
class Seen:
    """What a front end got while one cell ran."""

    values: list[str] = field(default_factory=list)
    closed: int = 0
    shown: list[dict] = field(default_factory=list)
    updated: list[dict] = field(default_factory=list)
    printed: str = ""


@pytest.fixture
def watch(kernel):
    """Return a function that runs a cell in a front end where a person sits, and one that waits."""

    def take(seen, message):
        kind, content = message["msg_type"], message["content"]
        if kind in ("comm_open", "comm_msg") and "value" in content["data"].get("state", {}):
            seen.values.append(content["data"]["state"]["value"])
        elif kind == "comm_close":
            seen.closed += 1
        elif kind == "display_data":
            seen.shown.append(content["data"])
        elif kind == "update_display_data":
            seen.updated.append(content["data"])
        elif kind == "stream":
            seen.printed += content["text"]

    def run(code, *, after=0.0):
        """Run the cell; go on listening for some seconds after its end."""
        seen = Seen()
        sent = kernel.client.execute(code, allow_stdin=True, stop_on_error=False)
        idle, end = False, time.monotonic() + 60
        while not idle or time.monotonic() < end:
            try:
                message = kernel.client.get_iopub_msg(timeout=0.1)
            except Exception:
                continue
            take(seen, message)
            status = message["content"].get("execution_state")
            if not idle and status == "idle" and message["parent_header"].get("msg_id") == sent:
                idle, end = True, time.monotonic() + after
        while kernel.client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != sent:
            pass
        return seen

    yield run
    run("%gpumem stop")


BUSY = """\
import time, torch
kept = []
for step in range(20):
    kept.append(torch.ones(1_000_000))
    time.sleep(0.05)
del kept"""


def test_it_is_refreshed_while_a_cell_is_busy(watch):
    """The widget's messages come between the cell's start and its end, each with other numbers."""
    begun = watch("%gpumem --live 0.1")
    busy = watch(BUSY)

    assert begun.shown[0][WIDGET]["model_id"]
    assert begun.shown[0]["text/plain"].startswith("gpumem: cpu ")
    assert len(busy.values) >= 5
    process = {re.search(r"this process</td><td[^>]*>([^<]+)<", value)[1] for value in busy.values}
    assert len(process) >= 5
    assert busy.printed == ""


def test_after_a_cell_it_knows_the_names(watch):
    """They are looked up when the variables are still."""
    watch("%gpumem --live 60")
    seen = watch("import torch\nfeatures = torch.zeros(2_000_000)", after=0.2)

    assert "<code" in seen.values[-1]
    assert re.search(r">features</code></td><td[^>]*>8.0 MB<", seen.values[-1])


def test_when_it_ends_it_becomes_a_text_and_a_page(watch):
    """Which need no widget; the widget is closed, and nothing is refreshed any more."""
    watch("%gpumem --live 0.1")
    watch("import time; time.sleep(0.3)")
    ended = watch("%gpumem stop")
    after = watch("import time; time.sleep(0.3)")

    assert set(ended.updated[0]) == {"text/plain", "text/html"}
    assert "<svg" in ended.updated[0]["text/html"]
    assert re.search(r"[▁▂▃▄▅▆▇█]{2,}  [\d.]+ [kMG]B now, between ", ended.updated[0]["text/plain"])
    assert ended.closed >= 1
    assert after.values == []
    assert watch("%gpumem stop").printed == "gpumem: no panel is shown\n"


def test_there_is_at_most_one(watch):
    """The second one ends the first, and stands where it was asked for."""
    watch("%gpumem --live 0.1")
    second = watch("%gpumem --live 0.1")
    threads = watch("import threading\nprint(sum(t.name == 'torchmagic-panel' for t in threading.enumerate()))")

    assert (len(second.updated), len(second.shown)) == (1, 1)
    assert threads.printed == "1\n"


def test_it_ends_by_itself(watch):
    """After an hour; here it is made a moment, and the thread itself leaves the page behind."""
    watch("import torchmagic.panel.live as live\nlimit, live.LIMIT_SECONDS = live.LIMIT_SECONDS, 0.4")
    begun = watch("%gpumem --live 0.1", after=1.5)
    watch("live.LIMIT_SECONDS = limit")
    threads = watch("import threading\nprint(sum(t.name == 'torchmagic-panel' for t in threading.enumerate()))")

    assert len(begun.updated) == 1
    assert begun.closed >= 1
    assert threads.printed == "0\n"


def test_unloading_ends_it(watch):
    """And loading again starts none."""
    watch("%gpumem --live 0.1")
    ended = watch("%unload_ext torchmagic")
    watch("%load_ext torchmagic")

    assert len(ended.updated) == 1


def test_where_nobody_sits_it_is_shown_once(kernel):
    """Under nbclient, which drops what a thread sends."""
    outcome = kernel.run("%gpumem --live")

    assert outcome.kinds == ["display"]
    assert "Nothing here can refresh a panel, so this is how it is now." in outcome.text("display")


def test_in_a_terminal_it_is_shown_once(run):
    """A terminal would show the name of the widget's class."""
    out = run("%gpumem --live").out

    assert out.startswith("gpumem: cpu ")
    assert "Nothing here can refresh a panel, so this is how it is now." in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--live 0", "--live wants 0.1 to 60 seconds, not 0"),
        ("--live x", "argument --live: invalid float value: 'x'"),
        ("--live 1 model", "--live has a line of its own: %gpumem --live [SECONDS]"),
        ("--live --free", "--live has a line of its own: %gpumem --live [SECONDS]"),
    ],
)
def test_a_wrong_option_is_one_line(run, line, message):
    """It says what is wrong."""
    assert run(f"%gpumem {line}").err == f"UsageError: {message}\n"


def test_a_reading_that_fails_is_told_in_the_panel():
    """And not in the cell that runs; the next one that works takes its place."""
    from torchmagic.panel.live import LivePanel

    answers = [RuntimeError("driver gone\nfor good"), (DeviceMemory("cuda:0", allocated_bytes=7),)]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    panel = LivePanel(read, 60.0, lambda: None)
    panel.refresh()
    failed = panel.widget.value
    panel.refresh()
    panel.end()
    panel.close()

    assert "the devices could not be read: RuntimeError: driver gone" in failed
    assert "could not be read" not in panel.widget.value


def test_the_history_is_bounded():
    """A panel of an hour holds a few minutes; a device that does not tell has no curve."""
    history = History(most_points=3)
    for number in range(5):
        history.add([DeviceMemory("cuda:0", allocated_bytes=number), DeviceMemory("npu:0"), DeviceMemory("cpu")])

    assert history.curves() == {"cuda:0": (2, 3, 4)}


def test_curves():
    """From zero to the most; one point is no curve."""
    assert curve_text([0, 5, 10]) == "▁▄█"
    assert curve_text([0, 0]) == "▁▁"
    assert len(curve_text(range(1000))) == 60
    assert curve_html([5]) == ""
    assert 'points="0.0,39.0 120.0,20.0 240.0,1.0"' in curve_html([0, 5, 10])
    assert 'points="0.0,39.0 240.0,39.0"' in curve_html([0, 0])


def test_a_panel_is_cheap_to_draw():
    """Two devices with full curves, well under a refresh of three milliseconds."""
    devices = [
        with_parts(DeviceMemory(f"cuda:{n}", total_bytes=9, allocated_bytes=5, reserved_bytes=6)) for n in (0, 1)
    ]
    curves = {device.device: tuple(range(240)) for device in devices}
    last = last_look(Memory(devices=tuple(devices)))
    taken = []
    for _ in range(20):
        start = time.process_time()
        live_html(last, devices, curves)
        taken.append(time.process_time() - start)

    assert min(taken) < 0.003
    assert live_text(last, devices, curves).count("now, between") == 2
