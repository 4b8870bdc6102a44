"""What is remembered from report to report under `%torchcheck on`."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from torchmagic.findings import Finding
from torchmagic.namespace import version_of


@dataclass
class Memory:
    """Which findings were shown, and which large tensors were read and at which version. It keeps nothing alive."""

    shown: set[tuple[str, str, str]] = field(default_factory=set)
    _finite: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)

    def was_shown(self, finding: Finding) -> bool:
        """Tell whether the same finding was shown before."""
        return (finding.rule, finding.subject, finding.message) in self.shown

    def replace_shown(self, findings: list[Finding]) -> None:
        """Remember these findings as the ones that stand now."""
        self.shown = {(finding.rule, finding.subject, finding.message) for finding in findings}

    def note_finite(self, tensor: Any) -> None:
        """Remember that a tensor held only finite values at its present version."""
        version = version_of(tensor)
        if version is not None:
            self._finite[id(tensor)] = (weakref.ref(tensor), version)

    def is_known_finite(self, tensor: Any) -> bool:
        """Tell whether the tensor was read at its present version and was finite."""
        known = self._finite.get(id(tensor))
        return known is not None and known[0]() is tensor and known[1] == version_of(tensor)
