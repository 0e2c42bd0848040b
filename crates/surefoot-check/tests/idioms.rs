//! Common idioms of training scripts, with and without findings.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;

use surefoot_check::{CheckConfig, CheckReport, Finding, Rule, check};

/// Checks `train.py` in a folder with other files.
fn checked_beside(text: &str, others: &[(&str, &str)]) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    fs::write(&path, text).unwrap();
    for (name, text) in others {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let checked = check(&[path], &CheckConfig::default());
    assert!(checked.unreadable.is_empty(), "{:?}\n{text}", checked.unreadable);
    checked
}

fn checked(text: &str) -> CheckReport {
    checked_beside(text, &[])
}

fn rules(text: &str) -> Vec<Rule> {
    checked(text).findings.iter().map(|it| it.rule).collect()
}

#[track_caller]
fn expect(rule: Rule, faulty: &str, fixed: &str) {
    assert!(rules(faulty).contains(&rule), "not found in\n{faulty}");
    assert_eq!(rules(fixed), [], "in\n{fixed}");
}

#[track_caller]
fn only(text: &str) -> Finding {
    let findings = checked(text).findings;
    assert_eq!(findings.len(), 1, "{findings:#?}\n{text}");
    findings.into_iter().next().unwrap()
}

/// An endless loop that saves in its middle and is left in two places, after `end`.
fn left_early(end: &str) -> String {
    format!(
        "
import sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.zeros(8, 4)
i = 0
if len(sys.argv) > 1:
    c = torch.load('c.pt')
    model.load_state_dict(c['model'])
    optimizer.load_state_dict(c['optimizer'])
    i = c['i']
while True:
    if i % 100 == 0:
        torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'i': i}}, 'c.pt')
    if i == 0 and len(sys.argv) > 2:
        break
    for part in range(4):
        model(x).sum().backward()
    optimizer.step()
    {end}
    i += 1
    if i > 1000:
        break
"
    )
}

#[test]
fn cleared_gradients_need_not_be_saved_even_if_the_loop_is_left_early() {
    expect(
        Rule::MissingState,
        &left_early("model(x).sum().backward()"),
        &left_early("optimizer.zero_grad(set_to_none=True)"),
    );
}

#[test]
fn slices_of_restored_parameters_are_not_overwritten() {
    let cropped = |weights: &str| {
        format!(
            "
import sys, torch
from torch import nn
torch.manual_seed(0)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict(dict(words=nn.Embedding(8, 4)))
    def forward(self, at):
        return self.parts.words(at).mean()
    def crop(self, size):
        self.parts.words.weight = nn.Parameter({weights})
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
c = torch.load('c.pt')
model.load_state_dict(c['model'])
if len(sys.argv) > 1:
    model.crop(4)
for epoch in range(c['epoch'] + 1, 9):
    optimizer.zero_grad()
    model(torch.arange(3)).backward()
    optimizer.step()
    torch.save({{'epoch': epoch, 'model': model.state_dict()}}, 'c.pt')
"
        )
    };
    expect(
        Rule::RestoredEarly,
        &cropped("torch.zeros(size, 4)"),
        &cropped("self.parts.words.weight[:size]"),
    );
}

/// An image classifier with a loader created from these arguments.
fn images(data: &str, loader: &str) -> String {
    format!(
        "
import sys, torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms
torch.manual_seed(0)
{data}
sampler = DistributedSampler(data) if len(sys.argv) > 1 else None
loader = DataLoader(data, 8, num_workers=2, {loader})
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
c = torch.load('c.pt')
model.load_state_dict(c['model'])
for epoch in range(c['epoch'] + 1, 9):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    torch.save({{'epoch': epoch, 'model': model.state_dict()}}, 'c.pt')
"
    )
}

#[test]
fn a_loader_shuffles_unless_it_has_a_sampler() {
    let data = "data = datasets.MNIST('data', transform=transforms.ToTensor())";
    expect(
        Rule::MissingGenerator,
        &images(data, "shuffle=(sampler is None), sampler=sampler"),
        &images(data, "shuffle=False, sampler=sampler"),
    );
}

#[test]
fn a_transform_that_draws_in_one_branch_draws() {
    let data = |transforms: &str| {
        format!(
            "if len(sys.argv) > 2:\n    data = datasets.FakeData(9, transform=transforms.ToTensor())\n\
             else:\n    data = datasets.ImageFolder('data', transforms.Compose([{transforms}transforms.ToTensor()]))"
        )
    };
    expect(
        Rule::MissingGenerator,
        &images(&data("transforms.RandomHorizontalFlip(), "), "shuffle=False"),
        &images(&data(""), "shuffle=False"),
    );
}

#[test]
fn a_transform_belongs_to_the_requested_split() {
    let data = |part: &str| {
        format!(
            "def made(part):\n    if part == 'train':\n        steps = [transforms.RandomHorizontalFlip(), transforms.ToTensor()]\n    \
             else:\n        steps = [transforms.ToTensor()]\n    return datasets.MNIST('data', transform=transforms.Compose(steps))\n\
             data = made('{part}')"
        )
    };
    expect(
        Rule::MissingGenerator,
        &images(&data("train"), "shuffle=False"),
        &images(&data("test"), "shuffle=False"),
    );
}

#[test]
fn a_model_selected_at_run_time_is_unknown() {
    let text = |model: &str| {
        format!(
            "
import sys, torch, torchvision
import zoo
torch.manual_seed(0)
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    optimizer.zero_grad()
    model(torch.zeros(3, 4)).sum().backward()
    optimizer.step()
"
        )
    };
    let reported = |model: &str| {
        let zoo = "import torch\ndef small():\n    return torch.nn.Linear(4, 1)\n";
        let findings = checked_beside(&text(model), &[("zoo/__init__.py", zoo)]).findings;
        let reported = findings.into_iter().map(|it| (it.rule, it.message));
        reported.collect::<Vec<_>>()
    };
    for model in ["zoo.__dict__[sys.argv[1]]()", "getattr(zoo, sys.argv[1])()"] {
        let reported = reported(model);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert_eq!(reported[0].0, Rule::UnknownCall);
        assert!(reported[0].1.starts_with("`zoo.__dict__[..]`"), "{reported:?}");
    }
    let torchvision = reported("torchvision.models.__dict__[sys.argv[1]]()");
    assert_eq!(torchvision[0].0, Rule::UnknownCall);
    assert_eq!(reported("zoo.small()"), []);
}

#[test]
fn a_random_seed_is_unseeded() {
    let seeded = |seed: &str| {
        format!(
            "
import argparse, random, torch
parser = argparse.ArgumentParser()
parser.add_argument('--seed', type=int)
options = parser.parse_args()
if options.seed is None:
    options.seed = {seed}
random.seed(options.seed)
torch.manual_seed(options.seed)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    optimizer.zero_grad()
    model(torch.zeros(3, 4)).sum().backward()
    optimizer.step()
"
        )
    };
    expect(Rule::UnseededGenerator, &seeded("random.randint(1, 10000)"), &seeded("17"));
}

#[test]
fn a_time_budget_is_one_finding_at_its_condition() {
    let bounded = |now: &str, most: &str| {
        format!(
            "
import time, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = {now}
for step in range(1000):
    optimizer.zero_grad()
    model(torch.zeros(3, 4)).sum().backward()
    optimizer.step()
    if {now} - began > {most}:
        break
"
        )
    };
    let found = only(&bounded("time.time()", "60"));
    assert_eq!(found.rule, Rule::Clock);
    assert!(found.help.starts_with("Count steps"), "{}", found.help);
    assert_eq!(rules(&bounded("step if 0 else 0", "60")), []);
}

#[test]
fn arguments_can_make_operations_nondeterministic() {
    let with = |layer: &str, loss: &str| {
        format!(
            "
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential({layer}).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.zeros(8, 4).cuda()
for epoch in range(9):
    optimizer.zero_grad()
    y = model(x)
    loss = {loss}
    loss.backward()
    optimizer.step()
"
        )
    };
    let of = |loss: &str| with("nn.Linear(4, 8)", loss);
    let bag = |mode: &str| with(&format!("nn.EmbeddingBag(9, 4, mode='{mode}')"), "y.sum()");
    for (faulty, sound) in [
        (of("y.cumsum(0).sum()"), of("y.sum() * x.cumsum(0).sum()")),
        (of("torch.cumsum(y, 0).sum()"), of("torch.cumprod(y, 0).sum()")),
        (
            of("torch.bincount(x.long(), weights=y).sum()"),
            of("y.sum() * torch.bincount(x.long()).sum()"),
        ),
        (of("y.median(dim=1).values.sum()"), of("y.median()")),
        (bag("max"), bag("mean")),
    ] {
        expect(Rule::NondeterministicOperation, &faulty, &sound);
    }
    // Only older versions list it.
    assert_eq!(rules(&of("y.kthvalue(2).values.sum()")), []);
}

#[test]
fn a_reason_names_only_loops_around_the_save() {
    let found = only(
        "
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x = torch.zeros(3, 4)
means = [1.0, 1.0]
for epoch in range(9):
    optimizer.zero_grad()
    (model(x).sum() * sum(means)).backward()
    optimizer.step()
    means = [float(part) for part in x]
    means = [mean + 1 for mean in means]
    torch.save({'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'c.pt')
",
    );
    assert_eq!(found.notes[0].text, "`means` changes during the training and is used again.");
}

#[test]
fn an_unread_file_is_reported_where_it_is_written() {
    let text = "
import copy, torch
torch.manual_seed(0)
class Kept:
    def __init__(self, model):
        self.shadow = copy.deepcopy(model)
    def update(self, model, loss):
        if loss < 0.5:
            self.shadow = copy.deepcopy(model)
            self.shadow.load_state_dict(model.state_dict())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
kept = Kept(model)
for epoch in range(9):
    optimizer.zero_grad()
    loss = model(torch.zeros(3, 4)).sum()
    loss.backward()
    optimizer.step()
    kept.update(model, loss.item())
    torch.save({'epoch': epoch, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'c.pt')
";
    let found = only(text);
    assert_eq!(found.rule, Rule::MissingState);
    let shown = &text[found.notes[0].place.range.clone()];
    assert!(shown.starts_with("self.shadow.load_state_dict"), "{shown}");
}

#[test]
fn generated_code_copies_containers() {
    let code = |container: &str, change: &str| {
        let checked = checked(&format!(
            "
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = {container}
for epoch in range(9):
    optimizer.zero_grad()
    loss = model(torch.zeros(3, 4)).sum() * len(seen)
    loss.backward()
    optimizer.step()
    {change}
"
        ));
        checked.checkpoints[0].code()
    };
    let dictionary = code("{}", "seen[loss.item()] = loss.item()");
    assert!(dictionary.contains("\"seen\": dict(seen)"), "{dictionary}");
    assert!(dictionary.contains("seen.clear()\nseen.update(checkpoint[\"seen\"])"), "{dictionary}");
    let list = code("[]", "seen.append(loss.item())");
    assert!(list.contains("\"seen\": list(seen)"), "{list}");
    assert!(list.contains("seen.extend(checkpoint[\"seen\"])"), "{list}");
    let set = code("set()", "seen.add(loss.item())");
    assert!(set.contains("\"seen\": set(seen)"), "{set}");
}

#[test]
fn files_without_a_framework_are_counted() {
    let checked = checked("from sklearn.svm import SVC\nSVC().fit([[0]], [0])\n");
    assert_eq!((checked.files, checked.skipped), (1, 1));
    assert_eq!(checked.findings, []);
}

#[test]
fn a_completed_epoch_must_not_be_repeated() {
    let resumed = |start: &str, saved: &str| {
        format!(
            "
import os, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
start = 0
if os.path.exists('c.pt'):
    c = torch.load('c.pt')
    model.load_state_dict(c['model'])
    optimizer.load_state_dict(c['optimizer'])
    start = {start}
for epoch in range(start, 9):
    optimizer.zero_grad()
    model(torch.zeros(3, 4)).sum().backward()
    optimizer.step()
    torch.save({{'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': {saved}}}, 'c.pt')
"
        )
    };
    let found = only(&resumed("c['epoch']", "epoch"));
    assert_eq!(found.rule, Rule::MissingPosition);
    assert!(found.message.contains("trained twice"), "{}", found.message);
    assert_eq!(rules(&resumed("c['epoch'] + 1", "epoch")), []);
    assert_eq!(rules(&resumed("c['epoch']", "epoch + 1")), []);
    assert_eq!(rules(&resumed("c['epoch']\n    start += 1", "epoch")), []);
}

#[test]
fn an_incomplete_epoch_is_repeated() {
    let saved_first = "
import os, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
start = 0
if os.path.exists('c.pt'):
    c = torch.load('c.pt')
    model.load_state_dict(c['model'])
    optimizer.load_state_dict(c['optimizer'])
    start = c['epoch']
for epoch in range(start, 9):
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}, 'c.pt')
    optimizer.zero_grad()
    model(torch.zeros(3, 4)).sum().backward()
    optimizer.step()
";
    assert_eq!(rules(saved_first), []);
}
