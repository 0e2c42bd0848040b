//! What is needed to get the same run again.

use maud::{Markup, html};
use surefoot_record::{Environment, Record, RunSummary};

use crate::words::{argument, counted};

/// The section at the end of the page.
pub(crate) fn section(run: &Record, summary: Option<&RunSummary>) -> Markup {
    let environment = &run.header().environment;
    let plan = argument(&run.dir().join("plan.toml").display().to_string());
    html! {
        section.small-print #small-print {
            h2 { "Small print" }
            dl.facts {
                dt { "Run" }
                dd { code { (run.dir().display()) } }
                @if let Some(seed) = seed(run.plan()) { dt { "Seed" } dd { (seed) } }
                (machine(environment))
                @if let Some(summary) = summary {
                    dt { "Digest of the delivered model" }
                    dd { code { (summary.digest) } }
                }
                dt { "The same again" }
                dd { code { "surefoot train " (plan) } }
            }
            details {
                summary { "The plan as given" }
                pre { (run.plan()) }
            }
        }
    }
}

fn machine(environment: &Environment) -> Markup {
    let libraries = environment.libraries.iter();
    let libraries: Vec<String> =
        libraries.map(|(name, version)| format!("{name} {version}")).collect();
    html! {
        @if !environment.surefoot.is_empty() {
            dt { "Trained by" }
            dd {
                "surefoot " (environment.surefoot)
                @if !libraries.is_empty() { ", " (libraries.join(", ")) }
            }
            dt { "On" }
            dd {
                (environment.device) ", " (environment.platform)
                ", " (counted(environment.workers as u64, "worker"))
                @if !environment.cpu_features.is_empty() { ", " (environment.cpu_features.join(" ")) }
            }
        }
        @if let Some(data) = environment.data { dt { "Digest of the data" } dd { code { (data) } } }
    }
}

/// The seed that a plan states, before its first table.
fn seed(plan: &str) -> Option<&str> {
    let head = plan.lines().take_while(|line| !line.trim_start().starts_with('['));
    let mut values = head.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split('#').next()?.trim();
        (key.trim() == "seed").then_some(value)
    });
    values.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_that_of_the_plan_and_not_of_a_table() {
        assert_eq!(seed("name = 'x'\nseed = 7 # lucky\n[data]\nseed = 9\n"), Some("7"));
        assert_eq!(seed("[data]\nseed = 9\n"), None);
    }
}
