//! Convolution and pooling, window by window.

use surefoot_plan::{Activation, Padding, Weight};

use crate::forward::{Sample, activate, add_bias};

/// Positions of the windows on an image.
pub(crate) struct Windows {
    pub(crate) size: [usize; 2],
    pub(crate) strides: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding: Padding,
}

impl Windows {
    /// For each window, the taps that lie on the image: index in the window and position.
    fn over(&self, shape: &[usize]) -> (Vec<usize>, Vec<Vec<(usize, usize)>>) {
        let axis = |a: usize| {
            let span = (self.size[a] - 1) * self.dilation[a] + 1;
            let (count, before) = match self.padding {
                Padding::Valid => ((shape[a] - span) / self.strides[a] + 1, 0),
                Padding::Same => {
                    let count = shape[a].div_ceil(self.strides[a]);
                    let needed = (count - 1) * self.strides[a] + span;
                    (count, needed.saturating_sub(shape[a]) / 2)
                }
            };
            let tap = move |window: usize, k: usize| {
                let position = window * self.strides[a] + k * self.dilation[a];
                position.checked_sub(before).filter(|&p| p < shape[a])
            };
            (count, tap)
        };
        let ((rows, row_tap), (columns, column_tap)) = (axis(0), axis(1));
        let mut windows = Vec::new();
        for (row, column) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let mut taps = Vec::new();
            for (i, j) in (0..self.size[0]).flat_map(|i| (0..self.size[1]).map(move |j| (i, j))) {
                if let (Some(y), Some(x)) = (row_tap(row, i), column_tap(column, j)) {
                    taps.push((i * self.size[1] + j, y * shape[1] + x));
                }
            }
            windows.push(taps);
        }
        (vec![rows, columns], windows)
    }
}

pub(crate) fn convolve(
    x: Sample,
    kernel: &Weight,
    bias: Option<&Weight>,
    windows: &Windows,
    activation: Activation,
) -> Sample {
    let [filters, channels, height, width] = kernel.shape[..] else { panic!() };
    let (mut shape, windows) = windows.over(&x.shape);
    shape.push(filters);
    let mut values = Vec::new();
    for taps in windows {
        let mut out: Vec<f64> = (0..filters)
            .map(|f| {
                let of_tap = |&(tap, position): &(usize, usize)| {
                    let of_channel = |c: usize| {
                        let weight = kernel.values[(f * channels + c) * height * width + tap];
                        f64::from(weight) * x.values[position * channels + c]
                    };
                    (0..channels).map(of_channel).sum::<f64>()
                };
                taps.iter().map(of_tap).sum()
            })
            .collect();
        add_bias(&mut out, bias.as_ref());
        activate(activation, &mut out);
        values.extend(out);
    }
    Sample { shape, values }
}

pub(crate) fn pooled(x: Sample, windows: &Windows, max: bool) -> Sample {
    let channels = x.shape[2];
    let (mut shape, windows) = windows.over(&x.shape);
    shape.push(channels);
    let mut values = Vec::new();
    for taps in windows {
        for c in 0..channels {
            let of_window = taps.iter().map(|(_, position)| x.values[position * channels + c]);
            values.push(if max {
                of_window.fold(f64::MIN, f64::max)
            } else {
                of_window.sum::<f64>() / taps.len() as f64
            });
        }
    }
    Sample { shape, values }
}
