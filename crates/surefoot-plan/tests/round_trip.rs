//! A plan that is printed and read again is the same plan, whatever is in it.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use surefoot_plan::*;

mod parts;

fn plan() -> BoxedStrategy<Plan> {
    let top = (option::of(".{0,12}"), 0..=i64::MAX as u64);
    (top, parts::data(), vec(parts::layer(), 1..6), parts::training(), parts::watch())
        .prop_map(|((name, seed), data, model, training, watch)| Plan {
            name,
            seed,
            watch,
            ..Plan::new(data, model, training)
        })
        .prop_filter("names have to be unique", |plan| parts::unique_names(&plan.model))
        .boxed()
}

proptest! {
    #[test]
    fn a_printed_plan_reads_as_the_same(plan in plan()) {
        let text = plan.to_toml();
        match Plan::parse(&text, "printed") {
            Ok(read) => prop_assert_eq!(read, plan),
            Err(error) => prop_assert!(false, "{}\n\n{}", error, text),
        }
    }

    #[test]
    fn printing_is_stable(plan in plan()) {
        let text = plan.to_toml();
        let read = Plan::parse(&text, "printed");
        prop_assert_eq!(read.map(|read| read.to_toml()), Ok(text));
    }

    #[test]
    fn layer_names_are_unique(plan in plan()) {
        let mut names = layer_names(&plan.model);
        let count = names.len();
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), count);
    }

    #[test]
    fn shapes_and_names_agree_and_nothing_panics(plan in plan(), input in vec(1..40usize, 0..4)) {
        if let Ok(shapes) = infer(&plan.model, &input, true) {
            let names: Vec<_> = shapes
                .into_iter()
                .filter(|shape| shape.kind != "residual")
                .map(|shape| shape.name)
                .collect();
            prop_assert_eq!(names, layer_names(&plan.model));
        }
    }

    #[test]
    fn damaged_text_is_an_error_not_a_panic(
        plan in plan(),
        at in any::<prop::sample::Index>(),
        len in 0..30usize,
        instead in "\\PC{0,3}",
    ) {
        let mut text: Vec<char> = plan.to_toml().chars().collect();
        let at = at.index(text.len());
        let end = (at + len).min(text.len());
        text.splice(at..end, instead.chars());
        let text: String = text.into_iter().collect();
        if let Err(error) = Plan::parse(&text, "text") {
            let snippet = error.snippet.as_ref();
            prop_assert!(snippet.is_some_and(|snippet| text.contains(&snippet.text)));
            prop_assert!(error.to_string().starts_with("error: "));
        }
    }
}

#[test]
fn a_plan_prints_no_defaults() {
    let model = vec![
        Layer::Dense(Dense { activation: Activation::Relu, ..Dense::new(8) }),
        Layer::Residual(Residual::new(vec![
            Layer::Dense(Dense::new(8)),
            Layer::Residual(Residual::new(vec![Layer::Dropout(Dropout::new(0.5))])),
        ])),
        Layer::Conv2d(Conv2d {
            strides: [1, 2],
            kernel_regularizer: Regularizer { l1: 0.0, l2: 1e-4 },
            ..Conv2d::new(4, [3, 3])
        }),
    ];
    let data = Data::new(Source::circles());
    let plan = Plan {
        name: Some("circles".to_owned()),
        seed: 7,
        ..Plan::new(data, model, Training::new(50, Loss::Mse))
    };
    insta::assert_snapshot!(plan.to_toml(), @r#"
    name = "circles"
    seed = 7

    [data]
    source = "circles"

    [[model]]
    layer = "dense"
    units = 8
    activation = "relu"

    [[model]]
    layer = "residual"
    layers = [
      { layer = "dense", units = 8 },
      { layer = "residual", layers = [
        { layer = "dropout", rate = 0.5 },
      ] },
    ]

    [[model]]
    layer = "conv2d"
    filters = 4
    kernel_size = 3
    strides = [1, 2]
    kernel_regularizer = { l2 = 0.0001 }

    [training]
    epochs = 50
    loss = "mse"
    "#);
}
