//! Output and exit codes of `surefoot check`. The tests of the rules are in `surefoot-check`.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use support::{Folder, Outcome};
use surefoot_check::Rule;

/// A script with one finding: the clock is a seed.
fn faulty() -> String {
    Rule::Clock.explanation().example
}

fn example(rule: Rule) -> String {
    rule.explanation().example
}

fn check(folder: &Folder, arguments: &[&str]) -> Outcome {
    folder.run(&[&["check"], arguments].concat())
}

/// JSON lines of one kind.
fn of(events: &[Value], event: &str) -> Vec<Value> {
    let same = events.iter().filter(|it| it["event"] == event);
    same.cloned().collect()
}

/// Last JSON line.
fn last(folder: &Folder, arguments: &[&str]) -> Value {
    let events = check(folder, &[arguments, &["--json"]].concat()).events();
    let last = events.last().cloned().unwrap_or_default();
    assert_eq!(last["event"], "check");
    last
}

#[test]
fn help_lists_options_and_examples() {
    assert_snapshot!(check(&Folder::new(), &["--help"]).shown());
}

#[test]
fn a_finding_is_printed_with_its_line() {
    let folder = Folder::with("train.py", &faulty());
    assert_snapshot!(check(&folder, &["train.py"]).shown());
}

#[test]
fn an_incomplete_checkpoint_is_printed_with_the_missing_state() {
    let folder = Folder::with("train.py", &example(Rule::MissingState));
    assert_snapshot!(check(&folder, &["train.py"]).shown());
}

#[test]
fn the_required_checkpoint_is_printed_with_its_code() {
    let folder = Folder::with("train.py", &example(Rule::MissingGenerator));
    assert_snapshot!(check(&folder, &["train.py", "--checkpoint"]).shown());
}

#[test]
fn the_guide_shows_the_output_for_the_example() {
    let script = include_str!("../../../examples/scripts/resume.py");
    let guide = include_str!("../../../docs/check.md");
    let folder = Folder::with("examples/scripts/resume.py", script);
    let path = "examples/scripts/resume.py";
    let findings = check(&folder, &[path]).stdout;
    let checkpoint = check(&folder, &[path, "--checkpoint"]).stdout;
    for line in findings.lines().chain(checkpoint.lines()) {
        assert!(guide.contains(line.trim_end()), "the guide lacks: {line}");
    }
}

#[test]
fn a_script_without_findings_prints_one_line() {
    let folder = Folder::with("train.py", &Rule::Clock.explanation().fixed);
    assert_snapshot!(check(&folder, &["train.py"]).shown());
}

#[test]
fn suppressed_findings_are_counted() {
    let line = "torch.manual_seed(int(time.time()))";
    let text = faulty().replace(line, &format!("{line}  # surefoot: ignore[clock]"));
    let folder = Folder::with("train.py", &text);
    assert_snapshot!(check(&folder, &["train.py"]).shown());
}

#[test]
fn unknown_calls_are_warnings_at_the_end() {
    let folder = Folder::with("train.py", &example(Rule::UnknownCall));
    let outcome = check(&folder, &["train.py"]);
    assert_snapshot!(outcome.shown());
}

#[test]
fn many_findings_of_a_rule_are_listed_by_place() {
    let folder = Folder::new();
    for number in 0..12 {
        folder.write(&format!("train_{number:02}.py"), &faulty());
    }
    let outcome = check(&folder, &[]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.stdout.matches(" --> ").count(), 8);
    assert!(outcome.stdout.contains("clock: 4 more\n  train_08.py:"));
    assert!(outcome.stdout.contains("12 findings in 12 files"));
}

#[test]
fn carets_match_tabs_wide_characters_and_long_lines() {
    let line = "torch.manual_seed(int(time.time()))";
    let padding = format!("x = [{}]; ", "1, ".repeat(100));
    let cases = [
        format!("if True:\n\t{line}  # tab"),
        format!("名前 = \"日本語 🙂\"; {line}"),
        format!("{padding}{line}; {padding}"),
    ];
    let folder = Folder::new();
    let shown = cases.map(|case| {
        folder.write("train.py", &faulty().replace(line, &case));
        check(&folder, &["train.py"]).stdout
    });
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn json_has_one_object_per_line_and_the_summary_last() {
    let folder = Folder::with("train.py", &example(Rule::MissingState));
    folder.write("old.py", "print \"x\"\n");
    folder.write("other.py", &example(Rule::UnknownCall));
    let outcome = check(&folder, &[".", "--json"]);
    let events = outcome.events();
    let finding = &of(&events, "finding")[0];
    assert_eq!(finding["rule"], "missing_state");
    assert_eq!(finding["file"], "train.py");
    for key in ["line", "column", "end_line", "end_column"] {
        assert!(finding[key].as_u64().unwrap() > 0, "{key}");
    }
    assert!(finding["help"].as_str().unwrap().contains("optimizer"));
    assert!(finding["notes"].is_array());
    assert_eq!(of(&events, "warning")[0]["rule"], "unknown_call");
    let checkpoints = of(&events, "checkpoint");
    let is_first = |it: &&Value| it["file"] == "train.py";
    let checkpoint = checkpoints.iter().find(is_first).unwrap();
    let members = checkpoint["members"].as_array().unwrap();
    let optimizer = members.iter().find(|it| it["name"] == "optimizer").unwrap();
    assert_eq!(optimizer["saved"], false);
    assert_eq!(optimizer["kind"], "state");
    assert!(checkpoint["save"].as_str().unwrap().contains("optimizer"));
    let unreadable = &of(&events, "unreadable")[0];
    assert_eq!(unreadable["file"], "old.py");
    assert_eq!(unreadable["line"], 1);
    assert_eq!(unreadable["named"], false);
    let summary = events.last().unwrap();
    assert_eq!(summary["event"], "check");
    assert_eq!(summary["files"], 2);
    assert_eq!(summary["unreadable"], 1);
    assert_eq!(summary["by_rule"]["missing_state"], 1);
    assert_eq!(summary["findings"], of(&events, "finding").len());
    assert_eq!(outcome.code, Some(1));
}

#[test]
fn paths_in_json_are_relative_and_normalized() {
    let folder = Folder::with("train.py", &faulty());
    let absolute = folder.path().join("data/../train.py");
    let outcome = check(&folder, &[absolute.to_str().unwrap(), "--json"]);
    assert_eq!(of(&outcome.events(), "finding")[0]["file"], "train.py");
}

#[test]
fn a_training_that_is_not_understood_is_never_silent() {
    let folder = Folder::with("train.py", &example(Rule::UnknownLoop));
    let outcome = check(&folder, &["train.py"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stdout.contains("unknown_loop: "), "{}", outcome.stdout);
}

#[test]
fn quiet_prints_only_json() {
    let folder = Folder::with("train.py", &faulty());
    let outcome = check(&folder, &["train.py", "--quiet"]);
    assert_eq!((outcome.code, &*outcome.stdout), (Some(1), ""));
    assert_eq!(outcome.stderr, "");
    let outcome = check(&folder, &["train.py", "--quiet", "--json"]);
    assert_eq!(outcome.stderr, "");
    assert_eq!(outcome.events().last().unwrap()["findings"], 1);
}

#[test]
fn explain_prints_a_rule_or_the_list() {
    let folder = Folder::new();
    assert_snapshot!(check(&folder, &["--explain", "missing_generator"]).shown());
    assert_snapshot!(check(&folder, &["--explain"]).shown());
    assert_snapshot!(check(&folder, &["--explain", "missing"]).shown());
}

#[test]
fn the_list_of_the_given_pytorch_is_used() {
    let folder = Folder::with("train.py", &example(Rule::NondeterministicOperation));
    let outcome = check(&folder, &["train.py", "--torch", "nowhere"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("nowhere"), "{}", outcome.stderr);
    let list = "def use_deterministic_algorithms(mode):\n    r\"\"\"Sets it.\n\n    * :class:`torch.nn.Sorcery`\n    \"\"\"\n";
    // Not beside the script, which would import it.
    folder.write("site-packages/torch/__init__.py", list);
    let outcome = check(&folder, &["train.py", "--torch", "site-packages/torch"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn sarif_has_the_fields_of_code_scanning() {
    let folder = Folder::with("a dir/train.py", &example(Rule::MissingState));
    folder.write("a dir/other.py", &example(Rule::SetOrder));
    folder.write("old.py", "print \"x\"\n");
    let outcome = check(&folder, &["--sarif"]);
    assert_eq!(outcome.code, Some(1));
    let log: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "surefoot");
    let rules = driver["rules"].as_array().unwrap();
    assert_eq!(rules.len(), Rule::ALL.len());
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(!rule[text]["text"].as_str().unwrap().is_empty(), "{rule}");
        }
        let level = rule["defaultConfiguration"]["level"].as_str().unwrap();
        assert!(["note", "warning"].contains(&level));
    }
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 2);
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let related = result["relatedLocations"].as_array().unwrap();
        for location in result["locations"].as_array().unwrap().iter().chain(related) {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(uri.starts_with("a%20dir/"), "{uri}");
            let number = |key: &str| place["region"][key].as_u64().unwrap();
            let start = (number("startLine"), number("startColumn"));
            assert!(start >= (1, 1));
            assert!((number("endLine"), number("endColumn")) > start);
        }
        for location in related {
            assert!(!location["message"]["text"].as_str().unwrap().is_empty());
            assert!(location["id"].is_u64());
        }
    }
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    let notification = &invocation["toolExecutionNotifications"][0];
    assert!(notification["message"]["text"].as_str().unwrap().contains("Python 2"));
}

#[test]
fn files_that_are_not_python_are_reported_and_the_others_checked() {
    let folder = Folder::with("train.py", &faulty());
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("elf.py", b"\x7fELF\x02\x01\x01\x00\x00\x00\xff\xfe\xf0");
    let utf16: Vec<u8> = "import torch\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    write("utf16.py", &[&[0xff, 0xfe][..], &utf16].concat());
    write("prose.py", b"Dear reader, this is no program.\n");
    write("old.py", b"import os\nprint \"epoch\", os.getpid()\n");
    write("empty.py", b"");
    write("cut.py", b"def train(model):\n    for x in (1, 2\n");
    assert_snapshot!(check(&folder, &["."]).shown());
}

#[test]
fn an_argument_that_is_not_python_is_wrong_input() {
    let folder = Folder::with("train.py", &faulty());
    folder.write("old.py", "print \"x\"\n");
    let outcome = check(&folder, &["./old.py", "train.py"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.starts_with("error: old.py cannot be checked: it is Python 2"));
    assert!(outcome.stdout.contains("train.py:"), "the other file is checked");
    let outcome = check(&folder, &["."]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.starts_with("warning: old.py"));
}

#[test]
fn paths_without_python_are_wrong_input() {
    let folder = Folder::new();
    assert_snapshot!(check(&folder, &["nowhere.py", "."]).shown());
    folder.write("only/old.py", "print \"x\"\n");
    assert_eq!(check(&folder, &["only"]).code, Some(2), "nothing could be read");
}

#[test]
fn an_empty_file_has_no_findings() {
    let folder = Folder::with("empty.py", "");
    let outcome = check(&folder, &["empty.py"]);
    assert_eq!(outcome.code, Some(0));
    assert_eq!(
        outcome.stdout,
        "nothing found in 1 file (0 lines)\n  skipped   1 file without a known framework\n"
    );
}

#[test]
fn a_file_of_fifty_thousand_lines_is_checked() {
    let mut text = faulty();
    for number in 0..50_000 {
        text.push_str(&format!("value_{number} = {number}\n"));
    }
    let folder = Folder::with("long.py", &text);
    let summary = last(&folder, &["long.py"]);
    assert!(summary["lines"].as_u64().unwrap() > 50_000);
    assert_eq!(summary["by_rule"]["clock"], 1);
}

#[test]
fn files_that_import_each_other_are_checked() {
    let folder = Folder::with("one.py", &format!("import two\n{}", faulty()));
    folder.write("two.py", "import one\nfrom one import model\n");
    let summary = last(&folder, &["."]);
    assert_eq!(summary["files"], 2);
    assert_eq!(summary["by_rule"]["clock"], 1);
}

#[cfg(unix)]
#[test]
fn broken_and_circular_links_are_reported() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with("train.py", &faulty());
    let at = |name: &str| folder.path().join(name);
    symlink("gone.py", at("broken.py")).unwrap();
    symlink("round.py", at("round.py")).unwrap();
    symlink(".", at("again")).unwrap();
    let summary = last(&folder, &["."]);
    assert_eq!(summary["files"], 1);
    assert_eq!(summary["findings"], 1);
    assert_eq!(summary["unreadable"], 2, "both links are reported");
    let refused = |name: &str| {
        let outcome = check(&folder, &[name]);
        assert_eq!(outcome.code, Some(2), "{name}");
        outcome.stderr
    };
    assert!(refused("broken.py").contains("broken.py cannot be checked: no such file"));
    assert!(refused("round.py").contains("round.py cannot be checked: it cannot be read"));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket.py")).unwrap();
    assert!(refused("socket.py").contains("socket.py cannot be checked: it is not a file"));
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with("train.py", &faulty());
    folder.write("secret.py", "x = 1\n");
    let secret = folder.path().join("secret.py");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(&secret).is_ok() {
        return; // The superuser may read everything.
    }
    let outcome = check(&folder, &["."]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("secret.py cannot be checked: it cannot be read"));
}

#[test]
fn colours_are_only_for_terminals() {
    let folder = Folder::with("train.py", &faulty());
    let plain = check(&folder, &["train.py"]).stdout;
    assert!(!plain.contains('\u{1b}'));
    let mut forced = folder.command(&["check", "train.py"]);
    let coloured: Outcome = forced.env("CLICOLOR_FORCE", "1").output().unwrap().into();
    assert!(coloured.stdout.contains("\u{1b}[1m\u{1b}[31mclock"));
    let mut refused = folder.command(&["check", "train.py"]);
    let refused: Outcome = refused.env("NO_COLOR", "1").output().unwrap().into();
    assert_eq!(refused.stdout, plain);
}
