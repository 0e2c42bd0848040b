//! Windows and their padding.

use crate::kernel::conv::Window;
use surefoot_plan::Padding;

/// A window whose input shape is not yet known.
pub(crate) struct Geometry {
    pub(crate) size: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding: Padding,
}

impl Geometry {
    /// The windows over an input of that size.
    pub(crate) fn window(&self, input: [usize; 2]) -> Window {
        let mut window = Window {
            size: self.size,
            stride: self.stride,
            dilation: self.dilation,
            before: [0, 0],
            after: [0, 0],
            input,
            output: [0, 0],
        };
        for (axis, &length) in input.iter().enumerate() {
            let span = (self.size[axis] - 1) * self.dilation[axis] + 1;
            match self.padding {
                Padding::Valid => {
                    window.output[axis] =
                        (length + self.stride[axis]).saturating_sub(span) / self.stride[axis];
                }
                Padding::Same => {
                    // As TensorFlow: what is left over goes to the end.
                    window.output[axis] = length.div_ceil(self.stride[axis]);
                    let needed = ((window.output[axis] - 1) * self.stride[axis] + span)
                        .saturating_sub(length);
                    window.before[axis] = needed / 2;
                    window.after[axis] = needed - needed / 2;
                }
            }
        }
        window
    }
}
