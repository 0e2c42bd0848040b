//! Exit codes.

/// Exit code of the process. Scripts rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Done, and the answer is no: a failed repair, findings, a mismatch.
    No = 1,
    /// Wrong input.
    WrongInput = 2,
    /// Internal or system error.
    Broken = 3,
    /// Interrupted by Ctrl-C or a termination signal; the code that shells use.
    Interrupted = 130,
}
