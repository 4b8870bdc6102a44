"""A real JupyterLab, and a real Chromium that looks at it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab import Lab
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
"""Nothing that the browser would like to fetch by itself can be reached, and it need not try."""

QUIET_SETTINGS = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Return the folder that keeps the screenshots, for people to look at."""
    folder = Path(__file__).parents[2] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "these tests need chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start a JupyterLab that knows nothing of the person who runs the tests."""
    with served(tmp_path_factory.mktemp("lab"), "jupyterlab", "--LabApp.extension_manager=readonly") as (root, token):
        address, folder = root
        yield Lab(f"{address}/lab/tree/{{name}}?reset&token={token}", folder)


@pytest.fixture(scope="session")
def notebook_7(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start a Notebook 7, which shows one notebook a page."""
    with served(tmp_path_factory.mktemp("notebook_7"), "notebook") as (root, token):
        address, folder = root
        yield Lab(f"{address}/notebooks/{{name}}?token={token}", folder)


@contextmanager
def served(home: Path, application: str, *options: str) -> Iterator[tuple[tuple[str, Path], str]]:
    """Run a server with folders of its own; return its address, the folder that it serves, and its token."""
    notebooks, settings = home / "notebooks", home / "settings"
    notebooks.mkdir()
    quiet = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text(json.dumps(QUIET_SETTINGS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex()
    environment = os.environ | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    command = [
        *(sys.executable, "-m", application, "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"),
        *(f"--ServerApp.root_dir={notebooks}", *options),
    ]
    log = home / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        wait_for_server(server, f"http://127.0.0.1:{port}/api/status?token={token}", log)
        yield (f"http://127.0.0.1:{port}", notebooks), token
    finally:
        server.terminate()
        server.wait(timeout=20)


def wait_for_server(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Return when the server answers; fail with its log when it ends or stays silent."""
    for _ in range(300):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(log.read_text())
