//! Errors that end a command.

use crate::exit::Exit;
use crate::output::{Role, to_stderr};
use std::io::ErrorKind;
use std::path::Path;
use surefoot_data::DataError;
use surefoot_plan::PlanError;
use surefoot_plan::keras::KerasError;
use surefoot_record::Error as RecordError;
use surefoot_record::logs::Error as ImportError;
use surefoot_train::TrainError;
use surefoot_tune::WorkerError;
use surefoot_tune::storage::StorageError;

/// Error that ends a command: exit code, message and help.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    /// Suggestions, one sentence each.
    help: Vec<String>,
}

impl Failure {
    /// Wrong input.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::WrongInput, message)
    }

    /// Internal or system error.
    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self::new(Exit::Broken, message)
    }

    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: Vec::new() }
    }

    /// Adds a suggestion.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn print(&self) {
        let mut text = format!("{} {}", Role::Error.paint("error:"), self.message);
        for help in &self.help {
            text.push_str(&format!("\n  {} {help}", Role::Help.paint("help:")));
        }
        to_stderr(&text);
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let text = error.to_string();
        Self::input(text.strip_prefix("error: ").unwrap_or(&text))
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::input(error.to_string())
    }
}

impl From<KerasError> for Failure {
    fn from(error: KerasError) -> Self {
        Self::input(error.to_string())
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let exit = match &error {
            ImportError::Io { source, .. } if !is_wrong_path(source.kind()) => Exit::Broken,
            _ => Exit::WrongInput,
        };
        let failure = Self::new(exit, error.to_string());
        match error.is_about_names() {
            true => failure.help(
                "name the columns: --map loss=NAME; also metric, val_loss, val_metric, \
                 learning_rate, step, epoch and grad_norm/LAYER",
            ),
            false => failure,
        }
    }
}

impl Failure {
    /// Error for a folder that cannot be created: wrong input if another path would help.
    pub(crate) fn not_created(folder: &Path, error: &std::io::Error) -> Self {
        let exit = match is_wrong_path(error.kind()) {
            true => Exit::WrongInput,
            false => Exit::Broken,
        };
        Self::new(exit, format!("cannot create {}: {error}", folder.display()))
    }
}

/// True if another path would help.
fn is_wrong_path(kind: ErrorKind) -> bool {
    use ErrorKind::{AlreadyExists, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, NotFound | PermissionDenied | NotADirectory | AlreadyExists | ReadOnlyFilesystem)
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let exit = match &error {
            // A place that cannot be written, such as a wrong --runs.
            RecordError::Io { action: "create", source, .. } if is_wrong_path(source.kind()) => {
                Exit::WrongInput
            }
            RecordError::Io { .. }
            | RecordError::Failed { .. }
            | RecordError::Unrecordable { .. } => Exit::Broken,
            // The remaining errors are about the given run.
            _ => Exit::WrongInput,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        let exit = match &error {
            StorageError::Url { .. }
            | StorageError::Missing { .. }
            | StorageError::NotADatabase { .. }
            | StorageError::Foreign { .. }
            | StorageError::Layout { .. }
            | StorageError::ReadOnly { .. }
            | StorageError::Rejected { .. }
            | StorageError::Damaged { .. }
            | StorageError::UnreadableLog { .. }
            | StorageError::NoStudy { .. }
            | StorageError::Differs { .. } => Exit::WrongInput,
            _ => Exit::Broken,
        };
        let failure = Self::new(exit, error.to_string());
        match error {
            StorageError::Differs { .. } => failure
                .help("choose another name (--set tune.name=NAME) or another directory (--runs)"),
            _ => failure,
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Storage(error) => error.into(),
            error => Self::broken(error.to_string()),
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Record(error) => error.into(),
            TrainError::Plan(error) => (*error).into(),
            TrainError::Shape(error) => {
                let failure = Self::input(error.to_string());
                error.help.into_iter().fold(failure, Self::help)
            }
            TrainError::DataChanged { .. } => Self::input(error.to_string())
                .help("restore them, or start a new run from its plan.toml"),
            TrainError::Io { .. } | TrainError::Callback(_) => Self::broken(error.to_string()),
            error => Self::input(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_errors_are_not_wrong_input() {
        let full = RecordError::Io {
            action: "write",
            path: "runs/x-001".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        assert_eq!(Failure::from(full).exit(), Exit::Broken);
        let locked = RecordError::Locked { path: "runs/x-001".into() };
        let locked = Failure::from(TrainError::from(locked));
        assert_eq!(locked.exit(), Exit::WrongInput);
    }
}
