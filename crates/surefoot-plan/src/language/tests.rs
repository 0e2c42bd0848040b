//! Completeness of the reference in `docs/plan.md`, and reading of single values.

use super::{Choice, Record, Term, Writer};
use crate::error::Fault;
use crate::tree::Node;
use crate::*;

const REFERENCE: &str = include_str!("../../../../docs/plan.md");

fn read<T: Term>(value: &str) -> Result<T, Fault> {
    let document = toml_edit::Document::parse(format!("key = {value}")).unwrap();
    let root = Node::of(document.as_table());
    T::read(&root.get("key").unwrap().node, "key")
}

fn named_in_reference<C: Choice>() {
    for variant in C::VARIANTS {
        assert!(
            REFERENCE.contains(&format!("`{}`", variant.name))
                || REFERENCE.contains(&format!("`\"{}\"`", variant.name)),
            "docs/plan.md does not have {} `{}`",
            C::NOUN,
            variant.name
        );
        keys_in_reference(&(variant.start)());
    }
}

fn keys_in_reference<R: Record + Clone>(record: &R) {
    for key in Writer::keys(record) {
        assert!(
            REFERENCE.contains(&format!("`{key}`")),
            "docs/plan.md does not have the key `{key}`"
        );
    }
}

#[test]
fn the_reference_lists_every_name_and_key() {
    named_in_reference::<Layer>();
    named_in_reference::<Activation>();
    named_in_reference::<Initializer>();
    named_in_reference::<Padding>();
    named_in_reference::<Source>();
    named_in_reference::<Task>();
    named_in_reference::<Missing>();
    named_in_reference::<Outliers>();
    named_in_reference::<Scale>();
    named_in_reference::<Loss>();
    named_in_reference::<Optimizer>();
    named_in_reference::<Schedule>();
    named_in_reference::<Rules>();
    keys_in_reference(&Data::new(Source::circles()));
    keys_in_reference(&SplitFractions::default());
    keys_in_reference(&Training::new(1, Loss::Mse));
    keys_in_reference(&Watch::default());
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let rest = "[data]\nsource = \"circles\"\n[[model]]\nlayer = \"flatten\"\n\
                [training]\nepochs = 1\n";
    let examples: Vec<_> = REFERENCE
        .split("```toml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .collect();
    assert!(examples.len() >= 5);
    for example in examples {
        let mut text = example.to_owned();
        if example.starts_with("# part of a plan") {
            for part in rest.split_inclusive('\n').collect::<Vec<_>>().chunks(2) {
                if !example.contains(part[0]) {
                    text.push_str(&part.concat());
                }
            }
        }
        if let Err(error) = Plan::parse(&text, "docs/plan.md") {
            panic!("{error}");
        }
    }
}

#[test]
fn variants_are_called_by_their_names() {
    fn check<C: Choice>() {
        for variant in C::VARIANTS {
            assert_eq!((variant.start)().variant(), variant.name);
        }
    }
    check::<Layer>();
    check::<Activation>();
    check::<Initializer>();
    check::<Padding>();
    check::<Source>();
    check::<Task>();
    check::<Missing>();
    check::<Outliers>();
    check::<Scale>();
    check::<Loss>();
    check::<Optimizer>();
    check::<Schedule>();
}

#[test]
fn keras_names_are_accepted() {
    assert_eq!(read("\"mean_squared_error\""), Ok(Loss::Mse));
    assert_eq!(read("\"kld\""), Ok(Loss::KlDivergence));
    assert_eq!(read("\"KLDivergence\""), Ok(Loss::KlDivergence));
    assert_eq!(read("\"swish\""), Ok(Activation::Silu));
    assert_eq!(read("\"LeakyReLU\""), Ok(Activation::leaky_relu()));
    assert_eq!(read("\"HeNormal\""), Ok(Initializer::HeNormal));
    assert_eq!(read("\"standardize\""), Ok(Scale::Standardise));
    assert_eq!(read("\"RMSprop\""), Ok(Optimizer::rmsprop()));
    assert_eq!(read("{ layer = \"MaxPooling2D\" }"), Ok(Layer::MaxPool2d(Pool2d::default())));
}

#[test]
fn a_bare_name_has_the_defaults() {
    assert_eq!(read("\"elu\""), Ok(Activation::Elu { alpha: 1.0 }));
    assert_eq!(read("{ name = \"elu\" }"), Ok(Activation::elu()));
    assert_eq!(read("\"sgd\"").map(|o: Optimizer| o.learning_rate), Ok(0.01));
    assert_eq!(read("\"adamw\"").map(|o: Optimizer| o.weight_decay), Ok(0.004));
    assert!(read::<Initializer>("\"constant\"").is_err());
    assert!(read::<Layer>("\"flatten\"").is_err());
}

#[test]
fn a_table_without_a_name_is_the_default_kind() {
    let optimizer: Optimizer = read("{ learning_rate = 0.5 }").unwrap();
    assert_eq!(optimizer, Optimizer::new(Optimizer::adam().algorithm, 0.5));
    let schedule: Schedule = read("{ warmup_steps = 5 }").unwrap();
    assert_eq!((schedule.decay, schedule.warmup_steps), (Decay::Constant, 5));
    assert!(read::<Activation>("{ alpha = 0.5 }").is_err());
}

#[test]
fn sizes_are_a_number_or_a_pair() {
    assert_eq!(read("3"), Ok([3usize, 3]));
    assert_eq!(read("[3, 5]"), Ok([3usize, 5]));
    assert!(read::<[usize; 2]>("[3, 0]").is_err());
    assert!(read::<[usize; 2]>("\"3\"").is_err());
}

#[test]
fn integers_are_accepted_as_floats_but_not_vice_versa() {
    assert_eq!(read("1"), Ok(1.0));
    assert!(read::<u64>("1.0").is_err());
    assert!(read::<f64>("inf").is_err());
    assert!(read::<f64>("true").is_err());
}

#[test]
fn observation_intervals_are_words_or_steps() {
    assert_eq!(read("\"auto\""), Ok(ObserveEvery::Auto));
    assert_eq!(read("\"never\""), Ok(ObserveEvery::Never));
    assert!(matches!(read("3"), Ok(ObserveEvery::Every(steps)) if steps.get() == 3));
    assert!(read::<ObserveEvery>("\"often\"").is_err());
    assert!(read::<ObserveEvery>("-1").is_err());
}
