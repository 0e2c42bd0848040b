"""Functions and classes in Rust for the package ``surefoot``. Structured data crosses as JSON, tensors as addresses."""

from os import PathLike
from typing import final

VERSION: str

def command(arguments: list[str], worker: list[str]) -> int: ...
def report(directory: str | PathLike[str]) -> str: ...
def repair(
    host: object,
    original: tuple[Run, float, bool, float | None, float | None],
    *,
    samples: int,
    forbid: list[str],
    order: list[str],
    attempts: int,
) -> tuple[str, int | None]: ...
@final
class Run:
    def __new__(
        cls,
        facts: str,
        *,
        thresholds: list[tuple[str, str]],
        runs: str | PathLike[str] | None,
        name: str,
        program: str,
        libraries: dict[str, str],
        device: str,
        observe_every: int,
    ) -> Run: ...
    @property
    def directory(self) -> str | PathLike[str] | None: ...
    def set_parameters(self, parameters: list[tuple[int, int, str, int]]) -> None: ...
    def output(self, layer: int, address: int, len: int, format: str) -> None: ...
    def input(self, address: int, len: int, format: str) -> None: ...
    def gradients(self, addresses: list[int], scale: float) -> None: ...
    def before_update(self, addresses: list[int]) -> None: ...
    def weights(self, addresses: list[int]) -> None: ...
    def measured(
        self, quantity: str, layer: int, statistics: list[float], share: float | None = None
    ) -> None: ...
    def step(
        self,
        step: int,
        epoch: int,
        loss: float,
        metric: float | None = None,
        learning_rate: float | None = None,
        gradient_norm: float | None = None,
    ) -> list[str]: ...
    def evaluation(
        self, step: int, epoch: int, split: str, loss: float, metric: float | None = None
    ) -> list[str]: ...
    def event(self, event: str) -> None: ...
    def finish(self, completed: bool, weights: list[tuple[str, int, int, str]]) -> str: ...
    def findings(self) -> list[str]: ...
