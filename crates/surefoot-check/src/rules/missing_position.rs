use super::{Definition, Report, RuleContext};
use crate::analysis::generators::listed;
use crate::analysis::repeated_iteration::repeated_iteration;
use crate::analysis::requirements::Requirement;
use crate::analysis::restart_code;
use crate::lift::facts::{Runner, Save};
use crate::{Finding, Rule};

define_rule! {
    /// # A checkpoint does not record the position in a training loop
    ///
    /// ## What it does
    /// Finds checkpoints that save the state of the training but not the iteration of one of the
    /// enclosing loops. Also finds scripts that save the iteration and start the loop from its
    /// beginning when they resume, or with the iteration that was already completed.
    ///
    /// ## Why is this bad?
    /// A resumed run starts the loop from its beginning. It trains for more epochs than configured,
    /// with a schedule that does not fit, or it sees the first batches of an epoch twice and others
    /// never.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, TensorDataset
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.Adam(model.parameters())
    /// data = TensorDataset(torch.randn(1000, 10), torch.randn(1000, 1))
    /// loader = DataLoader(data, batch_size=10)
    ///
    /// for epoch in range(20):
    ///     for step, (inputs, targets) in enumerate(loader):
    ///         loss = nn.functional.mse_loss(model(inputs), targets)
    ///         optimizer.zero_grad()
    ///         loss.backward()
    ///         optimizer.step()
    ///         if step % 10 == 9:
    ///             torch.save(
    ///                 {
    ///                     "epoch": epoch,
    ///                     "model": model.state_dict(),
    ///                     "optimizer": optimizer.state_dict(),
    ///                 },
    ///                 "last.pt",
    ///             )
    /// ```
    ///
    /// ## How to fix it
    /// Save the iteration, and skip completed iterations when the run resumes. With shuffled data the
    /// number of the batch is not enough: the order of the epoch must be restored too. It is simpler
    /// to write checkpoints at the end of an epoch.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, TensorDataset
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.Adam(model.parameters())
    /// data = TensorDataset(torch.randn(1000, 10), torch.randn(1000, 1))
    /// loader = DataLoader(data, batch_size=10)
    ///
    /// for epoch in range(20):
    ///     for inputs, targets in loader:
    ///         loss = nn.functional.mse_loss(model(inputs), targets)
    ///         optimizer.zero_grad()
    ///         loss.backward()
    ///         optimizer.step()
    ///     torch.save(
    ///         {
    ///             "epoch": epoch,
    ///             "model": model.state_dict(),
    ///             "optimizer": optimizer.state_dict(),
    ///         },
    ///         "last.pt",
    ///     )
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for (save, missing) in context.missing(|it| it.position.is_some()) {
        report.findings.push(unknown_position(context, save, &missing));
    }
    for repeated in context.saves().filter_map(|save| repeated_iteration(context, save)) {
        let message = format!(
            "The checkpoint is saved after iteration `{}` is complete, and a resumed run starts with the same iteration: it is trained twice.",
            repeated.name
        );
        let help = format!("Start with the next one: `checkpoint[\"{}\"] + 1`.", repeated.key);
        let note = context.note(repeated.saved_at, "Saved here, after the training step.");
        let rule = Rule::MissingPosition;
        report.findings.push(Finding {
            rule,
            place: repeated.place,
            message,
            help,
            notes: vec![note],
        });
    }
}

/// The finding for loops that a resumed run would start from the beginning.
fn unknown_position(context: &RuleContext<'_>, save: &Save, missing: &[&Requirement]) -> Finding {
    let line = |it: &Requirement| {
        it.used_at.map_or_else(String::new, |site| format!(" at {}", context.line(site, save.site)))
    };
    let is_over_data = |it: &&&Requirement| it.position.as_ref().is_some_and(|it| it.is_over_data);
    let is_unused = |it: &&Requirement| it.position.as_ref().is_some_and(|it| it.is_unused);
    let (message, what) = match missing.iter().find(is_over_data) {
        Some(data) if is_unused(data) => (
            format!(
                "This checkpoint is saved inside the loop over the data{}, and nothing skips the completed batches when it is loaded.",
                line(data)
            ),
            "the pass over the data",
        ),
        Some(data) => (
            format!(
                "This checkpoint is saved inside the loop over the data{} and does not record the position in it.",
                line(data)
            ),
            "the pass over the data",
        ),
        None if missing.iter().all(is_unused) => (
            format!(
                "This checkpoint is saved inside the loop{}, and nothing skips the completed iterations when it is loaded.",
                line(missing[0])
            ),
            "the loop",
        ),
        None => {
            let names: Vec<String> = missing.iter().map(|it| format!("`{}`", it.name)).collect();
            let names = listed(&names);
            (
                format!(
                    "This checkpoint does not save {names}, the position in the training loop."
                ),
                "the loop",
            )
        }
    };
    let message = format!("{message} A resumed run starts {what} again.");
    let unsaved: Vec<&Requirement> = missing.iter().filter(|it| !is_unused(it)).copied().collect();
    let mut help = restart_code::entries(&unsaved, context.lifted.style);
    if missing.iter().any(|it| is_over_data(&it)) {
        help = format!(
            "Skip the completed batches after a restart, or save at the end of the pass. {help}"
        );
    } else if unsaved.is_empty() {
        help = "Start the loop at the saved position.".to_owned();
    }
    let is_fitted = |it: &&Requirement| {
        let runner = it.position.as_ref().and_then(|it| it.runner);
        runner == Some(Runner::Fit)
    };
    if missing.iter().all(is_fitted) {
        help = "Pass `initial_epoch` to `fit`, or use `keras.callbacks.BackupAndRestore`, which saves the epoch too.".to_owned();
    }
    let help = help.trim_end().to_owned();
    let mut finding = context.finding(Rule::MissingPosition, save.site, message, help);
    finding.notes = context.requirement_notes(missing);
    finding
}
