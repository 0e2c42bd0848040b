//! The pulse of a worker: signs of life while it is busy with a long stretch.

use super::{Claim, Error, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a worker gives signs of life with, for one trial after the other: a thread with its own connection, which is
/// made once.
#[derive(Debug)]
pub struct Heart {
    beats: Option<mpsc::Sender<Beat>>,
    thread: Option<JoinHandle<()>>,
}

/// A claim to give signs of life for.
struct Beat {
    claim: Claim,
    every: Duration,
    /// Where it is said that the claim is lost. It is gone with the [`Pulse`].
    lost: Weak<AtomicBool>,
}

impl Heart {
    /// Connects to the store of this URL, which must be there.
    pub fn open(url: &str) -> Result<Heart, Error> {
        let store = Store::open_existing(url)?;
        let (beats, taken) = mpsc::channel();
        Ok(Heart {
            beats: Some(beats),
            thread: Some(std::thread::spawn(move || beat(store, &taken))),
        })
    }

    /// Gives signs of life for a claim from now on, and no more for the one before.
    pub fn beat_for(&self, claim: &Claim, every: Duration) -> Pulse {
        let lost = Arc::new(AtomicBool::new(false));
        if let Some(beats) = &self.beats {
            // The thread is there as long as this is.
            let _ = beats.send(Beat { claim: claim.clone(), every, lost: Arc::downgrade(&lost) });
        }
        Pulse { lost }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        drop(self.beats.take());
        if let Some(thread) = self.thread.take() {
            // It panics never; if it did, there would be nothing to do about it here.
            let _ = thread.join();
        }
    }
}

/// Gives signs of life until the heart is gone, always for the last claim.
fn beat(mut store: Store, beats: &Receiver<Beat>) {
    while let Ok(mut beat) = beats.recv() {
        loop {
            match beats.recv_timeout(beat.every) {
                Ok(next) => beat = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let Some(lost) = beat.lost.upgrade() else {
                        break;
                    };
                    // Any other error may pass, and if it does not, the worker meets it too.
                    if let Err(Error::ClaimLost { .. }) = store.heartbeat(&beat.claim) {
                        lost.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            }
        }
    }
}

/// Signs of life for a claim, until this is dropped.
#[derive(Debug)]
pub struct Pulse {
    lost: Arc<AtomicBool>,
}

impl Pulse {
    /// Whether the claim is lost: the worker was thought dead, and may as well stop.
    pub fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}
