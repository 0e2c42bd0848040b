//! Training projects generated from a seed: training scripts, models, data sets and other modules.

use std::path::PathBuf;
use surefoot_random::{Key, Purpose};

const PROJECTS: u64 = 100;
const FILES: u64 = 10;
const LINES: usize = 500;

/// Generated file.
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Generates the files of all projects. In each, two scripts train and import from the others.
pub(crate) fn scripts(seed: u64) -> impl Iterator<Item = Script> {
    (0..PROJECTS * FILES).map(move |file| {
        let (project, number) = (file / FILES, file % FILES);
        let mut draw = Draw::new(seed, file);
        let (name, text) = match number {
            0 | 1 => (format!("train_{number}"), training(&mut draw)),
            2..5 => (format!("model_{number}"), models(&mut draw)),
            5 | 6 => (format!("data_{number}"), data(&mut draw)),
            _ => (format!("tools_{number}"), tools(&mut draw)),
        };
        Script {
            path: format!("project_{project:03}/{name}.py").into(),
            text: filled(text, &mut draw),
        }
    })
}

/// Sequential draws of one file.
struct Draw {
    key: Key,
    next: u64,
}

impl Draw {
    fn new(seed: u64, file: u64) -> Self {
        Self { key: Key::new(seed, Purpose::Generate).sample(file), next: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next += 1;
        self.key.below(self.next, n)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Fills a template: `#` becomes a number, and `$` the number of the fragment, so that names are
    /// unique within a file.
    fn fill(&mut self, template: &str, fragment: usize) -> String {
        let mut text = String::new();
        for c in template.chars() {
            match c {
                '#' => text.push_str(&(1 + self.below(64)).to_string()),
                '$' => text.push_str(&fragment.to_string()),
                c => text.push(c),
            }
        }
        text
    }
}

/// Adds fragments until a file has its number of lines.
fn filled(mut text: String, draw: &mut Draw) -> String {
    let mut fragment = 100;
    loop {
        let template = draw.one(&TOOLS);
        let missing = LINES - text.lines().count();
        if template.lines().count() > missing {
            break;
        }
        text.push_str(&draw.fill(template, fragment));
        fragment += 1;
    }
    for constant in text.lines().count()..LINES {
        text.push_str(&format!("LIMIT_{constant} = {}\n", draw.below(1000)));
    }
    text
}

fn several(head: &str, templates: &[&str], count: usize, draw: &mut Draw) -> String {
    let mut text = head.to_owned();
    for fragment in 0..count {
        let template = draw.one(templates);
        text.push_str(&draw.fill(template, fragment));
    }
    text
}

fn models(draw: &mut Draw) -> String {
    several(MODEL_HEAD, &MODELS, 7, draw)
}

fn data(draw: &mut Draw) -> String {
    several(DATA_HEAD, &DATA, 6, draw)
}

fn tools(draw: &mut Draw) -> String {
    several(TOOLS_HEAD, &TOOLS, 5, draw)
}

fn training(draw: &mut Draw) -> String {
    let head = [TRAINING_HEAD, draw.one(&SEEDS), &draw.fill(MODELS[0], 0), &draw.fill(DATA[0], 0)]
        .concat();
    let trainings = several(&head, &TRAININGS, 3, draw);
    trainings + "\nif __name__ == \"__main__\":\n    train_0(parse())\n    train_1(parse())\n"
}

const MODEL_HEAD: &str =
    "import math\n\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n";

const DATA_HEAD: &str = "import glob\nimport os\nimport random\n\nimport numpy as np\nimport torch\n\
                         from torch.utils.data import DataLoader, Dataset\n";

const TOOLS_HEAD: &str =
    "import json\nimport os\nimport time\n\nimport numpy as np\nimport torch\n";

const TRAINING_HEAD: &str = "import argparse\nimport glob\nimport math\nimport os\nimport random\nimport time\n\n\
    import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\
    from torch.utils.data import DataLoader, Dataset\n\n\
    from model_2 import Network0 as Imported\nfrom tools_7 import *\nimport data_5\n\n\n\
    def parse():\n    parser = argparse.ArgumentParser()\n    parser.add_argument(\"--lr\", type=float, default=1e-3)\n    \
    parser.add_argument(\"--epochs\", type=int, default=10)\n    parser.add_argument(\"--resume\", default=None)\n    \
    return parser.parse_args()\n\n";

const SEEDS: [&str; 3] = [
    "\ntorch.manual_seed(0)\nnp.random.seed(0)\nrandom.seed(0)\n",
    "\ntorch.manual_seed(int(time.time()))\n",
    "\ntorch.backends.cudnn.benchmark = True\n",
];

const MODELS: [&str; 3] = [
    r#"

class Network$(nn.Module):
    def __init__(self, inputs=#, width=#, classes=10):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.#)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])
        self.last = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        for block in self.blocks:
            x = x + self.drop(F.relu(block(x)))
        return self.last(x)
"#,
    r#"

class Convolutional$(nn.Module):
    def __init__(self, channels=#):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(2 * channels, #)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.0#)

    def forward(self, images):
        features = self.features(images).flatten(1)
        return self.classifier(features)
"#,
    r#"

class Attention$(nn.Module):
    def __init__(self, width=#, heads=4, dropout=0.#):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = dropout

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        scores = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        y = (scores @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.out(y)
"#,
];

const DATA: [&str; 3] = [
    r#"

class Rows$(Dataset):
    def __init__(self, folder, augment=True):
        self.files = glob.glob(os.path.join(folder, "*.npy"))
        self.augment = augment

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        row = np.load(self.files[index])
        if self.augment and random.random() < 0.5:
            row = row + np.random.normal(0, 0.#, size=row.shape)
        return torch.from_numpy(row).float(), index % 10
"#,
    r#"

def split_$(folder, share=0.8):
    names = sorted(os.listdir(folder))
    random.shuffle(names)
    border = int(share * len(names))
    train, validation = names[:border], names[border:]
    labels = {name: number for number, name in enumerate(set(n.split("_")[0] for n in names))}
    return train, validation, labels


def loader_$(dataset, batch_size=#, workers=4):
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
        drop_last=True,
    )
"#,
    r#"

def batches_$(tokens, batch_size=#, length=#):
    starts = np.arange(0, len(tokens) - length - 1, length)
    np.random.shuffle(starts)
    for begin in range(0, len(starts), batch_size):
        chosen = starts[begin : begin + batch_size]
        x = torch.stack([torch.tensor(tokens[i : i + length]) for i in chosen])
        y = torch.stack([torch.tensor(tokens[i + 1 : i + 1 + length]) for i in chosen])
        yield x, y
"#,
];

const TRAININGS: [&str; 2] = [
    r#"

def train_$(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Network0().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=0.0#)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=#)
    train = DataLoader(Rows0("train"), batch_size=#, shuffle=True, num_workers=4)
    validation = DataLoader(Rows0("validation", augment=False), batch_size=#)
    best, start = 0.0, 0
    if args.resume:
        checkpoint = torch.load(args.resume)
        model.load_state_dict(checkpoint["model"])
        start = checkpoint["epoch"] + 1
    for epoch in range(start, args.epochs):
        model.train()
        total = 0.0
        for step, (inputs, targets) in enumerate(train):
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            if step % # == 0:
                print(f"epoch {epoch} step {step} loss {total / (step + 1):.4f}")
        scheduler.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for inputs, targets in validation:
                predicted = model(inputs.to(device)).argmax(dim=1).cpu()
                correct += (predicted == targets).sum().item()
        accuracy = correct / len(validation.dataset)
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best_$.pt")
        torch.save({"epoch": epoch, "model": model.state_dict()}, "last_$.pt")
    return best
"#,
    r#"

class Trainer$:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        self.scaler = torch.cuda.amp.GradScaler()
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.step = 0

    def update(self, inputs, targets):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(self.model(inputs), targets) / #
        self.scaler.scale(loss).backward()
        if (self.step + 1) % 4 == 0:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
            for name, p in self.model.named_parameters():
                self.average[name].mul_(0.99).add_(p.detach(), alpha=0.01)
        self.step += 1
        return loss.item()

    def save(self, path):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
            },
            path,
        )

    def run(self, loader):
        for epoch in range(self.args.epochs):
            losses = [self.update(x.cuda(), y.cuda()) for x, y in loader]
            print(epoch, sum(losses) / max(1, len(losses)))
            self.save(f"trainer_$_{epoch}.pt")


def train_$(args):
    trainer = Trainer$(Imported().cuda(), args)
    trainer.run(data_5.DataLoader(Rows0("train"), batch_size=#, shuffle=True))
"#,
];

const TOOLS: [&str; 4] = [
    r#"

def accuracy_$(outputs, targets, top=(1, 5)):
    with torch.no_grad():
        largest = max(top)
        _, predicted = outputs.topk(largest, 1, True, True)
        correct = predicted.t().eq(targets.view(1, -1))
        return [correct[:k].reshape(-1).float().sum().item() * #.0 for k in top]
"#,
    r#"

class Meter$:
    """Keeps the mean of what it is given."""

    def __init__(self, name, window=#):
        self.name = name
        self.window = window
        self.values = []

    def update(self, value, n=1):
        self.values.extend([value] * n)
        if len(self.values) > self.window:
            self.values = self.values[-self.window :]

    @property
    def mean(self):
        return sum(self.values) / len(self.values) if self.values else 0.0

    def __str__(self):
        return f"{self.name} {self.mean:.4f} ({time.strftime('%H:%M:%S')})"
"#,
    r#"

def write_log_$(path, rows, every=#):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "a") as file:
        for number, row in enumerate(rows):
            if number % every:
                continue
            try:
                file.write(json.dumps({"time": time.time(), **row}) + "\n")
            except TypeError as error:
                print(f"cannot write {row!r}: {error}")
"#,
    r#"

def learning_rate_$(step, warmup=#, total=1#00, base=0.0#, *, floor=1e-5):
    if step < warmup:
        return base * (step + 1) / warmup
    if step > total:
        return floor
    share = (step - warmup) / (total - warmup)
    matrix = np.array([[step, share], [warmup, total]], dtype=np.float64)
    scale = 0.5 * (1.0 + np.cos(np.pi * share)) if matrix.trace() > 0 else 1.0
    return floor + scale * (base - floor)
"#,
];
