//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done.
    Done = 0,
    /// It is done, and the answer is no.
    No = 1,
    /// The input is wrong.
    WrongInput = 2,
    /// Something broke.
    Broken = 3,
    /// It was asked to stop, as shells report it for Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
