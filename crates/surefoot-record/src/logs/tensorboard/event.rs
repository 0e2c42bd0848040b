//! The few messages of TensorFlow's `event.proto`, `summary.proto` and `tensor.proto` that hold
//! scalars, with the fields that are needed. The numbers are those of the format and never change.

/// Values logged together.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) step: i64,
    pub(crate) values: Vec<Value>,
}

/// A value and its tag. Images and histograms are ignored.
#[derive(Debug, Default)]
pub(crate) struct Value {
    pub(crate) tag: String,
    /// A scalar as TensorFlow 1, PyTorch and most others write it.
    simple_value: Option<f32>,
    /// A scalar as TensorFlow 2 writes it, and much else.
    tensor: Option<Tensor>,
}

#[derive(Debug, Default)]
struct Tensor {
    dtype: u64,
    content: Vec<u8>,
    float_val: Vec<f32>,
    double_val: Vec<f64>,
}

/// `DT_FLOAT`, which all scalars of TensorFlow 2 are.
const FLOAT: u64 = 1;
/// `DT_DOUBLE`, which PyTorch writes for double precision.
const DOUBLE: u64 = 2;

impl Event {
    /// Decodes a message; `None` if it is not one.
    pub(crate) fn decode(data: &[u8]) -> Option<Self> {
        let mut event = Self::default();
        each_field(data, |number, field| {
            match (number, field) {
                (2, Field::Integer(step)) => event.step = step as i64,
                (5, Field::Bytes(summary)) => each_field(summary, |number, field| {
                    if let (1, Field::Bytes(value)) = (number, field) {
                        event.values.push(Value::decode(value)?);
                    }
                    Some(())
                })?,
                (2 | 5, _) => return None,
                _ => {}
            }
            Some(())
        })?;
        Some(event)
    }
}

impl Value {
    fn decode(data: &[u8]) -> Option<Self> {
        let mut value = Self::default();
        each_field(data, |number, field| {
            match (number, field) {
                (1, Field::Bytes(tag)) => value.tag = String::from_utf8(tag.to_vec()).ok()?,
                (2, Field::Four(bytes)) => value.simple_value = Some(f32::from_le_bytes(bytes)),
                (8, Field::Bytes(tensor)) => value.tensor = Some(Tensor::decode(tensor)?),
                (1 | 2 | 8, _) => return None,
                _ => {}
            }
            Some(())
        })?;
        Some(value)
    }

    /// The number, if it is one.
    pub(crate) fn scalar(&self) -> Option<f64> {
        match (&self.simple_value, &self.tensor) {
            (Some(value), _) => Some(f64::from(*value)),
            (None, Some(tensor)) => tensor.scalar(),
            (None, None) => None,
        }
    }
}

impl Tensor {
    fn decode(data: &[u8]) -> Option<Self> {
        let mut tensor = Self::default();
        each_field(data, |number, field| {
            match (number, field) {
                (1, Field::Integer(dtype)) => tensor.dtype = dtype,
                (4, Field::Bytes(content)) => tensor.content = content.to_vec(),
                // Repeated numbers come one by one or packed.
                (5, Field::Four(bytes)) => tensor.float_val.push(f32::from_le_bytes(bytes)),
                (5, Field::Bytes(packed)) => {
                    let (values, rest) = packed.as_chunks();
                    tensor.float_val.extend(values.iter().map(|v| f32::from_le_bytes(*v)));
                    return rest.is_empty().then_some(());
                }
                (6, Field::Eight(bytes)) => tensor.double_val.push(f64::from_le_bytes(bytes)),
                (6, Field::Bytes(packed)) => {
                    let (values, rest) = packed.as_chunks();
                    tensor.double_val.extend(values.iter().map(|v| f64::from_le_bytes(*v)));
                    return rest.is_empty().then_some(());
                }
                (1 | 4 | 5 | 6, _) => return None,
                _ => {}
            }
            Some(())
        })?;
        Some(tensor)
    }

    fn scalar(&self) -> Option<f64> {
        let content = self.content.as_slice();
        match (self.dtype, self.float_val.as_slice(), self.double_val.as_slice()) {
            (FLOAT, [value], _) => Some(f64::from(*value)),
            (FLOAT, [], _) => content.try_into().ok().map(f32::from_le_bytes).map(f64::from),
            (DOUBLE, _, [value]) => Some(*value),
            (DOUBLE, _, []) => content.try_into().ok().map(f64::from_le_bytes),
            _ => None,
        }
    }
}

/// The value of a field, by its wire type.
enum Field<'a> {
    Integer(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
}

/// Calls `visit` with the number and value of each field of a message; `None` if the data are not
/// a message or `visit` returns `None`.
fn each_field<'a>(
    mut data: &'a [u8],
    mut visit: impl FnMut(u64, Field<'a>) -> Option<()>,
) -> Option<()> {
    while !data.is_empty() {
        let key = integer(&mut data)?;
        let field = match key & 7 {
            0 => Field::Integer(integer(&mut data)?),
            1 => Field::Eight(data.split_off(..8)?.try_into().ok()?),
            2 => {
                let len = usize::try_from(integer(&mut data)?).ok()?;
                Field::Bytes(data.split_off(..len)?)
            }
            5 => Field::Four(data.split_off(..4)?.try_into().ok()?),
            _ => return None,
        };
        visit(key >> 3, field)?;
    }
    Some(())
}

/// An integer of seven bits a byte, the lowest first.
fn integer(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
