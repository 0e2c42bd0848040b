//! The pulse of a worker: signs of life while it is busy with a long stretch.

use super::{Claim, Error, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Gives signs of life for a claim, in a thread with its own connection, until it is dropped.
#[derive(Debug)]
pub struct Pulse {
    lost: Arc<AtomicBool>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// How often a worker gives a sign of life, unless told otherwise: a quarter of the grace
    /// period ([`Limits::grace`](super::Limits::grace)).
    pub const EVERY: Duration = Duration::from_secs(15);

    /// Starts to give signs of life for a claim in the store of this URL.
    pub fn start(url: &str, claim: &Claim, every: Duration) -> Result<Pulse, Error> {
        let mut store = Store::open_existing(url)?;
        let claim = claim.clone();
        let lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = mpsc::channel();
        let seen = Arc::clone(&lost);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // Any other error may pass, and if it does not, the worker meets it too.
                if let Err(Error::ClaimLost { .. }) = store.heartbeat(&claim) {
                    seen.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        Ok(Pulse {
            lost,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Whether the claim is lost: the worker was thought dead, and may as well stop.
    pub fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics never; if it did, there would be nothing to do about it here.
            let _ = thread.join();
        }
    }
}
