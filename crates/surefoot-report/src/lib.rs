//! The report of a run, and that of a study: one HTML file that a person understands, made from the
//! record or the store alone.
//!
//! The page opens without a network and without scripts, and the same record gives the same bytes.
//! Observations are read once and thinned on the way, so a long run costs no more memory than a
//! short one. `docs/report.md` says what is on the page.
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

// What makes up studies for tests is used in here and by the tests outside.
#[cfg(test)]
extern crate self as surefoot_report;

mod chart;
mod curves;
mod document;
mod explain;
mod findings;
#[cfg(test)]
mod fixture;
mod gradients;
mod heat;
mod history;
mod ledger;
mod marks;
mod page;
mod reading;
mod scale;
mod series;
mod small_print;
mod story;
mod study;
mod svg;
mod words;

pub use study::{StudyPage, StudyTrial, study_report};

use surefoot_record::{Record, Result};

/// The report of a run, as one HTML page.
///
/// The run may have ended, may have been killed, or may be going on: the page tells what has been
/// recorded. Where the record of the delivered attempt is gone, the page says so and goes without.
pub fn report(run: &Record) -> Result<String> {
    let history = history::History::of(&run.events()?);
    let delivered = history.delivered_attempt();
    let readings = reading::Readings::of(run, delivered)?;
    let report =
        page::Report { summary: run.summary()?, run, history: &history, readings: &readings };
    Ok(report.page().into_string())
}
