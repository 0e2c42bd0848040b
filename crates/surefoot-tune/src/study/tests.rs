//! Valid studies and error messages of invalid ones.

use super::*;
use crate::pruner::PruningConfig;
use crate::space::{Domain, Value};

const PLAN: &str = r#"
[tune]
trials = 20

[parameters]
layers = { int = [1, 2] }

[data]
source = "circles"

[[model]]
layer = "dense"
units = { log_int = [2, 64], name = "units" }
activation = "relu"

[[model]]
if = { layers = 2 }
layer = "dense"
units = { use = "units" }

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 20

[training.optimizer]
name = { choice = ["adam", "sgd"] }
learning_rate = { log_uniform = [1e-4, 1] }
momentum = { uniform = [0.0, 0.99], if = { training.optimizer.name = "sgd" } }
"#;

fn study(text: &str) -> Study {
    Study::parse(text, "circles.toml").expect("a study")
}

fn error(text: &str) -> String {
    Study::parse(text, "circles.toml").expect_err("refused").to_string()
}

#[test]
fn omitted_keys_have_defaults() {
    let said = DEFAULTS.map(|(key, value)| format!("{key} = {value}\n"));
    let aloud = PLAN.replace("[tune]\n", &format!("[tune]\n{}", said.concat()));
    let (aloud, silent) = (study(&aloud).settings, study(PLAN).settings);
    assert_eq!(format!("{aloud:?}"), format!("{silent:?}"));
}

#[test]
fn trials_that_can_resume_are_scheduled_unless_the_study_names_other_rules() {
    let settings = |text: &str, more: &str| {
        let settings =
            study(&text.replace("trials = 20", &format!("trials = 20\n{more}"))).settings;
        (settings.scheduler.map(|scheduler| scheduler.name()), settings.pruners.pruners.len())
    };
    let plan = |more: &str| settings(PLAN, more);
    assert_eq!(plan(""), (Some("freeze_thaw"), 0));
    assert_eq!(plan("protect = 1\nrules = \"surefoot\""), (Some("freeze_thaw"), 0));
    assert_eq!(plan("sampler = \"tpe\""), (None, 1));
    assert_eq!(plan("pruner = \"median\""), (None, 1));
    assert_eq!(plan("rules = \"bttackler\""), (None, 0));
    assert_eq!(plan("scheduler = \"none\""), (None, 1));
    assert_eq!(plan("scheduler = \"asha\"\nsampler = \"tpe\""), (Some("asha"), 0));
    assert_eq!(plan("scheduler = \"asha\"\npruner = \"median\""), (Some("asha"), 1));
    let command = "[tune]\ntrials = 20\ncommand = \"x\"\ndirection = \"minimize\"\n\
                   [parameters]\nx = { int = [1, 2] }\n";
    assert_eq!(settings(command, ""), (None, 1));
    assert_eq!(settings(command, "resume = true"), (Some("freeze_thaw"), 0));
}

#[test]
fn parameters_are_named_by_path_or_name() {
    let study = study(PLAN);
    let names: Vec<&str> = study.space.parameters().iter().map(|p| p.name.as_str()).collect();
    let expected = [
        "layers",
        "units",
        "training.optimizer.name",
        "training.optimizer.learning_rate",
        "training.optimizer.momentum",
    ];
    assert_eq!(names, expected);
    assert_eq!(study.name, "circles");
}

#[test]
fn a_point_fills_the_plan() {
    let study = study(PLAN);
    let point = study.space.point(|p| p.domain.at(1.0));
    let plan = study.plan(&point).expect("fits").expect("a plan");
    assert_eq!(plan.model.len(), 3);
    let text = study.plan_text(&point).expect("a plan");
    assert!(text.contains("momentum = 0.99"), "{text}");
    assert_eq!(text.matches("units = 64").count(), 2, "{text}");
}

#[test]
fn inactive_parts_are_left_out_of_the_plan() {
    let study = study(PLAN);
    let point = study.space.point(|p| p.domain.at(0.0));
    let plan = study.plan(&point).expect("fits").expect("a plan");
    assert_eq!(plan.model.len(), 2);
    let text = study.plan_text(&point).expect("a plan");
    assert!(!text.contains("momentum"), "{text}");
}

#[test]
fn ranges_in_inactive_parts_are_inactive() {
    let study = study(&PLAN.replace(
        "layer = \"dense\"\nunits = { use = \"units\" }",
        "layer = \"dense\"\nunits = { int = [3, 5] }",
    ));
    let point = |place: f64| study.space.point(|p| p.domain.at(place));
    assert_eq!(point(0.0).get("model.1.units"), None);
    assert_eq!(point(1.0).get("model.1.units"), Some(&Value::Int(5)));
}

#[test]
fn parameters_that_share_a_variable_are_rejected() {
    let text = "[tune]\ncommand = 'x'\ndirection = 'minimize'\n[parameters]\n\
                a-b = { int = [0, 1] }\na_b = { int = [0, 1] }\n";
    let text = error(text);
    assert!(text.contains("would both be in SUREFOOT_PARAMETER_A_B"), "{text}");
}

#[test]
fn a_command_has_only_its_parameters() {
    let study = study(
        "[tune]\ncommand = 'python train.py'\ndirection = 'minimize'\ntime = '1h30m'\n\
         [parameters]\nrate = { log_uniform = [0.001, 1.0] }\n",
    );
    assert!(matches!(&study.task, Task::Command(command) if command == "python train.py"));
    assert_eq!(study.space.parameters()[0].domain, Domain::LogUniform(0.001, 1.0));
    assert_eq!(study.settings.time.map(|time| time.as_secs()), Some(5400));
    let point = study.space.point(|_| Value::Float(0.1));
    assert_eq!(study.plan_text(&point), None);
}

#[test]
fn the_fingerprint_ignores_the_budget() {
    let longer = PLAN.replace("trials = 20", "trials = 40\nworkers = 2 # more");
    assert_eq!(study(PLAN).fingerprint(), study(&longer).fingerprint());
    let other = PLAN.replace("[1, 2]", "[1, 3]").replace("layers = 2", "layers = 3");
    assert_ne!(study(PLAN).fingerprint(), study(&other).fingerprint());
}

#[test]
fn comparability_ignores_the_search_keys() {
    let otherwise = PLAN.replace("trials = 20", "trials = 40\nsampler = \"gp\"\nprotect = 5");
    assert_ne!(study(PLAN).fingerprint(), study(&otherwise).fingerprint());
    assert_eq!(study(PLAN).comparable_text(), study(&otherwise).comparable_text());
    let other = PLAN.replace("[1, 2]", "[1, 3]");
    assert_ne!(study(PLAN).comparable_text(), study(&other).comparable_text());
}

#[test]
fn the_noise_factor_depends_on_the_sampler() {
    let factor = |settings: &str| {
        let text = PLAN.replace("trials = 20", &format!("trials = 20\n{settings}"));
        let rules = study(&text).settings.pruners;
        rules.pruners[0].option("noise_factor").and_then(serde_json::Value::as_f64)
    };
    assert_eq!(factor("scheduler = \"none\""), Some(1.0));
    assert_eq!(factor("sampler = \"random\""), Some(3.0));
    assert_eq!(factor("pruner = { name = \"prospect\", noise_factor = 2 }"), Some(2.0));
}

#[test]
fn errors_show_their_line() {
    let cases = [
        ("trials = 20", "trails = 20", "unknown key `trails`", 3),
        ("trials = 20", "trials = 0", "at least 1", 3),
        ("trials = 20", "scheduler = 'hill'", "available: freeze_thaw, asha, hyperband", 3),
        ("trials = 20", "scheduler = { name = 'asha', first_rung = 2 }", "fraction above 0", 3),
        ("trials = 20", "resume = true", "`resume` is for studies with a command", 3),
        ("trials = 20", "time = 'long'", "invalid duration", 3),
        ("trials = 20", "version = 9", "newer Surefoot", 3),
        ("trials = 20", "objective = 'speed'", "the objective is `metric`", 3),
        ("trials = 20", "objective = 'r2'", "the metric of this plan is `accuracy`", 3),
        ("trials = 20", "command = \"\\u0000\"", "a NUL character", 3),
        ("[1, 2]", "[2, 1]", "lower bound 2 is above", 6),
        ("[2, 64]", "[2]", "two integers", 13),
        ("[2, 64], name", "[2, 64], size = 3, name", "unknown key `size`", 13),
        ("layers = 2", "layer = 2", "`layer` is not a parameter", 17),
        ("layers = 2", "layers = 3", "`layers` = 3 is not one of its values", 17),
        ("use = \"units\"", "use = \"unit\"", "`unit` is not a parameter", 19),
        ("epochs = 20", "epoch = 20", "unknown key `epoch`", 27),
        ("epochs = 20", "epochs = 20\nbatchsize = 4", "unknown key `batchsize`", 28),
        ("[1e-4, 1]", "[-1, 1]", "a logarithmic scale", 31),
        ("layer = \"dense\"\nunits = 1", "layer = \"dense\"\nunit = 1", "unknown key `unit`", 23),
        ("\"sgd\"]", "\"sdg\"]", "= sgd, which is not one of its values", 32),
        ("\"sgd\"]", "\"s\\u0000\", \"sgd\"]", "`training.optimizer.name`: a string", 30),
    ];
    for (old, new, message, line) in cases {
        let text = error(&PLAN.replace(old, new));
        assert!(text.contains(message), "{text}");
        assert!(text.contains(&format!("circles.toml:{line}:")), "line {line}: {text}");
    }
}

#[test]
fn errors_suggest_corrections() {
    let cases = [
        ("[tune]", "[tun]", "did you mean `tune`?"),
        ("[parameters]", "[parameter]", "did you mean `parameters`?"),
        ("[tune]", "trials = 5\n[tune]", "did you mean `tune.trials`?"),
        ("[tune]", "other = 5\n[tune]", "repair, tune, parameters"),
        ("trials = 20", "trails = 20", "did you mean `trials`?"),
        ("{ int = ", "{ itn = ", "did you mean `int`?"),
        ("{ uniform = ", "{ unifrom = ", "did you mean `uniform`?"),
        ("{ uniform = ", "{ unifrom = ", "expected one of: uniform, log_uniform,"),
        ("use = \"units\"", "use = \"unit\"", "did you mean `units`?"),
        ("use = \"units\"", "use = \"x\"", "available: layers, units,"),
        (
            "if = { training.optimizer.name",
            "if = { name",
            "did you mean `training.optimizer.name`?",
        ),
    ];
    for (old, new, said) in cases {
        let text = error(&PLAN.replace(old, new));
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(said), "{text}");
    }
    let command =
        "[tune]\ncommand = 'x'\ndirection = 'minimize'\n[parameter]\nx = { int = [0, 1] }\n";
    let text = error(command);
    assert!(text.contains("did you mean `parameters`?"), "{text}");
}

#[test]
fn misplaced_search_keys_are_explained() {
    let mut document = Document::parse(PLAN, "circles.toml").expect("TOML");
    document.set("trials", "5").expect("set");
    let text = Study::of(document).expect_err("refused").to_string();
    assert!(text.contains("--> --set trials=5"), "{text}");
    assert!(text.contains("did you mean `tune.trials`?"), "{text}");
}

#[test]
fn conditions_on_continuous_ranges_are_rejected() {
    let rate = "rate = { uniform = [0.0, 1.0] }\nlayers = ";
    let text = PLAN.replace("layers = { int", &format!("{rate}{{ int"));
    study(&text);
    for (old, new) in [
        ("if = { layers = 2 }", "if = { rate = 0.5 }"),
        ("if = { training.optimizer.name = \"sgd\" }", "if = { rate = [0.5, 1.0] }"),
    ] {
        let text = error(&text.replace(old, new));
        assert!(text.contains("`rate` never equals 0.5 exactly"), "{text}");
    }
    // A range of width 0 is a constant.
    let fixed = text.replace("[0.0, 1.0]", "[0.5, 0.5]");
    study(&fixed.replace("if = { layers = 2 }", "if = { rate = 0.5 }"));
}

#[test]
fn the_objective_may_name_the_metric_of_the_plan() {
    let named = |metric: &str| PLAN.replace("trials = 20", &format!("objective = '{metric}'"));
    assert_eq!(study(&named("accuracy")).settings.objective, ObjectiveKind::Metric);
    let of_file = |loss: &str| {
        named("accuracy")
            .replace("\"circles\"", "{ kind = \"csv\", path = \"x.csv\" }")
            .replace("epochs = 20", &format!("epochs = 20\nloss = \"{loss}\""))
    };
    let told = study(&of_file("binary_crossentropy"));
    assert_eq!(told.settings.objective, ObjectiveKind::Metric);
    let text = error(&of_file("mse"));
    assert!(text.contains("does not say whether its metric"), "{text}");
}

#[test]
fn invalid_sampler_options_are_named() {
    let with = |settings: &str| {
        let sampler = format!("sampler = {{ name = \"tpe\", {settings} }}");
        error(&PLAN.replace("trials = 20", &sampler))
    };
    let text = with("n_startup_trials = -3");
    let message = "sampler `tpe`: `n_startup_trials` must be an integer of at least 0, not -3";
    assert!(text.contains(message), "{text}");
    let text = with("start = 3");
    assert!(text.contains("sampler `tpe`: unknown key `start`; available: "), "{text}");
}

#[test]
fn a_study_without_ranges_is_rejected() {
    let text = error("[tune]\ncommand = 'x'\ndirection = 'minimize'\n");
    assert!(text.contains("nothing to search"), "{text}");
}

#[test]
fn rules_are_a_preset() {
    let pruners = |tune: &str| {
        let text = format!(
            "[tune]\ncommand = \"true\"\ndirection = \"minimize\"\n{tune}\n[parameters]\nx = {{ int = [1, 2] }}\n"
        );
        Study::parse(&text, "study.toml").map(|study| study.settings.pruners)
    };
    let published = PruningConfig::bttackler();
    assert_eq!(pruners("rules = \"bttackler\"").unwrap(), published);
    let changed =
        pruners("rules = \"bttackler\"\npruner = [\"erg\", \"median\"]\nprotect = 2").unwrap();
    assert_eq!((changed.limits, changed.protect), (published.limits, 2));
    assert_eq!((changed.indicators.len(), changed.pruners.len()), (1, 1));
    assert_eq!(pruners("rules = \"surefoot\"").unwrap(), pruners("").unwrap());
    let error = pruners("rules = \"btackler\"").unwrap_err().to_string();
    assert!(error.contains("did you mean `bttackler`?"), "{error}");
}

#[test]
fn a_command_requires_a_direction() {
    let text = error("[tune]\ncommand = 'x'\n[parameters]\nx = { int = [0, 1] }\n");
    assert!(text.contains("`direction` is missing"), "{text}");
}

#[test]
fn a_function_may_have_no_parameters_yet() {
    const FUNCTION: &str = "[tune]\nfunction = 'train.objective'\ndirection = 'minimize'\n";
    let found = study(FUNCTION);
    assert!(matches!(&found.task, Task::Function(name) if name == "train.objective"));
    assert!(found.space.parameters().is_empty() && found.settings.scheduler.is_none());
    let resumed = study(&format!("{FUNCTION}resume = true\n"));
    assert_eq!(resumed.settings.scheduler.map(|it| it.name()), Some("freeze_thaw"));
    let both = error(&format!("{FUNCTION}command = 'true'\n"));
    assert!(both.contains("a study has a command or a function, not both"), "{both}");
    let plan = error(&format!("{FUNCTION}[training]\nepochs = 3\n"));
    assert!(plan.contains("a study with a function has no `training`"), "{plan}");
    let scheduled = error(&format!("{FUNCTION}scheduler = 'asha'\n"));
    assert!(scheduled.contains("pass `resume=True`"), "{scheduled}");
}
