//! Check of the model's output against the loss and the targets.
//!
//! Only a loss that cannot be computed is an error. A loss that does not suit the task (a mean
//! square of one-hot classes, a softmax of one output) is left to the diagnosis.

use super::{LayerShape, ShapeError};
use crate::Loss;

/// Targets of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetShape {
    /// One of two classes.
    Binary,
    /// One of the given number of classes.
    Classes(usize),
    /// The given number of values.
    Numbers(usize),
    /// The given number of labels, each 0 or 1.
    Labels(usize),
}

/// Layout of targets for a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetLayout {
    /// One column for each number. A class is its index, in one column.
    Numbers,
    /// One at the column of the class and zero elsewhere; as many columns as outputs.
    OneHot,
    /// The index of the class, which selects one of the outputs.
    ClassNumber,
}

/// Layout of targets for a loss of `outputs` outputs; `None` if there is none.
pub fn target_layout(loss: &Loss, targets: &TargetShape, outputs: usize) -> Option<TargetLayout> {
    let sparse = matches!(loss, Loss::SparseCategoricalCrossentropy { .. });
    let classes = match *targets {
        TargetShape::Binary => 2,
        TargetShape::Classes(classes) => classes,
        TargetShape::Numbers(numbers) | TargetShape::Labels(numbers) => {
            return (!sparse && outputs == numbers).then_some(TargetLayout::Numbers);
        }
    };
    match outputs {
        1 if !sparse => Some(TargetLayout::Numbers),
        _ if outputs < classes => None,
        _ if sparse => Some(TargetLayout::ClassNumber),
        _ => Some(TargetLayout::OneHot),
    }
}

/// Number of outputs at each position of a sample; `None` if the output does not have the positions of
/// the targets. Numbers and labels are compared one by one, so that only their number matters.
fn outputs_per_position(
    output: &[usize],
    targets: &TargetShape,
    positions: usize,
) -> Option<usize> {
    match *output {
        [outputs] if positions == 1 => Some(outputs),
        [steps, outputs] if positions > 1 && steps == positions => Some(outputs),
        [_] | [_, _] if matches!(targets, TargetShape::Numbers(_) | TargetShape::Labels(_)) => {
            let all: usize = output.iter().product();
            all.is_multiple_of(positions).then_some(all / positions)
        }
        _ => None,
    }
}

/// Checks the output of the last layer against the loss and the targets at each of `positions`
/// positions of a sample.
pub fn check_output(
    last: &LayerShape,
    loss: &Loss,
    targets: &TargetShape,
    positions: usize,
) -> Result<(), ShapeError> {
    let error = |label: String, help: Option<String>| ShapeError {
        path: last.path.clone(),
        layer: last.name.clone(),
        message: format!("the output of layer `{}` has shape {:?}", last.name, last.output),
        label: Some(label),
        help,
    };
    let name = loss.name();
    let Some(outputs) = outputs_per_position(&last.output, targets, positions) else {
        return Err(match positions {
            1 => error(
                format!("`{name}` needs one row of outputs for each sample"),
                Some(flatter(last)),
            ),
            _ => error(
                format!("`{name}` needs one row of outputs for each of {positions} positions"),
                Some(
                    "end with a `dense` layer over the sequence; recurrent layers before it need \
                     `return_sequences = true`"
                        .to_owned(),
                ),
            ),
        });
    };
    if target_layout(loss, targets, outputs).is_some() {
        return Ok(());
    }
    let sparse = matches!(loss, Loss::SparseCategoricalCrossentropy { .. });
    Err(match *targets {
        TargetShape::Numbers(_) if sparse => error(
            format!("`{name}` needs classes, and the targets are numbers"),
            Some("use loss = \"mse\", or set `task` in `[data]`".to_owned()),
        ),
        TargetShape::Labels(_) if sparse => error(
            format!("`{name}` needs one class for each sample, and the targets are labels"),
            Some("use loss = \"binary_crossentropy\" with one sigmoid output per label".to_owned()),
        ),
        TargetShape::Labels(labels) => error(
            format!("there are {labels} labels to predict, so it must be [{labels}]"),
            Some(format!("set units = {labels} in the last layer")),
        ),
        TargetShape::Numbers(numbers) => error(
            format!("there are {numbers} numbers to predict, so it must be [{numbers}]"),
            None,
        ),
        TargetShape::Binary if sparse => error(
            format!("`{name}` needs an output for each of the 2 classes"),
            Some("use 2 outputs, or loss = \"binary_crossentropy\" with 1".to_owned()),
        ),
        TargetShape::Binary => error(format!("`{name}` of 2 classes needs [1] or [2]"), None),
        TargetShape::Classes(classes) => {
            let help = format!("set units = {classes} in the last layer");
            error(format!("`{name}` needs an output for each of the {classes} classes"), Some(help))
        }
    })
}

fn flatter(last: &LayerShape) -> String {
    match last.kind {
        "lstm" | "gru" | "simple_rnn" => "remove `return_sequences` from the last layer",
        _ => "add a `flatten` or `global_average_pool` layer before it",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPARSE: Loss = Loss::SparseCategoricalCrossentropy { from_logits: false };
    const CATEGORICAL: Loss = Loss::CategoricalCrossentropy { from_logits: false };
    const BINARY: Loss = Loss::BinaryCrossentropy { from_logits: false };

    #[test]
    fn class_indices_need_an_output_for_each_class() {
        let ten = TargetShape::Classes(10);
        assert_eq!(target_layout(&SPARSE, &ten, 10), Some(TargetLayout::ClassNumber));
        assert_eq!(target_layout(&SPARSE, &ten, 12), Some(TargetLayout::ClassNumber));
        assert_eq!(target_layout(&SPARSE, &ten, 9), None);
        assert_eq!(target_layout(&SPARSE, &TargetShape::Binary, 1), None);
        assert_eq!(target_layout(&SPARSE, &TargetShape::Numbers(3), 3), None);
    }

    #[test]
    fn an_unsuitable_loss_is_not_a_shape_error() {
        let four = TargetShape::Classes(4);
        for loss in [Loss::Mse, BINARY, CATEGORICAL, Loss::Hinge] {
            assert_eq!(target_layout(&loss, &four, 4), Some(TargetLayout::OneHot));
            assert_eq!(target_layout(&loss, &four, 1), Some(TargetLayout::Numbers));
            assert_eq!(target_layout(&loss, &four, 3), None);
        }
    }

    #[test]
    fn two_classes_have_one_column_or_two() {
        let two = TargetShape::Binary;
        assert_eq!(target_layout(&BINARY, &two, 1), Some(TargetLayout::Numbers));
        assert_eq!(target_layout(&BINARY, &two, 2), Some(TargetLayout::OneHot));
    }

    #[test]
    fn labels_need_an_output_each() {
        let three = TargetShape::Labels(3);
        for loss in [Loss::Mse, BINARY, CATEGORICAL] {
            assert_eq!(target_layout(&loss, &three, 3), Some(TargetLayout::Numbers));
            assert_eq!(target_layout(&loss, &three, 1), None);
        }
        assert_eq!(target_layout(&SPARSE, &three, 3), None);
    }

    #[test]
    fn the_targets_of_a_sequence_need_a_row_of_outputs_each() {
        let (five, three) = (TargetShape::Classes(5), TargetShape::Numbers(3));
        assert_eq!(outputs_per_position(&[7, 5], &five, 7), Some(5));
        assert_eq!(outputs_per_position(&[7, 5], &five, 1), None);
        assert_eq!(outputs_per_position(&[5], &five, 7), None);
        assert_eq!(outputs_per_position(&[7, 3], &three, 7), Some(3));
        // One number for each step, with and without an axis of its own.
        assert_eq!(outputs_per_position(&[3, 1], &three, 1), Some(3));
        assert_eq!(outputs_per_position(&[3], &TargetShape::Numbers(1), 3), Some(1));
    }

    #[test]
    fn numbers_need_as_many_outputs() {
        let two = TargetShape::Numbers(2);
        assert_eq!(target_layout(&Loss::Mse, &two, 2), Some(TargetLayout::Numbers));
        assert_eq!(target_layout(&Loss::Mse, &two, 1), None);
    }
}
