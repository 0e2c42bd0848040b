//! One training batch, cut into shards that any number of workers may compute.
//!
//! The cut depends on the plan alone. Whatever crosses shards (gradients, losses, batch
//! statistics, observed moments) is combined along one binary tree over the shards, so one worker
//! and eight give the same bits.

use crate::compute::Compute;
use crate::kernel::parallel;
use crate::layer::{Mode, MovingUpdate, Pass};
use crate::loss::{TargetView, evaluate};
use crate::metric::Tally;
use crate::network::Network;
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::worker_pool::WorkerPool;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Barrier, Mutex, PoisonError};
use surefoot_plan::{Activation, Loss};
use surefoot_stats::Moments;

/// Samples in memory, laid out as the stages want them.
#[derive(Clone, Debug)]
pub(crate) struct Examples {
    features: Vec<f32>,
    /// The shape of one sample; images have their channels first.
    shape: Vec<usize>,
    width: usize,
}

impl Examples {
    /// Takes samples of shape `shape`, channels last.
    pub(crate) fn new(features: &[f32], shape: &[usize]) -> Self {
        let width = shape.iter().product::<usize>().max(1);
        match *shape {
            [height, across, channels] if channels > 1 => {
                let area = height * across;
                let mut moved = vec![0.0; features.len()];
                for (to, from) in moved.chunks_exact_mut(width).zip(features.chunks_exact(width)) {
                    for (channel, plane) in to.chunks_exact_mut(area).enumerate() {
                        for (value, position) in plane.iter_mut().zip(from.chunks_exact(channels)) {
                            *value = position[channel];
                        }
                    }
                }
                Self { features: moved, shape: vec![channels, height, across], width }
            }
            [height, across, channels] => {
                Self { features: features.to_vec(), shape: vec![channels, height, across], width }
            }
            _ => Self { features: features.to_vec(), shape: shape.to_vec(), width },
        }
    }

    /// The samples `ids` as one tensor.
    pub(crate) fn gather<B: Compute>(&self, ids: &[usize], device: &B::Device) -> Tensor<B> {
        let mut values = Vec::with_capacity(ids.len() * self.width);
        for &id in ids {
            values.extend_from_slice(&self.features[id * self.width..][..self.width]);
        }
        let mut shape = vec![ids.len()];
        shape.extend(&self.shape);
        Tensor::from_values(values, &shape, device)
    }
}

/// Inputs of a training step.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) examples: &'a Examples,
    pub(crate) targets: TargetView<'a>,
    /// Positions in `examples`.
    pub(crate) ids: &'a [usize],
    /// The numbers of the samples in the data set, which key their draws.
    pub(crate) samples: &'a [u64],
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) loss: Loss,
}

/// Output statistics to collect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) outputs: bool,
    pub(crate) quartiles: bool,
}

/// Statistics of one layer's output.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputNote {
    pub(crate) moments: Moments,
    /// Saturated values of a bounded activation, and all its values.
    pub(crate) saturated: Option<(u64, u64)>,
    /// An evenly spaced sample of the values, if quartiles were requested.
    pub(crate) sample: Vec<f32>,
}

/// The outcome of a batch, or of one shard of it.
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// The gradient of the mean loss, as long as the learned parameters.
    pub(crate) gradient: Vec<f32>,
    /// The input, then every observed layer; empty if not requested.
    pub(crate) notes: Vec<OutputNote>,
}

impl Outcome {
    fn merge(mut self, other: Self) -> Self {
        crate::kernel::vectorized(
            #[inline(always)]
            || {
                for (a, b) in self.gradient.iter_mut().zip(&other.gradient) {
                    *a += b;
                }
            },
        );
        self.tally = self.tally.merge(&other.tally);
        for (a, b) in self.notes.iter_mut().zip(other.notes) {
            a.moments = a.moments.merge(&b.moments);
            a.saturated = match (a.saturated, b.saturated) {
                (Some((n, of)), Some((m, out_of))) => Some((n + m, of + out_of)),
                _ => None,
            };
            a.sample.extend(b.sample);
        }
        self
    }
}

/// The part of `0..len` that shard `index` of `shards` has.
fn cut(len: usize, shards: usize, index: usize) -> Range<usize> {
    len * index / shards..len * (index + 1) / shards
}

/// Combines `items` pairwise, level by level: a tree that depends on their number alone.
pub(crate) fn tree<T>(mut items: Vec<T>, merge: impl Fn(T, T) -> T) -> Option<T> {
    while items.len() > 1 {
        let mut next = Vec::with_capacity(items.len().div_ceil(2));
        let mut rest = items.into_iter();
        while let Some(left) = rest.next() {
            next.push(match rest.next() {
                Some(right) => merge(left, right),
                None => left,
            });
        }
        items = next;
    }
    items.pop()
}

/// Computes loss, gradient and notes of `batch`.
pub(crate) fn compute<B: Compute>(
    network: &Network<B>,
    parameters: &mut Parameters,
    batch: Batch<'_>,
    pool: (usize, &WorkerPool),
    look: Look,
    device: &B::Device,
) -> (Option<Outcome>, Vec<MovingUpdate>) {
    parameters.lend::<B, _>(device, |parameters, uploaded| {
        compute_with(network, (parameters, uploaded), batch, pool, look, device)
    })
}

fn compute_with<B: Compute>(
    network: &Network<B>,
    (parameters, uploaded): (&Parameters, &[Tensor<B>]),
    batch: Batch<'_>,
    (shards, worker_pool): (usize, &WorkerPool),
    look: Look,
    device: &B::Device,
) -> (Option<Outcome>, Vec<MovingUpdate>) {
    // Empty shards, which a short last batch may have, contribute nothing.
    let shards = shards.min(batch.ids.len());
    let parts: Vec<Range<usize>> = (0..shards)
        .map(|i| cut(batch.ids.len(), shards, i))
        .filter(|part| !part.is_empty())
        .collect();
    let workers = worker_pool.size().min(parts.len()).max(1);
    let job = Job {
        network,
        parameters,
        uploaded,
        batch,
        parts: &parts,
        look,
        device,
        exchange: Exchange::new(network, parts.len(), workers),
    };
    let outcomes = worker_pool.work(workers, |worker| job.work(worker, workers));
    let mut outcomes: Vec<(usize, Outcome)> = outcomes.into_iter().flatten().collect();
    outcomes.sort_by_key(|(part, _)| *part);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    let moving = job.exchange.into_moving(network);
    (tree(outcomes, Outcome::merge), moving)
}

/// Values shared by all workers of a step.
struct Job<'a, B: Compute> {
    network: &'a Network<B>,
    parameters: &'a Parameters,
    uploaded: &'a [Tensor<B>],
    batch: Batch<'a>,
    parts: &'a [Range<usize>],
    look: Look,
    device: &'a B::Device,
    exchange: Exchange,
}

/// A shard on its way.
struct Shard<'a, B: Compute> {
    part: usize,
    pass: Pass<'a, B>,
    x: Tensor<B>,
    notes: Vec<OutputNote>,
}

impl<B: Compute> Job<'_, B> {
    /// Computes every `workers`-th shard from `worker` on.
    fn work(&self, worker: usize, workers: usize) -> Vec<(usize, Outcome)> {
        let mine: Vec<usize> = (worker..self.parts.len()).step_by(workers).collect();
        if self.exchange.is_empty() {
            // Shards are independent: one after the other, so that only one is in memory.
            mine.into_iter()
                .map(|part| {
                    let mut shards = vec![self.enter(part)];
                    (part, self.through(&mut shards).remove(0))
                })
                .collect()
        } else {
            let mut shards: Vec<_> = mine.iter().map(|&part| self.enter(part)).collect();
            let outcomes = self.through(&mut shards);
            mine.into_iter().zip(outcomes).collect()
        }
    }

    fn enter(&self, part: usize) -> Shard<'_, B> {
        let range = self.parts[part].clone();
        let x = self.batch.examples.gather::<B>(&self.batch.ids[range.clone()], self.device);
        let mode = Mode::Training {
            seed: self.batch.seed,
            epoch: self.batch.epoch,
            samples: &self.batch.samples[range],
        };
        let mut notes = Vec::new();
        if self.look.outputs {
            notes.reserve(self.network.subjects.len() + 1);
            notes.push(note(&x, None, self.look));
        }
        Shard { part, pass: Pass::new(self.uploaded, mode, self.device), x, notes }
    }

    /// Takes `shards` forward through all stages and back, in step with one another.
    fn through(&self, shards: &mut [Shard<'_, B>]) -> Vec<Outcome> {
        let mut subjects = self.network.subjects.iter().peekable();
        let mut meeting = 0;
        for (index, stage) in self.network.stages.iter().enumerate() {
            if let Some(stage) = stage.synchronous() {
                for shard in shards.iter() {
                    let statistics = stage.gather(&shard.x);
                    self.exchange.forward[meeting].bring(shard.part, statistics);
                }
                self.exchange.meet();
                let whole = self.exchange.forward[meeting].whole(|a, b| stage.merge(&a, &b));
                for shard in shards.iter_mut() {
                    shard.x = stage.apply(shard.x.clone(), &whole, &mut shard.pass);
                }
                meeting += 1;
            } else {
                for shard in shards.iter_mut() {
                    shard.x = stage.forward(shard.x.clone(), &mut shard.pass);
                }
            }
            while let Some(subject) = subjects.next_if(|s| s.stage == index) {
                if self.look.outputs {
                    for shard in shards.iter_mut() {
                        let note = note(&shard.x, subject.activation, self.look);
                        shard.notes.push(note);
                    }
                }
            }
        }
        let tallies: Vec<Tally> = shards.iter_mut().map(|s| self.judge(s)).collect();
        for (index, stage) in self.network.stages.iter().enumerate().rev() {
            if Some(index) < self.network.first_learning {
                break;
            }
            if let Some(stage) = stage.synchronous() {
                meeting -= 1;
                for shard in shards.iter_mut() {
                    let sums = stage.gather_backward(&shard.x, &mut shard.pass);
                    self.exchange.backward[meeting].bring(shard.part, sums);
                }
                self.exchange.meet();
                let whole = self.exchange.backward[meeting].whole(|mut a, b| {
                    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                    a
                });
                for shard in shards.iter_mut() {
                    shard.x = stage.apply_backward(shard.x.clone(), &whole, &mut shard.pass);
                }
            } else {
                for shard in shards.iter_mut() {
                    shard.x = stage.backward(shard.x.clone(), &mut shard.pass);
                }
            }
        }
        shards
            .iter_mut()
            .zip(tallies)
            .map(|(shard, tally)| Outcome {
                tally,
                gradient: self.flatten(&shard.pass),
                notes: std::mem::take(&mut shard.notes),
            })
            .collect()
    }

    /// Turns a shard's outputs into the gradient of its loss.
    fn judge(&self, shard: &mut Shard<'_, B>) -> Tally {
        let ids = &self.batch.ids[self.parts[shard.part].clone()];
        let width = self.network.width;
        let shape = shard.x.shape();
        let (tally, gradient) = B::read(&shard.x, |outputs| {
            let batch = self.batch.ids.len();
            let (total, gradient) =
                evaluate(self.batch.loss, outputs, width, self.batch.targets, ids, batch);
            let tally = Tally::of(outputs, width, self.batch.targets, ids, self.batch.loss, total);
            (tally, gradient)
        });
        shard.x = Tensor::from_values(gradient, &shape, self.device);
        tally
    }

    /// The gradients of all arrays in one stretch, as the parameters lie.
    fn flatten(&self, pass: &Pass<'_, B>) -> Vec<f32> {
        let len = self.parameters.learned();
        let mut flat = Vec::with_capacity(len);
        let values = &mut flat.spare_capacity_mut()[..len];
        for (id, gradient) in pass.gradients.iter().enumerate() {
            let range = self.parameters.range(id);
            match gradient {
                Some(gradient) => B::read(gradient, |from| copy(&mut values[range], from)),
                None if range.end <= len => values[range].fill(MaybeUninit::new(0.0)),
                // Moving statistics have no gradient.
                None => {}
            }
        }
        // SAFETY: the ranges of the learned arrays cover `0..len`, and each was written.
        unsafe { flat.set_len(len) };
        flat
    }
}

/// Copies values; large arrays are shared among threads.
fn copy(to: &mut [MaybeUninit<f32>], from: &[f32]) {
    assert_eq!(to.len(), from.len(), "a gradient has the size of its array");
    let size = parallel::part(to.len(), 1);
    parallel::chunks_mut(to, size, |index, to| {
        to.write_copy_of_slice(&from[index * size..][..to.len()]);
    });
}

/// Moments and saturation of one output.
fn note<B: Compute>(x: &Tensor<B>, activation: Option<Activation>, look: Look) -> OutputNote {
    B::read(x, |values| OutputNote {
        moments: surefoot_stats::moments(values),
        saturated: activation.and_then(|a| saturated(a, values)),
        sample: if look.quartiles { spread(values) } else { Vec::new() },
    })
}

/// All of a short output; of a long one about [`SAMPLE`] values, evenly spread. Quartiles of that
/// many are off by less than a hundredth of the distribution, and cost no copy of the output.
fn spread(values: &[f32]) -> Vec<f32> {
    /// Sample size for the quartiles of a shard's output.
    const SAMPLE: usize = 4096;
    let len = values.len();
    let mut stride = len.div_ceil(SAMPLE).max(1);
    // Without a common factor every row, column and channel is met as often as any other.
    while gcd(stride, len) > 1 {
        stride += 1;
    }
    values.iter().step_by(stride).copied().collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Outputs of a bounded activation within 1% of its bounds, and all its outputs.
fn saturated(activation: Activation, values: &[f32]) -> Option<(u64, u64)> {
    let (low, high) = match activation {
        Activation::Sigmoid | Activation::HardSigmoid { .. } => (0.01, 0.99),
        Activation::Tanh => (-0.98, 0.98),
        _ => return None,
    };
    let count = crate::kernel::vectorized(
        #[inline(always)]
        || values.iter().filter(|&&v| v <= low || v >= high).count(),
    );
    Some((count as u64, values.len() as u64))
}

/// Combines statistics across the workers of a step.
struct Exchange {
    barrier: Barrier,
    forward: Vec<Table>,
    backward: Vec<Table>,
}

/// One seat for the statistics of each shard.
struct Table(Vec<Mutex<Vec<f64>>>);

impl Table {
    fn new(seats: usize) -> Self {
        Self((0..seats).map(|_| Mutex::default()).collect())
    }

    fn bring(&self, seat: usize, statistics: Vec<f64>) {
        *self.0[seat].lock().unwrap_or_else(PoisonError::into_inner) = statistics;
    }

    fn whole(&self, merge: impl Fn(Vec<f64>, Vec<f64>) -> Vec<f64>) -> Vec<f64> {
        let parts = self
            .0
            .iter()
            .map(|seat| seat.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect();
        tree(parts, merge).unwrap_or_default()
    }
}

impl Exchange {
    fn new<B: Compute>(network: &Network<B>, shards: usize, workers: usize) -> Self {
        let meetings = network.stages.iter().filter(|stage| stage.synchronous().is_some()).count();
        let tables = || (0..meetings).map(|_| Table::new(shards)).collect();
        Self { barrier: Barrier::new(workers), forward: tables(), backward: tables() }
    }

    fn is_empty(&self) -> bool {
        self.forward.is_empty()
    }

    fn meet(&self) {
        self.barrier.wait();
    }

    /// Updates of moving statistics from this step's batch.
    fn into_moving<B: Compute>(self, network: &Network<B>) -> Vec<MovingUpdate> {
        network
            .stages
            .iter()
            .filter_map(|stage| stage.synchronous())
            .zip(self.forward)
            .flat_map(|(stage, table)| stage.moving(&table.whole(|a, b| stage.merge(&a, &b))))
            .collect()
    }
}

/// Loss and metric of the samples `ids`, without learning.
pub(crate) fn judge<B: Compute>(
    network: &Network<B>,
    uploaded: &[Tensor<B>],
    batch: Batch<'_>,
    worker_pool: &WorkerPool,
    device: &B::Device,
) -> Option<Tally> {
    /// Samples judged at once; fixed, so that sums are the same for any number of workers.
    const CHUNK: usize = 256;
    let chunks: Vec<&[usize]> = batch.ids.chunks(CHUNK).collect();
    let one = |ids: &[usize]| -> Tally {
        let outputs = infer(network, uploaded, batch.examples, ids, device);
        B::read(&outputs, |outputs| {
            let (total, _) =
                evaluate(batch.loss, outputs, network.width, batch.targets, ids, ids.len());
            Tally::of(outputs, network.width, batch.targets, ids, batch.loss, total)
        })
    };
    let workers = worker_pool.size().min(chunks.len()).max(1);
    let tallies = worker_pool.work(workers, |worker| {
        (worker..chunks.len())
            .step_by(workers)
            .map(|chunk| (chunk, one(chunks[chunk])))
            .collect::<Vec<_>>()
    });
    let mut tallies: Vec<(usize, Tally)> = tallies.into_iter().flatten().collect();
    tallies.sort_by_key(|(chunk, _)| *chunk);
    let tallies = tallies.into_iter().map(|(_, tally)| tally).collect();
    tree(tallies, |a: Tally, b| a.merge(&b))
}

/// The model's outputs for the samples `ids`, without learning.
pub(crate) fn infer<B: Compute>(
    network: &Network<B>,
    uploaded: &[Tensor<B>],
    examples: &Examples,
    ids: &[usize],
    device: &B::Device,
) -> Tensor<B> {
    let mut pass = Pass::new(uploaded, Mode::Inference, device);
    let x = examples.gather::<B>(ids, device);
    network.stages.iter().fold(x, |x, stage| stage.forward(x, &mut pass))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_looked_at_whole() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), [3.0, 1.0, 2.0]);
        assert!(spread(&[]).is_empty());
    }

    #[test]
    fn of_a_long_output_every_channel_is_seen_as_often_as_any_other() {
        // Eight channels of 64 samples of 16x16, each constant.
        let values: Vec<f32> = (0..64 * 8 * 256).map(|i| (i / 256 % 8) as f32).collect();
        let sample = spread(&values);
        for channel in 0..8 {
            let seen = sample.iter().filter(|&&v| v == channel as f32).count();
            let share = seen as f64 / sample.len() as f64;
            assert!((share - 0.125).abs() < 0.01, "channel {channel}: {share}");
        }
    }
}
