//! As much of FlatBuffers as the messages of an Arrow stream need.
//!
//! Writing goes from the outside in: a table, then what it points to, whose place is patched in.
//! Reading never trusts an offset.

/// A FlatBuffer in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

/// A place that is to hold an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole(usize);

/// The value of a table's field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Left at its default.
    Absent,
    U8(u8),
    I16(i16),
    I32(i32),
    I64(i64),
    /// Something written later, see [`Writer::fill`].
    Offset,
}

impl Value {
    fn size(self) -> usize {
        match self {
            Value::Absent => 0,
            Value::U8(_) => 1,
            Value::I16(_) => 2,
            Value::I32(_) | Value::Offset => 4,
            Value::I64(_) => 8,
        }
    }
}

impl Writer {
    /// Begins with the place of the root table.
    pub(crate) fn new() -> (Writer, Hole) {
        let bytes = vec![0; 4];
        (Writer { bytes }, Hole(0))
    }

    /// The buffer.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Lets a hole point to what is written next. `next` must be at its place already.
    fn fill_here(&mut self, hole: Hole) {
        let distance = (self.bytes.len() - hole.0) as u32;
        self.bytes[hole.0..hole.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    fn pad_to(&mut self, multiple: usize, remainder: usize) {
        while self.bytes.len() % multiple != remainder {
            self.bytes.push(0);
        }
    }

    /// Fills a hole with a table of these fields, in schema order, and returns the holes of the
    /// fields that are [`Value::Offset`].
    pub(crate) fn table<const N: usize>(&mut self, hole: Hole, fields: [Value; N]) -> [Hole; N] {
        // Four bytes lead back to the vtable; the largest fields follow first, so that with the
        // table four bytes before a multiple of eight every field is aligned.
        let mut places = [0_usize; N];
        let mut size = 4;
        for width in [8, 4, 2, 1] {
            for (place, field) in places.iter_mut().zip(fields) {
                if field.size() == width {
                    *place = size;
                    size += width;
                }
            }
        }
        self.pad_to(2, 0);
        let vtable = self.bytes.len();
        self.bytes.extend((4 + 2 * N as u16).to_le_bytes());
        self.bytes.extend((size as u16).to_le_bytes());
        for place in places {
            self.bytes.extend((place as u16).to_le_bytes());
        }
        self.pad_to(8, 4);
        self.fill_here(hole);
        let table = self.bytes.len();
        self.bytes.resize(table + size, 0);
        let mut put = |at: usize, value: &[u8]| {
            self.bytes[table + at..table + at + value.len()].copy_from_slice(value);
        };
        put(0, &((table - vtable) as i32).to_le_bytes());
        for (place, field) in places.into_iter().zip(fields) {
            match field {
                Value::Absent | Value::Offset => {}
                Value::U8(value) => put(place, &[value]),
                Value::I16(value) => put(place, &value.to_le_bytes()),
                Value::I32(value) => put(place, &value.to_le_bytes()),
                Value::I64(value) => put(place, &value.to_le_bytes()),
            }
        }
        places.map(|place| Hole(table + place))
    }

    /// Fills a hole with a text.
    pub(crate) fn text(&mut self, hole: Hole, text: &str) {
        self.pad_to(4, 0);
        self.fill_here(hole);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// Fills a hole with a vector of offsets and returns their holes.
    pub(crate) fn vector(&mut self, hole: Hole, count: usize) -> Vec<Hole> {
        self.pad_to(4, 0);
        self.fill_here(hole);
        self.bytes.extend((count as u32).to_le_bytes());
        let first = self.bytes.len();
        self.bytes.resize(first + 4 * count, 0);
        (0..count).map(|i| Hole(first + 4 * i)).collect()
    }

    /// Fills a hole with a vector of pairs (structs of two `long`s).
    pub(crate) fn pairs(&mut self, hole: Hole, pairs: &[(i64, i64)]) {
        self.pad_to(8, 4);
        self.fill_here(hole);
        self.bytes.extend((pairs.len() as u32).to_le_bytes());
        for (first, second) in pairs {
            self.bytes.extend(first.to_le_bytes());
            self.bytes.extend(second.to_le_bytes());
        }
    }
}

/// A table in a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The table that a FlatBuffer begins with.
    pub(crate) fn root(bytes: &'a [u8]) -> Option<Table<'a>> {
        let at = follow(bytes, 0)?;
        Some(Table { bytes, at })
    }

    /// Position of the field with this 0-based index; `None` if it has its default.
    fn field(&self, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(array(self.bytes, self.at)?);
        let vtable = usize::try_from(self.at as i64 - i64::from(back)).ok()?;
        let length = u16::from_le_bytes(array(self.bytes, vtable)?) as usize;
        let entry = 4 + 2 * index;
        if entry + 2 > length {
            return None;
        }
        let place = u16::from_le_bytes(array(self.bytes, vtable + entry)?) as usize;
        (place > 0).then_some(self.at + place)
    }

    pub(crate) fn u8(&self, index: usize) -> Option<u8> {
        Some(u8::from_le_bytes(array(self.bytes, self.field(index)?)?))
    }

    pub(crate) fn i64(&self, index: usize) -> Option<i64> {
        Some(i64::from_le_bytes(array(self.bytes, self.field(index)?)?))
    }

    pub(crate) fn table(&self, index: usize) -> Option<Table<'a>> {
        let at = follow(self.bytes, self.field(index)?)?;
        Some(Table { bytes: self.bytes, at })
    }

    pub(crate) fn text(&self, index: usize) -> Option<&'a str> {
        let at = follow(self.bytes, self.field(index)?)?;
        let length = u32::from_le_bytes(array(self.bytes, at)?) as usize;
        let bytes = self.bytes.get(at.checked_add(4)?..)?.get(..length)?;
        str::from_utf8(bytes).ok()
    }

    /// The first table of a vector of tables.
    pub(crate) fn first(&self, index: usize) -> Option<Table<'a>> {
        let vector = follow(self.bytes, self.field(index)?)?;
        if u32::from_le_bytes(array(self.bytes, vector)?) == 0 {
            return None;
        }
        let at = follow(self.bytes, vector.checked_add(4)?)?;
        Some(Table { bytes: self.bytes, at })
    }
}

/// Target of the offset at this position.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let distance = u32::from_le_bytes(array(bytes, at)?) as usize;
    at.checked_add(distance)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let (mut w, root) = Writer::new();
        let [_, _, name, list, inner, _] = w.table(
            root,
            [
                Value::U8(7),
                Value::I64(-5),
                Value::Offset,
                Value::Offset,
                Value::Offset,
                Value::Absent,
            ],
        );
        w.text(name, "straße");
        let holes = w.vector(list, 2);
        for (i, hole) in holes.into_iter().enumerate() {
            w.table(hole, [Value::I64(i as i64 + 10), Value::I16(3)]);
        }
        let [pairs, _] = w.table(inner, [Value::Offset, Value::I32(1)]);
        w.pairs(pairs, &[(1, 2), (3, 4)]);
        w.finish()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let root = Table::root(&bytes).unwrap();
        assert_eq!(root.u8(0), Some(7));
        assert_eq!(root.i64(1), Some(-5));
        assert_eq!(root.text(2), Some("straße"));
        assert_eq!(root.first(3).and_then(|table| table.i64(0)), Some(10));
        assert!(root.table(4).is_some());
        assert_eq!(root.i64(5), None);
        assert_eq!(root.i64(60), None);
    }

    #[test]
    fn a_damaged_buffer_never_panics() {
        let whole = sample();
        let visit = |bytes: &[u8]| {
            if let Some(root) = Table::root(bytes) {
                let _ = (root.u8(0), root.i64(1), root.text(2));
                let _ = root.first(3).and_then(|table| table.i64(0));
                let _ = root.table(4).and_then(|table| table.first(0));
            }
        };
        for length in 0..whole.len() {
            visit(&whole[..length]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                visit(&bytes);
            }
        }
    }
}
