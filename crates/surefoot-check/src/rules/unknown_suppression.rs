use super::{Definition, Report, RuleContext};
use crate::{Finding, Place, Rule, UnknownRule};

define_rule! {
    /// # A suppression comment names a rule that does not exist
    ///
    /// ## What it does
    /// Warns about `# surefoot: ignore[...]` comments with an unknown rule. A warning does not count
    /// as a finding.
    ///
    /// ## Why is this bad?
    /// The comment suppresses nothing. The name may be misspelled or belong to another tool, and the
    /// comment misleads its readers.
    ///
    /// ## Example
    /// ```python
    /// import time
    ///
    /// seed = int(time.time())  # surefoot: ignore[clocks]
    /// ```
    ///
    /// ## How to fix it
    /// Use the id of a rule. `surefoot check --explain` lists them.
    ///
    /// ```python
    /// import time
    ///
    /// seed = int(time.time())  # surefoot: ignore[clock]
    /// ```
    Definition { is_warning: true, check }
}

/// Does nothing: suppression comments are read once per file, not once per script.
fn check(_: &RuleContext<'_>, _: &mut Report) {}

/// The warning for a comment with an unknown rule.
pub(crate) fn unknown_rule(place: Place, error: &UnknownRule) -> Finding {
    let names: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    finding(place, error.to_string(), format!("The rules are {}.", names.join(", ")))
}

/// The warning for a comment that does not follow the syntax.
pub(crate) fn malformed(place: Place) -> Finding {
    finding(
        place,
        "after `ignore` come rules in brackets, or nothing".to_owned(),
        "Write `# surefoot: ignore` or `# surefoot: ignore[clock]`.".to_owned(),
    )
}

fn finding(place: Place, reason: String, help: String) -> Finding {
    let message = format!("This comment suppresses nothing: {reason}.");
    Finding { rule: Rule::UnknownSuppression, place, message, help, notes: Vec::new() }
}
