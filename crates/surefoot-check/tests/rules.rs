//! Each rule on a faulty and on a fixed script.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;

use surefoot_check::{CheckConfig, CheckReport, Rule, check};

/// A training loop; `before` comes first, `inside` at the end of each iteration.
fn script(before: &str, inside: &str) -> String {
    format!(
        "import os, random, time\nimport numpy as np\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, Dataset\n\n\
         device = 'cuda'\n{before}\nmodel = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))\n\
         optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\nx = torch.zeros(8, 4)\n\
         for epoch in range(10):\n    loss = model(x).sum()\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n{inside}\n"
    )
}

fn checked(text: &str) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    fs::write(&path, text).unwrap();
    let checked = check(&[path], &CheckConfig::default());
    assert!(checked.unreadable.is_empty(), "{:?}\n{text}", checked.unreadable);
    checked
}

fn rules(text: &str) -> Vec<Rule> {
    checked(text).findings.iter().map(|it| it.rule).collect()
}

#[track_caller]
fn expect(rule: Rule, faulty: &str, fixed: &str) {
    assert!(rules(faulty).contains(&rule), "not found in\n{faulty}");
    assert_eq!(rules(fixed), [], "in\n{fixed}");
}

const SEED: &str = "torch.manual_seed(0)";

#[test]
fn missing_state() {
    let save = |entries: &str| {
        script(
            &format!("{SEED}\nbest = 9.0"),
            &format!(
                "    if loss.item() < best:\n        best = loss.item()\n        torch.save(model.state_dict(), 'best.pt')\n    \
                 torch.save({{'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict(){entries}}}, 'last.pt')"
            ),
        )
    };
    expect(Rule::MissingState, &save(""), &save(", 'best': best"));
}

#[test]
fn an_optimizer_without_state_need_not_be_saved() {
    let resumed = |optimizer: &str| {
        format!(
            "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1{optimizer})\n\
             saved = torch.load('last.pt')\nmodel.load_state_dict(saved['model'])\nx = torch.zeros(8, 4)\n\
             for epoch in range(saved['epoch'] + 1, 10):\n    optimizer.zero_grad()\n    model(x).sum().backward()\n    optimizer.step()\n    \
             torch.save({{'epoch': epoch, 'model': model.state_dict()}}, 'last.pt')\n"
        )
    };
    expect(Rule::MissingState, &resumed(", momentum=0.9"), &resumed(""));
}

#[test]
fn missing_generator() {
    let save = |entries: &str| {
        script(
            SEED,
            &format!(
                "    x = x + torch.randn(8, 4)\n    torch.save({{'x': x, 'epoch': epoch, 'model': model.state_dict(), \
                 'optimizer': optimizer.state_dict(){entries}}}, 'last.pt')"
            ),
        )
    };
    expect(Rule::MissingGenerator, &save(""), &save(", 'rng': torch.get_rng_state()"));
}

#[test]
fn missing_position() {
    let save = |entries: &str| {
        format!(
            "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\
             data = torch.zeros(64, 4)\nfor epoch in range(3):\n    for i, batch in enumerate(data.split(8)):\n        \
             optimizer.zero_grad()\n        model(batch).sum().backward()\n        optimizer.step()\n        \
             torch.save({{'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict(){entries}}}, 'last.pt')\n"
        )
    };
    expect(Rule::MissingPosition, &save(""), &save(", 'batch': i"));
}

/// A loop over batches that saves in the middle of an epoch, and is resumed.
fn saved_mid_epoch(start: &str, batches: &str, skip: &str) -> String {
    format!(
        "import os\nfrom itertools import islice\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\ntorch.manual_seed(0)\n\
         loader = DataLoader(TensorDataset(torch.load('x.pt')), 8)\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\n\
         start, step = 0, 0\nif os.path.exists('c.pt'):\n    c = torch.load('c.pt')\n    model.load_state_dict(c['model'])\n    \
         optimizer.load_state_dict(c['optimizer'])\n    start = c['epoch']\n    step = c['step']\n{start}for epoch in range(start, 9):\n    \
         for {batches}:\n{skip}        optimizer.zero_grad()\n        model(x).sum().backward()\n        optimizer.step()\n        step += 1\n        \
         if step % 100 == 0:\n            \
         torch.save({{'epoch': epoch, 'step': step, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}}, 'c.pt')\n"
    )
}

#[test]
fn a_saved_count_is_a_position_only_if_completed_batches_are_skipped() {
    let faulty = saved_mid_epoch("", "(x,) in loader", "");
    let count = "done = step % len(loader)\n";
    let test = "        if i < done:\n            continue\n";
    let sound = saved_mid_epoch(count, "i, (x,) in enumerate(loader)", test);
    expect(Rule::MissingPosition, &faulty, &sound);
    let sliced = saved_mid_epoch(count, "(x,) in islice(loader, done, None)", "");
    assert_eq!(rules(&sliced), [], "in\n{sliced}");
    let seen = saved_mid_epoch(
        "",
        "(x,) in loader",
        "        if x.isnan().any():\n            continue\n",
    );
    assert_eq!(rules(&seen), [Rule::MissingPosition], "in\n{seen}");
}

#[test]
fn generated_code_saves_at_the_end_of_an_iteration_of_the_outermost_loop() {
    let code = checked(&saved_mid_epoch("", "(x,) in loader", "")).checkpoints[0].code();
    assert!(code.starts_with("# at the end of each iteration of the loop at line 16\n"), "{code}");
    assert!(code.contains("first_epoch = checkpoint[\"epoch\"] + 1  #"), "{code}");
    assert!(!code.contains("batch\"]"), "{code}");
}

#[test]
fn an_unsaved_epoch_is_a_missing_position() {
    let save = |entries: &str| {
        let saved = format!(
            "    torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict(){entries}}}, 'last.pt')"
        );
        script(SEED, &saved)
    };
    assert_eq!(rules(&save("")), [Rule::MissingPosition]);
    assert_eq!(rules(&save(", 'epoch': epoch")), []);
}

fn resumed(restore: &str) -> String {
    format!(
        "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.1))\n\
         optimizer = torch.optim.Adam(model.parameters())\nstart = 0\n{restore}\nfor epoch in range(start, 9):\n    \
         optimizer.zero_grad()\n    model(torch.zeros(8, 4)).sum().backward()\n    optimizer.step()\n    \
         torch.save({{'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'rng': torch.get_rng_state()}}, 'last.pt')\n"
    )
}

const RESTORE: &str = "import os\nif os.path.exists('last.pt'):\n    c = torch.load('last.pt')\n    model.load_state_dict(c['model'])\n    start = c['epoch'] + 1\n    torch.set_rng_state(c['rng'])\n";

#[test]
fn not_restored() {
    let sound = format!("{RESTORE}    optimizer.load_state_dict(c['optimizer'])\n");
    expect(Rule::NotRestored, &resumed(RESTORE), &resumed(&sound));
}

#[test]
fn restored_early() {
    let sound = format!("{RESTORE}    optimizer.load_state_dict(c['optimizer'])\n");
    let faulty = format!("{sound}noise = torch.randn(4)\n");
    expect(Rule::RestoredEarly, &resumed(&faulty), &resumed(&sound));
}

#[test]
fn unseeded_generator() {
    expect(Rule::UnseededGenerator, &script("", ""), &script(SEED, ""));
    let own = |seed: &str| {
        script(
            &format!("{SEED}\nrng = np.random.default_rng({seed})"),
            "    x = x + torch.tensor(rng.normal())",
        )
    };
    expect(Rule::UnseededGenerator, &own(""), &own("7"));
}

#[test]
fn unseeded_shuffle() {
    let shuffle = |seed: &str| {
        script(
            &format!("{SEED}\n{seed}\nrows = list(range(9))\nrandom.shuffle(rows)"),
            "    x = x + rows[0]",
        )
    };
    expect(Rule::UnseededShuffle, &shuffle(""), &shuffle("random.seed(1)"));
}

#[test]
fn unseeded_workers() {
    let workers = |init: &str| {
        format!(
            "import numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, Dataset\n\nclass Noise(Dataset):\n    def __init__(self):\n        \
             self.rng = np.random.default_rng(3)\n    def __getitem__(self, i):\n        return torch.tensor(self.rng.normal())\n\n\
             def init(worker):\n    pass\n\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\
             loader = DataLoader(Noise(), num_workers=2{init})\nfor epoch in range(3):\n    for x in loader:\n        optimizer.zero_grad()\n        \
             model(x).sum().backward()\n        optimizer.step()\n"
        )
    };
    expect(Rule::UnseededWorkers, &workers(""), &workers(", worker_init_fn=init"));
}

#[test]
fn rank_keyed() {
    let seed = |seed: &str| {
        script(&format!("rank = torch.distributed.get_rank()\ntorch.manual_seed({seed})"), "")
    };
    expect(Rule::RankKeyed, &seed("1 + rank"), &seed("1"));
}

#[test]
fn evaluation_draws() {
    let evaluation = |draw: &str| {
        script(
            &format!("{SEED}\ndef evaluate():\n    return {draw}"),
            "    x = x + torch.randn(8, 4)\n    print(evaluate())",
        )
    };
    expect(Rule::EvaluationDraws, &evaluation("torch.randn(3)"), &evaluation("torch.ones(3)"));
}

#[test]
fn orders_clocks_and_hashes() {
    let data = |value: &str| {
        script(
            "torch.manual_seed(0)\nfrom multiprocessing import Pool\npool = Pool()",
            &format!("    x = x + len(str({value}))\n    x = x + torch.tensor({value})"),
        )
    };
    expect(Rule::FileOrder, &data("os.listdir('d')[0]"), &data("sorted(os.listdir('d'))[0]"));
    expect(Rule::SetOrder, &data("list({'a', 'b'})[0]"), &data("sorted({'a', 'b'})[0]"));
    expect(Rule::HashOrder, &data("hash('a')"), &data("len('a')"));
    expect(Rule::Clock, &data("time.time()"), &data("time.sleep(1)"));
    expect(
        Rule::ArrivalOrder,
        &data("[r for r in pool.imap_unordered(f, d)]"),
        &data("[r for r in pool.imap(f, d)]"),
    );
}

#[test]
fn a_time_in_a_file_name_is_not_found() {
    let text = script(
        SEED,
        "    start = time.time()\n    name = f'run-{start}.pt'\n    torch.save(model.state_dict(), name)",
    );
    assert_eq!(rules(&text), []);
}

#[test]
fn nondeterministic_operation() {
    let operation = |before: &str| {
        script(
            &format!("{SEED}\n{before}"),
            "    x = x.index_add(0, x.long(), x)\n    model(x).sum().backward()",
        )
    };
    expect(
        Rule::NondeterministicOperation,
        &operation(""),
        &operation("torch.use_deterministic_algorithms(True)"),
    );
}

#[test]
fn switches() {
    let with = |switch: &str| script(&format!("{SEED}\n{switch}"), "");
    expect(
        Rule::CudnnBenchmark,
        &with("torch.backends.cudnn.benchmark = True"),
        &with("torch.backends.cudnn.benchmark = False"),
    );
    expect(
        Rule::WarnOnly,
        &with("torch.use_deterministic_algorithms(True, warn_only=True)"),
        &with("torch.use_deterministic_algorithms(True)"),
    );
    expect(
        Rule::Precision,
        &with("torch.set_float32_matmul_precision('high')"),
        &with("torch.set_float32_matmul_precision('highest')"),
    );
    let compiled = |mode: &str| script(SEED, &format!("    model = torch.compile(model{mode})"));
    expect(Rule::Autotune, &compiled(", mode='max-autotune'"), &compiled(""));
}

#[test]
fn unknown_calls_are_reported_once() {
    let text = script(
        &format!("import mystery\n{SEED}"),
        "    mystery.tune(model)\n    mystery.tune(model)",
    );
    assert_eq!(rules(&text), [Rule::UnknownCall]);
}

#[test]
fn comments_suppress_findings() {
    let text = script("", "")
        .replace("nn.Linear(8, 1))", "nn.Linear(8, 1))  # surefoot: ignore[unseeded_generator]");
    let checked = checked(&text);
    assert_eq!((checked.findings.len(), checked.suppressed), (0, 1));
}

#[test]
fn the_checkpoint_of_a_loop_without_a_save_is_derived() {
    let checked = checked(&script(SEED, "    x = x + torch.randn(8, 4)"));
    let checkpoint = &checked.checkpoints[0];
    assert!(!checkpoint.saves);
    let names: Vec<_> = checkpoint.members.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["model", "optimizer", "x", "torch", "epoch"]);
    assert!(checkpoint.code().contains("\"torch_rng\": torch.get_rng_state()"));
}

#[test]
fn long_and_deep_files_are_checked() {
    let long: String = (0..50_000).map(|n| format!("x{n} = {n} + 1\n")).collect();
    let deep = format!("x = {}\n", (0..20_000).map(|_| "1").collect::<Vec<_>>().join(" + "));
    let nested = format!("x = {}1{}\n", "(".repeat(1000), ")".repeat(1000));
    for text in [long, deep, nested] {
        assert_eq!(rules(&text), []);
    }
}

#[test]
fn in_place_operations_are_nondeterministic_too() {
    let with = |call: &str| {
        script(
            &format!("{SEED}\ny = torch.zeros(8, 4)\nindex = torch.arange(8)"),
            &format!(
                "    out = torch.zeros(8, 1)\n    {call}\n    out.mean().backward()\n    optimizer.step()"
            ),
        )
    };
    expect(
        Rule::NondeterministicOperation,
        &with("out.index_add_(0, index, model(x))"),
        &with("out.add_(model(x))"),
    );
}

#[test]
fn pandas_sample_without_random_state_is_unseeded() {
    let with = |arguments: &str| {
        script(
            &format!("{SEED}\nimport pandas\ntable = pandas.read_csv('d.csv').sample({arguments})"),
            "    model(torch.tensor(table.values)).sum().backward()\n    optimizer.step()",
        )
    };
    expect(Rule::UnseededGenerator, &with("frac=1"), &with("frac=1, random_state=3"));
}

#[test]
fn kfold_without_random_state_is_unseeded() {
    let with = |folds: &str| {
        script(
            &format!(
                "{SEED}\nfrom sklearn.model_selection import KFold, ShuffleSplit\ndata = torch.zeros(8, 4)"
            ),
            &format!(
                "    for rows, _ in {folds}.split(data):\n        model(data[rows]).sum().backward()\n        optimizer.step()"
            ),
        )
    };
    let rule = Rule::UnseededGenerator;
    expect(rule, &with("KFold(5, shuffle=True)"), &with("KFold(5)"));
    expect(rule, &with("ShuffleSplit(5)"), &with("ShuffleSplit(5, random_state=0)"));
}

#[test]
fn a_model_of_an_unknown_library_is_reported_once() {
    let with = |rest: &str| {
        format!(
            "import mylib\nimport torch\ntorch.manual_seed(0)\nmodel = mylib.Net().to('cuda')\nx = mylib.load('x.pt')\n{rest}"
        )
    };
    let trained = with(
        "optimizer = torch.optim.Adam(model.parameters())\nfor epoch in range(10):\n    \
         loss = model(x).mean()\n    loss.backward()\n    optimizer.step()\n",
    );
    assert_eq!(rules(&trained), [Rule::UnknownCall]);
    assert!(checked(&trained).findings[0].message.contains("`mylib.Net`"));
    assert_eq!(rules(&with("print(model(x))\n")), []);
}

#[test]
fn an_unseeded_shuffle_is_found_where_the_model_is_unknown() {
    let with = |seed: &str| {
        format!(
            "import torch\nfrom mylib import AutoModel\nfrom torch.utils.data import DataLoader\n{seed}\n\
             model = AutoModel.from_pretrained('bert')\noptimizer = torch.optim.AdamW(model.parameters())\n\
             data = torch.load('d.pt')\nfor epoch in range(3):\n    for batch in DataLoader(data, 8, shuffle=True):\n        \
             loss = model(**batch).loss\n        loss.backward()\n        optimizer.step()\n"
        )
    };
    assert!(rules(&with("")).contains(&Rule::UnseededShuffle));
    assert_eq!(rules(&with("torch.manual_seed(0)")), [Rule::UnknownCall]);
}

#[test]
fn a_trainer_of_an_unknown_library_is_reported() {
    let with = |call: &str| {
        format!(
            "import torch\nfrom mylib import AutoModel, Trainer\nmodel = AutoModel.from_pretrained('bert')\n\
             trainer = Trainer(model=model)\ntrainer.{call}()\n"
        )
    };
    expect(Rule::UnknownLoop, &with("train"), &with("evaluate"));
}

#[test]
fn objects_prepared_by_a_library_are_still_trained() {
    let with = |seed: &str| {
        format!(
            "import torch\nfrom accelerate import Accelerator\nfrom accelerate.utils import set_seed\n{seed}\n\
             accelerator = Accelerator()\nmodel = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters())\n\
             model, optimizer = accelerator.prepare(model, optimizer)\nfor epoch in range(3):\n    \
             loss = model(torch.zeros(4)).mean()\n    accelerator.backward(loss)\n    optimizer.step()\n"
        )
    };
    let found = rules(&with(""));
    assert_eq!(found, [Rule::UnseededGenerator]);
    assert_eq!(rules(&with("set_seed(0)")), []);
}

#[test]
fn an_evaluation_that_draws_in_a_shared_function_is_reported_at_its_call() {
    let with = |inside: &str| {
        format!(
            "import torch\ntorch.manual_seed(0)\ndata = torch.load('d.pt')\ndef get_batch():\n    return data[torch.randint(9, (4,))]\n\
             model = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters())\nfor step in range(9):\n    \
             model.eval()\n    with torch.no_grad():\n        {inside}\n    model.train()\n    \
             loss = model(get_batch()).mean()\n    loss.backward()\n    optimizer.step()\n"
        )
    };
    let faulty = with("print(model(get_batch()))");
    let found = checked(&faulty);
    let finding = found.findings.iter().find(|it| it.rule == Rule::EvaluationDraws);
    let finding = finding.unwrap();
    assert_eq!(&faulty[finding.place.range.clone()], "get_batch()");
    assert_eq!(finding.notes.len(), 1);
    assert_eq!(rules(&with("print(model(data))")), []);
}

#[test]
fn an_entry_that_is_not_restored_is_reported_at_its_keyword() {
    let with = |restore: &str| {
        format!(
            "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters(), lr=0.1)\n\
             state = torch.load('a.pt')\nmodel.load_state_dict(state['model'])\nfirst = state['epoch']\n{restore}\n\
             for epoch in range(first, 9):\n    model(torch.zeros(4)).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n    \
             torch.save(dict(model=model.state_dict(), opt=optimizer.state_dict(), epoch=epoch + 1), 'a.pt')\n"
        )
    };
    let faulty = with("");
    let found = checked(&faulty);
    let finding = found.findings.iter().find(|it| it.rule == Rule::NotRestored);
    let place = finding.unwrap().place.range.clone();
    assert_eq!(&faulty[place], "opt=optimizer.state_dict()");
    assert_eq!(rules(&with("optimizer.load_state_dict(state['opt'])")), []);
}
