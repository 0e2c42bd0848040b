use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::{Definition, Report, RuleContext};
use crate::project::Script;
use crate::{FileId, Finding, Place, Rule};

define_rule! {
    /// # A training loop is not understood
    ///
    /// ## What it does
    /// Reports files that train a model in a way that Surefoot cannot follow: with a trainer of an
    /// unknown library, with an optimizer that is handed over to one, or with a model or an optimizer
    /// that it does not recognize.
    ///
    /// ## Why is this bad?
    /// Nothing in the loop is checked. A file without findings would look repeatable and resumable
    /// although nobody has looked at it.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from engines import Engine
    ///
    /// torch.manual_seed(0)
    /// engine = Engine("settings.yaml")
    ///
    /// for batch in engine.batches():
    ///     loss = engine.loss(batch)
    ///     engine.backward(loss)
    ///     engine.update()
    /// ```
    ///
    /// ## How to fix it
    /// Train with a known framework, or check the loop by hand and suppress the finding with a comment.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for step in range(100):
    ///     loss = model(torch.ones(64, 10)).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

const HELP: &str = "Check the seeds and the checkpoints of this loop by hand.";

/// Trainers of unknown libraries, and calls that were not followed.
fn check(context: &RuleContext<'_>, report: &mut Report) {
    for unknown in context.lifted.unknown.iter().filter(|it| it.trains) {
        let message = format!(
            "`{}` is unknown and takes part in the training: {}. The training is not checked.",
            unknown.callee, unknown.part
        );
        let rule = Rule::UnknownLoop;
        let finding = context.finding(rule, unknown.site, message, HELP.to_owned());
        report.unknown.push((unknown.callee.clone(), finding));
    }
}

/// The finding for a file that trains, if no training step in it was followed: it calls a method that trains,
/// hands an optimizer over to an unknown library, or calls a function with the name of a training.
pub(crate) fn unfollowed(
    script: &Script,
    file: FileId,
    handed_over: Option<&Place>,
    followed: &[Place],
) -> Option<Finding> {
    if followed.iter().any(|it| it.file == file) {
        return None;
    }
    let mut calls = TrainingCalls { found: Vec::new(), named: Vec::new(), depth: 0 };
    calls.visit_body(&script.module.body);
    let first = |calls: &[&ExprCall]| {
        calls.first().map(|call| Place { file, range: call.range().to_std_range() })
    };
    let place = first(&calls.found).or_else(|| handed_over.cloned());
    Some(Finding {
        rule: Rule::UnknownLoop,
        place: place.or_else(|| first(&calls.named))?,
        message: "This trains a model, but the model, the optimizer or the loop was not recognized. The training is not checked.".to_owned(),
        help: HELP.to_owned(),
        notes: Vec::new(),
    })
}

/// Calls in loops and functions that train a model.
struct TrainingCalls<'a> {
    found: Vec<&'a ExprCall>,
    /// Calls of functions with the name of a training.
    named: Vec<&'a ExprCall>,
    /// Number of open loops and functions.
    depth: usize,
}

impl<'a> Visitor<'a> for TrainingCalls<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_open = matches!(statement, Stmt::For(_) | Stmt::While(_) | Stmt::FunctionDef(_));
        self.depth += usize::from(is_open);
        walk_stmt(self, statement);
        self.depth -= usize::from(is_open);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            match &*call.func {
                Expr::Attribute(it)
                    if is_training(it.attr.as_str(), &it.value, call, self.depth > 0) =>
                {
                    self.found.push(call);
                }
                Expr::Attribute(it) if has_training_name(it.attr.as_str(), call) => {
                    self.named.push(call);
                }
                Expr::Name(it) if has_training_name(it.id.as_str(), call) => self.named.push(call),
                _ => {}
            }
        }
        walk_expr(self, expression);
    }
}

/// True for a call such as `train(model, data)`. A call without arguments may switch the mode of a model.
fn has_training_name(name: &str, call: &ExprCall) -> bool {
    let has_arguments = !call.arguments.args.is_empty() || !call.arguments.keywords.is_empty();
    let is_named = matches!(name, "train" | "train_model" | "run_training" | "train_and_evaluate")
        || name.ends_with("train_loop")
        || name.ends_with("training_loop");
    let is_flag = matches!(&*call.arguments.args, [Expr::BooleanLiteral(_)]);
    has_arguments && is_named && !is_flag
}

/// True for a method that trains, called on an object that may be a model, a loss or an optimizer. A single
/// step is training only where it may be repeated.
fn is_training(method: &str, receiver: &Expr, call: &ExprCall, is_repeated: bool) -> bool {
    let name = match receiver {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    }
    .to_ascii_lowercase();
    let is_short = call.arguments.args.len() + call.arguments.keywords.len() < 2;
    match method {
        "backward" | "apply_gradients" | "train_on_batch" => is_repeated,
        "step" => is_repeated && is_short && (name.contains("optim") || name == "opt"),
        "train" => name.ends_with("trainer"),
        "fit" => name.ends_with("trainer") || call.arguments.find_keyword("epochs").is_some(),
        "value_and_grad" => is_repeated,
        "grad" => matches!(name.as_str(), "jax" | "nnx" | "hk" | "eqx"),
        _ => false,
    }
}
