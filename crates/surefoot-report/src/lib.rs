//! Pages of runs and studies: static HTML files, and the [`Board`], which serves them live.
//!
//! A report is one file without scripts or network requests. The same record always produces the same
//! bytes. Observations are streamed and downsampled, so memory does not grow with the length of a
//! run. `docs/report.md` describes the pages.
//!
//! ```
//! use surefoot_record::{Header, Recorder, Record};
//!
//! # fn main() -> surefoot_record::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let runs = dir.path();
//! let recorder = Recorder::create(runs, "circles", "seed = 1\n", Header::default())?;
//! let page = surefoot_report::report(&Record::open(recorder.dir())?)?;
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok(())
//! # }
//! ```

// The study fixture is compiled into unit tests and integration tests.
#[cfg(test)]
extern crate self as surefoot_report;

mod board;
mod chart;
mod curves;
mod document;
mod explain;
mod findings;
#[cfg(test)]
mod fixture;
mod format;
mod heatmap;
mod history;
mod layer_map;
mod ledger;
mod marks;
mod page;
mod reading;
mod reproduction;
mod scale;
mod series;
mod story;
mod study;
mod svg;

pub use board::{Board, BoardConfig, BoardError, PORT};
pub use ledger::hunks;
pub use study::{StudyPage, StudyTrial, study_report};

use surefoot_record::{Record, Result};

/// Returns the report of a run as an HTML page.
///
/// The run may be finished, running or killed; the page shows what has been recorded. If the record
/// of the delivered attempt is missing, the page says so and omits its curves.
pub fn report(run: &Record) -> Result<String> {
    let history = history::History::of(&run.events()?);
    let delivered = history.delivered_attempt();
    let readings = reading::Readings::of(run, delivered)?;
    let report = page::RunPage {
        summary: run.summary()?,
        run,
        history: &history,
        readings: &readings,
        is_running: false,
    };
    Ok(report.page().into_string())
}
