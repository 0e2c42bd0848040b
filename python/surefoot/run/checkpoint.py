"""Automatic checkpoints: saves and restores the state of a script's training loop."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from surefoot.run import frames
from surefoot.run.graph import KEEP, Saver
from surefoot.run.keys import generator_states, set_generator_states
from surefoot.run.loops import Entry, Loops, ResumeError
from surefoot.run.parallel import Parallel
from surefoot.run.record import Recording, tell
from surefoot.run.recover import Recovery
from surefoot.run.restore import RestoreError, Restorer

# Share of the time that checkpoints may take, if no interval is given.
SHARE = 0.02
FIRST_AFTER = 1.0

Stored = tuple[int, str, list[tuple[str, str, list[int], bytes]]]


class Checkpoints:
    """Writes checkpoints at the heads of training loops, and restores one."""

    def __init__(
        self,
        recording: Recording,
        loops: Loops,
        every: int | None,
        stored: Stored | None,
        recovery: Recovery | None = None,
        parallel: Parallel | None = None,
    ) -> None:
        self._recovery, self._parallel = recovery, parallel
        self.on_resumed: Callable[[], None] = lambda: None
        """Called when the state of the checkpoint was restored."""
        self.recording, self.loops, self.every = recording, loops, every
        self.keys, self.loaders = recording.keys, recording.loaders
        self.is_off = False
        self._baseline: dict[str, str] | None = None
        self._last_step = 0
        self._next_time = time.monotonic() + FIRST_AFTER
        self._stored = stored
        self._state: dict[str, Any] = {}
        loops.on_iteration = recording.finish_iteration
        loops.step = lambda: recording.step
        loops.on_first, loops.on_head, loops.on_restore = self._first, self._head, self._restore
        if stored is not None:
            self._state = json.loads(json.loads(stored[1])["graph"])
            loops.resume = self._state["loops"]

    @property
    def is_waiting(self) -> bool:
        """True until the loop of the checkpoint to resume from has been reached."""
        return self.loops.resume is not None

    def _first(self, entry: Entry) -> None:
        saver = self._walk(entry, None)
        self._baseline = saver.digests
        for path, kind in saver.unsaved.items():
            tell(f"`{path}` ({kind}) cannot be saved in checkpoints; if its state matters, a resumed run may differ")
        if saver.unsaved:
            self.recording.event("not_saved", values=saver.unsaved)

    def _head(self, entry: Entry) -> None:
        step = self.recording.step
        if step == self._last_step or self.is_off or self.recording.recorder is None:
            return
        if self.every is None:
            if time.monotonic() < self._next_time:
                return
        elif step - self._last_step < self.every:
            return
        begun = time.monotonic()
        self._last_step = step
        self._save(entry)
        ended = time.monotonic()
        self._next_time = ended + (ended - begun) / SHARE

    def _walk(self, entry: Entry, baseline: dict[str, str] | None) -> Saver:
        is_between = self.recording.has_gradients or not entry.info.clears_gradients
        saver = Saver(baseline, saves_gradients=is_between, keeps_unchanged=self._parallel is not None)
        self._frames = []
        for number, frame in enumerate(frames.chain(entry.frame, self.loaders.is_program)):
            name = frames.name_of(frame)
            dead = entry.info.dead if frame is entry.frame else frozenset()
            values = self._variables(saver, frame.f_locals, name, dead)
            self._frames.append({"function": name, "values": values})
        self._modules = {}
        is_module = frames.is_module(entry.frame)
        for name, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file is not None and self.loaders.is_program(file):
                here = is_module and entry.frame.f_globals is vars(module)
                dead = entry.info.dead if here else frozenset()
                label = "main" if name == "__main__" else name
                self._modules[name] = self._variables(saver, vars(module), label, dead)
        return saver

    def _variables(self, saver: Saver, values: Any, label: str, dead: frozenset[str]) -> dict[str, Any]:
        saved = {}
        for name, value in list(values.items()):
            if name.startswith("__") or name in dead:
                continue
            content = saver.member(value, f"{label}.{name}")
            if content is not KEEP and (not isinstance(content, dict) or content.get("member", True)):
                saved[name] = content
        return saved

    def _save(self, entry: Entry) -> None:
        entry.prepare()
        saver = self._walk(entry, self._baseline)
        recording, loaders = self.recording, self.loaders
        pending = {k: v for k, v in loaders.unfinished().items() if k not in saver.iterators}
        state = {
            "loops": [loop.state() for loop in self.loops.stack],
            "recording": recording.state(),
            "frames": self._frames,
            "modules": self._modules,
            "roots": self._variables(saver, entry.roots, "fit", frozenset()),
            "keys": self.keys.state(),
            "owner": loaders.owner,
            "samples": self._samples(),
            "pending": [[number, *place] for number, place in pending.items()],
            "random": saver.value(generator_states(), "random"),
            "batch": saver.value(loaders.batch, "batch"),
            "losses": saver.value(recording.losses, "losses"),
            "has_gradients": recording.has_gradients,
            "nodes": saver.nodes,
        }
        if self._recovery is not None:
            state["recovery"] = saver.value([self._recovery.state(), self._recovery.optimizers], "recovery")
        assert recording.recorder is not None
        try:
            text = json.dumps({"graph": json.dumps(state)})
            recording.recorder.checkpoint(recording.step, recording.epoch - 1, text, saver.tensors)
        except RuntimeError as error:
            tell(f"the checkpoint at step {recording.step} was not written, and the training continues: {error}")

    def _samples(self) -> int | None:
        """Number of samples of the latest batch in all processes."""
        samples = self.loaders.samples
        return None if samples is None or self._parallel is None else len(samples) * self._parallel.world

    def _restore(self, entry: Entry, is_last: bool) -> bool:
        assert self._stored is not None
        try:
            missing = self._put_back(entry, is_last)
        except RestoreError as error:
            raise ResumeError(str(error)) from None
        if not is_last:
            return True
        if missing and not self.recording.is_muted:
            # The first iteration creates variables, of a model that is not built for instance.
            self.recording.is_muted = True
            return False
        self.recording.is_muted = False
        self._stored, self._state = None, {}
        if missing:
            raise ResumeError(f"the program does not create `{missing[0]}` of the checkpoint; was it changed?")
        self.on_resumed()
        tell(f"resumed at step {self.recording.step}")
        return True

    def _put_back(self, entry: Entry, is_last: bool) -> list[str]:
        assert self._stored is not None
        state = self._state
        tensors = {name: (dtype, shape, content) for name, dtype, shape, content in self._stored[2]}
        restorer = Restorer(state["nodes"], tensors, self.loaders)
        chain = frames.chain(entry.frame, self.loaders.is_program)
        if is_last and [frames.name_of(frame) for frame in chain] != [saved["function"] for saved in state["frames"]]:
            raise ResumeError("the training loop is called from a different function than in the run")
        for frame, saved in zip(chain, state["frames"]):
            if frames.name_of(frame) != saved["function"]:
                break
            frames.assign(frame, self._restored(restorer, saved["values"], frame.f_locals))
        for name, values in state["modules"].items():
            module = sys.modules.get(name)
            if module is not None:
                vars(module).update(self._restored(restorer, values, vars(module)))
        if not is_last:
            return []
        self._restored(restorer, state["roots"], entry.roots)
        recording, loaders = self.recording, self.loaders
        recording.restore(state["recording"])
        self._last_step = recording.step
        if state["samples"] is not None and self._parallel is not None:
            loaders.samples = range(self._parallel.rank, state["samples"], self._parallel.world)
        self.keys.restore(state["keys"])
        loaders.owner = None if state["owner"] is None else tuple(state["owner"])
        loaders.pending = {number: (number_of_pass, position) for number, number_of_pass, position in state["pending"]}
        loaders.batch = restorer.value(state["batch"])
        recording.losses[:] = restorer.value(state["losses"])
        recording.has_gradients = state["has_gradients"]
        set_generator_states(restorer.value(state["random"]))
        if self._recovery is not None:
            self._recovery.restore(*restorer.value(state["recovery"]))
        return restorer.missing

    def _restored(self, restorer: Restorer, values: dict[str, Any], live: Any) -> dict[str, Any]:
        missing = restorer.value(KEEP)
        found = {name: restorer.value(saved, live.get(name, missing)) for name, saved in values.items()}
        return {name: value for name, value in found.items() if value is not missing}
