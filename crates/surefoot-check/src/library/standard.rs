//! The standard library of Python.

use super::{Calls, Effect, Environment, Family, Global, Library};

const PICKLE: Calls = &[("dump", Effect::Save { what: 0 }), ("load", Effect::Load)];

pub(super) const LIBRARIES: &[Library] = &[
    Library::uniform(
        "random",
        &[
            ("seed", Effect::Seed(&[Global::Python])),
            ("getstate", Effect::GetState(Global::Python)),
            ("setstate", Effect::SetState(Global::Python)),
            ("Random", Effect::Generator(Family::Python)),
            ("SystemRandom", Effect::Read(Environment::Entropy)),
            ("shuffle", Effect::DrawInto(Global::Python)),
        ],
        Effect::Draw(Global::Python),
    ),
    Library::new(
        "os",
        &[
            ("listdir scandir walk fwalk", Effect::Read(Environment::FileOrder)),
            ("urandom getrandom", Effect::Read(Environment::Entropy)),
            ("getpid getppid", Effect::Read(Environment::Identity)),
            ("makedirs mkdir remove system rename replace chdir rmdir unlink", Effect::Silent),
        ],
    ),
    Library::new("glob", &[("glob iglob", Effect::Read(Environment::FileOrder))]),
    Library::uniform("secrets", &[], Effect::Read(Environment::Entropy)),
    Library::new("uuid", &[("uuid1 uuid4", Effect::Read(Environment::Identity))]),
    Library::new(
        "time",
        &[(
            "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time clock ctime \
             localtime gmtime strftime asctime",
            Effect::Read(Environment::Clock),
        )],
    ),
    Library::new(
        "datetime",
        &[(
            "datetime.now datetime.utcnow datetime.today date.today now",
            Effect::Read(Environment::Clock),
        )],
    ),
    Library::new("concurrent", &[("futures.as_completed", Effect::Read(Environment::Arrival))]),
    Library::new("asyncio", &[("as_completed wait", Effect::Read(Environment::Arrival))]),
    Library::new("copy", &[("deepcopy copy", Effect::Copy)]),
    Library::new("pickle", PICKLE),
    // Replacements for `pickle` that the standard library does not have.
    Library { otherwise: None, ..Library::new("cPickle dill cloudpickle joblib", PICKLE) },
    Library::new("shutil", &[("copy copyfile copy2", Effect::CopyFile)]),
    Library::uniform("argparse", &[], Effect::Settings),
    Library::uniform(
        "logging warnings traceback pprint signal gc atexit faulthandler cProfile pstats",
        &[],
        Effect::Silent,
    ),
    Library::new(
        "__future__ abc array ast base64 bisect builtins bz2 calendar cmath codecs collections \
         colorsys configparser contextlib contextvars csv ctypes dataclasses decimal difflib dis \
         email enum errno filecmp fnmatch fractions ftplib functools getopt getpass gzip hashlib \
         heapq hmac html http imp importlib inspect io itertools json keyword linecache locale lzma \
         math mimetypes multiprocessing numbers operator pathlib pkgutil platform queue re resource \
         sched select shelve shlex socket sqlite3 ssl stat statistics string struct subprocess sys \
         tarfile tempfile textwrap threading timeit token tokenize types typing typing_extensions \
         unicodedata unittest urllib weakref xml zipfile zlib zoneinfo",
        &[],
    ),
];
