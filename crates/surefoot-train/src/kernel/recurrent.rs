//! The pointwise part of recurrent cells, one pass for all gates of a step.

use super::{
    math::{sigmoid, tanh},
    vectorized,
};

/// One step of an LSTM with the usual sigmoid and tanh.
///
/// `gates` is `[batch, 4 units]` (input, forget, cell, output) before its activations and holds
/// them afterwards; `cell` is `[batch, units]`, updated; returns the new hidden state.
pub(crate) fn lstm(gates: &mut [f32], cell: &mut [f32], units: usize) -> Vec<f32> {
    let mut hidden = vec![0.0; cell.len()];
    vectorized(
        #[inline(always)]
        || {
            for ((gates, cell), hidden) in gates
                .chunks_exact_mut(4 * units)
                .zip(cell.chunks_exact_mut(units))
                .zip(hidden.chunks_exact_mut(units))
            {
                // Loops of one function each: these are what the compiler turns into vectors.
                let (gated, rest) = gates.split_at_mut(2 * units);
                let (candidate, output) = rest.split_at_mut(units);
                gated.iter_mut().for_each(|v| *v = sigmoid(*v));
                candidate.iter_mut().for_each(|v| *v = tanh(*v));
                output.iter_mut().for_each(|v| *v = sigmoid(*v));
                let (input, forget) = gated.split_at(units);
                for (((c, i), f), g) in cell.iter_mut().zip(input).zip(forget).zip(candidate) {
                    *c = f * *c + i * *g;
                }
                for ((h, c), o) in hidden.iter_mut().zip(cell).zip(output) {
                    *h = *o * tanh(*c);
                }
            }
        },
    );
    hidden
}

/// The gradient of [`lstm`]: turns the gradients of the hidden and the cell state after the step
/// into those of the gates before their activations (returned) and of the cell state before the
/// step (in `d_cell`).
pub(crate) fn lstm_backward(
    gates: &[f32],
    cell_before: &[f32],
    cell_after: &[f32],
    d_hidden: &[f32],
    d_cell: &mut [f32],
    units: usize,
) -> Vec<f32> {
    let mut d_gates = vec![0.0; gates.len()];
    vectorized(
        #[inline(always)]
        || {
            for (row, (gates, d_gates)) in
                gates.chunks_exact(4 * units).zip(d_gates.chunks_exact_mut(4 * units)).enumerate()
            {
                let at = row * units..(row + 1) * units;
                let before = &cell_before[at.clone()];
                let after = &cell_after[at.clone()];
                let d_hidden = &d_hidden[at.clone()];
                let d_cell = &mut d_cell[at];
                let (d_input, rest) = d_gates.split_at_mut(units);
                let (d_forget, rest) = rest.split_at_mut(units);
                let (d_candidate, d_output) = rest.split_at_mut(units);
                let (input, rest) = gates.split_at(units);
                let (forget, rest) = rest.split_at(units);
                let (candidate, output) = rest.split_at(units);
                for ((((d_o, d_c), after), d_h), o) in
                    d_output.iter_mut().zip(d_cell.iter_mut()).zip(after).zip(d_hidden).zip(output)
                {
                    let t = tanh(*after);
                    *d_c += d_h * o * (1.0 - t * t);
                    *d_o = d_h * t * o * (1.0 - o);
                }
                for (((d_i, d_c), g), i) in
                    d_input.iter_mut().zip(&*d_cell).zip(candidate).zip(input)
                {
                    *d_i = d_c * g * i * (1.0 - i);
                }
                for (((d_g, d_c), g), i) in
                    d_candidate.iter_mut().zip(&*d_cell).zip(candidate).zip(input)
                {
                    *d_g = d_c * i * (1.0 - g * g);
                }
                for (((d_f, d_c), before), f) in
                    d_forget.iter_mut().zip(d_cell).zip(before).zip(forget)
                {
                    *d_f = *d_c * before * f * (1.0 - f);
                    *d_c *= f;
                }
            }
        },
    );
    d_gates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_of_a_step_is_its_slope() {
        let units = 3;
        let gates: Vec<f32> = (0..24).map(|i| ((i * 5) % 13) as f32 * 0.2 - 1.1).collect();
        let cell: Vec<f32> = (0..6).map(|i| i as f32 * 0.3 - 0.7).collect();
        let objective = |gates: &[f32], cell: &[f32]| -> f32 {
            let (mut g, mut c) = (gates.to_vec(), cell.to_vec());
            let h = lstm(&mut g, &mut c, units);
            h.iter().sum::<f32>() + 0.5 * c.iter().sum::<f32>()
        };
        let (mut active, mut after) = (gates.clone(), cell.clone());
        lstm(&mut active, &mut after, units);
        let mut d_cell = vec![0.5; 6];
        let d_gates = lstm_backward(&active, &cell, &after, &[1.0; 6], &mut d_cell, units);
        let slope = |f: &dyn Fn(f32) -> f32| (f(1e-2) - f(-1e-2)) / 2e-2;
        for i in 0..gates.len() {
            let s = slope(&|e| {
                let mut g = gates.clone();
                g[i] += e;
                objective(&g, &cell)
            });
            assert!((s - d_gates[i]).abs() < 2e-3, "gate {i}: {} vs {s}", d_gates[i]);
        }
        for i in 0..cell.len() {
            let s = slope(&|e| {
                let mut c = cell.clone();
                c[i] += e;
                objective(&gates, &c)
            });
            assert!((s - d_cell[i]).abs() < 2e-3, "cell {i}");
        }
    }
}
