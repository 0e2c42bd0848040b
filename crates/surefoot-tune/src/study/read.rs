//! Reads a study from a document.

use super::ranges::{Walk, scalar};
use super::settings::{ObjectiveKind, StudyConfig};
use super::template::{Action, Template};
use super::{Study, Task, VERSION, duration};
use crate::command;
use crate::direction::Direction;
use crate::space::{Condition, Domain, Parameter, Space, Value};
use crate::{pruner, sampler, scheduler};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use surefoot_plan::{Document, Loss, Plan, PlanError, nearest};
use toml_edit::{DocumentMut, Item, TableLike, Value as Toml};

/// Keys of `[tune]`.
const KEYS: [&str; 20] = [
    "version",
    "name",
    "command",
    "function",
    "resume",
    "keep_alive",
    "objective",
    "direction",
    "seed",
    "scheduler",
    "sampler",
    "rules",
    "pruner",
    "protect",
    "trials",
    "time",
    "operations",
    "workers",
    "attempts",
    "patience",
];

/// Section of parameters outside the plan.
const OWN: &str = "parameters";

/// Sections that plans do not have.
const SECTIONS: [&str; 2] = ["tune", OWN];

/// Metric names accepted as objective.
const METRICS: [&str; 2] = ["accuracy", "r2"];

/// Reads a study.
pub(super) fn study(document: Document) -> Result<Study, PlanError> {
    let reader = Reader { document: &document };
    let mut toml: DocumentMut = document
        .text()
        .parse()
        .map_err(|error: toml_edit::TomlError| reader.fault("", error.message().to_owned()))?;
    let tune = toml.remove("tune");
    let tune = reader.section("tune", tune.as_ref())?;
    reader.version(tune)?;
    reader.only("tune", tune, &KEYS)?;
    let command = reader.text("tune", tune, "command")?;
    let function = reader.text("tune", tune, "function")?;
    if command.is_some() && function.is_some() {
        return Err(reader.fault("tune.function", "a study has a command or a function, not both"));
    }
    let metric = reader.text("tune", tune, "objective")?;
    let metric = metric.filter(|objective| METRICS.contains(&objective.as_str()));

    for (key, _) in toml.as_table().iter().filter(|(key, _)| *key != OWN) {
        // Checked first: ranges in unknown sections are not found.
        if let Some(section) = nearest(key, SECTIONS) {
            let help = Some(format!("did you mean `{section}`?"));
            return Err(document.error_at(key, format!("unknown key `{key}`"), help));
        }
    }

    let mut walk = Walk {
        reader: &reader,
        parameters: Vec::new(),
        spots: Vec::new(),
        within: Vec::new(),
        uses: Vec::new(),
    };
    if let Some(own) = toml.remove(OWN) {
        walk.own(&own)?;
    }
    walk.table(toml.as_table(), &mut Vec::new())?;
    let Walk { parameters, spots, uses, .. } = walk;
    let paths: Vec<(String, String)> =
        parameters.iter().map(|(parameter, path)| (parameter.name.clone(), path.clone())).collect();
    let blame = |name: &str| {
        let path = paths.iter().find(|(known, _)| known == name);
        path.map_or_else(String::new, |(_, path)| path.clone())
    };
    let parameters: Vec<Parameter> = parameters.into_iter().map(|(p, _)| p).collect();
    for (path, name) in &uses {
        reader.parameter(path, name, &parameters)?;
    }
    for spot in &spots {
        if let Action::Keep(conditions) = &spot.action {
            reader.meetable(&spot.path.join("."), conditions, &parameters)?;
        }
    }
    for parameter in &parameters {
        let path = blame(&parameter.name);
        reader.meetable(&path, &parameter.conditions, &parameters)?;
    }
    let space = Space::new(parameters).map_err(|error| {
        let message = format!("`{}`: {}", error.parameter, error.message);
        reader.fault(&blame(&error.parameter), message)
    })?;
    for spot in &spots {
        if let Action::Keep(conditions) = &spot.action {
            reader.possible(&spot.path.join("."), conditions, &space)?;
        }
    }
    // A function may suggest its parameters while it runs.
    if space.parameters().is_empty() && function.is_none() {
        let message = "there is nothing to search: no value of the study is a range";
        let help = "write `learning_rate = { log_uniform = [1e-4, 1.0] }`, or list `[parameters]`";
        return Err(document.error_at("", message, Some(help.to_owned())));
    }
    let is_program = command.is_some() || function.is_some();
    let settings = reader.settings(tune, is_program)?;
    if let (true, Some((key, _))) = (is_program, toml.as_table().iter().next()) {
        let kind = if command.is_some() { "command" } else { "function" };
        let mut error = reader.fault(key, format!("a study with a {kind} has no `{key}`"));
        error.help = meant(key);
        return Err(error);
    }
    let task = match (command, function) {
        (Some(command), _) => {
            distinct_variables(&reader, &space)?;
            Task::Command(command)
        }
        (None, Some(function)) => Task::Function(function),
        (None, None) => Task::Plan(Template::new(toml, spots)),
    };
    let stem = Path::new(document.origin()).file_stem();
    let name = match reader.text("tune", tune, "name")? {
        Some(name) => name,
        None => stem.unwrap_or_default().to_string_lossy().into_owned(),
    };
    if name.is_empty() {
        return Err(reader.fault("tune.name", "a study needs a name"));
    }
    let study = Study { name, space, settings, task, document };
    // Errors at every point are reported before the first trial.
    for place in [0.0, 0.5, 1.0] {
        let point = study.space.point(|parameter| parameter.domain.at(place));
        if let (Some(plan), Some(metric)) = (study.plan(&point)?, &metric) {
            has_metric(&study, &plan, metric)?;
        }
    }
    Ok(study)
}

/// Adds the allowed sections and a suggestion to an error about an unknown top-level key.
pub(super) fn unknown_section(error: &mut PlanError, key: &str) {
    if let Some(label) = &mut error.label {
        label.push_str(&format!(", {}", SECTIONS.join(", ")));
    }
    error.help = error.help.take().or_else(|| meant(key));
}

/// Suggestion for a top-level key that belongs to `[tune]`.
fn meant(key: &str) -> Option<String> {
    nearest(key, KEYS).map(|key| format!("did you mean `tune.{key}`?"))
}

/// Rejects an objective that names a metric the plan does not have.
fn has_metric(study: &Study, plan: &Plan, named: &str) -> Result<(), PlanError> {
    let metric = match plan.data.known_task() {
        Some(surefoot_plan::Task::Regression) => Some("r2"),
        Some(_) => Some("accuracy"),
        // Depends on the data, which are not loaded yet; no regression has these losses.
        None => match plan.training.loss {
            Loss::BinaryCrossentropy { .. }
            | Loss::CategoricalCrossentropy { .. }
            | Loss::SparseCategoricalCrossentropy { .. } => Some("accuracy"),
            _ => None,
        },
    };
    let message = match metric {
        Some(metric) if metric == named => return Ok(()),
        Some(metric) => format!("the metric of this plan is `{metric}`, not `{named}`"),
        None => format!("the plan does not say whether its metric is `{named}`"),
    };
    let help = match metric {
        Some(_) => "write `objective = \"metric\"` for whichever the plan has, or `\"loss\"`",
        None => "write `objective = \"metric\"`, or say which `task` the data are for",
    };
    let help = Some(help.to_owned());
    Err(study.document.error_at("tune.objective", message, help))
}

/// Rejects parameters of a command that share an environment variable.
fn distinct_variables(reader: &Reader<'_>, space: &Space) -> Result<(), PlanError> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for parameter in space.parameters() {
        let variable = command::variable(&parameter.name);
        if let Some(other) = known.insert(variable.clone(), &parameter.name) {
            let name = &parameter.name;
            let message = format!("`{other}` and `{name}` would both be in {variable}");
            return Err(reader.fault(&format!("parameters.{name}"), message));
        }
    }
    Ok(())
}

/// Reads parts of a document with error positions.
pub(super) struct Reader<'a> {
    pub(super) document: &'a Document,
}

impl Reader<'_> {
    pub(super) fn fault(&self, path: &str, message: impl Into<String>) -> PlanError {
        self.document.error_at(path, message, None)
    }

    pub(super) fn section<'t>(
        &self,
        key: &str,
        item: Option<&'t Item>,
    ) -> Result<Option<&'t dyn TableLike>, PlanError> {
        match item {
            None => Ok(None),
            Some(item) => match item.as_table_like() {
                Some(table) => Ok(Some(table)),
                None => Err(self.fault(key, format!("`{key}` must be a table"))),
            },
        }
    }

    /// Checked first: a newer version may have unknown keys.
    fn version(&self, tune: Option<&dyn TableLike>) -> Result<(), PlanError> {
        let Some(item) = tune.and_then(|tune| tune.get("version")) else {
            return Ok(());
        };
        match item.as_integer() {
            Some(version) if version > i64::from(VERSION) => Err(self.document.error_at(
                "tune.version",
                format!("the study requires a newer Surefoot; this one reads version {VERSION}"),
                Some("update Surefoot".to_owned()),
            )),
            Some(1..) => Ok(()),
            _ => Err(self.fault("tune.version", "`version` must be at least 1")),
        }
    }

    pub(super) fn only(
        &self,
        section: &str,
        table: Option<&dyn TableLike>,
        keys: &[&str],
    ) -> Result<(), PlanError> {
        let mut entries = table.into_iter().flat_map(|table| table.iter());
        match entries.find(|(key, _)| !keys.contains(key)) {
            None => Ok(()),
            Some((key, _)) => Err(self.unknown(&format!("{section}.{key}"), "key", key, keys)),
        }
    }

    /// An error about an unknown word, with the allowed ones.
    pub(super) fn unknown(&self, path: &str, what: &str, word: &str, known: &[&str]) -> PlanError {
        let near = nearest(word, known.iter().copied());
        PlanError {
            label: Some(format!("expected one of: {}", known.join(", "))),
            help: near.map(|name| format!("did you mean `{name}`?")),
            ..self.fault(path, format!("unknown {what} `{word}`"))
        }
    }

    /// Finds a parameter by name.
    fn parameter<'p>(
        &self,
        path: &str,
        name: &str,
        parameters: &'p [Parameter],
    ) -> Result<&'p Parameter, PlanError> {
        if let Some(parameter) = parameters.iter().find(|p| p.name == name) {
            return Ok(parameter);
        }
        let names = || parameters.iter().map(|p| p.name.as_str());
        // Suggest the full name for its last part.
        let part = format!(".{name}");
        let meant = names().find(|known| known.ends_with(&part));
        let meant = meant.or_else(|| nearest(name, names()));
        Err(PlanError {
            label: match parameters.is_empty() {
                true => None,
                false => Some(format!("available: {}", names().collect::<Vec<_>>().join(", "))),
            },
            help: meant.map(|name| format!("did you mean `{name}`?")),
            ..self.fault(path, format!("`{name}` is not a parameter"))
        })
    }

    pub(super) fn text(
        &self,
        section: &str,
        table: Option<&dyn TableLike>,
        key: &str,
    ) -> Result<Option<String>, PlanError> {
        match table.and_then(|table| table.get(key)) {
            None => Ok(None),
            Some(item) => {
                match item.as_str() {
                    Some(text) if text.contains('\0') => Err(self.fault(
                        &format!("{section}.{key}"),
                        format!("`{key}` must not contain a NUL character"),
                    )),
                    Some(text) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
                    Some(_) => {
                        Err(self.fault(&format!("{section}.{key}"), format!("`{key}` is empty")))
                    }
                    None => Err(self
                        .fault(&format!("{section}.{key}"), format!("`{key}` must be a string"))),
                }
            }
        }
    }

    /// An integer of at least 1.
    fn count(&self, tune: Option<&dyn TableLike>, key: &str) -> Result<Option<u64>, PlanError> {
        match tune.and_then(|tune| tune.get(key)) {
            None => Ok(None),
            Some(item) => match item.as_integer() {
                Some(number @ 1..) => Ok(Some(number.unsigned_abs())),
                _ => Err(self.fault(
                    &format!("tune.{key}"),
                    format!("`{key}` must be an integer of at least 1"),
                )),
            },
        }
    }

    fn duration(
        &self,
        tune: Option<&dyn TableLike>,
        key: &str,
    ) -> Result<Option<std::time::Duration>, PlanError> {
        let Some(item) = tune.and_then(|tune| tune.get(key)) else {
            return Ok(None);
        };
        let text = match (item.as_str(), number(item)) {
            (Some(text), _) => text.to_owned(),
            (None, Some(seconds)) => seconds.to_string(),
            (None, None) => String::new(),
        };
        match duration::parse(&text) {
            Ok(time) if !time.is_zero() => Ok(Some(time)),
            Ok(_) => Err(self.fault(&format!("tune.{key}"), format!("`{key}` must not be 0"))),
            Err(message) => Err(self.fault(&format!("tune.{key}"), message)),
        }
    }

    fn settings(
        &self,
        tune: Option<&dyn TableLike>,
        command: bool,
    ) -> Result<StudyConfig, PlanError> {
        let objective = match (self.text("tune", tune, "objective")?.as_deref(), command) {
            (None | Some("metric"), false) => ObjectiveKind::Metric,
            (Some(metric), false) if METRICS.contains(&metric) => ObjectiveKind::Metric,
            (Some("loss"), false) => ObjectiveKind::Loss,
            (None | Some("value"), true) => ObjectiveKind::Value,
            (Some(other), true) => {
                let message = format!("the objective of a command is `value`, not `{other}`");
                return Err(self.fault("tune.objective", message));
            }
            (Some(other), false) => {
                let message = format!(
                    "the objective is `metric` (or its name, `accuracy` or `r2`) or `loss`, not `{other}`"
                );
                return Err(self.fault("tune.objective", message));
            }
        };
        let direction = match (self.text("tune", tune, "direction")?.as_deref(), objective) {
            (Some("minimize" | "minimise"), _) | (None, ObjectiveKind::Loss) => Direction::Minimize,
            (Some("maximize" | "maximise"), _) | (None, ObjectiveKind::Metric) => {
                Direction::Maximize
            }
            (Some(other), _) => {
                let message = format!("the direction is `minimize` or `maximize`, not `{other}`");
                return Err(self.fault("tune.direction", message));
            }
            (None, ObjectiveKind::Value) => {
                let message = "`direction` is missing";
                let help = "write `direction = \"minimize\"` or `direction = \"maximize\"`";
                return Err(self.document.error_at("tune", message, Some(help.to_owned())));
            }
        };
        let mut settings = StudyConfig::new(objective, direction);
        if let Some(item) = tune.and_then(|tune| tune.get("seed")) {
            settings.seed = match item.as_integer() {
                Some(seed @ 0..) => seed.unsigned_abs(),
                _ => {
                    return Err(self.fault("tune.seed", "`seed` must be an integer of at least 0"));
                }
            };
        }
        if let Some(item) = tune.and_then(|tune| tune.get("sampler")) {
            let given = self.json("tune.sampler", item)?;
            settings.sampler = sampler::SamplerConfig::from_value(&given).map_err(|error| {
                let option = error.option.map(|option| format!(".{option}"));
                self.fault(&format!("tune.sampler{}", option.unwrap_or_default()), error.message)
            })?;
        }
        match self.text("tune", tune, "rules")?.as_deref() {
            None | Some("surefoot") => {}
            Some("bttackler") => settings.pruners = pruner::PruningConfig::bttackler(),
            Some(other) => {
                let path = "tune.rules";
                return Err(self.unknown(path, "rules", other, &["surefoot", "bttackler"]));
            }
        }
        if let Some(item) = tune.and_then(|tune| tune.get("protect")) {
            settings.pruners.protect = match item.as_integer().map(usize::try_from) {
                Some(Ok(count)) => count,
                _ => {
                    let message = "`protect` must be an integer of at least 0";
                    return Err(self.fault("tune.protect", message));
                }
            };
        }
        if let Some(item) = tune.and_then(|tune| tune.get("pruner")) {
            let entries = match self.json("tune.pruner", item)? {
                Json::Array(entries) => entries,
                Json::String(name) if name == pruner::NONE => Vec::new(),
                one => vec![one],
            };
            let pruners = settings.pruners.clone().listed(&entries);
            settings.pruners = pruners.map_err(|message| self.fault("tune.pruner", message))?;
        }
        self.scheduler(tune, command, &mut settings)?;
        settings.pruners = settings.rules();
        settings.trials = self.count(tune, "trials")?;
        settings.time = self.duration(tune, "time")?;
        if let Some(item) = tune.and_then(|tune| tune.get("operations")) {
            settings.operations = match number(item) {
                Some(number) if number > 0.0 && number.is_finite() && !command => Some(number),
                _ if command => {
                    let message = "the operations of a command are not counted";
                    return Err(self.fault("tune.operations", message));
                }
                _ => {
                    let message = "`operations` must be above 0";
                    return Err(self.fault("tune.operations", message));
                }
            };
        }
        settings.workers = self.count(tune, "workers")?.map(|workers| workers as usize);
        if let Some(attempts) = self.count(tune, "attempts")? {
            settings.attempts = u32::try_from(attempts)
                .map_err(|_| self.fault("tune.attempts", "`attempts` is too large"))?;
        }
        if let Some(patience) = self.duration(tune, "patience")? {
            settings.patience = patience;
        }
        Ok(settings)
    }

    /// Reads `scheduler` and `resume`.
    ///
    /// The default is a scheduler where trials can pause, unless the study names a sampler or pruners: then it asks for
    /// a search with those. A scheduler has no use for pruners; indicators still end trials with a problem.
    fn scheduler(
        &self,
        tune: Option<&dyn TableLike>,
        command: bool,
        settings: &mut StudyConfig,
    ) -> Result<(), PlanError> {
        let has = |key: &str| tune.is_some_and(|tune| tune.contains_key(key));
        settings.sampler_is_named = has("sampler");
        settings.resumes = self.of_command(tune, "resume", command)?.unwrap_or(!command);
        settings.keep_alive = self.of_command(tune, "keep_alive", command)?.unwrap_or(false);
        let is_published = self.text("tune", tune, "rules")?.as_deref() == Some("bttackler");
        let names_rules = has("sampler") || has("pruner") || is_published;
        settings.scheduler = match tune.and_then(|tune| tune.get("scheduler")) {
            None if settings.resumes && !names_rules => {
                Some(scheduler::SchedulerConfig::new(scheduler::FreezeThaw::default()))
            }
            None => None,
            Some(item) => match self.json("tune.scheduler", item)? {
                Json::String(name) if name == pruner::NONE => None,
                given => Some(scheduler::SchedulerConfig::from_value(&given).map_err(|error| {
                    let option = error.option.map(|option| format!(".{option}"));
                    let path = format!("tune.scheduler{}", option.unwrap_or_default());
                    self.fault(&path, error.message)
                })?),
            },
        };
        if settings.scheduler.is_some() && !settings.resumes {
            let message =
                "a scheduler pauses trials, and the study does not say that they can resume";
            let help = match has("function") {
                true => "pass `resume=True` if the function continues from a checkpoint",
                false => {
                    "write `resume = true` if the program continues from a checkpoint in SUREFOOT_DIR"
                }
            };
            return Err(self.document.error_at("tune.scheduler", message, Some(help.to_owned())));
        }
        if settings.scheduler.is_some() && !has("pruner") {
            settings.pruners.pruners.clear();
        }
        Ok(())
    }

    /// Reads a boolean that only commands have.
    fn of_command(
        &self,
        tune: Option<&dyn TableLike>,
        key: &str,
        command: bool,
    ) -> Result<Option<bool>, PlanError> {
        let Some(item) = tune.and_then(|tune| tune.get(key)) else {
            return Ok(None);
        };
        let path = format!("tune.{key}");
        match item.as_bool() {
            _ if !command => {
                Err(self.fault(&path, format!("`{key}` is for studies with a command")))
            }
            Some(value) => Ok(Some(value)),
            None => Err(self.fault(&path, format!("`{key}` must be true or false"))),
        }
    }

    /// Converts a TOML value to JSON.
    fn json(&self, path: &str, item: &Item) -> Result<Json, PlanError> {
        let value = match item {
            Item::Value(value) => value.clone(),
            Item::Table(table) => Toml::InlineTable(table.clone().into_inline_table()),
            _ => return Err(self.fault(path, format!("`{path}` must be a string or a table"))),
        };
        json(&value).ok_or_else(|| self.fault(path, format!("`{path}` must not contain a date")))
    }

    /// Rejects conditions on unknown parameters and on continuous ranges, which never match exactly.
    fn meetable(
        &self,
        path: &str,
        conditions: &[Condition],
        parameters: &[Parameter],
    ) -> Result<(), PlanError> {
        let path = format!("{path}.if");
        for Condition { parameter, values } in conditions {
            let domain = &self.parameter(&path, parameter, parameters)?.domain;
            if let (Domain::Uniform(low, high) | Domain::LogUniform(low, high), [value, ..]) =
                (domain, values.as_slice())
                && low < high
            {
                let message = format!("`{parameter}` never equals {value} exactly");
                let help = "it is continuous; a condition requires a choice or an integer";
                return Err(self.document.error_at(&path, message, Some(help.to_owned())));
            }
        }
        Ok(())
    }

    /// Checks the conditions of a part of the plan.
    fn possible(
        &self,
        path: &str,
        conditions: &[Condition],
        space: &Space,
    ) -> Result<(), PlanError> {
        let path = format!("{path}.if");
        for condition in conditions {
            let other = self.parameter(&path, &condition.parameter, space.parameters())?;
            if let Some(never) = condition.values.iter().find(|v| !other.domain.contains(v)) {
                let message =
                    format!("`{}` = {never} is not one of its values", condition.parameter);
                return Err(self.fault(&path, message));
            }
        }
        Ok(())
    }

    /// Reads an `if`.
    pub(super) fn conditions(&self, path: &str, item: &Item) -> Result<Vec<Condition>, PlanError> {
        let place = format!("{path}.if");
        let Some(table) = item.as_table_like() else {
            let message = "`if` must be a table of parameters and values";
            let help = "write `if = { optimizer = \"sgd\" }` or `if = { layers = [2, 3] }`";
            return Err(self.document.error_at(&place, message, Some(help.to_owned())));
        };
        // Unquoted dotted names are nested tables in TOML.
        let mut conditions = Vec::new();
        let mut open: Vec<(String, &dyn TableLike)> = vec![(String::new(), table)];
        while let Some((prefix, table)) = open.pop() {
            for (key, item) in table.iter() {
                let name = format!("{prefix}{key}");
                if let Some(inner) = item.as_table_like() {
                    open.push((format!("{name}."), inner));
                    continue;
                }
                let values: Option<Vec<Value>> = match (item.as_array(), item.as_value()) {
                    (Some(values), _) => values.iter().map(scalar).collect(),
                    (None, value) => value.and_then(scalar).map(|value| vec![value]),
                };
                let values = values.filter(|values| !values.is_empty()).ok_or_else(|| {
                    self.fault(&place, format!("`{name}` must be a value or a list of values"))
                })?;
                conditions.push(Condition { parameter: name, values });
            }
        }
        Ok(conditions)
    }
}

fn number(item: &Item) -> Option<f64> {
    item.as_float().or_else(|| item.as_integer().map(|number| number as f64))
}

fn json(value: &Toml) -> Option<Json> {
    Some(match value {
        Toml::String(text) => Json::from(text.value().as_str()),
        Toml::Integer(number) => Json::from(*number.value()),
        Toml::Float(number) => Json::from(*number.value()),
        Toml::Boolean(value) => Json::from(*value.value()),
        Toml::Datetime(_) => return None,
        Toml::Array(values) => Json::Array(values.iter().map(json).collect::<Option<_>>()?),
        Toml::InlineTable(table) => {
            let entries = table.iter().map(|(key, value)| Some((key.to_owned(), json(value)?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
    })
}
