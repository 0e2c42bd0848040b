//! Ctrl-C: the first one requests a stop after the current step, the second one exits at once.

use crate::exit::Exit;
use crate::failure::Failure;
use surefoot_train::StopSignal;

/// Flag that Ctrl-C or a termination signal sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    signal: StopSignal,
}

impl Interrupt {
    /// Installs the signal handler. Calls `say` at the first signal.
    pub(crate) fn listen(say: impl Fn() + Send + 'static) -> Result<Self, Failure> {
        let interrupt = Self::default();
        let signal = interrupt.signal();
        set_handler(move || {
            if signal.request() {
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
        let signal = interrupt.signal();
        set_handler(move || {
            signal.request();
        })?;
        Ok(interrupt)
    }

    /// True once a stop was requested. Costs one relaxed load.
    pub(crate) fn asked(&self) -> bool {
        self.signal.is_requested()
    }

    /// The flag, for a trainer.
    pub(crate) fn signal(&self) -> StopSignal {
        self.signal.clone()
    }
}

fn set_handler(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let set = ctrlc::set_handler(handler);
    set.map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}
