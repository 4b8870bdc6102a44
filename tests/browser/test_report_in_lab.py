"""A report as a person sees it: in JupyterLab, after saving, and on the page made from the saved notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lab import Lab, Notebook
    from playwright.sync_api import Browser, Locator

MISTAKE = """\
%%torchcheck
torch.manual_seed(0)
model = nn.Linear(4, 1)
total = 0
for _ in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    total += loss"""

FIXED = MISTAKE.replace("total += loss", "total += loss.item()")


@pytest.fixture(scope="module")
def notebook(lab: Lab, browser: Browser) -> Notebook:
    """Return an open notebook that ran a cell with a mistake and the fixed cell."""
    lab.write("training.ipynb", ["%load_ext torchmagic\nimport torch\nfrom torch import nn", MISTAKE, FIXED])
    opened = lab.open(browser, "training.ipynb")
    opened.run_all()
    return opened


def close_all(report: Locator) -> None:
    """Fold every finding, as they are when the report appears."""
    report.evaluate("(node) => node.querySelectorAll('details').forEach((fold) => { fold.open = false; })")


def contrast(node: Locator) -> float:
    """Return the contrast of an element's text to the page behind it, by https://www.w3.org/TR/WCAG21/#contrast-minimum.

    Transparent colours and opacity are laid over what is behind them, up to the first opaque background.
    """
    return node.evaluate("""(node) => {
      const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
      const over = (top, share, below) => below.map((part, i) => top[i] * share + part * (1 - share));
      const layers = [];
      let opacity = 1, base = [255, 255, 255];
      for (let at = node; at; at = at.parentElement) {
        const style = getComputedStyle(at), [r, g, b, a] = parse(style.backgroundColor);
        opacity *= Number(style.opacity);
        if (a === 1) { base = [r, g, b]; break; }
        layers.unshift([[r, g, b], a]);
      }
      const behind = layers.reduce((below, [colour, share]) => over(colour, share, below), base);
      const [r, g, b, a] = parse(getComputedStyle(node).color);
      const text = over([r, g, b], a * opacity, behind);
      const linear = (part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
      const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, k, i) => sum + k * linear(colour[i]), 0);
      const [high, low] = [light(text), light(behind)].sort((one, other) => other - one);
      return (high + 0.05) / (low + 0.05);
    }""")


@pytest.mark.parametrize(
    ("style", "ratio"),
    [
        ("color: #000", 21.0),
        ("color: #777", 4.48),
        ("color: #000; background: #fff; opacity: 0.5", 3.98),
        ("color: rgba(0, 0, 0, 0.5); background: rgba(0, 0, 0, 0.2)", 3.58),
    ],
)
def test_contrast_is_measured_as_published(browser: Browser, style: str, ratio: float) -> None:
    """The measure below gives the values of WCAG's own calculators, and sees what is faint."""
    page = browser.new_page()
    page.set_content(f'<body style="background: #fff"><p style="{style}">text</p>')

    assert round(contrast(page.locator("p")), 2) == ratio
    page.close()


def test_the_report_stands_below_the_cell(notebook: Notebook) -> None:
    """The cell with the mistake shows its finding with its line, the fixed cell one quiet line."""
    mistake, fixed = notebook.reports().all()

    assert mistake.inner_text().startswith("torchcheck: 1 finding · ")
    assert re.findall(r"line \d+ · [a-z-]+", mistake.inner_text()) == ["line 8 · grad-history"]
    assert fixed.inner_text().startswith("torchcheck: nothing wrong · ")


def test_a_finding_unfolds(notebook: Notebook, pictures: Path) -> None:
    """The fix is folded away until the finding is clicked."""
    mistake = notebook.reports().first
    close_all(mistake)
    fix = mistake.get_by_text("total += loss.item()").first
    hidden = fix.is_visible()
    mistake.locator("summary").first.click()

    assert (hidden, fix.is_visible()) == (False, True)
    notebook.picture(pictures / "unfolded.png")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_report_can_be_read_in_both_themes(notebook: Notebook, pictures: Path, theme: str) -> None:
    """Every piece of text stands out from the page behind it by 4.5 to 1, which is what WCAG asks for small text."""
    notebook.set_theme(theme)
    mistake = notebook.reports().first
    mistake.evaluate("(node) => node.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    notebook.picture(pictures / f"{theme.lower()}.png")
    faint = {
        node.inner_text(): round(ratio, 1)
        for report in notebook.reports().all()
        for node in report.locator("xpath=descendant-or-self::*[text()]").all()
        if node.is_visible() and (ratio := contrast(node)) < 4.5
    }

    assert faint == {}


def test_the_browser_has_nothing_to_complain_about(notebook: Notebook) -> None:
    """The console holds no error."""
    assert notebook.complaints == []


def test_the_saved_notebook_makes_a_page_with_the_report(
    notebook: Notebook, browser: Browser, tmp_path: Path, pictures: Path
) -> None:
    """What nbconvert makes of the saved notebook shows the report, and it unfolds."""
    notebook.save()
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(notebook.path)]
    subprocess.run(command, check=True, capture_output=True)
    page = browser.new_page()
    page.goto((tmp_path / "training.html").as_uri(), wait_until="domcontentloaded")
    report = page.locator(".torchmagic").first
    report.locator("summary").first.click()

    assert report.get_by_text("total += loss.item()").first.is_visible()
    report.screenshot(path=pictures / "nbconvert.png")
    page.close()


def test_a_notebook_from_elsewhere_shows_its_report(
    notebook: Notebook, lab: Lab, browser: Browser, pictures: Path
) -> None:
    """JupyterLab cleans the outputs of a notebook that it does not trust; the report survives, and it unfolds."""
    notebook.save()
    text = notebook.path.read_text().replace("torch.manual_seed(0)", "torch.manual_seed(1)")
    (lab.folder / "from_elsewhere.ipynb").write_text(text)
    other = lab.open(browser, "from_elsewhere.ipynb")
    trusted = other.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.trusted")
    report = other.reports().first
    report.locator("summary").first.click()

    assert not trusted
    assert report.get_by_text("total += loss.item()").first.is_visible()
    other.picture(pictures / "untrusted.png")
    other.page.close()
