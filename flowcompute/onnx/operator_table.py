"""The table of operators that docs/onnx.md shows, made of the records."""

from __future__ import annotations

from flowcompute.onnx.operators import OPERATORS
from flowcompute.onnx.problems import REASONS


def operator_table() -> str:
    """Return Markdown: operators that are computed, by domain, and those that are refused, by reason."""
    computed: dict[str, dict[str, int]] = {}
    refused: dict[str, set[str]] = {}
    for record in OPERATORS:
        shown = f"{record.domain}.{record.name}" if record.domain else record.name
        if record.build is None and not record.by_definition:
            refused.setdefault(record.reason, set()).add(shown)
        else:
            own = computed.setdefault(record.domain or "ONNX", {})
            own[record.name] = min(record.since, own.get(record.name, record.since))
    lines = ["| domain | operators, with the opset that they are known from |", "|---|---|"]
    for domain, names in computed.items():
        shown = ", ".join(f"{name} {since}" if since > 1 else name for name, since in sorted(names.items()))
        lines.append(f"| {domain} | {shown} |")
    lines += ["", "| reason | what it means | operators |", "|---|---|---|"]
    for reason, meaning in REASONS.items():
        lines.append(f"| {reason} | {meaning} | {', '.join(sorted(refused.get(reason, ())))} |")
    return "\n".join(lines)
