"""Makes a notebook of each example of this folder: Jupyter's format 4.5, without outputs.

usage: make_notebooks.py [FOLDER]

The documentation of a program becomes a cell of text, its imports and constants a cell of code, and so
does each function. A main() without arguments is written out, a cell for each paragraph; another one is
called with the arguments of the table below.
"""

from __future__ import annotations

import ast
import json
import pathlib
import sys
import textwrap
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
# The arguments of main() in the notebook.
ARGUMENTS: dict[str, list[str]] = {
    "quick_start": [],
    "rigl_torch": ["--epochs", "3"],
    "sparse_gpt": ["--steps", "100", "--width", "64", "--layers", "2"],
    "sparse_model": [],
    "what_if": ["--chart", "what_if.png"],
}


def lines_of(source: str, node: ast.stmt) -> str:
    """Returns the text of a statement, with its comments and blank lines inside."""
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])


def code_cells(source: str, arguments: list[str]) -> list[str]:
    """Returns the code of a program as the cells of a notebook."""
    head: list[str] = []
    functions: list[str] = []
    last: list[str] = []
    for node in ast.parse(source).body[1:]:  # after the documentation
        text = lines_of(source, node)
        if isinstance(node, ast.FunctionDef) and node.name == "main" and not node.args.args:
            body = "\n".join(text.splitlines()[1:])
            last = textwrap.dedent(body).strip().split("\n\n")
        elif isinstance(node, ast.FunctionDef):
            functions.append(text)
            if node.name == "main":
                last = [f"main({json.dumps(arguments)})"]
        elif not isinstance(node, ast.If):  # the last statement runs main() in a program
            head.append(text)
    return ["\n".join(head), *functions, *last]


def notebook_of(name: str) -> str:
    """Returns the notebook of an example as JSON text."""
    source = (HERE / f"{name}.py").read_text()
    title = f"# {name}.py\n\n{ast.get_docstring(ast.parse(source))}\n\nMade by make_notebooks.py."
    cells = [("markdown", title), *(("code", code) for code in code_cells(source, ARGUMENTS[name]))]
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"{name}-{number}", "metadata": {}, "source": text.splitlines(True)}
        made.append(cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in ARGUMENTS:
        (folder / f"{name}.ipynb").write_text(notebook_of(name))


if __name__ == "__main__":
    main()
