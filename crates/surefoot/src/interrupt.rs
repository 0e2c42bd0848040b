//! Ctrl-C: the first one requests a stop after the current step, the second one exits at once.

use crate::exit::Exit;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag that Ctrl-C or a termination signal sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the signal handler. Calls `say` at the first signal.
    pub(crate) fn listen(say: impl Fn() + Send + 'static) -> Result<Self, Failure> {
        let interrupt = Self::default();
        let asked = Arc::clone(&interrupt.asked);
        set_handler(move || {
            if asked.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted as i32);
            }
            say();
        })?;
        Ok(interrupt)
    }

    /// Installs the signal handler of a worker process, which never exits at a second signal: a
    /// terminal and the parent process both deliver the same Ctrl-C, and the worker has to clean up
    /// its trial first.
    pub(crate) fn listen_patiently() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let asked = Arc::clone(&interrupt.asked);
        set_handler(move || asked.store(true, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    /// True once a stop was requested. Costs one relaxed load.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

fn set_handler(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let set = ctrlc::set_handler(handler);
    set.map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}
