//! Files that cannot be checked, and the reason.

use std::path::PathBuf;

/// A path that was left out of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file or directory.
    pub path: PathBuf,
    /// The problem.
    pub reason: Reason,
    /// 1-based line and column, if known.
    pub at: Option<(usize, usize)>,
}

/// Reason why a file cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The path does not exist.
    #[error("no such file")]
    Missing,
    /// The operating system refuses to read it.
    #[error("it cannot be read: {0}")]
    System(String),
    /// Not a regular file, a socket for instance.
    #[error("it is not a file")]
    NotAFile,
    /// A directory without scripts.
    #[error("it contains no Python files")]
    Empty,
    /// Too large for a script.
    #[error("it has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// Size of the file.
        bytes: u64,
        /// Size limit.
        limit: u64,
    },
    /// Not UTF-8, without a coding comment.
    #[error("it is not UTF-8 and declares no other encoding")]
    NotText,
    /// An unsupported encoding.
    #[error("encoding `{0}` is not supported; use UTF-8 or Latin-1")]
    Encoding(String),
    /// NUL bytes, which Python rejects.
    #[error("it contains NUL bytes")]
    NulBytes,
    /// A Jupyter notebook.
    #[error("it is a notebook; export it with `jupyter nbconvert --to script`")]
    Notebook,
    /// Python 2.
    #[error("it is Python 2; only Python 3 is supported: {0}")]
    Python2(String),
    /// A syntax error.
    #[error("it is not Python: {0}")]
    Syntax(String),
    /// A panic in the checker.
    #[error("internal error; please report it: {0}")]
    Failed(String),
}
