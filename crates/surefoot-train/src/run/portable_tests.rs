//! Portable plans have the same bits with the vectors of AVX2 and of AVX-512.

use super::*;
use crate::Cpu;
use std::path::Path;

/// The digest of a plan trained with these vectors.
fn digest(text: &str, vectors: Vectors) -> String {
    let plan = Plan::parse(text, "plan.toml").unwrap_or_else(|error| panic!("{error}"));
    let data = surefoot_data::load(&plan.data, plan.seed, Path::new(".")).unwrap();
    let mut run = TrainingRun::<Cpu>::new(&plan, &data, &[], 2, Default::default()).unwrap();
    assert_eq!(run.worker_pool.vectors, Vectors::Portable);
    run.worker_pool.vectors = vectors;
    run.train(&mut []).unwrap().digest.to_string()
}

#[test]
fn avx2_and_avx512_give_one_digest() {
    if !is_portable_machine() {
        return;
    }
    let images =
        "source = { kind = \"shapes\", samples = 40, size = 12, channels = 3, classes = 3 }";
    let texts = "source = { kind = \"copy\", samples = 40, length = 6, symbols = 3 }";
    let table = "source = { kind = \"blobs\", samples = 200, centers = 3, features = 50 }";
    let embedding = "{ layer = \"embedding\", input_dim = 3, output_dim = 24 }";
    for (data, layers) in [
        // Products whose right matrix is too large to be read in place, and too narrow.
        (table, "{ layer = \"dense\", units = 300, activation = \"gelu\" }, \
                 { layer = \"dense\", units = 130, activation = \"tanh\" }, { layer = \"batch_norm\" }, \
                 { layer = \"dense\", units = 7, activation = \"softplus\" }".to_owned()),
        (images, "{ layer = \"conv2d\", filters = 9, kernel_size = 3, padding = \"same\" }, \
                  { layer = \"group_norm\", groups = 3 }, { layer = \"activation\", activation = \"silu\" }, \
                  { layer = \"conv2d\", filters = 5, kernel_size = 3, strides = 2 }, \
                  { layer = \"max_pool2d\", pool_size = 2 }, { layer = \"flatten\" }".to_owned()),
        // Products and convolutions by tiles.
        (images, "{ layer = \"conv2d\", filters = 64, kernel_size = 3 }, \
                  { layer = \"conv2d\", filters = 256, kernel_size = 3, strides = 2 }, \
                  { layer = \"conv2d\", filters = 128, kernel_size = 3, padding = \"same\" }, \
                  { layer = \"flatten\" }, { layer = \"dense\", units = 300 }".to_owned()),
        (texts, format!("{embedding}, {{ layer = \"lstm\", units = 20, return_sequences = true }}, \
                         {{ layer = \"gru\", units = 20 }}")),
        (texts, format!("{embedding}, {{ layer = \"transformer\", num_heads = 2, feed_forward = 40 }}, \
                         {{ layer = \"global_average_pool\" }}")),
    ] {
        let text = format!(
            "data = {{ {data} }}\n\
             model = [{layers}, {{ layer = \"dense\", units = 3, activation = \"softmax\" }}]\n\
             training = {{ epochs = 2, batch_size = 16, portable = true, \
             loss = \"sparse_categorical_crossentropy\" }}\n"
        );
        let wide = digest(&text, Vectors::Portable);
        assert_eq!(wide, digest(&text, Vectors::PortableAvx2), "{layers}");
    }
}
