//! The section on how to repeat the run.

use maud::{Markup, html};
use surefoot_record::{Environment, Record, RunSummary};

use crate::format::{argument, counted};

/// Draws the section.
pub(crate) fn section(run: &Record, summary: Option<&RunSummary>) -> Markup {
    let environment = &run.header().environment;
    let plan = argument(&run.dir().join("plan.toml").display().to_string());
    html! {
        section.reproduction #reproduction {
            h2 { "Reproduction" }
            dl.facts {
                dt { "Run" }
                dd { code { (run.dir().display()) } }
                @if let Some(seed) = seed(run.plan()) { dt { "Seed" } dd { (seed) } }
                (machine(environment))
                @if let Some(summary) = summary {
                    dt { "Digest of the delivered model" }
                    dd { code { (summary.digest) } }
                }
                @if run.program().is_none() {
                    dt { "Repeat this run" }
                    dd { code { "surefoot train " (plan) } }
                }
            }
            details {
                @match run.program() {
                    Some(program) => { summary { "Program" } pre { (program) } }
                    None => { summary { "Plan as given" } pre { (run.plan()) } }
                }
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
            dt { "Version" }
            dd {
                "surefoot " (environment.surefoot)
                @if !libraries.is_empty() { ", " (libraries.join(", ")) }
            }
            dt { "Machine" }
            dd {
                (environment.device) ", " (environment.platform)
                ", " (counted(environment.workers as u64, "worker"))
                @if !environment.cpu_features.is_empty() { ", " (environment.cpu_features.join(" ")) }
            }
        }
        @if let Some(data) = environment.data { dt { "Digest of the data" } dd { code { (data) } } }
    }
}

/// The seed in a plan, before its first table.
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
    fn the_seed_is_read_from_the_top_level() {
        assert_eq!(seed("name = 'x'\nseed = 7 # lucky\n[data]\nseed = 9\n"), Some("7"));
        assert_eq!(seed("[data]\nseed = 9\n"), None);
    }
}
