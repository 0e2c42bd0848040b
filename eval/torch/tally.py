"""Results of a zoo of training programs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import surefoot

CLEARLY = 0.05
"""Gain of the metric from which on a fault has done harm: less is luck."""


@dataclass
class Tally:
    """Counts and prints the results of programs.

    A fault counts as harmless, and not as faulty, if the program as given comes within `CLEARLY` of its healthy twin:
    there is nothing to find and nothing to improve.
    """

    seed: int
    as_json: bool = False
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("healthy", "alarmed", "changed", "faulty", "harmless", "found", "right", "improved", "worse"), 0
        )
    )
    _twins: dict[str, float] = field(default_factory=dict)
    _work: list[float] = field(default_factory=list)

    def add(
        self,
        name: str,
        fault: str,
        causes: tuple[str, ...],
        problems: list[str],
        result: surefoot.Result | None,
        work: float | None,
    ) -> None:
        """Adds a program, healthy ones before their faulty twins.

        Args:
            name: Name of the program; that of a faulty one starts with the name of its twin and a colon.
            fault: The injected fault; empty for a healthy program.
            causes: Problems that name the fault.
            problems: Problems that were found.
            result: Result of the training with repair.
            work: Work of the training with repair, as a multiple of that of the program alone.
        """
        counts = self.counts
        before = after = float("-inf")
        if result is not None:
            before, after = (float("-inf") if it is None else it for it in (result.before, result.after))
            counts["worse"] += after < before
        is_harmless = bool(fault) and result is not None and before > self._twins.get(name.partition(":")[0], float("inf")) - CLEARLY
        if not fault:
            self._twins[name] = after
            counts["healthy"] += 1
            counts["alarmed"] += bool(problems)
            counts["changed"] += result is not None and result.status != "normal"
        elif is_harmless:
            counts["harmless"] += 1
        else:
            counts["faulty"] += 1
            counts["found"] += bool(problems)
            counts["right"] += any(problem in causes for problem in problems)
            if result is not None and problems:
                counts["improved"] += result.status == "repaired" and after > before
                self._work.append(work or 0.0)
        row: dict[str, Any] = {"case": name, "fault": fault, "problems": problems, "harmless": is_harmless}
        if result is not None:
            row |= {"status": result.status, "before": result.before, "after": result.after}
            row |= {"remedies": result.remedies, "work": work}
        self._print(row)

    def finish(self) -> None:
        """Prints the totals."""
        work = sum(self._work) / len(self._work) if self._work else None
        totals: dict[str, Any] = {**self.counts, "work": work}
        if self.as_json:
            print(json.dumps({"event": "summary", "seed": self.seed, **totals}))
        else:
            print(", ".join(f"{key} {value:.2f}" if key == "work" and value else f"{key} {value}" for key, value in totals.items()))

    def _print(self, row: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps({"event": "case", **row}), flush=True)
            return
        line = f"{row['case']:<36} {', '.join(row['problems']) or '-':<48}"
        if "status" in row:
            numbers = " -> ".join("none" if it is None else f"{it:.3f}" for it in (row["before"], row["after"]))
            note = "harmless" if row["harmless"] else ", ".join(row["remedies"])
            line += f" {row['status']:<9} {numbers:<16} {row['work'] or 0:.2f} {note}"
        print(line.rstrip(), flush=True)
