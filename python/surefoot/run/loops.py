"""Counts the training loops of a script, so that a resumed run can enter them at the saved iteration.

The syntax tree of the program is rewritten: ``for x in ITERABLE`` becomes ``for x in loop(enter(ID), ITERABLE)``, and
``while TEST`` becomes ``while head(ID) and (TEST)``, both inside ``try ... finally: leave(ID)``. Only loops whose body
reaches a training step are rewritten. Functions are followed by their names.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import importlib.abc
import importlib.machinery
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from surefoot.run.frames import assign, name_of
from surefoot.run.keys import LOOP, Keys, generator_states, set_generator_states
from surefoot.run.loaders import Loaders

NAME = "__surefoot_loops__"
TRAINS = frozenset({"backward", "manual_backward", "apply_gradients", "train_on_batch", "minimize", "fit"})


class ResumeError(Exception):
    """The run cannot be resumed here; the message says why."""


@dataclasses.dataclass(frozen=True)
class LoopInfo:
    """A training loop in the source."""

    name: str
    digest: str
    """Digest of its source, to notice changes."""
    dead: frozenset[str]
    """Variables that every iteration assigns before it reads them."""
    is_while: bool
    inputs: frozenset[str]
    """Variables in the iterable of a ``for`` or the condition of a ``while``."""
    clears_gradients: bool


def called_names(node: ast.AST) -> set[str]:
    """Names of the functions and methods that are called in a part of the source."""
    names = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            function = item.func
            if isinstance(function, ast.Attribute):
                names.add(function.attr)
            elif isinstance(function, ast.Name):
                names.add(function.id)
    return names


def _is_generator(function: ast.AST) -> bool:
    return any(isinstance(item, (ast.Yield, ast.YieldFrom, ast.Await)) for item in ast.walk(function))


def _loads(node: ast.AST, name: str) -> int:
    return sum(
        isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, (ast.Load, ast.Del))
        for item in ast.walk(node)
    )


def _stored(target: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(target) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}


def _dead_names(loop: ast.For | ast.While, scope: ast.AST) -> frozenset[str]:
    """Variables that are assigned in each iteration before they are read, and read nowhere else."""
    read: set[str] = set()
    dead: set[str] = set()
    if isinstance(loop, ast.For):
        dead |= _stored(loop.target)
    for statement in loop.body:
        loaded = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if isinstance(statement, ast.Assign):
            read |= loaded - dead
            for target in statement.targets:
                dead |= _stored(target) - read
        else:
            read |= loaded - dead
    return frozenset(name for name in dead if _loads(scope, name) == sum(_loads(part, name) for part in loop.body))


class _Rewriter(ast.NodeTransformer):
    def __init__(self, filename: str, tree: ast.Module, trains: set[str], found: dict[str, LoopInfo]) -> None:
        self.file, self.tree, self.trains, self.found = os.path.basename(filename), tree, trains, found
        self.scopes: list[str] = []
        self.count = 0
        self.nodes: list[ast.AST] = [tree]

    def _function(self, node: Any) -> Any:
        if _is_generator(node):
            return node
        self.scopes.append(node.name)
        self.nodes.append(node)
        self.generic_visit(node)
        self.nodes.pop()
        self.scopes.pop()
        return node

    visit_FunctionDef = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()
        return node

    def _info(self, node: ast.For | ast.While) -> LoopInfo:
        self.count += 1
        name = ":".join([self.file, *self.scopes, f"loop {self.count}"])
        source = ast.dump(node)
        names = called_names(node)
        # A global may be read by any function.
        dead = _dead_names(node, self.tree if len(self.nodes) == 1 else self.nodes[-1])
        is_while = isinstance(node, ast.While)
        inputs = _names(node.test if isinstance(node, ast.While) else node.iter)
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        return LoopInfo(name, digest, dead, is_while, inputs, "zero_grad" in names)

    def _loop(self, node: Any) -> Any:
        names = set().union(*(called_names(part) for part in node.body))
        if not names & self.trains:
            return self.generic_visit(node)
        info = self._info(node)
        self.found[info.name] = info
        self.generic_visit(node)
        enter = _call("enter", ast.Constant(info.name))
        before: list[ast.stmt] = []
        if isinstance(node, ast.For):
            node.iter = _call("loop", enter, node.iter)
        else:
            before.append(ast.Expr(enter))
            node.test = ast.BoolOp(ast.And(), [_call("head", ast.Constant(info.name)), node.test])
        leave = ast.Expr(_call("leave", ast.Constant(info.name)))
        guarded = ast.Try(body=[*before, node], handlers=[], orelse=[], finalbody=[leave])
        return ast.copy_location(guarded, node)

    visit_For = _loop
    visit_While = _loop


def _names(node: ast.AST) -> frozenset[str]:
    """Variables and attributes in an expression, such as ``epochs`` and ``args.epochs``."""
    return frozenset(ast.unparse(item) for item in ast.walk(node) if _is_name(item))


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or isinstance(node, ast.Attribute) and _is_name(node.value)


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(NAME, ast.Load()), method, ast.Load())
    return ast.Call(function, list(arguments), [])


class Rewriting:
    """Rewrites the files of a program."""

    def __init__(self, is_program: Callable[[str], bool]) -> None:
        self.is_program = is_program
        self.trains: set[str] = set(TRAINS)
        self.found: dict[str, LoopInfo] = {}

    def read(self, script: str) -> None:
        """Finds the functions that train, in the script and the modules that it imports."""
        functions: list[tuple[str, set[str]]] = []
        waiting, seen = [script], {script}
        while waiting:
            path = waiting.pop()
            try:
                with open(path, "rb") as file:
                    tree = ast.parse(file.read())
            except (OSError, SyntaxError, ValueError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    functions.append((node.name, called_names(node)))
                elif isinstance(node, (ast.Import, ast.ImportFrom)):
                    for found in _files_of(node, path, os.path.dirname(script)):
                        if found not in seen and self.is_program(found):
                            seen.add(found)
                            waiting.append(found)
        changed = True
        while changed:
            new = {name for name, called in functions if called & self.trains} - self.trains
            self.trains |= new
            changed = bool(new)

    def compile(self, source: bytes | str, filename: str) -> CodeType:
        """Compiles a file with its training loops counted."""
        tree = ast.parse(source, filename)
        _Rewriter(filename, tree, self.trains, self.found).visit(tree)
        ast.fix_missing_locations(tree)
        code: CodeType = compile(tree, filename, "exec", dont_inherit=True)
        return code

    def install(self) -> None:
        """Rewrites the modules of the program when they are imported."""
        rewriting = self
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: Any, fullname: str) -> Any:
            path = loader.get_filename(fullname)
            if not rewriting.is_program(path):
                return original(loader, fullname)
            return rewriting.compile(loader.get_data(path), path)

        loader_class: Any = importlib.machinery.SourceFileLoader
        loader_class.get_code = get_code


def _files_of(node: ast.Import | ast.ImportFrom, path: str, root: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        names = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
    folder = os.path.dirname(path)
    for _ in range(max(getattr(node, "level", 0) - 1, 0)):
        folder = os.path.dirname(folder)
    for name in names:
        place = name.replace(".", os.sep)
        # Programs often put a folder `src` into the path.
        for start in {folder, root, os.path.join(root, "src")}:
            for file in (os.path.join(start, place + ".py"), os.path.join(start, place, "__init__.py")):
                if os.path.isfile(file):
                    yield file


_PLAIN = (int, float, bool, str, type(None))


def _variable_kinds() -> tuple[Any, ...]:
    tf = sys.modules.get("tensorflow")
    return () if tf is None or not hasattr(tf, "Variable") else (tf.Variable,)


class Entry:
    """A loop that is being executed."""

    def __init__(self, info: LoopInfo, frame: FrameType, ordinal: int) -> None:
        self.info, self.frame, self.ordinal = info, frame, ordinal
        self.count = 0
        """Items that were taken before the current iteration."""
        self.children = 0
        """Loops that were entered in the current iteration."""
        self.entered: dict[str, Any] = {}
        self.head: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.is_first = True
        self.is_skipped = False
        self.is_trial = False
        """True during an iteration after which the state is restored again."""
        self.saved: dict[str, Any] | None = None
        self.fit: Callable[[], dict[str, Any]] | None = None
        """Position in a loop of a library."""
        self.roots: dict[str, Any] = {}
        """Objects of a loop of a library that no variable of the program need hold."""
        self.prepare: Callable[[], None] = lambda: None
        """Called before a checkpoint."""

    def note_inputs(self) -> None:
        """Remembers the plain values that the iterable or the condition reads.

        A resumed program may have loaded a checkpoint of its own by then, which changes them.
        """
        self.inputs = {}
        for name in self.info.inputs:
            value = self._find(name)
            if isinstance(value, _variable_kinds()):
                if value.shape.rank == 0:
                    self.inputs[name] = value.numpy().item()
            elif type(value) in _PLAIN:
                self.inputs[name] = value

    def _find(self, name: str) -> Any:
        first, *rest = name.split(".")
        found = self.frame.f_locals.get(first, self.frame.f_globals.get(first, self))
        for part in rest:
            found = getattr(found, part, self)
        return found

    def set_inputs(self) -> None:
        """Sets what ``note_inputs`` has remembered."""
        plain = {}
        for name, value in self.inputs.items():
            owner, _, last = name.rpartition(".")
            live = self._find(name)
            if isinstance(live, _variable_kinds()):
                live.assign(value)
            elif owner:
                if type(live) in _PLAIN and live != value:
                    setattr(self._find(owner), last, value)
            elif name in self.frame.f_locals or name not in self.frame.f_globals:
                plain[name] = value
            else:
                self.frame.f_globals[name] = value
        assign(self.frame, plain)

    def state(self) -> dict[str, Any]:
        """Returns the position for a checkpoint."""
        place = {
            "loop": self.info.name,
            "digest": self.info.digest,
            "ordinal": self.ordinal,
            "count": self.count,
            "entered": self.entered,
            "head": self.head,
            "inputs": self.inputs,
        }
        if self.fit is not None:
            place["fit"] = self.fit()
        return place


class Loops:
    """The training loops in progress, outermost first."""

    def __init__(self, rewriting: Rewriting, keys: Keys, loaders: Loaders) -> None:
        self.rewriting, self.keys, self.loaders = rewriting, keys, loaders
        self.stack: list[Entry] = []
        self.children = 0
        self.on_first: Callable[[Entry], None] = lambda entry: None
        """Called when the first loop is entered."""
        self.on_iteration: Callable[[], None] = lambda: None
        """Called after every iteration."""
        self.on_head: Callable[[Entry], None] = lambda entry: None
        """Called before every iteration."""
        self.on_restore: Callable[[Entry, bool], bool] = lambda entry, is_last: True
        """Called to restore the state of a checkpoint; for its innermost loop with true. False if it must be called
        again after one iteration, which creates what is missing."""
        self.resume: list[dict[str, Any]] | None = None
        """Positions to resume at, outermost first."""
        self.step: Callable[[], int] = lambda: 0

    def install(self) -> None:
        """Makes the loops known to rewritten code."""
        setattr(builtins, NAME, self)

    def enter(self, name: str) -> Entry:
        """A loop is about to start."""
        return self.begin(self.rewriting.found[name], sys._getframe(1))

    def begin(self, info: LoopInfo, frame: FrameType) -> Entry:
        """A loop in a function with ``frame`` is about to start."""
        parent: Any = self.stack[-1] if self.stack else self
        entry = Entry(info, frame, parent.children)
        parent.children += 1
        if not self.stack and entry.ordinal == 0:
            self.on_first(entry)
        self.stack.append(entry)
        if self.resume is not None:
            self._match(entry)
        else:
            entry.entered = {"step": self.step(), **self.keys.state()}
            if not entry.info.is_while:
                entry.note_inputs()
        self._key(entry)
        return entry

    def begin_call(self, label: str, content: str) -> Entry:
        """A loop of a library is about to start: ``label`` is its function, ``content`` what the loop depends on."""
        frame = sys._getframe(1)
        while frame.f_back is not None and not self.rewriting.is_program(frame.f_code.co_filename):
            frame = frame.f_back
        name = f"{os.path.basename(frame.f_code.co_filename)}:{name_of(frame)}:{label}"
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        return self.begin(LoopInfo(name, digest, frozenset(), False, frozenset(), False), frame)

    def _key(self, entry: Entry) -> None:
        if entry.entered:
            site = LOOP | zlib.crc32(entry.info.name.encode()) << 8
            self.keys.apply(site, entry.entered["step"], entry.ordinal)

    def _match(self, entry: Entry) -> None:
        assert self.resume is not None
        saved = self.resume[len(self.stack) - 1]
        if entry.ordinal < saved["ordinal"]:
            # It was finished before the checkpoint; its results are in the restored state.
            entry.is_skipped = True
            self.on_restore(entry, False)
            return
        if entry.info.name != saved["loop"] or entry.info.digest != saved["digest"]:
            place = f"{saved['loop']}"
            raise ResumeError(
                f"the training loop of the checkpoint ({place}) was changed since the run was started; "
                "restore the script, or start a new run"
            )
        entry.saved = saved
        entry.entered, entry.inputs = saved["entered"], saved["inputs"]
        if not entry.info.is_while:
            entry.set_inputs()
        self.keys.restore(saved["entered"])

    def _arrive(self, entry: Entry) -> None:
        """The loop is at the saved iteration."""
        assert self.resume is not None and entry.saved is not None
        saved, entry.saved = entry.saved, None
        entry.count, entry.head = saved["count"], saved["head"]
        is_last = len(self.stack) == len(self.resume)
        if is_last:
            self.resume = None
        entry.is_trial = not self.on_restore(entry, is_last)
        if not is_last:
            self.keys.restore(saved["head"])
            if entry.info.is_while:
                entry.inputs = saved["inputs"]
                entry.set_inputs()

    def _begin(self, entry: Entry) -> None:
        self.on_iteration()
        entry.children = 0
        entry.head = self.keys.state()
        if entry.info.is_while:
            entry.note_inputs()
        if self.resume is None and not entry.is_trial:
            self.on_head(entry)

    def loop(self, entry: Entry, iterable: Any) -> Iterator[Any]:
        """Yields the items of a ``for`` loop, counted."""
        loaders = self.loaders
        if entry.is_skipped:
            return
        items = iter(iterable)
        if entry.saved is not None:
            loaders.is_skipping = loaders.is_pulled = True
            try:
                for _ in range(entry.saved["count"]):
                    next(items, None)
            finally:
                loaders.is_skipping = loaders.is_pulled = False
            self._arrive(entry)
        while True:
            self._begin(entry)
            loaders.is_pulled = True
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                loaders.is_pulled = False
            if entry.is_trial:
                after = generator_states(), loaders.owner, loaders.batch
                yield item
                self._again(entry)
                set_generator_states(after[0])
                loaders.owner, loaders.batch = after[1:]
            yield item
            entry.count += 1

    def _again(self, entry: Entry) -> None:
        entry.is_trial = False
        self.on_restore(entry, True)

    def iterate(self, entry: Entry) -> None:
        """A loop of a library is about to begin an iteration."""
        if entry.is_trial:
            self._again(entry)
        elif entry.saved is not None:
            self._arrive(entry)
        elif not entry.is_first:
            entry.count += 1
        entry.is_first = False
        self._begin(entry)

    def head(self, _name: str) -> bool:
        """A ``while`` loop is about to test its condition; false skips the loop."""
        entry = self.stack[-1]
        if entry.is_skipped:
            return False
        self.iterate(entry)
        return True

    def leave(self, name: str) -> None:
        """A loop has ended, in whatever way."""
        self.on_iteration()
        while self.stack:
            entry = self.stack.pop()
            if entry.info.name == name:
                return
