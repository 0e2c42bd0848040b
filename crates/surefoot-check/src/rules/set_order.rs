use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::library::Environment;

define_rule! {
    /// # The order of a set affects data or parameters
    ///
    /// ## What it does
    /// Finds sets whose iteration order affects the training: the number of a class or a word, the
    /// order of samples.
    ///
    /// ## Why is this bad?
    /// The order of a set of strings depends on their hashes, which Python salts in every process. The
    /// next run, or the resumed one, numbers the classes differently. A saved model that is loaded
    /// again then predicts the wrong classes, at the accuracy of a random guess, without any error.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// words = "the cat sat on the mat and the dog sat on the cat".split()
    /// vocabulary = {word: number for number, word in enumerate(set(words))}
    /// model = nn.Embedding(len(vocabulary), 4)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for word in words:
    ///     loss = model(torch.tensor(vocabulary[word])).pow(2).sum()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Sort the set before its order is used.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// words = "the cat sat on the mat and the dog sat on the cat".split()
    /// vocabulary = {word: number for number, word in enumerate(sorted(set(words)))}
    /// model = nn.Embedding(len(vocabulary), 4)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for word in words:
    ///     loss = model(torch.tensor(vocabulary[word])).pow(2).sum()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for read in context.reads(Environment::SetOrder) {
        let message = "The order of this set affects the training, and the order of strings in a set differs between runs.".to_owned();
        let help = "Sort it first: `sorted(...)`.".to_owned();
        let site = read.taken_at.unwrap_or(read.site);
        report.findings.push(context.finding(Rule::SetOrder, site, message, help));
    }
}
