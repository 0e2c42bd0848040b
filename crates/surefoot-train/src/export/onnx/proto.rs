//! The messages of an ONNX file, encoded as Protocol Buffers.
//!
//! Numbers of fields and kinds are those of `onnx.proto`.

/// Type of the elements of a tensor.
#[derive(Clone, Copy)]
pub(super) enum Element {
    F32 = 1,
    I64 = 7,
    F64 = 11,
}

/// An encoded message. Fields are appended by their number.
#[derive(Clone, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    pub(super) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u64, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    /// Appends a field for each of `values`.
    pub(super) fn messages(self, field: u64, values: &[Message]) -> Self {
        values.iter().fold(self, |message, value| message.message(field, value))
    }
}

/// An attribute of a node.
pub(super) struct Attribute(Message);

impl Attribute {
    /// The name and kind of an attribute.
    fn start(name: &str, kind: i64) -> Message {
        Message::default().text(1, name).int(20, kind)
    }

    pub(super) fn float(name: &str, value: f64) -> Self {
        Self(Self::start(name, 1).float(2, value as f32))
    }

    pub(super) fn int(name: &str, value: i64) -> Self {
        Self(Self::start(name, 2).int(3, value))
    }

    pub(super) fn tensor(name: &str, value: &Message) -> Self {
        Self(Self::start(name, 4).message(5, value))
    }

    pub(super) fn graph(name: &str, value: &Message) -> Self {
        Self(Self::start(name, 5).message(6, value))
    }

    pub(super) fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        let message = Self::start(name, 7);
        Self(values.into_iter().fold(message, |message, value| message.int(8, value)))
    }
}

/// A node: an operator, the names of its inputs and outputs, and its attributes.
pub(super) fn node(
    operator: &str,
    inputs: &[&str],
    outputs: &[String],
    attributes: Vec<Attribute>,
) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
    let node = outputs.iter().fold(node, |node, output| node.text(2, output));
    let name = outputs.first().map_or("", String::as_str);
    let node = node.text(3, &format!("{operator}_{name}")).text(4, operator);
    attributes.iter().fold(node, |node, attribute| node.message(5, &attribute.0))
}

/// A graph. `inputs` and `outputs` are [`value`]s.
pub(super) fn graph(
    name: &str,
    nodes: &[Message],
    arrays: &[Message],
    inputs: &[Message],
    outputs: &[Message],
) -> Message {
    let graph = Message::default().messages(1, nodes).text(2, name).messages(5, arrays);
    graph.messages(11, inputs).messages(12, outputs)
}

/// A tensor of values in the order of C, little-endian.
pub(super) fn tensor(name: &str, shape: &[usize], element: Element, data: &[u8]) -> Message {
    let sizes = shape.iter().fold(Message::default(), |tensor, &size| tensor.int(1, size as i64));
    sizes.int(2, element as i64).text(8, name).bytes(9, data)
}

/// A named value of 32-bit numbers. `shape` is that of one sample; unknown if `None`.
pub(super) fn value(name: &str, shape: Option<&[usize]>) -> Message {
    let mut tensor = Message::default().int(1, Element::F32 as i64);
    if let Some(shape) = shape {
        let batch = Message::default().text(2, "batch");
        let sizes = shape.iter().map(|&size| Message::default().int(1, size as i64));
        let sizes: Vec<Message> = std::iter::once(batch).chain(sizes).collect();
        tensor = tensor.message(2, &Message::default().messages(1, &sizes));
    }
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A model with the version of its format and of its operators, and metadata.
pub(super) fn model(
    [format, operators]: [i64; 2],
    graph: &Message,
    metadata: &[(&str, String)],
) -> Message {
    let model = Message::default()
        .int(1, format)
        .text(2, "surefoot")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, graph)
        .message(8, &Message::default().text(1, "").int(2, operators));
    metadata.iter().fold(model, |model, (key, value)| {
        model.message(14, &Message::default().text(1, key).text(2, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_encoded_as_protocol_buffers() {
        let message = Message::default().int(1, 300).text(2, "ab").float(3, 1.0).int(20, -1);
        let bytes = [
            &[0x08, 0xac, 0x02][..],
            &[0x12, 2, b'a', b'b'],
            &[0x1d, 0, 0, 0x80, 0x3f],
            &[0xa0, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ];
        assert_eq!(message.into_bytes(), bytes.concat());
    }
}
