"""Client for `surefoot tune`. Copy this file next to your program."""

import json
import os
import sys


def parameters():
    """Returns the parameters of this trial by name."""
    return json.loads(os.environ["SUREFOOT_PARAMETERS"])


def report(**numbers):
    """Reports progress: report(epoch=3, epochs=20, loss=0.31, value=0.88)."""
    print(json.dumps(numbers), flush=True)


class Trial:
    """A trial of a program that stays alive (`keep_alive = true`)."""

    def __init__(self, request):
        self.number = request["trial"]
        self.attempt = request["attempt"]
        self.parameters = request["parameters"]
        self.dir = request["dir"]
        self.reported = request["reported"]

    def report(self, **numbers):
        """Reports progress. Returns True if the trial should save a checkpoint and return."""
        report(**numbers)
        if "value" not in numbers:
            return False
        answer = sys.stdin.readline()
        return not answer or json.loads(answer)["stop"]


def serve(objective):
    """Calls `objective` with each trial that Surefoot sends, until there are no more."""
    while line := sys.stdin.readline():
        try:
            objective(Trial(json.loads(line)))
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        else:
            print(json.dumps({"end": True}), flush=True)
