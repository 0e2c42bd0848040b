//! Files that could not be checked, and why.

use std::path::PathBuf;

/// A path that was left out of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
    /// The line and the column, both from one, where that is known.
    pub at: Option<(usize, usize)>,
}

/// Why a file cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is nothing at the path.
    #[error("there is no such file")]
    Missing,
    /// The system refuses it.
    #[error("it cannot be read: {0}")]
    System(String),
    /// Not a regular file, a socket for instance.
    #[error("it is not a file")]
    NotAFile,
    /// A directory without scripts.
    #[error("there are no Python files in it")]
    Empty,
    /// Larger than anybody writes by hand.
    #[error("it has {bytes} bytes, more than the {limit} that are read")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The largest that is read.
        limit: u64,
    },
    /// Bytes that are no UTF-8, and no word about another encoding.
    #[error("it is not text in UTF-8, and does not name another encoding")]
    NotText,
    /// An encoding that is not read.
    #[error("it is text in `{0}`; UTF-8 and Latin-1 are read")]
    Encoding(String),
    /// Zeros, which no text has.
    #[error("there are NUL bytes in it, which Python does not read either")]
    Zeros,
    /// A Jupyter notebook.
    #[error("it is a notebook; export it first: jupyter nbconvert --to script")]
    Notebook,
    /// Python 2.
    #[error("it is Python 2, only Python 3 is read: {0}")]
    Python2(String),
    /// Not Python.
    #[error("it is not Python: {0}")]
    Syntax(String),
    /// The checker itself failed on it.
    #[error("the check of it failed; please report this: {0}")]
    Failed(String),
}
