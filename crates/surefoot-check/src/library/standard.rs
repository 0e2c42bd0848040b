//! The standard library of Python.

use super::{Effect, Environment, Family, Global};

/// What a call of `ROOT.NAME` does; nothing if `root` is no module of the standard library.
pub(super) fn effect(root: &str, name: &str) -> Option<Effect> {
    Some(match (root, name) {
        ("random", "seed") => Effect::Seed(&[Global::Python]),
        ("random", "getstate") => Effect::GetState(Global::Python),
        ("random", "setstate") => Effect::SetState(Global::Python),
        ("random", "Random") => Effect::Generator(Family::Python),
        ("random", "SystemRandom") => Effect::Read(Environment::Entropy),
        ("random", "shuffle") => Effect::DrawInto(Global::Python),
        ("random", _) => Effect::Draw(Global::Python),
        ("os", "listdir" | "scandir" | "walk" | "fwalk") | ("glob", "glob" | "iglob") => {
            Effect::Read(Environment::FileOrder)
        }
        ("os", "urandom" | "getrandom") | ("secrets", _) => Effect::Read(Environment::Entropy),
        ("os", "getpid" | "getppid") | ("uuid", "uuid1" | "uuid4") => {
            Effect::Read(Environment::Identity)
        }
        (
            "time",
            "time" | "time_ns" | "perf_counter" | "perf_counter_ns" | "monotonic" | "monotonic_ns"
            | "process_time" | "clock" | "ctime" | "localtime" | "gmtime" | "strftime" | "asctime",
        )
        | (
            "datetime",
            "datetime.now" | "datetime.utcnow" | "datetime.today" | "date.today" | "now",
        ) => Effect::Read(Environment::Clock),
        ("concurrent", "futures.as_completed") | ("asyncio", "as_completed" | "wait") => {
            Effect::Read(Environment::Arrival)
        }
        ("copy", "deepcopy" | "copy") => Effect::Copy,
        ("pickle" | "cPickle" | "dill" | "cloudpickle" | "joblib", "dump") => {
            Effect::Save { what: 0 }
        }
        ("pickle" | "cPickle" | "dill" | "cloudpickle" | "joblib", "load") => Effect::Load,
        ("shutil", "copy" | "copyfile" | "copy2") => Effect::CopyFile,
        ("argparse", _) => Effect::Settings,
        (
            "logging" | "warnings" | "traceback" | "pprint" | "signal" | "gc" | "atexit"
            | "faulthandler" | "cProfile" | "pstats",
            _,
        ) => Effect::Silent,
        (
            "os",
            "makedirs" | "mkdir" | "remove" | "system" | "rename" | "replace" | "chdir" | "rmdir"
            | "unlink",
        ) => Effect::Silent,
        _ if is_standard(root) => Effect::Pure,
        _ => return None,
    })
}

fn is_standard(root: &str) -> bool {
    const NAMES: &[&str] = &[
        "__future__",
        "abc",
        "argparse",
        "array",
        "ast",
        "asyncio",
        "base64",
        "bisect",
        "builtins",
        "bz2",
        "calendar",
        "cmath",
        "codecs",
        "collections",
        "colorsys",
        "concurrent",
        "configparser",
        "contextlib",
        "contextvars",
        "copy",
        "csv",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "dis",
        "email",
        "enum",
        "errno",
        "filecmp",
        "fnmatch",
        "fractions",
        "ftplib",
        "functools",
        "getopt",
        "getpass",
        "glob",
        "gzip",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "http",
        "imp",
        "importlib",
        "inspect",
        "io",
        "itertools",
        "json",
        "keyword",
        "linecache",
        "locale",
        "lzma",
        "math",
        "mimetypes",
        "multiprocessing",
        "numbers",
        "operator",
        "os",
        "pathlib",
        "pickle",
        "pkgutil",
        "platform",
        "queue",
        "random",
        "re",
        "resource",
        "sched",
        "secrets",
        "select",
        "shelve",
        "shlex",
        "shutil",
        "socket",
        "sqlite3",
        "ssl",
        "stat",
        "statistics",
        "string",
        "struct",
        "subprocess",
        "sys",
        "tarfile",
        "tempfile",
        "textwrap",
        "threading",
        "time",
        "timeit",
        "token",
        "tokenize",
        "types",
        "typing",
        "typing_extensions",
        "unicodedata",
        "unittest",
        "urllib",
        "uuid",
        "weakref",
        "xml",
        "zipfile",
        "zlib",
        "zoneinfo",
    ];
    NAMES.binary_search(&root).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_among_the_sorted_names() {
        for name in ["__future__", "abc", "os", "typing_extensions", "zoneinfo"] {
            assert!(is_standard(name), "{name}");
        }
        assert!(!is_standard("wandb"));
    }
}
