//! Diagnoses a trial beside its training.
//!
//! The paper gives the calculation a process of its own so that training is not held up (3.3). Here
//! it is a thread. Observations go to it in batches, because waking it at every step would cost more
//! than looking at the step. Its answer is asked for at fixed steps and waited for, so that when a
//! trial is stopped does not depend on how fast the thread was.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use surefoot_diagnose::{Diagnosis, Evaluation, Finding, LayerInfo, Observation};

/// Observations that go together.
const BATCH: usize = 64;
/// Batches that may wait before training does.
const WAITING: usize = 64;

enum Message {
    Layers(Vec<LayerInfo>),
    Observations(Vec<Observation>),
    Evaluation(Evaluation),
    /// Answer with what was found since the last time.
    Answer,
}

/// A diagnosis in a thread of its own.
#[derive(Debug)]
pub struct Checker {
    batch: Vec<Observation>,
    messages: Option<SyncSender<Message>>,
    answers: Receiver<Vec<Finding>>,
    thread: Option<JoinHandle<()>>,
}

impl Checker {
    /// Begins to check a trial.
    pub fn new(diagnosis: Diagnosis) -> std::io::Result<Checker> {
        let (messages, received) = sync_channel(WAITING);
        let (answer, answers) = channel();
        let thread = std::thread::Builder::new()
            .name("checker".to_owned())
            .spawn(move || check(diagnosis, received, answer))?;
        Ok(Checker {
            batch: Vec::with_capacity(BATCH),
            messages: Some(messages),
            answers,
            thread: Some(thread),
        })
    }

    /// Takes what is known of the layers, for a trial that did not say so when it began.
    pub fn set_layers(&mut self, layers: Vec<LayerInfo>) {
        self.flush();
        self.send(Message::Layers(layers));
    }

    /// Takes a step. Costs a copy of the observation.
    pub fn observe(&mut self, observation: &Observation) {
        self.batch.push(observation.clone());
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// Takes an evaluation.
    pub fn evaluate(&mut self, evaluation: &Evaluation) {
        self.flush();
        self.send(Message::Evaluation(evaluation.clone()));
    }

    /// What was found since the last time, when all that was taken has been looked at.
    pub fn findings(&mut self) -> Vec<Finding> {
        self.flush();
        self.send(Message::Answer);
        // A checker that died has nothing to say: the trial goes on without it.
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
            // As above.
            let _ = messages.send(message);
        }
    }
}

impl Drop for Checker {
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
    let mut told = 0;
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
            Message::Answer => {
                let new = diagnosis.findings()[told..].to_vec();
                told += new.len();
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
        Observation::of_loss(step, 1, 1.0)
    }

    fn checker(step: u64) -> Checker {
        let detectors: Vec<Box<dyn Detector>> = vec![Box::new(At(step))];
        let diagnosis = Diagnosis::with(Facts::default(), Thresholds::default(), detectors);
        Checker::new(diagnosis).expect("a thread")
    }

    #[test]
    fn everything_taken_is_looked_at_before_it_answers() {
        for step in [1, 63, 64, 65, 200] {
            let mut checker = checker(step);
            for seen in 1..step {
                checker.observe(&observation(seen));
            }
            assert!(checker.findings().is_empty());
            checker.observe(&observation(step));
            let found = checker.findings();
            assert_eq!(found.iter().map(|f| f.step).collect::<Vec<_>>(), [step]);
            assert!(checker.findings().is_empty(), "told once");
        }
    }
}
