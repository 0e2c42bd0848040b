//! Execution of generated checkpoint code: `cargo test --test pytorch -- --ignored`, with PyTorch in `PYTHON`.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::Path;
use std::process::Command;

use surefoot_check::{CheckConfig, check};

/// Checks a script without checkpoints, pastes the generated code and compares an interrupted run of it
/// with an uninterrupted one.
fn resumes_exactly(script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("train.py"), script).unwrap();
    let checked = check(&[path("train.py")], &CheckConfig::default());
    let [required] = &checked.checkpoints[..] else {
        panic!("{} checkpoints in\n{script}", checked.checkpoints.len());
    };
    let source = checked.sources.get(required.place.file);
    let (line, _) = source.line_and_column(required.place.range.start);
    std::fs::write(path("save.py"), &required.save).unwrap();
    std::fs::write(path("restore.py"), &required.restore).unwrap();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart.py");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python)
        .arg(driver)
        .arg(path("train.py"))
        .arg(line.to_string())
        .args([path("save.py"), path("restore.py")])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

const START: &str = "import random\nimport numpy as np\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\
torch.manual_seed(0)\nnp.random.seed(0)\nrandom.seed(0)\n\
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))\n\
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))\n";

#[test]
#[ignore = "needs PyTorch"]
fn epochs_with_a_shuffled_loader_and_a_schedule() {
    resumes_exactly(&format!(
        "{START}loader = DataLoader(data, batch_size=8, shuffle=True)\n\
         optimizer = torch.optim.Adam(model.parameters())\n\
         scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)\n\
         for epoch in range(5):\n    for x, y in loader:\n        x = x + np.random.normal(scale=0.1)\n        \
         loss = nn.functional.mse_loss(model(x.float()), y)\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    \
         scheduler.step()\n"
    ));
}

#[test]
#[ignore = "needs PyTorch"]
fn steps_of_a_while_loop_that_evaluates_at_its_head() {
    resumes_exactly(&format!(
        "{START}optimizer = torch.optim.AdamW(model.parameters())\n\n\
         def get_batch():\n    rows = torch.randint(32, (8,))\n    return data.tensors[0][rows], data.tensors[1][rows]\n\n\
         x, y = get_batch()\niter_num = 0\nbest_loss = 1e9\n\
         while iter_num < 9:\n    if iter_num % 2 == 0:\n        model.eval()\n        with torch.no_grad():\n            \
         a, b = get_batch()\n            loss = nn.functional.mse_loss(model(a), b)\n        model.train()\n        \
         if loss < best_loss:\n            best_loss = loss.item()\n            optimizer.param_groups[0]['lr'] *= 0.9\n    \
         loss = nn.functional.mse_loss(model(x), y)\n    x, y = get_batch()\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n    \
         iter_num += 1\n"
    ));
}

#[test]
#[ignore = "needs PyTorch"]
fn two_models_and_a_moving_average() {
    resumes_exactly(&format!(
        "{START}import copy\nother = nn.Linear(1, 4)\naverage = copy.deepcopy(model)\n\
         one = torch.optim.Adam(model.parameters())\ntwo = torch.optim.RMSprop(other.parameters())\nqueue = []\n\
         for step in range(6):\n    x = other(torch.rand(8, 1))\n    queue.append(random.random())\n    \
         loss = model(x).pow(2).mean() * queue[0] + average(x).mean() * queue[-1]\n    one.zero_grad()\n    two.zero_grad()\n    loss.backward()\n    one.step()\n    two.step()\n    \
         for a, b in zip(average.parameters(), model.parameters()):\n        a.data.mul_(0.9).add_(b.data, alpha=0.1)\n"
    ));
}
