"""The statistics of surefoot-stats as a user of NumPy and SciPy takes them, timed.

Run by `cargo bench -p surefoot-stats` with a file of float32 and how often to repeat. Prints the
versions, the best time as `seconds=...`, and each statistic as `name=value`.
"""

import sys
import time

import numpy as np
import scipy
from scipy import stats


def statistics(x):
    """The ten statistics. All quartiles come from one call, which partitions only once."""
    q1, median, q3 = np.percentile(x, [25, 50, 75])
    return {
        "mean": x.mean(),
        "variance": x.var(),
        "median": median,
        "q1": q1,
        "q3": q3,
        "min": x.min(),
        "max": x.max(),
        "skewness": stats.skew(x),
        "kurtosis": stats.kurtosis(x),
        "zero_ratio": np.mean(x == 0),
    }


def main():
    path, repetitions = sys.argv[1], int(sys.argv[2])
    x = np.fromfile(path, dtype=np.float32)
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        result = statistics(x)
        best = min(best, time.perf_counter() - start)
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}")
    print(f"seconds={best}")
    for name, value in result.items():
        print(f"{name}={float(value)}")


if __name__ == "__main__":
    main()
