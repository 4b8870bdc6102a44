"""Make the README's pictures: run cells in a real kernel, and photograph the last one with its report.

Writes `report.webp` and `gpumem.webp`, and both in dark, beside this file. Needs the extra `dev` and a Chromium.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from playwright.sync_api import Browser

HERE: Final = Path(__file__).parent

PREPARATION: Final = """\
%load_ext torchmagic
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
digits, labels = torch.randint(0, 256, (64, 784), dtype=torch.uint8), torch.randint(0, 10, (64,))
model = nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""

CELL: Final = """\
%%torchcheck
total = 0
for step in range(100):
    loss = cross_entropy(model(digits / 255), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss

weights = torch.ones(10, dtype=torch.float64)
weights.float()

ink = digits / 255
entropy = -(ink * ink.log()).mean()
"""

TRAINING: Final = """\
%load_ext torchmagic
import torch
from torch import nn

torch.manual_seed(0)
images, labels = torch.rand(5000, 784), torch.randint(0, 10, (5000,))
model = nn.Sequential(nn.Linear(784, 2000), nn.ReLU(), nn.Linear(2000, 2000), nn.ReLU(), nn.Linear(2000, 10))
optimizer = torch.optim.Adam(model.parameters())
losses = []
for batch, target in zip(images.split(500), labels.split(500)):
    loss = nn.functional.cross_entropy(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
validation = [model(batch) for batch in images.split(500)]
"""

SHOWN: Final = "model(images).softmax(1)"

MEMORY: Final = "%gpumem"

PICTURES: Final = {"report": (PREPARATION, CELL), "gpumem": (TRAINING, SHOWN, MEMORY)}
"""By the name of the file: the cells, of which the last is photographed."""

# A notebook shows the folds closed; a picture cannot be clicked.
OPEN_FIRST: Final = (
    "() => document.querySelectorAll('.torchmagic li details').forEach((fold, n) => (fold.open = n === 0))"
)

ARGUMENTS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server"),
    # Equal letters are then equal pixels, which makes the file smaller.
    *("--disable-lcd-text", "--disable-font-subpixel-positioning", "--font-render-hinting=none"),
)


def main() -> None:
    """Write the pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, cells in PICTURES.items():
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
            place = {"metadata": {"path": str(HERE.parent)}}
            NotebookClient(notebook, kernel_name="python3", resources=place).execute()
            del notebook.cells[:-1]
            for theme, suffix in (("light", ""), ("dark", "-dark")):
                photograph(browser, notebook, theme, HERE / f"{name}{suffix}.webp")
        browser.close()


def photograph(browser: Browser, notebook: NotebookNode, theme: str, path: Path) -> None:
    """Write a picture of a notebook's cells, in JupyterLab's light or dark colours, at twice the usual sharpness."""
    html, _ = HTMLExporter(template_name="lab", theme=theme).from_notebook_node(notebook)
    page = browser.new_page(viewport={"width": 860, "height": 1600})
    # The template would load its formulas' fonts from the network.
    page.route("**/*", lambda route: route.abort())
    page.set_content(html, wait_until="domcontentloaded")
    page.evaluate(OPEN_FIRST)
    # `screenshot` offers PNG alone, which takes twice as many bytes for a page of text.
    devtools = page.context.new_cdp_session(page)
    clip = {**page.locator(".jp-Cell").bounding_box(), "scale": 2}
    picture = devtools.send("Page.captureScreenshot", {"format": "webp", "quality": 80, "clip": clip})
    path.write_bytes(base64.b64decode(picture["data"]))
    page.close()
    print(f"{os.path.relpath(path)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
