"""Text and HTML for people."""

from __future__ import annotations

from collections.abc import Mapping


def si_bytes(count: float) -> str:
    """Return bytes as text: 1.5 kB, 3.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}"


def html_table(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of names and facts, for notebooks."""
    from html import escape  # `import tessera` would load a table of entities for it

    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(fact)}</td></tr>" for name, fact in facts.items())
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
