//! Pooling over windows, and its gradients.

use super::parallel::{self, Shared};
use super::{conv::Window, vectorized};

/// Maxima of each window of `planes` images, and where in its plane each was found.
///
/// A NaN in a window is its maximum: what went wrong stays visible.
pub(crate) fn max(x: &[f32], planes: usize, window: &Window) -> (Vec<f32>, Vec<u32>) {
    let area = window.input[0] * window.input[1];
    let count = planes * window.output[0] * window.output[1];
    let mut y = vec![0.0; count];
    let mut origin = vec![0; count];
    let width = window.output[1];
    let inside = window.before == [0, 0] && window.after == [0, 0];
    let size = parallel::part(count, width);
    let origins = Shared::new(&mut origin);
    parallel::chunks_mut(&mut y, size, |index, y| {
        // SAFETY: each part is visited once.
        let origin = unsafe { origins.slice(index * size, y.len()) };
        let rows = y.chunks_exact_mut(width).zip(origin.chunks_exact_mut(width));
        vectorized(
            #[inline(always)]
            || {
                for (row, (y, origin)) in (index * size / width..).zip(rows) {
                    let (plane, oy) = (row / window.output[0], row % window.output[0]);
                    let plane = &x[plane * area..][..area];
                    if inside && window.size == [2, 2] && window.stride == [2, 2] {
                        max_of_four(plane, window.input[1], 2 * oy, y, origin);
                    } else {
                        max_of_any(plane, window, oy, y, origin);
                    }
                }
            },
        );
    });
    (y, origin)
}

/// A row of the most common pooling, two by two, without branches.
#[inline(always)]
fn max_of_four(plane: &[f32], width: usize, top: usize, y: &mut [f32], origin: &mut [u32]) {
    let upper = &plane[top * width..][..2 * y.len()];
    let lower = &plane[(top + 1) * width..][..2 * y.len()];
    let first = (top * width) as u32;
    for (ox, (y, origin)) in y.iter_mut().zip(origin).enumerate() {
        let at = first + 2 * ox as u32;
        let (mut best, mut from) = (upper[2 * ox], at);
        for (v, position) in [
            (upper[2 * ox + 1], at + 1),
            (lower[2 * ox], at + width as u32),
            (lower[2 * ox + 1], at + width as u32 + 1),
        ] {
            let take = v > best || v.is_nan();
            best = if take { v } else { best };
            from = if take { position } else { from };
        }
        (*y, *origin) = (best, from);
    }
}

#[inline(always)]
fn max_of_any(plane: &[f32], window: &Window, oy: usize, y: &mut [f32], origin: &mut [u32]) {
    for (ox, (y, origin)) in y.iter_mut().zip(origin).enumerate() {
        let mut best: Option<(f32, usize)> = None;
        for_each_inside(window, oy, ox, |at| {
            let v = plane[at];
            if best.is_none_or(|(b, _)| v > b || v.is_nan()) {
                best = Some((v, at));
            }
        });
        if let Some((v, at)) = best {
            (*y, *origin) = (v, at as u32);
        }
    }
}

/// The gradient of [`max`]: each window's goes to where its maximum was.
pub(crate) fn max_backward(
    gradient: &[f32],
    origin: &[u32],
    planes: usize,
    window: &Window,
) -> Vec<f32> {
    let area = window.input[0] * window.input[1];
    let windows = window.output[0] * window.output[1];
    let mut out = vec![0.0; planes * area];
    let size = parallel::part(out.len(), area);
    parallel::chunks_mut(&mut out, size, |index, out| {
        let first = index * size / area * windows;
        for ((plane, gradient), origin) in out
            .chunks_exact_mut(area)
            .zip(gradient[first..].chunks_exact(windows))
            .zip(origin[first..].chunks_exact(windows))
        {
            for (g, &at) in gradient.iter().zip(origin) {
                plane[at as usize] += g;
            }
        }
    });
    out
}

/// Means of each window over the positions that are inside the input.
pub(crate) fn average(x: &[f32], planes: usize, window: &Window) -> Vec<f32> {
    let area = window.input[0] * window.input[1];
    let mut y = vec![0.0; planes * window.output[0] * window.output[1]];
    let shares = shares(window);
    vectorized(
        #[inline(always)]
        || {
            let rows = y.chunks_exact_mut(window.output[1]).zip(shares.iter().cycle());
            for (row, (y, shares)) in rows.enumerate() {
                let (plane, oy) = (row / window.output[0], row % window.output[0]);
                let plane = &x[plane * area..][..area];
                for_each_tap_row(window, oy, |at, first, count, step| {
                    let source = &plane[at..];
                    let outputs = y[first..][..count].iter_mut();
                    for (y, x) in outputs.zip(source.iter().step_by(step)) {
                        *y += x;
                    }
                });
                y.iter_mut().zip(shares).for_each(|(y, share)| *y *= share);
            }
        },
    );
    y
}

/// The gradient of [`average`].
pub(crate) fn average_backward(gradient: &[f32], planes: usize, window: &Window) -> Vec<f32> {
    let area = window.input[0] * window.input[1];
    let mut out = vec![0.0; planes * area];
    let shares = shares(window);
    let mut shared = vec![0.0; window.output[1]];
    vectorized(
        #[inline(always)]
        || {
            let rows = gradient.chunks_exact(window.output[1]).zip(shares.iter().cycle());
            for (row, (gradient, shares)) in rows.enumerate() {
                let (plane, oy) = (row / window.output[0], row % window.output[0]);
                let plane = &mut out[plane * area..][..area];
                for ((to, g), share) in shared.iter_mut().zip(gradient).zip(shares) {
                    *to = g * share;
                }
                for_each_tap_row(window, oy, |at, first, count, step| {
                    let values = shared[first..][..count].iter();
                    for (x, g) in plane[at..].iter_mut().step_by(step).zip(values) {
                        *x += g;
                    }
                });
            }
        },
    );
    out
}

/// One over the number of positions of each window that are inside, row by row.
fn shares(window: &Window) -> Vec<Vec<f32>> {
    let row = |oy| {
        let count = |ox| {
            let mut count = 0;
            for_each_inside(window, oy, ox, |_| count += 1);
            1.0 / count as f32
        };
        (0..window.output[1]).map(count).collect()
    };
    (0..window.output[0]).map(row).collect()
}

/// Calls `visit(position, first window, windows, stride)` for each tap of a row of windows: the
/// position of the tap in the first window for which it is inside, and how many it is inside for.
#[inline(always)]
fn for_each_tap_row(window: &Window, oy: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
    for ky in 0..window.size[0] {
        let Some(iy) = window.source(0, oy, ky) else {
            continue;
        };
        for kx in 0..window.size[1] {
            let inside = window.inside(kx);
            if let Some(ix) = window.source(1, inside.start, kx).filter(|_| !inside.is_empty()) {
                let at = iy * window.input[1] + ix;
                visit(at, inside.start, inside.len(), window.stride[1]);
            }
        }
    }
}

#[inline(always)]
fn for_each_inside(window: &Window, oy: usize, ox: usize, mut visit: impl FnMut(usize)) {
    for ky in 0..window.size[0] {
        let Some(iy) = window.source(0, oy, ky) else {
            continue;
        };
        for kx in 0..window.size[1] {
            if let Some(ix) = window.source(1, ox, kx) {
                visit(iy * window.input[1] + ix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_by_two(input: [usize; 2], output: [usize; 2], after: [usize; 2]) -> Window {
        Window {
            size: [2, 2],
            stride: [2, 2],
            dilation: [1, 1],
            before: [0, 0],
            after,
            input,
            output,
        }
    }

    #[test]
    fn maxima_send_their_gradient_home() {
        let window = two_by_two([2, 4], [1, 2], [0, 0]);
        let x = [1.0, 5.0, 2.0, 2.5, 3.0, 4.0, -1.0, 7.0];
        let (y, origin) = max(&x, 1, &window);
        assert_eq!(y, [5.0, 7.0]);
        let dx = max_backward(&[10.0, 20.0], &origin, 1, &window);
        assert_eq!(dx, [0.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0]);
    }

    #[test]
    fn the_common_case_gives_what_any_case_gives() {
        let window = two_by_two([6, 9], [3, 4], [0, 0]);
        let x: Vec<f32> = (0..108).map(|i| ((i * 31) % 17) as f32).collect();
        let (y, origin) = max(&x, 2, &window);
        let area = 54;
        for row in 0..6 {
            let (mut want, mut from) = (vec![0.0; 4], vec![0; 4]);
            max_of_any(&x[row / 3 * area..][..area], &window, row % 3, &mut want, &mut from);
            assert_eq!(y[row * 4..][..4], want);
            assert_eq!(origin[row * 4..][..4], from);
        }
    }

    #[test]
    fn a_nan_in_a_window_is_its_maximum() {
        let window = two_by_two([2, 2], [1, 1], [0, 0]);
        assert!(max(&[1.0, f32::NAN, 9.0, 2.0], 1, &window).0[0].is_nan());
    }

    #[test]
    fn positions_outside_do_not_count_in_a_mean() {
        let window = two_by_two([3, 3], [2, 2], [1, 1]);
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(average(&x, 1, &window), [3.0, 4.5, 7.5, 9.0]);
        let dx = average_backward(&[4.0, 2.0, 2.0, 1.0], 1, &window);
        assert_eq!(dx, [1.0; 9]);
    }
}
