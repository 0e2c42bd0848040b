//! Tables as CSV (RFC 4180), with `NaN`, `inf` and `-inf`.

use super::table::{Cell, Table};

pub(super) fn write(table: &Table) -> String {
    let names = table.columns.iter().map(|column| quoted(&column.name));
    let mut text = line(names);
    for row in 0..table.rows() {
        text.push_str(&line(table.columns.iter().map(|column| shown(&column.cells[row]))));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut line = cells.collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Int(value) => value.to_string(),
        // The shortest text that reads back as the same number.
        Cell::Float(value) => format!("{value:?}"),
        Cell::Bool(value) => value.to_string(),
        Cell::Text(text) => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;

    #[test]
    fn a_trial_is_a_row_and_a_parameter_a_column() {
        let (study, view) = fixture::study();
        assert_eq!(
            write(&Table::of(&study, &view)),
            "\
number,state,value,optimizer,rate,momentum,units,reason,message,epochs,planned,seconds,operations,attempts,run
0,complete,0.25,adam,0.001,,16,,,3,3,1.5,30.0,1,runs/s/trial-00000
1,pruned,0.9,sgd,0.1,0.5,32,median,\"It is worse than \"\"half\"\", at least.\",1,3,0.5,10.0,1,runs/s/trial-00001
2,failed,,adam,0.01,,16,,\"no
disk\",0,3,0.25,0.0,1,runs/s/trial-00002
3,complete,NaN,adam,0.01,,16,,,1,3,1.0,10.0,1,runs/s/trial-00003
4,pruned,0.125,sgd,0.5,0.0,64,nmg,No more gain.,2,3,1.0,20.0,1,runs/s/trial-00004
5,running,,sgd,0.25,0.75,32,,,2,3,,20.0,1,runs/s/trial-00005
"
        );
    }
}
