//! Switches and operations that cost repeatability, and calls that nobody knows.

use std::collections::BTreeSet;

use super::Script;
use crate::library::FIXED_OPERATIONS;
use crate::{Finding, Rule};

/// Looks at switches, operations and unknown calls.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) {
    if !script.trains() {
        return;
    }
    for switch in &script.lifted.switches {
        let (message, help) = match switch.rule {
            Rule::CudnnBenchmark => (
                "`cudnn.benchmark` picks convolution algorithms by measuring them: two runs may pick different ones and get other bits.",
                "Set it to False, and `torch.backends.cudnn.deterministic = True`.",
            ),
            Rule::WarnOnly => (
                "With `warn_only=True` operations without a deterministic implementation run all the same, with a warning.",
                "Leave `warn_only` out, and replace the operations that then fail.",
            ),
            Rule::Autotune => (
                "Kernels are picked by measuring them: two runs may pick different ones and get other bits.",
                "Use the default mode where runs have to repeat.",
            ),
            Rule::Precision => (
                "Products are computed with fewer bits where the device can: another device gives other results.",
                "Leave the precision at its default, `\"highest\"`, where results have to agree between devices.",
            ),
            _ => continue,
        };
        findings.push(script.finding(
            switch.rule,
            switch.site,
            message.to_owned(),
            help.to_owned(),
        ));
    }
    let reaching = script.reaching();
    let mut told = BTreeSet::new();
    let torch = script.settings.torch.as_ref();
    let listed = |operation: &str| match torch {
        Some(torch) => torch.has(operation),
        None => !FIXED_OPERATIONS.contains(&operation),
    };
    for operation in &script.lifted.nondeterministic_ops {
        if listed(operation.operation)
            && reaching.iter().any(|origin| origin.site == operation.site)
            && told.insert(operation.operation)
        {
            let message = format!(
                "On a GPU {} may give other bits for the same input, and that reaches the parameters.",
                operation.operation
            );
            let help = "Call `torch.use_deterministic_algorithms(True)`: it makes the operation deterministic, or fails where it cannot; then replace it.".to_owned();
            findings.push(script.finding(
                Rule::NondeterministicOperation,
                operation.site,
                message,
                help,
            ));
        }
    }
}

/// Calls that could not be resolved, by what is called.
pub(super) fn unknown(script: &Script<'_>) -> Vec<(String, Finding)> {
    let unknown = script.lifted.unknown.iter();
    let unknown = unknown.filter(|it| it.trains || script.trains());
    let told = unknown.map(|unknown| {
        let message = format!(
            "`{}` is not known and takes part in the training: {}. What it draws, keeps or changes is not checked.",
            unknown.callee, unknown.part
        );
        let help = "If it keeps state, save it in checkpoints; if it draws, seed it.".to_owned();
        (unknown.callee.clone(), script.finding(Rule::UnknownCall, unknown.site, message, help))
    });
    told.collect()
}
