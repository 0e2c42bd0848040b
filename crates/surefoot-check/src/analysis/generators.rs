//! Draws from generators, and the names of generators in messages.

use crate::calculus::Site;
use crate::library::{Family, Global};
use crate::lift::facts::{Draw, Purpose, Role, Style, Thing};
use crate::rules::RuleContext;
use crate::{Finding, Rule};

/// Call that seeds Keras with any version and backend.
pub(crate) const SEED_OF_KERAS: &str = "keras.utils.set_random_seed(seed)";

/// At most this many other draws are listed in a finding.
const OTHER_DRAWS: usize = 3;

/// Draws from a generator.
pub(crate) fn draws<'s>(
    context: &RuleContext<'s>,
    thing: &Thing,
) -> impl Iterator<Item = &'s Draw> {
    let object = thing.object;
    context.lifted.draws.iter().filter(move |draw| draw.generator == object)
}

/// Name of the environment source that initializes a global generator.
pub(crate) fn entropy_of(context: &RuleContext<'_>, thing: &Thing) -> String {
    format!("entropy of {}", context.name_of(thing.cell))
}

/// First draw from a global generator that is never seeded and affects the training.
pub(crate) struct UnseededGlobal<'s> {
    thing: &'s Thing,
    global: Global,
    draw: &'s Draw,
    is_seeded_later: bool,
}

/// Finds the most important draw from a global generator that is not seeded yet. Libraries leave the
/// seeding to their callers.
pub(crate) fn unseeded_global<'s>(
    context: &RuleContext<'s>,
    thing: &'s Thing,
    global: Global,
) -> Option<UnseededGlobal<'s>> {
    let lifted = context.lifted;
    if lifted.is_library {
        return None;
    }
    let seeds = lifted.seeds.iter().filter(|seed| seed.generator == thing.object);
    let seeded = seeds.map(|seed| seed.moment.order).min();
    let name = entropy_of(context, thing);
    if !context.external.iter().any(|origin| context.symbol(origin) == Some(&name)) {
        return None;
    }
    let by_importance = [
        Purpose::Parameters,
        Purpose::Values,
        Purpose::Layer,
        Purpose::Order,
        Purpose::DefaultOrder,
        Purpose::WorkerSeed,
    ];
    // A draw before the first seed counts if it affects the training.
    let is_unseeded = |draw: &Draw| {
        seeded.is_none_or(|seed| {
            draw.moment.order < seed && context.typing.reaches_output(draw.target)
        })
    };
    let of =
        |purpose| draws(context, thing).find(|draw| draw.purpose == purpose && is_unseeded(draw));
    let draw = by_importance.into_iter().find_map(of)?;
    Some(UnseededGlobal { thing, global, draw, is_seeded_later: seeded.is_some() })
}

impl UnseededGlobal<'_> {
    /// Returns the finding if it belongs to the rule.
    pub(crate) fn finding(&self, context: &RuleContext<'_>, rule: Rule) -> Option<Finding> {
        let (what, its_rule) = match self.draw.purpose {
            Purpose::Parameters => ("Initial parameters are drawn", Rule::UnseededGenerator),
            Purpose::Order | Purpose::DefaultOrder => {
                ("The order of the data is drawn", Rule::UnseededShuffle)
            }
            Purpose::Layer => ("Dropout is drawn", Rule::UnseededGenerator),
            Purpose::WorkerSeed => {
                ("The seeds of the worker processes are drawn", Rule::UnseededGenerator)
            }
            Purpose::Values => {
                ("Numbers that affect the training are drawn", Rule::UnseededGenerator)
            }
        };
        if rule != its_rule {
            return None;
        }
        let name = generator_name(self.thing);
        let state = if self.is_seeded_later { "only seeded later" } else { "never seeded" };
        let message = format!("{what} from {name}, which is {state}: every run is different.");
        let call = match self.global {
            Global::Torch => "torch.manual_seed(seed)",
            Global::NumPy => "np.random.seed(seed)",
            Global::Python => "random.seed(seed)",
            Global::TensorFlow if context.lifted.style == Style::TensorFlow => SEED_OF_KERAS,
            Global::TensorFlow => "tf.random.set_seed(seed)",
        };
        let help = format!("Seed it once, before the first draw: `{call}`.");
        let first = self.draw.site;
        let mut finding = context.finding(rule, first, message, help);
        let others = draws(context, self.thing).filter(|draw| {
            draw.site != first
                && !draw.in_worker
                && draw.purpose != Purpose::WorkerSeed
                && draw.purpose != Purpose::Parameters
        });
        let mut lines = Vec::new();
        for other in others {
            let line = context.line(other.site, first);
            if lines.len() < OTHER_DRAWS && !lines.contains(&line) {
                finding.notes.push(context.note(other.site, "This draws from it too."));
                lines.push(line);
            }
        }
        Some(finding)
    }
}

/// Returns the first draw from the generator that is created at a site, if all its draws order data.
pub(crate) fn only_orders_data(context: &RuleContext<'_>, created: Site) -> Option<Site> {
    let mut things = context.lifted.things.iter();
    let thing = things.find(|it| it.site == created && matches!(it.role, Role::Generator(_)))?;
    let first = draws(context, thing).next()?;
    draws(context, thing).all(|it| it.purpose == Purpose::Order).then_some(first.site)
}

/// Draws of the training and of the evaluation from one generator.
pub(crate) struct EvaluationDraws<'s> {
    pub training: &'s Draw,
    pub evaluation: &'s Draw,
    /// Shuffle of the training data.
    pub training_shuffle: Option<&'s Draw>,
}

/// Finds a generator that both the training and the evaluation in a training loop draw from.
pub(crate) fn evaluation_draws<'s>(
    context: &RuleContext<'s>,
    thing: &Thing,
) -> Option<EvaluationDraws<'s>> {
    let in_loop = |draw: &&Draw| {
        draw.loops.first().is_some_and(|id| context.looped(*id).trains)
            && draw.purpose != Purpose::WorkerSeed
            && draw.purpose != Purpose::Parameters
    };
    // A function that applies a model without training it, and whose draws nothing is trained on.
    let is_probe = |draw: &Draw| draw.is_probe && !context.typing.reaches_output(draw.target);
    let (evaluation, training): (Vec<&Draw>, Vec<&Draw>) = draws(context, thing)
        .filter(in_loop)
        .partition(|draw| draw.evaluation.is_some() || is_probe(draw));
    Some(EvaluationDraws {
        training: training.first()?,
        evaluation: evaluation.first()?,
        training_shuffle: training.iter().copied().find(|it| it.purpose == Purpose::Order),
    })
}

/// Name of a generator in messages.
pub(crate) fn generator_name(thing: &Thing) -> String {
    match thing.role {
        Role::Global(global) | Role::Worker(global) => match global {
            Global::Torch => "PyTorch's generator",
            Global::NumPy => "NumPy's global generator",
            Global::Python => "Python's global generator",
            Global::TensorFlow => "the global generator of Keras and TensorFlow",
        }
        .to_owned(),
        Role::Generator(Family::Pipeline) => "the shuffled pipeline".to_owned(),
        Role::Generator(Family::Environment) => "the environment".to_owned(),
        Role::Generator(_) => format!("the generator `{}`", thing.name),
        _ => thing.name.clone(),
    }
}

/// Joins names: "a", "a and b", "a, b and c".
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

/// Makes the first letter a capital.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
