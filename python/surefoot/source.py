"""Source files: their syntax trees, edits of them, and the edits as a unified diff."""

from __future__ import annotations

import ast
import difflib
import linecache
import os
from dataclasses import dataclass, field
from pathlib import Path

Position = tuple["int | None", "int | None", "int | None", "int | None"]
"""First and last line, first and last column in bytes. Columns are None before Python 3.11."""


@dataclass(frozen=True, order=True)
class Edit:
    """New text for a range of bytes."""

    start: int
    end: int
    text: str


@dataclass
class Source:
    """A source file and edits of it.

    Example:
        >>> source = Source("train.py", "lr = 10.0\\n")
        >>> source.replace(source.tree.body[0].value, "0.01")
        >>> print(source.diff())
        --- train.py
        +++ train.py
        @@ -1 +1 @@
        -lr = 10.0
        +lr = 0.01
        <BLANKLINE>
    """

    filename: str
    text: str
    edits: set[Edit] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._bytes = self.text.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.tree = ast.parse(self.text)
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    @staticmethod
    def read(filename: str) -> Source | None:
        """Reads a file or the cell of a notebook. Returns None if there is none that can be parsed."""
        linecache.checkcache(filename)
        text = "".join(linecache.getlines(filename))
        if not text:
            return None
        try:
            return Source(filename, text)
        except SyntaxError:
            return None

    def calls(self) -> list[ast.Call]:
        """Returns all calls in the order of their lines."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return sorted(calls, key=lambda node: (node.lineno, node.col_offset))

    def call_at(self, position: Position, name: str) -> ast.Call | None:
        """Returns the call at a position, if its last name is `name`."""
        line, end_line, column, end = position
        found = [
            node
            for node in self.calls()
            if node.lineno == line
            and last_name(node) == name
            and (column is None or (node.end_lineno, node.col_offset, node.end_col_offset) == (end_line, column, end))
        ]
        return found[0] if len(found) == 1 else None

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """Returns the text of a node."""
        start, end = self.range_of(node)
        return self._bytes[start:end].decode()

    def range_of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Returns the first byte of a node and the byte after its last one."""
        start = self._starts[node.lineno - 1] + node.col_offset
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return start, self._starts[end_line - 1] + end_column

    def replace(self, node: ast.expr, text: str) -> None:
        """Replaces a node."""
        start, end = self.range_of(node)
        self.edits.add(Edit(start, end, text))

    def insert_after(self, node: ast.expr, text: str) -> None:
        """Inserts text behind a node."""
        _, end = self.range_of(node)
        self.edits.add(Edit(end, end, text))

    def insert_before(self, statement: ast.stmt, lines: list[str]) -> bool:
        """Inserts lines before a statement. Returns False if the statement shares its line."""
        start = self._starts[statement.lineno - 1]
        indent = self._bytes[start : start + statement.col_offset]
        if indent.strip():
            return False
        first = self._bytes[start : self._starts[statement.lineno]]
        ending = "\r\n" if first.endswith(b"\r\n") else "\n"
        text = "".join(indent.decode() + line + ending for line in lines)
        self.edits.add(Edit(start, start, text))
        return True

    def remove_element(self, node: ast.expr) -> bool:
        """Removes an argument or an element of a list with its comma."""
        parent = self.parents.get(node)
        items: list[ast.expr] = []
        if isinstance(parent, ast.Call):
            items = parent.args
        elif isinstance(parent, (ast.List, ast.Tuple)):
            items = parent.elts
        if node not in items or len(items) < 2:
            return False
        place = items.index(node)
        start, end = self.range_of(node)
        if place:
            start = self.range_of(items[place - 1])[1]
        else:
            end = self.range_of(items[1])[0]
        self.edits.add(Edit(start, end, ""))
        return True

    def patched(self) -> str | None:
        """Returns the text with all edits, or None if they overlap or leave no valid Python."""
        result, place = b"", 0
        for edit in sorted(self.edits):
            if edit.start < place:
                return None
            result += self._bytes[place : edit.start] + edit.text.encode()
            place = edit.end
        text = (result + self._bytes[place:]).decode()
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        return text

    @property
    def name(self) -> str:
        """The file, relative to the working directory if it is below it."""
        name = self.filename
        if os.path.isabs(name) and Path(name).is_relative_to(Path.cwd()):
            name = str(Path(name).relative_to(Path.cwd()))
        return name

    def diff(self) -> str | None:
        """Returns the edits as a unified diff, or None if there are none."""
        new = self.patched()
        if new is None or new == self.text:
            return None
        name = self.name
        before, after = self.text.splitlines(keepends=True), new.splitlines(keepends=True)
        lines = []
        for line in difflib.unified_diff(before, after, name, name):
            end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
            lines.append(line + end)
        return "".join(lines)

    def alias(self, module: str) -> str | None:
        """Returns the name under which a module is imported, such as ``"F"``.

        Example:
            >>> source = Source("a.py", "import torch.nn.functional as F\\nfrom torch import nn\\n")
            >>> source.alias("torch.nn.functional"), source.alias("torch.nn"), source.alias("torch")
            ('F', 'nn', None)
        """
        parent, _, child = module.rpartition(".")
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    if name.name == module and (name.asname or "." not in module):
                        return name.asname or module
                    if name.name.split(".")[0] == module and not name.asname:
                        return module
            elif isinstance(node, ast.ImportFrom) and node.module == parent:
                for name in node.names:
                    if name.name == child:
                        return name.asname or child
        above = self.alias(parent) if parent else None
        return f"{above}.{child}" if above else None


def last_name(call: ast.Call) -> str | None:
    """Returns the last name of what is called: ``"Linear"`` of ``nn.Linear(2, 3)``."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None
