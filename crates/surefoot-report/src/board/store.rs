//! Follows the studies of a store, in a thread of its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use surefoot_tune::storage::{Storage, StorageError};

use super::catalog::Catalog;
use super::live_study::LiveStudy;

/// Time between two reads.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time before a store that failed is opened again.
const RETRY: Duration = Duration::from_secs(3);

/// Follows a store until the board is stopped or the file is deleted. Errors are shown on the page.
pub(super) fn follow(catalog: &Catalog, url: &str) {
    while !catalog.is_stopped() {
        let error = match Storage::open_existing(url) {
            Ok(storage) => {
                let name = storage.name().to_owned();
                let Err(error) = read(catalog, url, storage);
                // The studies stay on the page as they were last seen.
                catalog.studies.fail(&name, &error.to_string());
                error
            }
            Err(error) => {
                catalog.studies.fail(&shown(url), &error.to_string());
                error
            }
        };
        let is_gone = matches!(error, StorageError::Missing { .. } | StorageError::Moved { .. });
        if is_gone && !url.contains("://") && !std::path::Path::new(url).exists() {
            catalog.studies.remove_store(url);
            return;
        }
        pause(catalog, RETRY);
    }
}

/// A URL without the part that may contain a password.
fn shown(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) if scheme != "sqlite" => format!("{scheme}://…"),
        _ => url.to_owned(),
    }
}

fn read(
    catalog: &Catalog,
    url: &str,
    mut storage: Storage,
) -> Result<std::convert::Infallible, StorageError> {
    let name = storage.name().to_owned();
    loop {
        let begun = Instant::now();
        let studies = storage.studies()?;
        let ids: BTreeSet<String> =
            studies.iter().map(|study| format!("{name}#{}", study.name)).collect();
        for study in studies {
            let id = format!("{name}#{}", study.name);
            let live = catalog.studies.entry(&id, || LiveStudy::new(&study, &name));
            live.refresh(&mut storage, &study)?;
        }
        catalog.studies.keep(&name, &ids);
        if catalog.is_stopped() {
            return Err(StorageError::Missing { storage: url.to_owned() });
        }
        pause(catalog, INTERVAL.max(begun.elapsed() * 4));
    }
}

/// Sleeps until the next read, the end of the board, or a request for more data by a page.
fn pause(catalog: &Catalog, time: Duration) {
    let (end, wishes) = (Instant::now() + time, catalog.studies.wishes());
    let is_asked = || catalog.is_stopped() || catalog.studies.wishes() != wishes;
    while Instant::now() < end && !is_asked() {
        std::thread::sleep(Duration::from_millis(50));
    }
}
