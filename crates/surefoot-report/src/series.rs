//! A series of values, downsampled while reading.

/// Maximum number of buckets of a report, with two points each.
const BUCKETS: usize = 400;

/// Values over steps, in a limited number of buckets that keep their minimum and maximum, so that a spike of
/// one step stays visible.
///
/// Buckets start with one step each; when there are too many, neighbors are merged.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Steps per bucket.
    width: u64,
    /// Maximum number of buckets.
    most: usize,
    buckets: Vec<Bucket>,
    last: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Bucket number: steps from `index * width`.
    index: u64,
    min: Point,
    max: Point,
    sum: f64,
    count: u64,
    /// First step with a NaN or infinite value.
    broken: Option<u64>,
}

/// A step and its value.
pub(crate) type Point = (f64, f64);

impl Default for Series {
    fn default() -> Self {
        Self::with_buckets(BUCKETS)
    }
}

impl Series {
    /// An empty series of at most `most` buckets.
    pub(crate) fn with_buckets(most: usize) -> Series {
        Series { width: 1, most: most.max(1), buckets: Vec::new(), last: None }
    }

    /// Adds the value of a step; steps must be in order.
    pub(crate) fn push(&mut self, step: u64, value: f64) {
        self.last = Some(value);
        let index = step / self.width;
        let point = (step as f64, value);
        let bucket = Bucket {
            index,
            min: point,
            max: point,
            sum: if value.is_finite() { value } else { 0.0 },
            count: value.is_finite().into(),
            broken: (!value.is_finite()).then_some(step),
        };
        match self.buckets.last_mut() {
            Some(last) if last.index == index => last.merge(&bucket),
            _ => self.buckets.push(bucket),
        }
        while self.buckets.len() > self.most {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.width *= 2;
        for bucket in &mut self.buckets {
            bucket.index /= 2;
        }
        self.buckets.dedup_by(|next, kept| {
            let same = next.index == kept.index;
            if same {
                kept.merge(next);
            }
            same
        });
    }

    /// The last value, finite or not.
    pub(crate) fn last(&self) -> Option<f64> {
        self.last
    }

    /// The finite minimum and maximum of each bucket in order; a new line starts where values are
    /// missing.
    pub(crate) fn lines(&self) -> Vec<Vec<Point>> {
        self.unbroken(|bucket, _| {
            let (min, max) = (bucket.min, bucket.max);
            match min.0 == max.0 {
                true => vec![min],
                false if min.0 < max.0 => vec![min, max],
                false => vec![max, min],
            }
        })
    }

    /// Running median of the bucket means; `None` for a series that is short enough to be drawn
    /// completely.
    pub(crate) fn trend(&self) -> Option<Vec<Vec<Point>>> {
        let reach = self.buckets.len() / 50;
        if reach == 0 {
            return None;
        }
        let means: Vec<f64> = self.buckets.iter().map(Bucket::mean).collect();
        Some(self.unbroken(|bucket, at| {
            let window = at.saturating_sub(reach)..means.len().min(at + reach + 1);
            let mut window = means[window].to_vec();
            window.retain(|mean| mean.is_finite());
            window.sort_by(f64::total_cmp);
            let middle = (bucket.min.0 + bucket.max.0) / 2.0;
            // The mean may overflow; then the minimum is used.
            let median = window.get(window.len() / 2);
            vec![(middle, median.copied().unwrap_or(bucket.min.1))]
        }))
    }

    fn unbroken(&self, points: impl Fn(&Bucket, usize) -> Vec<Point>) -> Vec<Vec<Point>> {
        let mut lines = vec![Vec::new()];
        for (at, bucket) in self.buckets.iter().enumerate() {
            if bucket.count > 0
                && let Some(line) = lines.last_mut()
            {
                line.extend(points(bucket, at));
            }
            if bucket.broken.is_some() {
                lines.push(Vec::new());
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// Steps per bucket.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// Memory of the buckets in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Minimum, maximum and mean of the buckets that have finite values between two steps, with the step in the middle of each.
    pub(crate) fn columns(&self, from: u64, to: u64) -> impl Iterator<Item = [f64; 4]> {
        let buckets = self.buckets.iter().filter(move |bucket| {
            let first = bucket.index * self.width;
            bucket.count > 0 && first + self.width > from && first <= to
        });
        buckets.map(|bucket| {
            let middle = (bucket.min.0 + bucket.max.0) / 2.0;
            [middle, bucket.min.1, bucket.max.1, bucket.mean()]
        })
    }

    /// The first step of each bucket with a NaN or infinite value.
    pub(crate) fn broken(&self) -> Vec<u64> {
        self.buckets.iter().filter_map(|b| b.broken).collect()
    }
}

impl Bucket {
    /// Merges the next bucket.
    fn merge(&mut self, next: &Bucket) {
        if next.count > 0 {
            let empty = self.count == 0;
            if empty || next.min.1 < self.min.1 {
                self.min = next.min;
            }
            if empty || next.max.1 > self.max.1 {
                self.max = next.max;
            }
        }
        self.sum += next.sum;
        self.count += next.count;
        self.broken = self.broken.or(next.broken);
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = f64>) -> Series {
        let mut series = Series::default();
        for (i, value) in values.into_iter().enumerate() {
            series.push(i as u64 + 1, value);
        }
        series
    }

    #[test]
    fn a_short_series_is_unchanged() {
        let lines = series([3.0, 1.0, 2.0]).lines();
        assert_eq!(lines, [[(1.0, 3.0), (2.0, 1.0), (3.0, 2.0)]]);
    }

    #[test]
    fn a_long_series_keeps_the_spike_of_one_step() {
        let spiky = (0..100_000).map(|i| if i == 70_123 { 50.0 } else { (i % 7) as f64 });
        let lines = series(spiky).lines();
        let points = lines.concat();
        assert!(points.len() <= 800 && points.len() > 300, "{}", points.len());
        assert!(points.contains(&(70_124.0, 50.0)));
        assert!(points.is_sorted_by_key(|point| point.0));
    }

    #[test]
    fn non_finite_values_interrupt_the_line() {
        let broken = series([1.0, f64::NAN, 2.0, f64::INFINITY, 3.0]);
        assert_eq!(broken.lines().len(), 3);
        assert_eq!(broken.broken(), [2, 4]);
        let hopeless = series([f64::NAN; 5000]);
        assert!(hopeless.lines().is_empty());
        assert!(hopeless.trend().unwrap().is_empty());
    }

    #[test]
    fn a_bucket_that_starts_with_nan_keeps_other_values() {
        let values = (0..2000).map(|i| if i % 2 == 0 { f64::NAN } else { i as f64 });
        let points = series(values).lines().concat();
        assert!(!points.is_empty());
        assert!(points.iter().all(|(_, value)| value.is_finite()));
    }

    #[test]
    fn the_trend_is_not_moved_by_a_spike() {
        let spiky = series((0..400).map(|i| if i == 200 { 1e6 } else { 1.0 }));
        let trend = spiky.trend().unwrap().concat();
        assert!(trend.iter().all(|(_, value)| *value == 1.0));
        assert!(series([1.0; 20]).trend().is_none());
    }
}
