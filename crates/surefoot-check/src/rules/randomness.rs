//! Generators: never seeded, seeded by rank, copied into workers, drawn from by an evaluation.

use ruff_python_ast::Stmt;

use super::{Script, generator_name};
use crate::calculus::{Operand, Variable, WorkerCause};
use crate::library::Global;
use crate::lift::facts::{Draw, Purpose, Role, Seed, Style, Thing};
use crate::{Finding, Rule};

/// What seeds Keras whatever its version and its backend.
const SEED_OF_KERAS: &str = "keras.utils.set_random_seed(seed)";

/// Looks at every generator.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) {
    keys_by_rank(script, findings);
    for thing in &script.lifted.things {
        match thing.role {
            Role::Global(global) => {
                unseeded(script, thing, global, findings);
                by_chance(script, thing, findings);
                by_rank(script, thing, findings);
                evaluations(script, thing, findings);
            }
            Role::Worker(_) => in_processes(script, thing, findings),
            Role::Generator(_) => {
                by_rank(script, thing, findings);
                evaluations(script, thing, findings);
                copied(script, thing, findings);
            }
            _ => {}
        }
    }
}

/// Draws in processes that nobody seeds.
fn in_processes(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    if !script.lifted.unseeded_processes.contains(&thing.object) {
        return;
    }
    let Some(draw) = draws(script, thing).next() else {
        return;
    };
    let message = format!(
        "This draws from {} in the processes that load data. Nobody seeds it there, and which process makes which batch is up to the machine.",
        generator_name(thing)
    );
    let help = "Draw from a generator that is made for each batch, from a seed and its number: `np.random.default_rng([seed, index])`.".to_owned();
    findings.push(script.finding(Rule::UnseededWorkers, draw.site, message, help));
}

/// Keys with the number of a process in them.
fn keys_by_rank(script: &Script<'_>, findings: &mut Vec<Finding>) {
    let is_by_rank = |variable: Variable| {
        let dependence = script.typing.state(variable).workers;
        dependence.is_some_and(|it| it.cause == WorkerCause::Rank)
            && script.typing.reaches_output(variable)
    };
    let found = script.lifted.folds.iter().find(|fold| is_by_rank(fold.variable));
    let Some(fold) = found else { return };
    let message = "This key is made from the number of the process: another number of processes trains another model.".to_owned();
    let help =
        "Use the same key in every process and fold in what must differ by the sample, not by the process."
            .to_owned();
    findings.push(script.finding(Rule::RankKeyed, fold.site, message, help));
}

fn draws<'s>(script: &'s Script<'_>, thing: &Thing) -> impl Iterator<Item = &'s Draw> {
    let object = thing.object;
    script.lifted.draws.iter().filter(move |draw| draw.generator == object)
}

fn unseeded(script: &Script<'_>, thing: &Thing, global: Global, findings: &mut Vec<Finding>) {
    let lifted = script.lifted;
    if lifted.is_library {
        return;
    }
    let mut seeds = lifted.seeds.iter();
    if seeds.any(|seed| seed.generator == thing.object) {
        if global == Global::TensorFlow {
            seeded_beside_keras(script, thing, findings);
        }
        return;
    }
    let name = format!("entropy of {}", script.name_of(thing.cell));
    if !script.reaching().iter().any(|origin| script.symbol(origin) == Some(&name)) {
        return;
    }
    let of = |purpose: Purpose| draws(script, thing).find(|draw| draw.purpose == purpose);
    let first = of(Purpose::Parameters)
        .or_else(|| of(Purpose::Values))
        .or_else(|| of(Purpose::Layer))
        .or_else(|| of(Purpose::Order))
        .or_else(|| of(Purpose::DefaultOrder))
        .or_else(|| of(Purpose::WorkerSeed));
    let Some(first) = first else { return };
    let (what, rule) = match first.purpose {
        Purpose::Parameters => ("The initial parameters are drawn", Rule::UnseededGenerator),
        Purpose::Order | Purpose::DefaultOrder => {
            ("The order of the data is drawn", Rule::UnseededShuffle)
        }
        Purpose::Layer => ("Dropout is drawn", Rule::UnseededGenerator),
        Purpose::WorkerSeed => {
            ("The seeds of the loading processes are drawn", Rule::UnseededGenerator)
        }
        Purpose::Values => ("Numbers that reach the training are drawn", Rule::UnseededGenerator),
    };
    let message = format!(
        "{what} from {}, which is never seeded: every run is another one.",
        generator_name(thing)
    );
    let call = match global {
        Global::Torch => "torch.manual_seed(seed)",
        Global::NumPy => "np.random.seed(seed)",
        Global::Python => "random.seed(seed)",
        Global::TensorFlow if lifted.style == Style::TensorFlow => SEED_OF_KERAS,
        Global::TensorFlow => "tf.random.set_seed(seed)",
    };
    let mut finding = script.finding(
        rule,
        first.site,
        message,
        format!("Seed it once, before anything draws: `{call}`."),
    );
    let others = draws(script, thing).filter(|draw| {
        draw.site != first.site
            && !draw.in_worker
            && draw.purpose != Purpose::WorkerSeed
            && draw.purpose != Purpose::Parameters
    });
    let mut told = Vec::new();
    for other in others {
        let line = script.line(other.site, first.site);
        if told.len() < 3 && !told.contains(&line) {
            finding.notes.push(script.note(other.site, "This draws from it too."));
            told.push(line);
        }
    }
    findings.push(finding);
}

/// Keras 3 draws its seeds from Python's generator: what seeds TensorFlow alone does not reach its layers.
/// Which version `tf.keras` is cannot be seen.
fn seeded_beside_keras(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    let is_python = |thing: &&Thing| thing.role == Role::Global(Global::Python);
    let python = script.lifted.things.iter().find(is_python);
    let is_seeded = python.is_some_and(|python| {
        let mut seeds = script.lifted.seeds.iter();
        seeds.any(|seed| seed.generator == python.object)
    });
    let is_of_layer = |draw: &&Draw| {
        matches!(draw.purpose, Purpose::Parameters | Purpose::Layer)
            && script.typing.reaches_output(draw.target)
    };
    let Some(draw) = draws(script, thing).find(is_of_layer) else {
        return;
    };
    let file = script.project.script(script.place(draw.site).file);
    if is_seeded || !imports_keras(&file.module.body) {
        return;
    }
    let what = match draw.purpose {
        Purpose::Layer => "Dropout is drawn",
        _ => "The initial parameters are drawn",
    };
    let message = format!(
        "{what} with seeds that Keras makes itself, and `tf.random.set_seed` does not set those: every run is another one."
    );
    let help = format!("Seed all of it once, before anything draws: `{SEED_OF_KERAS}`.");
    findings.push(script.finding(Rule::UnseededGenerator, draw.site, message, help));
}

/// Whether a file imports Keras by its own name.
fn imports_keras(body: &[Stmt]) -> bool {
    let is_keras = |name: &str| name == "keras" || name.starts_with("keras.");
    body.iter().any(|statement| match statement {
        Stmt::Import(it) => it.names.iter().any(|name| is_keras(name.name.as_str())),
        Stmt::ImportFrom(it) => {
            it.level == 0 && it.module.as_ref().is_some_and(|it| is_keras(it.as_str()))
        }
        Stmt::Try(it) => imports_keras(&it.body),
        _ => false,
    })
}

fn by_rank(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    if draws(script, thing).next().is_none() {
        return;
    }
    let is_rank = |operand: &Operand| match operand {
        Operand::Rank => true,
        Operand::Variable(variable) => {
            script.typing.state(*variable).workers.is_some_and(|it| it.cause == WorkerCause::Rank)
        }
        _ => false,
    };
    let mut seeds = script.lifted.seeds.iter();
    let seed = seeds.find(|it| it.generator == thing.object && it.operands.iter().any(is_rank));
    let Some(seed) = seed else { return };
    let message = format!(
        "{} is seeded by the rank of the process: another number of processes trains another model.",
        super::part::capitalized(&generator_name(thing))
    );
    let help =
        "Seed every process alike and key what must differ by the sample, not by the process."
            .to_owned();
    findings.push(script.finding(Rule::RankKeyed, seed.site, message, help));
}

/// Seeds that are drawn from a generator before it is seeded itself.
fn by_chance(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    let lifted = script.lifted;
    let seeds_itself = |seed: &&Seed| seed.generator == thing.object;
    let Some(first) = lifted.seeds.iter().find(seeds_itself) else {
        return;
    };
    let is_early = |draw: &&Draw| draw.moment < first.moment && draw.purpose == Purpose::Values;
    let Some(draw) = draws(script, thing).find(is_early) else {
        return;
    };
    let name = format!("entropy of {}", script.name_of(thing.cell));
    let is_by_chance = |operand: &Operand| match operand {
        Operand::Variable(variable) => {
            let mut origins = script.typing.state(*variable).external();
            origins.any(|origin| script.symbol(origin) == Some(&name))
        }
        _ => false,
    };
    let mut seeds = lifted.seeds.iter();
    let Some(seed) = seeds.find(|it| it.operands.iter().any(is_by_chance)) else {
        return;
    };
    let message = format!(
        "A seed is drawn from {}, which is not seeded here: every run with such a seed is another one.",
        generator_name(thing)
    );
    let help = "Take a fixed seed where none is given.".to_owned();
    let mut finding = script.finding(Rule::UnseededGenerator, draw.site, message, help);
    finding.notes.push(script.note(seed.site, "It is the seed here."));
    findings.push(finding);
}

fn copied(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    let Some(draw) = draws(script, thing).find(|draw| draw.is_copied) else {
        return;
    };
    let message = format!(
        "Every loading process has its own copy of {}: they all draw the same numbers, and the same again in every epoch.",
        generator_name(thing)
    );
    let help =
        "Make the generator in a `worker_init_fn`, from `torch.utils.data.get_worker_info().seed`."
            .to_owned();
    let mut finding = script.finding(Rule::UnseededWorkers, draw.site, message, help);
    finding.notes.push(script.note(thing.site, "It is made here, before the processes start."));
    findings.push(finding);
}

fn evaluations(script: &Script<'_>, thing: &Thing, findings: &mut Vec<Finding>) {
    let loops = &script.lifted.loops;
    let in_training = |draw: &&Draw| {
        draw.loops.first().is_some_and(|id| loops[id.0 as usize].trains)
            && draw.purpose != Purpose::WorkerSeed
            && draw.purpose != Purpose::Parameters
    };
    // What a function draws to apply a model, and nothing is trained on.
    let is_probe = |draw: &Draw| draw.is_probe && !script.typing.reaches_output(draw.target);
    let evaluates = |draw: &Draw| draw.evaluation.is_some() || is_probe(draw);
    let Some(trained) = draws(script, thing).filter(in_training).find(|draw| !evaluates(draw))
    else {
        return;
    };
    let Some(draw) = draws(script, thing).filter(in_training).find(|draw| evaluates(draw)) else {
        return;
    };
    let site = draw.evaluation.unwrap_or(draw.site);
    let what = match draw.purpose {
        Purpose::Order => "shuffles its data",
        _ => "draws",
    };
    let message = format!(
        "The evaluation {what} from {}, which training draws from as well, at {}: how often one evaluates changes what is trained.",
        generator_name(thing),
        script.line(trained.site, site)
    );
    let help = match draw.purpose {
        Purpose::Order => {
            "Do not shuffle the data of an evaluation, or give its loader a generator of its own: `generator=torch.Generator().manual_seed(seed)`."
        }
        _ => "Give the evaluation a generator of its own.",
    };
    let mut finding = script.finding(Rule::EvaluationDraws, site, message, help.to_owned());
    if draw.site == trained.site && draw.site != site {
        let note = "The evaluation and the training both draw here.";
        finding.notes.push(script.note(draw.site, note));
    } else {
        let note = "Training draws here.";
        finding.notes.push(script.note(trained.site, note));
    }
    findings.push(finding);
    let shuffle = draws(script, thing)
        .filter(in_training)
        .find(|draw| !evaluates(draw) && draw.purpose == Purpose::Order);
    if let (Some(shuffle), Role::Global(_)) = (shuffle, thing.role) {
        let message = format!(
            "The order of the training data is drawn from {}, which the evaluation draws from as well: it changes with how often one evaluates.",
            generator_name(thing)
        );
        let help = "Give the loader a generator of its own: `generator=torch.Generator().manual_seed(seed)`.".to_owned();
        findings.push(script.finding(Rule::UnseededShuffle, shuffle.site, message, help));
    }
}
