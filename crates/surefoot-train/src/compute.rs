//! Operations that layers need from a device, and their implementations.
//!
//! [`Compute`] adds to Burn's backend the few operations that are worth a kernel of their own. The
//! provided bodies compose Burn's operations and run anywhere; the CPU replaces them with the
//! loops of [`crate::kernel`].

use crate::kernel::{self, Matrix, conv::Window, multiply};
use crate::tensor::Tensor;
use burn_backend::{
    Backend, Scalar, TensorData,
    ops::ConvOptions,
    tensor::{FloatTensor, IntTensor},
};
use burn_flex::{Flex, FlexTensor};
use surefoot_plan::Activation;

/// Gradients of a product with a kernel: of a matrix or of a convolution.
pub struct Gradients<B: Backend> {
    /// With respect to the input, if requested.
    pub x: Option<Tensor<B>>,
    /// With respect to the kernel.
    pub kernel: Tensor<B>,
    /// With respect to the bias.
    pub bias: Tensor<B>,
}

/// Positions of the maxima of a pooling.
pub enum Origin<B: Backend> {
    /// In a tensor of the device.
    Device(IntTensor<B>),
    /// In memory.
    Host(Vec<u32>),
}

/// A device that can train.
pub trait Compute: Backend {
    /// Calls `read` with the values of `tensor`, row-major.
    ///
    /// # Panics
    ///
    /// If the device fails to give them.
    fn read<R>(tensor: &Tensor<Self>, read: impl FnOnce(&[f32]) -> R) -> R {
        let data = burn_std::reader::try_read_sync(Self::float_into_data(tensor.primitive()));
        match data {
            Some(Ok(data)) => match data.as_slice::<f32>() {
                Ok(values) => read(values),
                Err(error) => {
                    panic!("the device gave back other values than it was given: {error:?}")
                }
            },
            // Out of memory, or gone. Nothing that could be read afterwards would be true.
            failure => panic!("the device failed: {:?}", failure.and_then(Result::err)),
        }
    }

    /// `activation(x)`
    fn activate(activation: Activation, x: &Tensor<Self>) -> Tensor<Self> {
        crate::activation::forward(activation, x)
    }

    /// The gradient before an activation, given that after it. `x` is absent where the output
    /// suffices ([`kernel::activation::gradient_from_output`]).
    fn activate_backward(
        activation: Activation,
        x: Option<&Tensor<Self>>,
        y: &Tensor<Self>,
        gradient: Tensor<Self>,
    ) -> Tensor<Self> {
        crate::activation::backward(activation, x, y, gradient)
    }

    /// `[rows, in]` times `[in, out]`, plus `[out]`.
    fn product(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        let y = x.matmul(kernel);
        match bias {
            Some(bias) => y.add(&bias.clone().reshape(&[1, bias.len()])),
            None => y,
        }
    }

    /// `sum + x * kernel`
    fn add_product(sum: Tensor<Self>, x: &Tensor<Self>, kernel: &Tensor<Self>) -> Tensor<Self> {
        sum.add(&x.matmul(kernel))
    }

    /// The same values, laid out so that they are quickest to read again and again.
    fn settle(tensor: Tensor<Self>) -> Tensor<Self> {
        tensor
    }

    /// The gradients of [`Compute::product`].
    fn product_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        with_x: bool,
    ) -> Gradients<Self> {
        Gradients {
            x: with_x.then(|| gradient.matmul(&kernel.clone().transpose())),
            kernel: x.clone().transpose().matmul(gradient),
            bias: gradient.clone().sum_rows(),
        }
    }

    /// Convolution of `[batch, channels, height, width]` with `[filters, channels, h, w]`.
    fn convolve(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        window: &Window,
    ) -> Tensor<Self> {
        let x = x.pad_planes(window, 0.0);
        Tensor::new(Self::conv2d(
            x.primitive(),
            kernel.primitive(),
            bias.map(Tensor::primitive),
            conv_options(window),
        ))
    }

    /// The gradients of [`Compute::convolve`].
    fn convolve_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
        with_x: bool,
    ) -> Gradients<Self> {
        let padded = x.pad_planes(window, 0.0);
        let options = conv_options(window);
        let d_x = with_x.then(|| {
            Tensor::new(Self::conv2d_x_backward(
                padded.primitive(),
                kernel.primitive(),
                gradient.primitive(),
                options.clone(),
            ))
            .crop_planes(window)
        });
        let d_kernel = Self::conv2d_weight_backward(
            padded.primitive(),
            kernel.primitive(),
            gradient.primitive(),
            options,
        );
        let filters = gradient.shape()[1];
        let bias = gradient
            .clone()
            .permute(&[1, 0, 2, 3])
            .reshape(&[filters, gradient.len() / filters])
            .sum_last();
        Gradients { x: d_x, kernel: Tensor::new(d_kernel), bias: bias.reshape(&[filters]) }
    }

    /// The maximum of each window of `[batch, channels, height, width]`.
    fn max_pool(x: &Tensor<Self>, window: &Window) -> (Tensor<Self>, Origin<Self>) {
        let pooled = Self::max_pool2d_with_indices(
            x.pad_planes(window, f32::NEG_INFINITY).primitive(),
            window.size,
            window.stride,
            [0, 0],
            window.dilation,
            false,
            burn_std::IntDType::I32,
        );
        (Tensor::new(pooled.output), Origin::Device(pooled.indices))
    }

    /// The gradient of [`Compute::max_pool`].
    fn max_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        origin: Origin<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let Origin::Device(indices) = origin else {
            unreachable!("the default pooling keeps its origins on the device")
        };
        let d_x = Self::max_pool2d_with_indices_backward(
            x.pad_planes(window, f32::NEG_INFINITY).primitive(),
            window.size,
            window.stride,
            [0, 0],
            window.dilation,
            false,
            gradient.primitive(),
            indices,
        );
        Tensor::new(d_x.x_grad).crop_planes(window)
    }

    /// The mean of each window over the positions inside the input.
    fn average_pool(x: &Tensor<Self>, window: &Window) -> Tensor<Self> {
        let padded = x.pad_planes(window, 0.0);
        let means =
            Self::avg_pool2d(padded.primitive(), window.size, window.stride, [0, 0], true, false);
        Tensor::new(means).mul(&inside_factor(x, window))
    }

    /// The gradient of [`Compute::average_pool`].
    fn average_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let gradient = gradient.clone().mul(&inside_factor(x, window));
        let d_x = Self::avg_pool2d_backward(
            x.pad_planes(window, 0.0).primitive(),
            gradient.primitive(),
            window.size,
            window.stride,
            [0, 0],
            true,
            false,
        );
        Tensor::new(d_x).crop_planes(window)
    }

    /// One step of an LSTM with sigmoid gates and tanh: `[batch, 4 units]` gates before their
    /// activations and `[batch, units]` cell state to (gates after them, cell, hidden).
    fn lstm_step(
        gates: Tensor<Self>,
        cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>, Tensor<Self>) {
        let units = cell.shape()[1];
        let part = |i: usize| gates.slice(1, i * units, units);
        let i = Self::activate(Activation::Sigmoid, &part(0));
        let f = Self::activate(Activation::Sigmoid, &part(1));
        let g = Self::activate(Activation::Tanh, &part(2));
        let o = Self::activate(Activation::Sigmoid, &part(3));
        let cell = f.clone().mul(&cell).add(&i.clone().mul(&g));
        let hidden = Self::activate(Activation::Tanh, &cell).mul(&o);
        (Tensor::concat(vec![i, f, g, o], 1), cell, hidden)
    }

    /// The gradient of [`Compute::lstm_step`]: (of the gates, of the cell state before).
    fn lstm_step_backward(
        gates: &Tensor<Self>,
        cell_before: &Tensor<Self>,
        cell_after: &Tensor<Self>,
        d_hidden: &Tensor<Self>,
        d_cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        let units = cell_before.shape()[1];
        let part = |i: usize| gates.slice(1, i * units, units);
        let [i, f, g, o] = [part(0), part(1), part(2), part(3)];
        let t = Self::activate(Activation::Tanh, cell_after);
        let slope = |y: &Tensor<Self>| y.clone().mul(&y.clone().neg().add_scalar(1.0));
        let bow = |y: &Tensor<Self>| y.clone().mul(y).neg().add_scalar(1.0);
        let d_cell = d_cell.add(&d_hidden.clone().mul(&o).mul(&bow(&t)));
        let d_o = d_hidden.clone().mul(&t).mul(&slope(&o));
        let d_i = d_cell.clone().mul(&g).mul(&slope(&i));
        let d_f = d_cell.clone().mul(cell_before).mul(&slope(&f));
        let d_g = d_cell.clone().mul(&i).mul(&bow(&g));
        (Tensor::concat(vec![d_i, d_f, d_g, d_o], 1), d_cell.mul(&f))
    }
}

fn conv_options(window: &Window) -> ConvOptions<2> {
    ConvOptions::new(window.stride, [0, 0], window.dilation, 1)
}

/// Factor from the mean of a full window to the mean of its part inside the input.
fn inside_factor<B: Compute>(x: &Tensor<B>, window: &Window) -> Tensor<B> {
    let inside = |axis: usize, at: usize| {
        (0..window.size[axis]).filter(|&tap| window.source(axis, at, tap).is_some()).count()
    };
    let full = (window.size[0] * window.size[1]) as f32;
    let mut factors = Vec::with_capacity(window.output[0] * window.output[1]);
    for oy in 0..window.output[0] {
        for ox in 0..window.output[1] {
            factors.push(full / (inside(0, oy) * inside(1, ox)) as f32);
        }
    }
    Tensor::from_values(factors, &[1, 1, window.output[0], window.output[1]], &x.device())
}

impl Compute for Flex {
    fn read<R>(tensor: &Tensor<Self>, read: impl FnOnce(&[f32]) -> R) -> R {
        let primitive = tensor.primitive();
        match primitive.as_slice::<f32>() {
            Some(values) => read(values),
            None => read(primitive.to_contiguous().storage::<f32>()),
        }
    }

    fn activate(activation: Activation, x: &Tensor<Self>) -> Tensor<Self> {
        if activation == Activation::Linear {
            return x.clone();
        }
        let shape = x.shape();
        let width = shape.last().copied().unwrap_or(1);
        let y = Self::read(x, |x| kernel::activation::forward(activation, x, width));
        from_host(y, &shape)
    }

    fn activate_backward(
        activation: Activation,
        x: Option<&Tensor<Self>>,
        y: &Tensor<Self>,
        gradient: Tensor<Self>,
    ) -> Tensor<Self> {
        if activation == Activation::Linear {
            return gradient;
        }
        let shape = y.shape();
        let width = shape.last().copied().unwrap_or(1);
        let out = Self::read(&gradient, |gradient| {
            Self::read(y, |y| match x {
                Some(x) => Self::read(x, |x| {
                    kernel::activation::backward(activation, x, y, gradient, width)
                }),
                None => kernel::activation::backward(activation, &[], y, gradient, width),
            })
        });
        from_host(out, &shape)
    }

    fn product(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        let [rows, inner, outer] = [x.shape()[0], kernel.shape()[0], kernel.shape()[1]];
        let mut y = match bias {
            Some(bias) => Self::read(bias, |bias| bias.repeat(rows)),
            None => vec![0.0; rows * outer],
        };
        Self::read(x, |x| {
            Self::read(kernel, |kernel| {
                multiply(
                    &mut y,
                    Matrix::new(x, rows, inner),
                    Matrix::new(kernel, inner, outer),
                    bias.is_some(),
                );
            });
        });
        from_host(y, &[rows, outer])
    }

    fn add_product(sum: Tensor<Self>, x: &Tensor<Self>, kernel: &Tensor<Self>) -> Tensor<Self> {
        let shape = sum.shape();
        let inner = kernel.shape()[0];
        let mut sum = into_host(sum);
        Self::read(x, |x| {
            Self::read(kernel, |kernel| {
                multiply(
                    &mut sum,
                    Matrix::new(x, shape[0], inner),
                    Matrix::new(kernel, inner, shape[1]),
                    true,
                );
            });
        });
        from_host(sum, &shape)
    }

    fn settle(tensor: Tensor<Self>) -> Tensor<Self> {
        Tensor::new(tensor.primitive().to_contiguous())
    }

    fn product_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        with_x: bool,
    ) -> Gradients<Self> {
        let [rows, inner, outer] = [x.shape()[0], kernel.shape()[0], kernel.shape()[1]];
        let mut d_kernel = vec![0.0; inner * outer];
        let mut d_bias = vec![0.0; outer];
        let mut d_x = with_x.then(|| vec![0.0; rows * inner]);
        Self::read(gradient, |gradient| {
            for row in gradient.chunks_exact(outer) {
                d_bias.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
            }
            let gradient = Matrix::new(gradient, rows, outer);
            Self::read(x, |x| {
                let x = Matrix::new(x, rows, inner).transposed();
                multiply(&mut d_kernel, x, gradient, false);
            });
            if let Some(d_x) = &mut d_x {
                Self::read(kernel, |kernel| {
                    let kernel = Matrix::new(kernel, inner, outer).transposed();
                    multiply(d_x, gradient, kernel, false);
                });
            }
        });
        Gradients {
            x: d_x.map(|d_x| from_host(d_x, &[rows, inner])),
            kernel: from_host(d_kernel, &[inner, outer]),
            bias: from_host(d_bias, &[outer]),
        }
    }

    fn convolve(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        window: &Window,
    ) -> Tensor<Self> {
        let channels = channels(x, kernel);
        let y = Self::read(x, |x| {
            Self::read(kernel, |kernel| match bias {
                Some(bias) => Self::read(bias, |bias| {
                    kernel::conv::forward(x, kernel, Some(bias), channels, window)
                }),
                None => kernel::conv::forward(x, kernel, None, channels, window),
            })
        });
        from_host(y, &[channels.batch, channels.output, window.output[0], window.output[1]])
    }

    fn convolve_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
        with_x: bool,
    ) -> Gradients<Self> {
        let channels = channels(x, kernel);
        let gradients = Self::read(x, |x| {
            Self::read(kernel, |kernel| {
                Self::read(gradient, |gradient| {
                    kernel::conv::backward(x, kernel, gradient, channels, window, with_x)
                })
            })
        });
        Gradients {
            x: gradients.x.map(|d_x| from_host(d_x, &x.shape())),
            kernel: from_host(gradients.kernel, &kernel.shape()),
            bias: from_host(gradients.bias, &[channels.output]),
        }
    }

    fn max_pool(x: &Tensor<Self>, window: &Window) -> (Tensor<Self>, Origin<Self>) {
        let [batch, channels] = [x.shape()[0], x.shape()[1]];
        let (y, origin) = Self::read(x, |x| kernel::pool::max(x, batch * channels, window));
        let y = from_host(y, &[batch, channels, window.output[0], window.output[1]]);
        (y, Origin::Host(origin))
    }

    fn max_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        origin: Origin<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let Origin::Host(origin) = origin else {
            unreachable!("the CPU's pooling keeps its origins in memory")
        };
        let shape = x.shape();
        let d_x = Self::read(gradient, |gradient| {
            kernel::pool::max_backward(gradient, &origin, shape[0] * shape[1], window)
        });
        from_host(d_x, &shape)
    }

    fn average_pool(x: &Tensor<Self>, window: &Window) -> Tensor<Self> {
        let [batch, channels] = [x.shape()[0], x.shape()[1]];
        let y = Self::read(x, |x| kernel::pool::average(x, batch * channels, window));
        from_host(y, &[batch, channels, window.output[0], window.output[1]])
    }

    fn average_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let shape = x.shape();
        let d_x = Self::read(gradient, |gradient| {
            kernel::pool::average_backward(gradient, shape[0] * shape[1], window)
        });
        from_host(d_x, &shape)
    }

    fn lstm_step(
        gates: Tensor<Self>,
        cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>, Tensor<Self>) {
        let shape = cell.shape();
        let (mut gates_host, mut cell_host) = (into_host(gates), into_host(cell));
        let hidden = kernel::recurrent::lstm(&mut gates_host, &mut cell_host, shape[1]);
        (
            from_host(gates_host, &[shape[0], 4 * shape[1]]),
            from_host(cell_host, &shape),
            from_host(hidden, &shape),
        )
    }

    fn lstm_step_backward(
        gates: &Tensor<Self>,
        cell_before: &Tensor<Self>,
        cell_after: &Tensor<Self>,
        d_hidden: &Tensor<Self>,
        d_cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        let shape = cell_before.shape();
        let mut d_cell = into_host(d_cell);
        let d_gates = Self::read(gates, |gates| {
            Self::read(cell_before, |before| {
                Self::read(cell_after, |after| {
                    Self::read(d_hidden, |d_hidden| {
                        kernel::recurrent::lstm_backward(
                            gates,
                            before,
                            after,
                            d_hidden,
                            &mut d_cell,
                            shape[1],
                        )
                    })
                })
            })
        });
        (from_host(d_gates, &gates.shape()), from_host(d_cell, &shape))
    }
}

fn channels(x: &Tensor<Flex>, kernel: &Tensor<Flex>) -> kernel::conv::Channels {
    let (x, kernel) = (x.shape(), kernel.shape());
    kernel::conv::Channels { batch: x[0], input: x[1], output: kernel[0] }
}

fn from_host(values: Vec<f32>, shape: &[usize]) -> Tensor<Flex> {
    Tensor::new(FlexTensor::from_data(TensorData::new(values, shape.to_vec())))
}

fn into_host(tensor: Tensor<Flex>) -> Vec<f32> {
    Flex::read(&tensor, <[f32]>::to_vec)
}

#[cfg(feature = "cuda")]
impl Compute for burn_cuda::Cuda {}

/// Shorthand for a scalar operand.
pub(crate) fn scalar(value: f32) -> Scalar {
    Scalar::Float(f64::from(value))
}

/// The float primitive of a backend.
pub(crate) type Primitive<B> = FloatTensor<B>;
