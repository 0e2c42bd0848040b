//! The two tables of observations: one row per step, and one row per tensor observed at a step.
//!
//! A [`Batch`] holds some rows of a table in columns. A [`Schema`] defines the columns for both the
//! live file ([`stream`]) and the closed one ([`parquet`]).

pub(crate) mod flat;
pub(crate) mod layers;

pub(crate) mod parquet;
pub(crate) mod steps;
pub(crate) mod stream;

use surefoot_diagnose::LayerInfo;

/// The columns of a table.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
}

/// Type of a column.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A count. Signed in the files, so that a difference of two is what one expects of it.
    Int,
    Float,
    /// One of a fixed list of texts.
    Text(Vec<String>),
}

impl Schema {
    /// One row a step.
    pub(crate) fn steps() -> Schema {
        steps::schema()
    }

    /// One row for each tensor seen at a step.
    pub(crate) fn layers(layers: &[LayerInfo]) -> Schema {
        layers::schema(layers)
    }
}

fn field(name: &'static str, kind: Kind, nullable: bool) -> Field {
    Field { name, kind, nullable }
}

/// Rows of a table, column by column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

/// One column of some rows. Missing values are zero in `data`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) data: Data,
    /// For each row whether there is a value; `None` if the column has one everywhere.
    pub(crate) valid: Option<Vec<bool>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Int(Vec<i64>),
    Float(Vec<f64>),
    /// Positions in the list of texts.
    Text(Vec<i32>),
}

impl Batch {
    pub(crate) fn new(schema: &Schema) -> Batch {
        let columns = schema.fields.iter().map(|field| Column {
            data: match field.kind {
                Kind::Int => Data::Int(Vec::new()),
                Kind::Float => Data::Float(Vec::new()),
                Kind::Text(_) => Data::Text(Vec::new()),
            },
            valid: field.nullable.then(Vec::new),
        });
        Batch { rows: 0, columns: columns.collect() }
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps the first rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.split_off(rows);
    }

    /// Removes and returns the rows from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Batch {
        let at = at.min(self.rows);
        let columns = self.columns.iter_mut().map(|column| Column {
            data: match &mut column.data {
                Data::Int(values) => Data::Int(values.split_off(at)),
                Data::Float(values) => Data::Float(values.split_off(at)),
                Data::Text(values) => Data::Text(values.split_off(at)),
            },
            valid: column.valid.as_mut().map(|valid| valid.split_off(at)),
        });
        let rest = Batch { rows: self.rows - at, columns: columns.collect() };
        self.rows = at;
        rest
    }

    /// Adds the rows of another batch of the same schema.
    pub(crate) fn append(&mut self, other: &Batch) {
        self.rows += other.rows;
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            match (&mut column.data, &more.data) {
                (Data::Int(values), Data::Int(more)) => values.extend_from_slice(more),
                (Data::Float(values), Data::Float(more)) => values.extend_from_slice(more),
                (Data::Text(values), Data::Text(more)) => values.extend_from_slice(more),
                // Batches are made from schemas only, so kinds agree.
                _ => debug_assert!(false, "batches of different schemas"),
            }
            if let (Some(valid), Some(more)) = (&mut column.valid, &more.valid) {
                valid.extend_from_slice(more);
            }
        }
    }

    /// Adds a row, to be filled column by column.
    pub(crate) fn row(&mut self) -> RowWriter<'_> {
        self.rows += 1;
        RowWriter { columns: self.columns.iter_mut() }
    }

    /// Reads a row, one column after the other.
    pub(crate) fn read(&self, row: usize) -> RowReader<'_> {
        RowReader { columns: self.columns.iter(), row }
    }
}

/// Fills one row of a [`Batch`] from the first column to the last.
pub(crate) struct RowWriter<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl RowWriter<'_> {
    pub(crate) fn int(&mut self, value: impl Into<Option<u64>>) -> &mut Self {
        let value = value.into();
        if let Some(column) = self.columns.next() {
            if let Data::Int(values) = &mut column.data {
                values.push(value.unwrap_or(0) as i64);
            }
            if let Some(valid) = &mut column.valid {
                valid.push(value.is_some());
            }
        }
        self
    }

    pub(crate) fn float(&mut self, value: impl Into<Option<f64>>) -> &mut Self {
        let value = value.into();
        if let Some(column) = self.columns.next() {
            if let Data::Float(values) = &mut column.data {
                values.push(value.unwrap_or(0.0));
            }
            if let Some(valid) = &mut column.valid {
                valid.push(value.is_some());
            }
        }
        self
    }

    /// The position of the value in the texts of the column.
    pub(crate) fn text(&mut self, position: impl Into<Option<usize>>) -> &mut Self {
        let position = position.into();
        if let Some(column) = self.columns.next() {
            if let Data::Text(values) = &mut column.data {
                values.push(position.unwrap_or(0) as i32);
            }
            if let Some(valid) = &mut column.valid {
                valid.push(position.is_some());
            }
        }
        self
    }
}

/// Reads one row of a [`Batch`] column by column. Missing values are `None`.
pub(crate) struct RowReader<'a> {
    columns: std::slice::Iter<'a, Column>,
    row: usize,
}

impl RowReader<'_> {
    fn next(&mut self) -> Option<&Data> {
        let column = self.columns.next()?;
        let there = match &column.valid {
            Some(valid) => valid.get(self.row).copied().unwrap_or(false),
            None => true,
        };
        there.then_some(&column.data)
    }

    pub(crate) fn int(&mut self) -> Option<u64> {
        let row = self.row;
        match self.next()? {
            Data::Int(values) => values.get(row).map(|&value| value as u64),
            _ => None,
        }
    }

    pub(crate) fn float(&mut self) -> Option<f64> {
        let row = self.row;
        match self.next()? {
            Data::Float(values) => values.get(row).copied(),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self) -> Option<usize> {
        let row = self.row;
        match self.next()? {
            Data::Text(values) => usize::try_from(*values.get(row)?).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn layer_schema() -> Schema {
        let layer = |name: &str| LayerInfo { name: name.to_owned(), ..LayerInfo::default() };
        Schema::layers(&[layer("dense_1"), layer("größe"), layer("out")])
    }

    /// Rows of every kind of value, the same each time.
    pub(crate) fn random_batch(schema: &Schema, rows: usize) -> Batch {
        let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-310];
        let mut batch = Batch::new(schema);
        for row in 0..rows {
            let mut writer = batch.row();
            for (i, field) in schema.fields.iter().enumerate() {
                let there = !field.nullable || (row * 7 + i * 3) % 4 != 0;
                match &field.kind {
                    Kind::Int => writer.int(there.then_some((row * 1000 + i) as u64)),
                    Kind::Float => writer.float(there.then_some(match (row + i) % 9 {
                        n if n < odd.len() => odd[n],
                        n => 0.1 * n as f64 + row as f64,
                    })),
                    Kind::Text(texts) => writer.text(there.then_some(row % texts.len())),
                };
            }
        }
        batch
    }

    #[test]
    fn a_batch_is_cut_and_joined_again() {
        let schema = layer_schema();
        let whole = random_batch(&schema, 10);
        let mut front = whole.clone();
        front.truncate(4);
        assert_eq!(front.rows, 4);
        assert_eq!(format!("{front:?}"), format!("{:?}", random_batch(&schema, 4)));
        front.clear();
        front.append(&random_batch(&schema, 10));
        assert_eq!(format!("{front:?}"), format!("{whole:?}"));
    }
}
