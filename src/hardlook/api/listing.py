"""`hl.benchmarks` and `hl.check`: what can be run, and whether a model can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hardlook.api.inline import draw_inline_table
from hardlook.errors import OptionError
from hardlook.harness.benchmark import BenchmarkCard
from hardlook.harness.registry import find_benchmark, list_benchmarks
from hardlook.models.conformance import Finding, check_model, check_named
from hardlook.models.registry import missing_members
from hardlook.models.roles import ROLES


class BenchmarkList(list[BenchmarkCard]):
    """Cards of benchmarks; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return draw_inline_table(("benchmark", "role", "summary"), [(one.name, one.role, one.summary) for one in self])


def benchmarks() -> BenchmarkList:
    """The benchmarks, built in, installed, or made in this process.

    >>> {"metacoco", "rclicks", "toss"} <= {card.name for card in benchmarks()}
    True
    """
    return BenchmarkList(find_benchmark(name).card for name in sorted(list_benchmarks()))


class CheckResult(Sequence[Finding]):
    """The findings of `hl.check`; `passed` where a model keeps its role's contract."""

    def __init__(self, model: str, role: str, findings: Sequence[Finding]) -> None:
        self.model, self.role, self.findings = model, role, tuple(findings)

    def __getitem__(self, place: Any) -> Any:
        return self.findings[place]

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def wrong(self) -> list[Finding]:
        """The findings that did not pass."""
        return [finding for finding in self.findings if not finding.passed]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def __repr__(self) -> str:
        passed = len(self.findings) - len(self.wrong)
        lines = [f"WRONG {finding.check}: {finding.message}" for finding in self.wrong]
        return "\n".join([f"{self.model} as {self.role}: {passed} of {len(self.findings)} checks pass", *lines])

    def _repr_html_(self) -> str:
        rows = [("ok" if one.passed else "WRONG", one.check, one.message) for one in self.findings]
        return draw_inline_table(("result", "check", "finding"), rows, f"{self.model} as {self.role}")


def check(model: Any, role: str, *, model_args: Mapping[str, Any] | None = None, offline: bool = False) -> CheckResult:
    """Try whether a model keeps the contract of its role: shapes, ranges, determinism, batches, inputs left alone.

    The model is a name, an object with the role's methods, a class of such objects, or what `hl.wrap` takes. With
    `offline` no weights are downloaded.

    >>> check("planted-saliency", "saliency").passed
    True
    """
    from hardlook.models.families.downloads import forbid_downloads
    from hardlook.models.object_identity import name_object
    from hardlook.models.wrapping import wrap

    if role not in ROLES:
        raise OptionError(f"{role}: there is no such role", remedy=f"one of {', '.join(ROLES)}")
    if isinstance(model, str):
        with forbid_downloads(offline):
            return CheckResult(model, role, check_named(model, role, model_args))
    if not isinstance(model, type) and missing_members(model, role):
        model = wrap(model, role=role)
    return CheckResult(name_object(model), role, check_model(model, role))
