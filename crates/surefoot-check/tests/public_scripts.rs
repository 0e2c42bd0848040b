//! Patterns of public training scripts: what must be found, and what must not.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;

use surefoot_check::{CheckConfig, CheckReport, Rule, check};

fn checked(text: &str) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    fs::write(&path, text).unwrap();
    let checked = check(&[path], &CheckConfig::default());
    assert!(checked.unreadable.is_empty(), "{:?}\n{text}", checked.unreadable);
    checked
}

/// Findings without warnings.
fn rules(text: &str) -> Vec<Rule> {
    let rules = checked(text).findings.into_iter().map(|it| it.rule);
    rules.filter(|rule| !rule.is_warning()).collect()
}

const START: &str =
    "import os, sys, glob, random\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n";
const LOOP: &str = "for epoch in range(start, 9):\n    optimizer.zero_grad()\n    model(torch.zeros(8, 4)).sum().backward()\n    optimizer.step()\n";
const SAVE: &str = "    torch.save({'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'last.pt')\n";
const LOAD: &str = "c = torch.load('last.pt')\n    model.load_state_dict(c['model'])\n    optimizer.load_state_dict(c['optimizer'])\n    start = c['epoch'] + 1\n";

/// A resumable script; `between` comes after the checkpoint is loaded if `resume` holds.
fn resumable(between: &str) -> String {
    format!(
        "{START}resume = len(sys.argv) > 1\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\n\
         start = 0\nif resume:\n    {LOAD}{between}{LOOP}{SAVE}"
    )
}

#[test]
fn branches_that_exclude_each_other_do_not_overwrite_restored_state() {
    let write = "    optimizer = torch.optim.Adam(model.parameters())\n";
    assert_eq!(rules(&resumable(write)), [Rule::RestoredEarly]);
    assert_eq!(rules(&resumable(&format!("else:\n{write}"))), []);
    assert_eq!(rules(&resumable(&format!("if not resume:\n{write}"))), []);
    assert_eq!(rules(&resumable(&format!("if resume:\n{write}"))), [Rule::RestoredEarly]);
}

#[test]
fn pretrained_weights_may_be_changed() {
    let text = format!(
        "{START}model = nn.Linear(4, 1)\nmodel.load_state_dict(torch.load('pretrained.pt'))\nmodel.weight.data.zero_()\n\
         optimizer = torch.optim.Adam(model.parameters())\nstart = 0\n{LOOP}{SAVE}"
    );
    assert_eq!(rules(&text), []);
}

#[test]
fn a_load_after_the_training_or_of_weights_alone_does_not_resume() {
    let text = |before: &str, after: &str| {
        format!(
            "{START}model = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\nstart = 0\n{before}{LOOP}{SAVE}{after}"
        )
    };
    let weights = "c = torch.load('last.pt')\nmodel.load_state_dict(c['model'])\n";
    assert_eq!(rules(&text("", weights)), []);
    assert_eq!(rules(&text(weights, "")), []);
    let position = format!("{weights}start = c['epoch'] + 1\n");
    assert_eq!(rules(&text(&position, "")), [Rule::NotRestored]);
}

#[test]
fn files_that_are_collected_and_sorted_have_an_order() {
    let text = |collect: &str| {
        format!(
            "{START}{collect}model = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\
             for name in names:\n    optimizer.zero_grad()\n    model(torch.load(name)).sum().backward()\n    optimizer.step()\n"
        )
    };
    let append = "names = []\nfor name in os.listdir('data'):\n    if name.endswith('.pt'):\n        path = os.path.join('data', name)\n        names.append(path)\n";
    assert_eq!(rules(&text(append)), [Rule::FileOrder]);
    assert_eq!(rules(&text(&format!("{append}names.sort()\n"))), []);
    assert_eq!(rules(&text(&format!("{append}names = sorted(names)\n"))), []);
    let extend =
        "names = []\nfor folder in ['a', 'b']:\n    names += glob.glob(folder + '/*.pt')\n";
    assert_eq!(rules(&text(extend)), [Rule::FileOrder]);
    assert_eq!(rules(&text(&format!("{extend}names.sort()\n"))), []);
    let walk = "names = []\nfor root, folders, files in os.walk('data'):\n    for name in files:\n        names.append(os.path.join(root, name))\n";
    assert_eq!(rules(&text(walk)), [Rule::FileOrder]);
    assert_eq!(rules(&text(&format!("{walk}names = sorted(names)\n"))), []);
}

#[test]
fn numbers_by_the_order_of_a_listing_depend_on_it() {
    let text = |names: &str| {
        format!(
            "{START}number = {{}}\nfor name in {names}:\n    number[name] = len(number)\nmodel = nn.Embedding(9, 1)\n\
             optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor step in range(9):\n    optimizer.zero_grad()\n    \
             model(torch.tensor(number['a'])).sum().backward()\n    optimizer.step()\n"
        )
    };
    assert_eq!(rules(&text("os.listdir('data')")), [Rule::FileOrder]);
    assert_eq!(rules(&text("sorted(os.listdir('data'))")), []);
}

#[test]
fn a_training_that_is_not_understood_is_a_finding() {
    let text = "import torch\nfrom mylib import engine\nfor batch in engine.data:\n    loss = engine.loss(batch)\n    loss.backward()\n    engine.update()\n";
    assert_eq!(rules(text), [Rule::UnknownLoop]);
    let step = "import torch\ndef helper(loss, optimizer, model):\n    loss.backward()\n    optimizer.step()\n";
    assert_eq!(rules(step), []);
}

/// A training whose optimizer comes from `made`, with a checkpoint that holds `saved`.
fn optimized(made: &str, saved: &str) -> String {
    format!(
        "{START}import mylib, hydra\nfrom omegaconf import OmegaConf\ncfg = OmegaConf.load('c.yaml')\nmodel = nn.Linear(4, 1)\n{made}\nstart = 0\n\
         for epoch in range(9):\n    optimizer.zero_grad()\n    model(torch.zeros(8, 4)).sum().backward()\n    optimizer.step()\n    \
         torch.save({{'epoch': epoch, 'model': model.state_dict(){saved}}}, 'last.pt')\n    \
         torch.save(optimizer.state_dict(), 'optimizer.pt')\n"
    )
}

#[test]
fn optimizers_are_recognized_by_their_use() {
    for made in [
        "optimizer = getattr(torch.optim, cfg.name)(model.parameters(), lr=0.1)",
        "optimizer = torch.optim.__dict__[cfg.name](model.parameters())",
        "optimizer = mylib.Lion(model.parameters(), lr=0.1)",
        "optimizer = mylib.build(cfg, model)",
        "optimizer = hydra.utils.instantiate(cfg.optimizer, params=model.parameters())",
        "optimizer = cfg.optimizer(model.parameters())",
    ] {
        let text = optimized(made, "");
        let found = rules(&text);
        assert!(!found.contains(&Rule::UnknownLoop), "{found:?} in\n{text}");
        let members = checked(&text).checkpoints.remove(0).members;
        let names: Vec<&str> = members.iter().map(|it| it.name.as_str()).collect();
        assert!(names.contains(&"optimizer"), "{names:?} in\n{text}");
    }
}

#[test]
fn an_unknown_wrapper_returns_its_argument() {
    let text = |wrap: &str| {
        format!(
            "{START}import mylib\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\n{wrap}\nstart = 0\n{LOOP}{SAVE}"
        )
    };
    assert_eq!(rules(&text("model = mylib.parallel(model)")), []);
    assert_eq!(rules(&text("model, optimizer = mylib.initialize(model, optimizer)")), []);
}

#[test]
fn a_sampler_that_is_random_in_one_branch_is_random() {
    let text = format!(
        "{START}from torch.utils.data import DataLoader, RandomSampler, DistributedSampler\ndata = torch.zeros(9, 4)\n\
         if len(sys.argv) > 1:\n    sampler = DistributedSampler(data)\nelse:\n    sampler = RandomSampler(data)\n\
         loader = DataLoader(data, sampler=sampler)\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\n\
         for epoch in range(9):\n    for x in loader:\n        optimizer.zero_grad()\n        model(x).sum().backward()\n        optimizer.step()\n{SAVE}"
    );
    assert_eq!(rules(&text), [Rule::MissingGenerator]);
}

#[test]
fn functions_that_a_launcher_calls_are_entered() {
    let text = |launch: &str| {
        format!(
            "{START}from absl import app\ndef main(rank):\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.Adam(model.parameters())\n    \
             for epoch in range(9):\n        optimizer.zero_grad()\n        model(torch.zeros(4)).sum().backward()\n        optimizer.step()\n        \
             torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict()}}, 'c.pt')\n{launch}\n"
        )
    };
    for launch in ["app.run(main)", "torch.multiprocessing.spawn(main, args=(), nprocs=2)"] {
        assert_eq!(rules(&text(launch)), [Rule::MissingPosition], "{launch}");
    }
}

#[test]
fn containers_made_in_an_iteration_need_not_be_saved() {
    let text = format!(
        "{START}model = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\nstart = 0\n\
         def collect(batch):\n    found = []\n    for x in batch:\n        found.append(x)\n    return torch.stack(found)\n\
         for epoch in range(9):\n    for batch in torch.zeros(9, 2, 4):\n        optimizer.zero_grad()\n        \
         model(collect(batch)).sum().backward()\n        optimizer.step()\n{SAVE}"
    );
    assert_eq!(rules(&text), []);
}

#[test]
fn a_set_that_is_only_compared_has_no_order() {
    let text = format!(
        "{START}model = nn.Linear(4, 1)\nif {{'a', 'b'}}.issubset(sys.argv):\n    model = nn.Linear(4, 2)\n\
         optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nstart = 0\n{LOOP}"
    );
    assert_eq!(rules(&text), []);
}

#[test]
fn the_trainer_of_transformers_is_known() {
    let text = |seed: &str| {
        format!(
            "from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed\n{seed}\
             model = AutoModelForSequenceClassification.from_pretrained('bert')\narguments = TrainingArguments('out')\n\
             trainer = Trainer(model=model, args=arguments, train_dataset=[])\ntrainer.train()\n"
        )
    };
    // The classification head is drawn before the trainer seeds.
    assert_eq!(rules(&text("")), [Rule::UnseededGenerator]);
    assert_eq!(rules(&text("set_seed(1)\n")), []);
}

#[test]
fn an_accelerator_saves_what_it_prepared() {
    let text = |save: &str| {
        format!(
            "{START}from accelerate import Accelerator\naccelerator = Accelerator()\n\
             model = nn.Sequential(nn.Linear(4, 1), nn.Dropout(0.1))\noptimizer = torch.optim.Adam(model.parameters())\n\
             scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n\
             model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\nfor epoch in range(9):\n    \
             loss = model(torch.zeros(8, 4)).sum()\n    accelerator.backward(loss)\n    optimizer.step()\n    scheduler.step()\n    \
             optimizer.zero_grad()\n{save}"
        )
    };
    assert_eq!(rules(&text("    accelerator.save_state('out')\n")), []);
    let part = "    torch.save({'epoch': epoch, 'model': accelerator.unwrap_model(model).state_dict(), 'optimizer': optimizer.state_dict()}, 'c.pt')\n";
    assert_eq!(rules(&text(part)), [Rule::MissingState, Rule::MissingGenerator]);
}

#[test]
fn environments_have_a_seed_and_a_state() {
    let text = |reset: &str, save: &str| {
        format!(
            "{START}import gymnasium as gym\nenv = gym.make('CartPole-v1')\nmodel = nn.Linear(4, 2)\n\
             optimizer = torch.optim.Adam(model.parameters())\nstate, _ = env.reset({reset})\nfor step in range(99):\n    \
             action = model(state).argmax()\n    state, reward, done, _, _ = env.step(action)\n    \
             loss = -model(state).sum() * reward\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n{save}"
        )
    };
    assert_eq!(rules(&text("", "")), [Rule::UnseededGenerator]);
    assert_eq!(rules(&text("seed=1", "")), []);
    let save = "    torch.save({'step': step, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'c.pt')\n";
    let findings = checked(&text("seed=1", save)).findings;
    let missing = findings.iter().find(|it| it.rule == Rule::MissingState).unwrap();
    assert!(missing.message.contains("`env`"), "{}", missing.message);
}

#[test]
fn a_search_is_not_resumed_across_its_iterations() {
    let text = format!(
        "{START}best = 0.0\nfor rate in [0.1, 0.2]:\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.Adam(model.parameters(), lr=rate)\n    \
         for epoch in range(9):\n        optimizer.zero_grad()\n        loss = model(torch.zeros(8, 4)).sum()\n        loss.backward()\n        optimizer.step()\n        \
         torch.save({{'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}}, 'last.pt')\n    \
         best = max(best, loss.item())\nprint(best)\n"
    );
    assert_eq!(rules(&text), []);
}

#[test]
fn passes_over_other_pipelines_do_not_change_the_order_of_a_pipeline() {
    let text = "import tensorflow as tf\nimport keras\nkeras.utils.set_random_seed(0)\nmodel = keras.Sequential([keras.layers.Dense(1)])\n\
        model.compile('adam', 'mse')\ntrain = tf.data.Dataset.from_tensor_slices(tf.ones((9, 4))).shuffle(9).batch(3)\n\
        test = tf.data.Dataset.from_tensor_slices(tf.ones((9, 4))).shuffle(9).batch(3)\noptimizer = keras.optimizers.Adam()\n\
        for epoch in range(3):\n    for x in train:\n        with tf.GradientTape() as tape:\n            loss = tf.reduce_mean(model(x, training=True))\n        \
        gradients = tape.gradient(loss, model.trainable_variables)\n        optimizer.apply_gradients(zip(gradients, model.trainable_variables))\n    \
        for x in test:\n        print(model(x))\n";
    assert_eq!(rules(text), []);
}

const TRAIN: &str = "for step in range(9):\n    optimizer.zero_grad()\n    model(torch.ones(8, 4)).sum().backward()\n    optimizer.step()\n";
const ADAM: &str = "optimizer = torch.optim.Adam(model.parameters())\n";

#[test]
fn a_loss_of_collected_outputs_trains_the_model() {
    let text = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nfrom nets import load_net\n\
         model = load_net()\nloader = DataLoader(range(9), shuffle=True)\noptimizer = torch.optim.Adam(model.parameters())\n\
         loss_of = nn.CrossEntropyLoss()\nfor x in loader:\n    outputs = []\n    for _ in range(3):\n        outputs.append(model(x))\n    \
         loss = loss_of(torch.stack(outputs).mean(), x)\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n";
    assert_eq!(rules(text), [Rule::UnseededShuffle]);
}

#[test]
fn models_and_layers_of_unknown_libraries_draw_their_parameters() {
    let unknown = |seed: &str, make: &str| {
        let text = format!("import torch\nimport nets\n{seed}model = nets.{make}()\n{ADAM}{TRAIN}");
        rules(&text)
    };
    assert_eq!(unknown("", "ResNet"), [Rule::UnseededGenerator]);
    assert_eq!(unknown("torch.manual_seed(0)\n", "ResNet"), []);
    assert_eq!(unknown("nets.utils.seed_everything(0)\n", "ResNet"), []);
    assert_eq!(unknown("", "load_pretrained"), []);
    assert_eq!(unknown("nets.utils.setup_seed(0)\n", "ResNet"), []);
    let layer = |forward: &str| {
        let text = format!(
            "import torch\nimport nets\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
             self.layer = nets.Layer(4)\n    def forward(self, x):\n        return {forward}\nmodel = Net()\n{ADAM}{TRAIN}"
        );
        rules(&text)
    };
    assert_eq!(layer("self.layer(x)"), [Rule::UnseededGenerator]);
    assert_eq!(layer("x * self.layer.scale"), []);
}

#[test]
fn functions_that_an_unknown_library_receives_are_followed() {
    let step = "import torch\nfrom torch import nn\nimport engines\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters())\n\
         def step(engine, batch):\n    optimizer.zero_grad()\n    model(batch).sum().backward()\n    optimizer.step()\n";
    for run in ["engines.Engine(step).run(9)\n", "engines.Trainer(step=step).train()\n"] {
        assert_eq!(rules(&format!("{step}{run}")), [Rule::UnseededGenerator], "{run}");
    }
    let text = format!(
        "import torch\nfrom torch import nn\nfrom functools import partial\nimport engines\ndef train(lr, settings):\n    \
         model = nn.Linear(4, 1)\n    {ADAM}    {}def main(settings):\n    train(0.1, settings)\nengines.launch(partial(main))\n",
        TRAIN.replace("\n", "\n    ").trim_end_matches(' ')
    );
    assert_eq!(rules(&text), [Rule::UnseededGenerator]);
}

#[test]
fn an_optimizer_that_an_unknown_library_steps_is_not_passed_in_silence() {
    let made = "import torch\nfrom torch import nn\nimport engines\ntorch.manual_seed(0)\ndef run(data):\n    model = nn.Linear(4, 1)\n    \
         optimizer = torch.optim.Adam(model.parameters())\n";
    let text = format!("{made}    engines.create_engine(model, optimizer).run(data)\n");
    assert_eq!(rules(&text), [Rule::UnknownLoop]);
    assert_eq!(rules(&format!("{made}    return model, optimizer\n")), []);
}

#[test]
fn a_loop_that_starts_from_a_saved_schedule_has_its_position() {
    let text = |start: &str| {
        format!(
            "{START}model = nn.Linear(4, 1)\n{ADAM}scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n\
             c = torch.load('last.pt')\nmodel.load_state_dict(c['model'])\noptimizer.load_state_dict(c['optimizer'])\n\
             scheduler.load_state_dict(c['scheduler'])\nfor epoch in range({start}, 9):\n    optimizer.zero_grad()\n    \
             model(torch.zeros(8, 4)).sum().backward()\n    optimizer.step()\n    scheduler.step()\n    \
             torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'scheduler': scheduler.state_dict()}}, 'last.pt')\n"
        )
    };
    assert_eq!(rules(&text("scheduler.last_epoch")), []);
    assert_eq!(rules(&text("0")), [Rule::MissingPosition]);
}

#[test]
fn a_flag_selects_the_side_of_a_conditional_expression() {
    let text = |flag: &str| {
        format!(
            "{START}from torch.utils.data import DataLoader\ndef loader(train):\n    return DataLoader(range(9), shuffle=True if train else False)\n\
             model = nn.Linear(4, 1)\n{ADAM}training, testing = loader(True), loader({flag})\nfor epoch in range(9):\n    \
             for x in training:\n        optimizer.zero_grad()\n        model(x).sum().backward()\n        optimizer.step()\n    \
             model.eval()\n    with torch.no_grad():\n        for x in testing:\n            model(x)\n    model.train()\n"
        )
    };
    assert_eq!(rules(&text("False")), []);
    assert_eq!(rules(&text("True")), [Rule::UnseededShuffle, Rule::EvaluationDraws]);
}

#[test]
fn the_shape_of_drawn_data_is_the_same_in_every_run() {
    let text = |count: &str| {
        format!(
            "{START}model = nn.Linear(4, 1)\n{ADAM}{TRAIN}    if step % 3 == 0:\n        x = torch.zeros(random.choice([2, 4]))\n        \
             for _ in range({count}):\n            torch.rand(4)\n    optimizer.zero_grad()\n    model(torch.rand(4)).sum().backward()\n    \
             optimizer.step()\n"
        )
    };
    assert_eq!(rules(&text("x.shape[0]")), []);
    assert_eq!(rules(&text("x.size(0)")), []);
    assert_eq!(rules(&text("int(x.sum())")), [Rule::UnseededGenerator]);
}

#[test]
fn lightning_trains_modules_of_unknown_libraries() {
    let text = |seed: &str| {
        rules(&format!(
            "import pytorch_lightning as pl\nimport nets\n{seed}pl.Trainer().fit(nets.Classifier(), nets.Data())\n"
        ))
    };
    assert_eq!(text("pl.seed_everything(0)\n"), []);
    assert_eq!(text(""), [Rule::UnseededGenerator]);
}

#[test]
fn a_loop_may_create_the_optimizer_of_a_model_of_an_unknown_library() {
    let text = "import torch\nimport nets\nfrom torch.utils.data import DataLoader\ntorch.manual_seed(0)\nmodel = nets.Net()\n\
         loader = DataLoader(range(9), shuffle=True)\nc = torch.load('last.pt')\nmodel.load_state_dict(c['model'])\nstart = c['epoch']\n\
         for epoch in range(start, 9):\n    optimizer = torch.optim.Adam(model.parameters())\n    for x in loader:\n        \
         optimizer.zero_grad()\n        model(x).sum().backward()\n        optimizer.step()\n    \
         torch.save({'epoch': epoch + 1, 'model': model.state_dict()}, 'last.pt')\n";
    assert_eq!(rules(text), [Rule::MissingGenerator]);
}

#[test]
fn names_of_import_all_are_those_of_the_library() {
    let text = |make: &str| {
        format!(
            "import torch\nfrom nets import *\ntorch.manual_seed(0)\nmodel = {make}\nif torch.cuda.is_available():\n    \
             model = torch.nn.DataParallel(model)\nc = torch.load('last.pt')\nmodel.load_state_dict(c['model'])\n{ADAM}\
             for epoch in range(c['epoch'] + 1, len(range(9))):\n    optimizer.zero_grad()\n    model(torch.ones(8, 4)).sum().backward()\n    \
             optimizer.step()\n    torch.save({{'epoch': epoch, 'model': model.state_dict()}}, 'last.pt')\n"
        )
    };
    assert_eq!(rules(&text("ResNet()")), [Rule::MissingState]);
    let keras = "from keras.models import *\nfrom keras.layers import *\nmodel = Sequential([Dense(1)])\nmodel.compile('adam', 'mse')\nmodel.fit([1], [1])\n";
    assert!(!rules(keras).is_empty());
}

#[test]
fn lightning_accepts_wrapped_optimizers_and_unknown_base_classes() {
    let module = |base: &str, optimizer: &str| {
        rules(&format!(
            "import pytorch_lightning as pl\nimport torch\nimport nets\nclass Net({base}):\n    def __init__(self):\n        \
             super().__init__()\n        self.layer = torch.nn.Linear(4, 1)\n    def training_step(self, batch, index):\n        \
             return self.layer(batch).sum()\n    {optimizer}model = Net()\npl.Trainer().fit(model, range(9))\n"
        ))
    };
    let wrapped = "def configure_optimizers(self):\n        return nets.Lookahead(torch.optim.Adam(self.parameters()))\n";
    assert_eq!(module("pl.LightningModule", wrapped), [Rule::UnseededGenerator]);
    assert_eq!(module("nets.Base", ""), [Rule::UnseededGenerator]);
}

#[test]
fn a_trainer_may_receive_the_same_function_twice() {
    let text = "import torch\nfrom torch import nn\nimport engines\ntorch.manual_seed(0)\ndef loop(settings):\n    model = nn.Linear(4, 1)\n    \
         optimizer = torch.optim.Adam(model.parameters())\n    for step in range(9):\n        optimizer.zero_grad()\n        \
         model(torch.ones(8, 4)).sum().backward()\n        optimizer.step()\ndef run(workers):\n    \
         engines.LoopTrainer(loop, workers).fit()\nrun(1)\nrun(2)\n";
    assert_eq!(rules(text), []);
}

#[test]
fn the_rank_of_an_unknown_library_is_one() {
    let text = |seed: &str| {
        rules(&format!(
            "import torch\nfrom torch import nn\nimport engines\ntorch.manual_seed({seed})\nmodel = nn.Linear(4, 1)\n{ADAM}{TRAIN}"
        ))
    };
    assert_eq!(text("7 + engines.get_rank()"), [Rule::RankKeyed]);
    assert_eq!(text("7 + engines.get_count()"), []);
}

#[test]
fn layers_in_a_container_of_an_unknown_library_are_parts_of_the_model() {
    let text = format!(
        "import torch\nfrom torch import nn\nimport nets\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
         self.layers = nets.Sequence(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))\n    def forward(self, x):\n        \
         return self.layers(x)\nmodel = Net()\n{ADAM}{TRAIN}"
    );
    assert_eq!(rules(&text), [Rule::UnseededGenerator]);
}

#[test]
fn a_training_function_of_an_unknown_library_is_not_passed_in_silence() {
    let text = |call: &str| rules(&format!("import torch\nimport engines\n{call}\n"));
    assert_eq!(text("engines.run_training_loop(engines.model, 9)"), [Rule::UnknownLoop]);
    assert_eq!(text("from engines import train\ntrain(engines.model)"), [Rule::UnknownLoop]);
    assert_eq!(text("engines.model.train()\nengines.model.train(False)"), []);
}
