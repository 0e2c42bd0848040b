"""Client for `surefoot tune`. Copy this file next to your program."""

import json
import os


def parameters():
    """Returns the parameters of this trial by name."""
    return json.loads(os.environ["SUREFOOT_PARAMETERS"])


def report(**numbers):
    """Reports progress: report(epoch=3, epochs=20, loss=0.31, value=0.88)."""
    print(json.dumps(numbers), flush=True)
