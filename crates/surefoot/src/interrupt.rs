//! Ctrl-C: the first asks to stop after the step, the second stops at once.

use crate::exit::Exit;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on Ctrl-C, or a signal to terminate, asks instead of killing. `say` is called when
    /// it does so for the first time.
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

    /// The same for a worker, however often it is asked. At a terminal it hears of one Ctrl-C twice, from there and from
    /// whoever looks after it; and what it runs must not be left behind.
    pub(crate) fn listen_patiently() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let asked = Arc::clone(&interrupt.asked);
        set_handler(move || asked.store(true, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    /// Costs no more than reading memory.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

fn set_handler(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let set = ctrlc::set_handler(handler);
    set.map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}
