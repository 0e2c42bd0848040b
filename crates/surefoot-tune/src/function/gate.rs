//! Handover of trials between a worker and the thread of a function.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Lets a worker claim a trial only when the function is ready for it, and the function continue only when the last
/// trial is stored.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The function waits for a trial.
    is_asked: bool,
    /// The function runs a trial.
    is_running: bool,
    /// A stop was requested.
    is_stopped: bool,
    /// The worker has stored its last trial.
    is_idle: bool,
}

impl Gate {
    /// Called by the worker: returns true if it should stop. Between two trials it waits for the function.
    pub(super) fn stop_requested(&self) -> bool {
        let mut state = self.lock();
        while !(state.is_asked || state.is_running || state.is_stopped) {
            state.is_idle = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_stopped
    }

    /// Called by the function: asks for a trial.
    pub(super) fn ask(&self) {
        self.change(|state| (state.is_asked, state.is_idle) = (true, false));
    }

    /// Called by the function: it has received a trial.
    pub(super) fn begin(&self) {
        self.change(|state| (state.is_asked, state.is_running) = (false, true));
    }

    /// Called by the function: `end` ends its trial. Returns when the trial is stored.
    pub(super) fn end(&self, end: impl FnOnce()) {
        end();
        let mut state = self.lock();
        while !state.is_idle {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Called by the worker: its trial is over, even if the function has not ended it.
    pub(super) fn release(&self) {
        self.change(|state| state.is_running = false);
    }

    /// Requests a stop.
    pub(super) fn stop(&self) {
        self.change(|state| state.is_stopped = true);
    }

    /// Called by the worker: it has ended.
    pub(super) fn leave(&self) {
        self.change(|state| (state.is_idle, state.is_stopped) = (true, true));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
