"""Compare one look at a training namespace with one `torch.aminmax` over the same bytes, in one run.

A model of ResNet-18's size with its gradients and Adam's state, and a data set of 60,000 x 784 float32. The promise:
the walk and the checks together cost at most twice the `aminmax`, plus 50 ms.
"""

from __future__ import annotations

import sys

import torch
from side_by_side import Promises, fastest
from torch import nn

from torchmagic import check
from torchmagic.namespace import walk

REPEATS = 7
PARAMETERS = 11_700_000
WIDTHS = [64, 64, 64, 64, 64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512]

SOURCE = """#%%torchcheck
for images, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
"""


def residual_sized_model() -> nn.Sequential:
    """Return a stack of convolutions with as many parameters and layers as ResNet-18."""
    layers: list[nn.Module] = []
    channels = 3
    for width in WIDTHS:
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def training_namespace() -> dict[str, object]:
    """Return the variables of a notebook in the middle of a training."""
    model = residual_sized_model()
    optimizer = torch.optim.Adam(model.parameters())
    loss = nn.functional.cross_entropy(model(torch.randn(2, 3, 16, 16)), torch.tensor([1, 2]))
    loss.backward()
    optimizer.step()
    images, labels = torch.rand(60_000, 784), torch.randint(0, 10, (60_000,))
    history = [0.5] * 1000
    return {
        "model": model,
        "optimizer": optimizer,
        "loss": loss,
        "images": images,
        "labels": labels,
        "history": history,
    }


def main() -> int:
    torch.manual_seed(0)
    names, promise = training_namespace(), Promises()
    floats = [s.obj.detach() for s in walk(names).of_kind("tensor") if s.obj.is_floating_point()]
    total = sum(t.numel() * t.element_size() for t in floats)
    read, look = fastest(
        REPEATS, lambda: [torch.aminmax(t) for t in floats if t.numel()], lambda: check(names, source=SOURCE)
    )
    print(f"{sum(p.numel() for p in names['model'].parameters()):,} parameters, {total / 1e6:,.0f} MB of floats")
    print(f"aminmax {read * 1e3:.0f} ms, look {look * 1e3:.0f} ms, ratio {look / read:.2f}")
    promise(f"a look takes {look * 1e3:.0f} ms (at most {2e3 * read + 50:.0f})", holds=look <= 2 * read + 0.05)
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
