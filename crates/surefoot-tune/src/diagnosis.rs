//! Diagnosis in a background thread, next to the training of a trial.
//!
//! The paper uses a separate process so that training does not wait (section 3.3). Observations are sent
//! in batches, because waking the thread at every step would cost more than diagnosing the step. Findings
//! are collected at fixed steps and waited for, so the step at which a trial is pruned does not depend on
//! the speed of the thread.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use surefoot_diagnose::{Diagnosis, Evaluation, Finding, LayerInfo, Observation};

/// Observations sent together.
const BATCH: usize = 64;
/// Queued batches before training waits.
const QUEUE: usize = 64;

enum Message {
    Layers(Vec<LayerInfo>),
    Observations(Vec<Observation>),
    Evaluation(Evaluation),
    /// Send the findings since the last request.
    Findings,
}

/// A diagnosis that runs in a thread.
#[derive(Debug)]
pub struct BackgroundDiagnosis {
    batch: Vec<Observation>,
    messages: Option<SyncSender<Message>>,
    answers: Receiver<Vec<Finding>>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundDiagnosis {
    /// Starts the thread.
    pub fn new(diagnosis: Diagnosis) -> std::io::Result<BackgroundDiagnosis> {
        let (messages, received) = sync_channel(QUEUE);
        let (answer, answers) = channel();
        let thread = std::thread::Builder::new()
            .name("diagnosis".to_owned())
            .spawn(move || check(diagnosis, received, answer))?;
        Ok(BackgroundDiagnosis {
            batch: Vec::with_capacity(BATCH),
            messages: Some(messages),
            answers,
            thread: Some(thread),
        })
    }

    /// Describes the layers, for a trial that did not do so at its start.
    pub fn set_layers(&mut self, layers: Vec<LayerInfo>) {
        self.flush();
        self.send(Message::Layers(layers));
    }

    /// Adds a step. Costs a copy of the observation.
    pub fn observe(&mut self, observation: &Observation) {
        self.batch.push(observation.clone());
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// Adds an evaluation.
    pub fn evaluate(&mut self, evaluation: &Evaluation) {
        self.flush();
        self.send(Message::Evaluation(evaluation.clone()));
    }

    /// Returns the findings since the last call, once everything added has been diagnosed.
    pub fn findings(&mut self) -> Vec<Finding> {
        self.flush();
        self.send(Message::Findings);
        // If the thread has died, the trial continues without diagnosis.
        self.answers.recv().unwrap_or_default()
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
            self.send(Message::Observations(batch));
        }
    }

    fn send(&self, message: Message) {
        if let Some(messages) = &self.messages {
            // See `findings`.
            let _ = messages.send(message);
        }
    }
}

impl Drop for BackgroundDiagnosis {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn check(
    mut diagnosis: Diagnosis,
    messages: Receiver<Message>,
    answer: std::sync::mpsc::Sender<Vec<Finding>>,
) {
    let mut sent = 0;
    for message in messages {
        match message {
            Message::Layers(layers) => diagnosis.set_layers(layers),
            Message::Observations(batch) => {
                for observation in &batch {
                    diagnosis.observe(observation);
                }
            }
            Message::Evaluation(evaluation) => {
                diagnosis.evaluate(&evaluation);
            }
            Message::Findings => {
                let new = diagnosis.findings()[sent..].to_vec();
                sent += new.len();
                if answer.send(new).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Context, Detector, Facts, Problem, Quantity, Thresholds};

    /// Finds something at a step.
    struct At(u64);

    impl Detector for At {
        fn problem(&self) -> Problem {
            Problem::new("at")
        }

        fn needs(&self) -> &'static [Quantity] {
            &[]
        }

        fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
            let found = seen.step == self.0;
            found.then(|| Finding::new(self.problem(), seen.step, "It is there."))
        }
    }

    fn observation(step: u64) -> Observation {
        Observation::new(step, 1.0)
    }

    fn diagnosis(step: u64) -> BackgroundDiagnosis {
        let detectors: Vec<Box<dyn Detector>> = vec![Box::new(At(step))];
        let diagnosis = Diagnosis::with(Facts::default(), Thresholds::default(), detectors);
        BackgroundDiagnosis::new(diagnosis).expect("a thread")
    }

    #[test]
    fn findings_wait_for_all_observations() {
        for step in [1, 63, 64, 65, 200] {
            let mut background = diagnosis(step);
            for seen in 1..step {
                background.observe(&observation(seen));
            }
            assert!(background.findings().is_empty());
            background.observe(&observation(step));
            let found = background.findings();
            assert_eq!(found.iter().map(|f| f.step).collect::<Vec<_>>(), [step]);
            assert!(background.findings().is_empty(), "returned once");
        }
    }
}
