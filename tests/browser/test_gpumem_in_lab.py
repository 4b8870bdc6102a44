"""Memory as a person sees it: the panel during a training cell, the report, and what they leave on a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_report_in_lab import contrast

if TYPE_CHECKING:
    from lab import Lab, Notebook
    from playwright.sync_api import Browser

PREPARATION = (
    "%load_ext torchmagic\nimport time, torch\nfrom torch import nn\nfrom torch.nn.functional import cross_entropy"
)

MODEL = """\
torch.manual_seed(0)
digits, labels = torch.rand(4000, 784), torch.randint(0, 10, (4000,))
model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10))
optimizer = torch.optim.Adam(model.parameters())"""

PANEL = "%gpumem --live 0.2"

TRAINING = """\
%%gpumem
losses = []
for batch, target in zip(digits.split(200), labels.split(200)):
    loss = cross_entropy(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    history = torch.ones(len(losses), 1_000_000)
    time.sleep(0.1)"""

REPORT = "outputs = [model(digits[:2000])]\noutputs[0].mean()"

TERMINAL_TEXT = """() => {
  const lines = window.jupyterapp.shell.currentWidget.content._term.buffer.active;
  return Array.from({ length: lines.length }, (_, row) => lines.getLine(row).translateToString(true)).join('\\n');
}"""

CELLS = [PREPARATION, MODEL, PANEL, TRAINING, REPORT, "%gpumem", "%gpumem model"]


@pytest.fixture(scope="module")
def notebook(lab: Lab, browser: Browser) -> Notebook:
    """Return an open notebook with a panel, a training cell, and two reports."""
    lab.write("memory.ipynb", CELLS)
    opened = lab.open(browser, "memory.ipynb")
    opened.run_all()
    return opened


def curves_while_training(notebook: Notebook, picture: Path) -> set[str]:
    """Run the training cell again, and return the curves that the panel showed meanwhile; keep a picture of one."""
    panel = notebook.page.locator(".widget-html .torchmagic")
    notebook.run_cell(3)
    seen: set[str] = set()
    while notebook.is_busy():
        seen.add(panel.locator("polyline").get_attribute("points") or "")
        if len(seen) == 3:
            notebook.picture(picture)
        notebook.page.wait_for_timeout(50)
    return seen


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_panel_moves_while_the_cell_trains(notebook: Notebook, pictures: Path, theme: str) -> None:
    """Its numbers change while the kernel is busy, and its curve grows."""
    notebook.set_theme(theme)

    assert len(curves_while_training(notebook, pictures / f"gpumem-{theme.lower()}.png")) >= 3


def test_the_reports_stand_below_their_cells(notebook: Notebook) -> None:
    """What the training cell did, the whole, and the opened model."""
    cell, whole, opened = notebook.reports().filter(has_not=notebook.page.locator("svg")).all()

    assert cell.inner_text().startswith("gpumem: the cell ran ")
    assert whole.inner_text().startswith("gpumem: cpu ")
    assert re.findall(r"^model\S*", opened.inner_text(), re.MULTILINE) == ["model", "model[2]", "model[0]", "model[4]"]


def test_the_bar_is_as_wide_as_its_parts(notebook: Notebook) -> None:
    """The blocks of the bar fill it, since the parts add up to the total."""
    bar = notebook.reports().last.locator("[role=img]").first
    blocks = bar.locator("span").all()
    widths = [block.bounding_box()["width"] for block in blocks]

    assert len(blocks) >= 4
    assert sum(widths) == pytest.approx(bar.bounding_box()["width"], abs=2)


def test_the_panel_that_ends_leaves_a_page(
    notebook: Notebook, browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    """Without a widget, in JupyterLab and on the page that nbconvert makes."""
    notebook.run_code("%gpumem stop")
    notebook.page.locator(".widget-html").wait_for(state="detached")
    notebook.reports().filter(has=notebook.page.locator("svg")).first.wait_for()
    notebook.save()
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(notebook.path)]
    subprocess.run(command, check=True, capture_output=True)
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    page.goto((tmp_path / "memory.html").as_uri(), wait_until="domcontentloaded")
    report = page.locator(".torchmagic").first
    report.wait_for()
    page.screenshot(path=pictures / "gpumem-nbconvert.png", full_page=True)

    assert report.locator("polyline").count() == 1
    assert page.get_by_text("model not found").count() == 0
    page.close()


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_it_can_be_read_in_both_themes(notebook: Notebook, theme: str) -> None:
    """Every piece of text stands out from the page behind it by 4.5 to 1."""
    notebook.set_theme(theme)
    faint = {
        node.inner_text(): round(ratio, 1)
        for report in notebook.reports().all()
        for node in report.locator("xpath=descendant-or-self::*[text()]").all()
        if node.is_visible() and (ratio := contrast(node)) < 4.5
    }

    assert faint == {}


def test_a_notebook_from_elsewhere_shows_its_bars(
    notebook: Notebook, lab: Lab, browser: Browser, pictures: Path
) -> None:
    """JupyterLab cleans the outputs of a notebook that it does not trust; bars and tables survive."""
    notebook.save()
    text = notebook.path.read_text().replace("manual_seed(0)", "manual_seed(1)")
    (lab.folder / "memory_from_elsewhere.ipynb").write_text(text)
    other = lab.open(browser, "memory_from_elsewhere.ipynb")
    report = other.reports().last
    widths = [block.bounding_box()["width"] for block in report.locator("div > span[title]").all()]

    assert report.get_by_text("tensors and arrays by name").first.is_visible()
    assert len(widths) >= 4
    assert sum(widths) > 500
    other.picture(pictures / "gpumem-untrusted.png")
    other.page.close()


def test_notebook_7_shows_the_panel_too(notebook_7: Lab, browser: Browser, pictures: Path) -> None:
    """It moves there as well."""
    notebook_7.write("memory.ipynb", CELLS)
    opened = notebook_7.open(browser, "memory.ipynb")
    opened.run_all()

    assert len(curves_while_training(opened, pictures / "gpumem-notebook-7.png")) >= 3
    opened.page.close()


def test_a_terminal_shows_the_text(notebook: Notebook, pictures: Path) -> None:
    """IPython in JupyterLab's terminal: the bar and the names in columns."""
    page = notebook.page
    page.evaluate("() => { window.jupyterapp.commands.execute('terminal:create-new'); }")
    terminal = page.locator(".jp-Terminal .xterm")
    terminal.wait_for()
    terminal.click()
    ipython = f"{sys.executable} -m IPython --no-banner --no-confirm-exit --HistoryManager.enabled=False"
    for line in ("clear", ipython, "%load_ext torchmagic", "import torch; x = torch.ones(10_000_000)", "%gpumem"):
        page.keyboard.type(line + "\n")
        page.wait_for_timeout(6000 if line == ipython else 3000)
    box = page.locator(".jp-Terminal").last.bounding_box()
    page.screenshot(path=pictures / "gpumem-terminal.png", clip=box | {"height": min(box["height"], 360)})
    shown = page.evaluate(TERMINAL_TEXT)
    page.keyboard.type("exit\n")
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.close(); }")

    assert "`x`" in shown
    assert re.search(r"█ tensors and arrays by name +40 MB", shown)


def test_the_browser_has_nothing_to_complain_about(notebook: Notebook) -> None:
    """The console holds no error."""
    assert notebook.complaints == []
