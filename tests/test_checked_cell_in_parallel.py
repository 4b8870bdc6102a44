"""Processes, threads and tasks of a checked cell, in a real kernel, leave the report to the cell."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.kernels import is_quiet


def test_worker_processes_do_not_report(kernel):
    """A forked child leaves the cell to its parent."""
    outcome = kernel.run(
        "%%torchcheck\nimport os\n"
        "from torch.utils.data import DataLoader\n"
        "total = sum(int(batch.sum()) for batch in DataLoader(torch.arange(8), batch_size=2, num_workers=2))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ip = get_ipython()\n"
        "    left = ip.magics_manager.registry['TorchcheckMagics'].lifecycle.current()\n"
        "    os._exit(0 if left is None else 1)\n"
        "print(total, os.waitpid(child, 0)[1])"
    )

    assert outcome.text("stdout") == "28 0\n"
    assert outcome.kinds.count("display") == 1


def test_workers_that_outlive_the_cell_do_not_report(kernel):
    """They go on into the next cells."""
    outcome = kernel.run(
        "%%torchcheck\nfrom torch.utils.data import DataLoader\n"
        "loader = DataLoader(torch.arange(8), batch_size=2, num_workers=1, persistent_workers=True)\n"
        "print(sum(int(batch.sum()) for batch in loader))"
    )
    again = kernel.run("print(sum(int(batch.sum()) for batch in loader))\ndel loader\nimport gc; gc.collect();")

    assert outcome.text("stdout") == "28\n"
    assert outcome.kinds.count("display") == 1
    assert again.text("stdout") == "28\n"
    assert "display" not in again.kinds


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_does_not_report(kernel, method):
    """However its processes are started."""
    outcome = kernel.run(
        f"%%torchcheck\nimport multiprocessing\nwith multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        "    print(pool.map(abs, [-1, -2]))"
    )

    assert outcome.text("stdout") == "[1, 2]\n"
    assert outcome.kinds.count("display") == 1


def test_threads_of_the_cell_do_not_report(kernel):
    """A pool that ends with the cell and a thread that does not."""
    outcome = kernel.run(
        "%%torchcheck\nimport threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    total = sum(pool.map(lambda n: int(torch.ones(n).sum()), range(4)))\n"
        "end = threading.Event()\n"
        "thread = threading.Thread(target=end.wait, args=(30,))\nthread.start()\n"
        "print(total)"
    )

    assert outcome.kinds == ["stdout", "display"]
    assert outcome.text("stdout") == "6\n"
    assert is_quiet(outcome.text("display"))
    assert kernel.run("end.set(); thread.join()").outputs == []


def test_a_task_that_outlives_the_cell_does_not_report(kernel):
    """It ends while the next cell waits for it."""
    outcome = kernel.run(
        "%%torchcheck\nimport asyncio\n"
        "async def later(value):\n    await asyncio.sleep(0.2)\n    return value\n"
        "task = asyncio.create_task(later('late'))\nawait asyncio.sleep(0)\ntask.done()"
    )

    assert outcome.kinds == ["result", "display"]
    assert outcome.text("result") == "False"
    assert kernel.run("await task").outputs == [("result", "'late'")]


@pytest.mark.skipif(int(version("ipykernel").split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_a_cell_of_a_subshell_is_another_story(kernel):
    """A cell that runs beside a checked one does not end it."""
    sent = kernel.client.session.send(kernel.client.control_channel.socket, "create_subshell_request", {})
    reply = kernel.client.get_control_msg(timeout=20)
    assert reply["parent_header"]["msg_id"] == sent["header"]["msg_id"]
    subshell = reply["content"]["subshell_id"]
    kernel.run("import threading, time\nbegun, done = threading.Event(), threading.Event()")
    code = "begun.wait(20)\nprint('beside')\ndone.set()"
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    message = kernel.client.session.msg("execute_request", content)
    message["header"]["subshell_id"] = subshell
    kernel.client.shell_channel.send(message)
    outcome = kernel.run("%%torchcheck\nbegun.set()\nprint(done.wait(20))\ntime.sleep(0.3)\nprint('last')")

    assert outcome.outputs[0] == ("stdout", "True\nlast\n")
    assert outcome.kinds == ["stdout", "display"]
