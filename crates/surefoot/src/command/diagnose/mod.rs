//! `surefoot diagnose`: runs the detectors on a recorded run or a log.

mod examine;
mod settings;
mod subject;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use clap::Args;
use examine::examine;
use settings::DiagnoseSettings;
use std::path::{Path, PathBuf};
use subject::Subject;
use surefoot_diagnose::Rules;
use surefoot_record::logs::{Map, Role};

const EXAMPLES: &str = "\
Examples:
  surefoot diagnose runs/circles-001
      What the detectors say about a recorded run, finished or not.

  surefoot diagnose history.csv
      The same for what Keras' CSVLogger, Lightning or a notebook wrote.

  surefoot diagnose train.log trainer_state.json mlruns/0/4f1c
      Several logs: console output, a Transformers state, an MLflow run.

  surefoot diagnose history.csv --map loss=cost --map val_loss=\"cost (dev)\"
      Says which columns are which, where their names do not.

  surefoot diagnose logs/fit --set facts.task=binary --set facts.epochs=50
      A TensorBoard log directory, with facts that are not in it.

  surefoot diagnose runs/circles-001 --set diagnose.theta=0.9 --set 'diagnose.off=[\"loss_spike\"]'
      With another threshold, and without one of the detectors.

  surefoot diagnose runs/circles-001 --json | tail -n 1
      The result as one line of JSON.

Exit codes: 0 no problem, 1 problems found, 2 the input is wrong, 3 something broke.";

/// Look for problems in runs and in training logs of other tools
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run directories, log files (CSV, JSON, text) or log directories (TensorBoard, Lightning, MLflow)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Change a threshold (diagnose.theta=0.9) or state a fact (facts.task=binary)
    ///
    /// Thresholds are those of the detectors; `diagnose.off` lists problems to ignore;
    /// `rules=autotrainer` takes the detectors and thresholds of AutoTrainer. Facts are
    /// `task` (binary, multi_class, multi_label or regression), `chance` (metric of the best constant
    /// prediction), `baseline_loss` (its loss), `epochs` and `steps_per_epoch`. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Assign a role to a column or tag, such as loss=my_column
    ///
    /// Roles are loss, metric, val_loss, val_metric, learning_rate, step, epoch, grad_norm and
    /// grad_norm/LAYER. Others are recognized by name. Can be repeated.
    #[arg(long = "map", value_name = "NAME=COLUMN", value_parser = mapping)]
    map: Vec<(Role, String)>,

    /// Print one JSON object a line on stdout, the result last
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as diagnose.theta=0.9".to_owned()),
    }
}

fn mapping(text: &str) -> Result<(Role, String), String> {
    match text.split_once('=') {
        Some((name, column)) => {
            let role = name.trim().parse::<Role>();
            let role = role.map_err(|error| error.to_string())?;
            Ok((role, column.to_owned()))
        }
        None => Err("expected NAME=COLUMN, such as loss=my_column".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    let map: Map = arguments.map.iter().cloned().collect();
    let mut exit = Exit::Done;
    let mut failure = None;
    for path in &arguments.paths {
        match diagnose(path, &map, &arguments.settings, &console) {
            Ok(true) => exit = Exit::No,
            Ok(false) => {}
            // The other paths are diagnosed all the same.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(exit),
    }
}

/// Diagnoses all runs at `path`; returns true if one has a problem.
fn diagnose(
    path: &Path,
    map: &Map,
    settings: &[(String, String)],
    console: &Console,
) -> Result<bool, Failure> {
    let mut found = false;
    for subject in Subject::open(path, map)? {
        let thresholds = match settings.iter().rfind(|(key, _)| key == "rules") {
            Some((_, rules)) => rules.parse::<Rules>().map_err(Failure::input)?.thresholds(),
            None => subject.thresholds(),
        };
        let detectors = || thresholds.rules.detectors();
        let settings = DiagnoseSettings::read(settings, thresholds.clone(), &detectors())?;
        let report = examine(subject, settings, detectors())?;
        report.events().iter().for_each(|event| console.event(event));
        console.say(&report.text());
        found |= report.problems().next().is_some();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_may_have_an_equals_sign() {
        assert_eq!(mapping("loss=a=b"), Ok((Role::Loss, "a=b".to_owned())));
        assert!(mapping("loss").is_err_and(|error| error.contains("NAME=COLUMN")));
        assert!(mapping("los=x").is_err_and(|error| error.contains("val_metric")));
        assert!(setting("theta").is_err());
    }
}
