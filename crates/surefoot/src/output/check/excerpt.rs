//! Findings with excerpts of the source, drawn by `annotate-snippets`.

use super::{Spot, UnreadableFile};
use crate::output::Role;
use crate::output::facts::wrapped;
use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str,
};
use std::ops::Range;
use surefoot_check::{FileId, Finding, Note, Place, SourceFile, SourceFiles};

/// Longer notes are printed below the lines.
const LABEL: usize = 72;

/// Ranges over more lines, such as the body of a loop, show only their first line.
const LINES: usize = 8;

/// Text of a finding: rule, message, excerpt with notes, help.
pub(super) fn finding(finding: &Finding, sources: &SourceFiles, width: usize) -> String {
    let rule = finding.rule.id();
    let message = paragraphs(&finding.message, width - rule.len() - ": ".len());
    let level = Level::ERROR.with_name(rule);
    let mut group = level.primary_title(message).elements([snippet(
        sources,
        finding.place.file,
        Some(&finding.place),
        &finding.notes,
    )]);
    for file in other_files(finding) {
        group = group.element(snippet(sources, file, None, &finding.notes));
    }
    for note in finding.notes.iter().filter(|note| label(note).is_none()) {
        let source = sources.get(note.place.file);
        let (line, _) = source.line_and_column(note.place.range.start);
        let place = match note.place.file == finding.place.file {
            true => format!("line {line}"),
            false => format!("{}:{line}", source.path.display()),
        };
        let text = below(&format!("{place}: {}", note.text), width);
        group = group.element(Level::NOTE.message(text));
    }
    if !finding.help.is_empty() {
        group = group.element(Level::HELP.message(below(&finding.help, width)));
    }
    renderer(width).render(&[group])
}

/// Text of a title with an excerpt.
pub(super) fn place(title: &str, place: &Place, sources: &SourceFiles, width: usize) -> String {
    let group = Level::INFO.no_name().primary_title(title).element(snippet(
        sources,
        place.file,
        Some(place),
        &[],
    ));
    renderer(width).render(&[group])
}

/// Text of why a file cannot be checked, with the line of the error.
pub(super) fn unread(unread: &UnreadableFile, width: usize) -> String {
    let path = unread.unreadable.path.display().to_string();
    let (level, name) = match unread.named {
        true => (Level::ERROR, "error: "),
        false => (Level::WARNING, "warning: "),
    };
    let message = format!("{path} cannot be checked: {}", unread.unreadable.reason);
    let title = level.primary_title(paragraphs(&message, width - name.len()));
    let group = match &unread.spot {
        Some(Spot { line, column, text }) => {
            let at = text.char_indices().nth(column.saturating_sub(1));
            let at = at.map_or(text.len(), |(at, _)| at);
            let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            title.element(
                Snippet::source(text)
                    .path(path)
                    .line_start(*line)
                    .annotation(AnnotationKind::Primary.span(at..end)),
            )
        }
        None => Group::with_title(title),
    };
    renderer(width).render(&[group])
}

/// Files of notes other than that of the finding, without duplicates.
fn other_files(finding: &Finding) -> Vec<FileId> {
    let mut files = Vec::new();
    for note in &finding.notes {
        let file = note.place.file;
        if file != finding.place.file && !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// Lines of one file: those of a place, and of the notes in the file.
fn snippet<'a>(
    sources: &'a SourceFiles,
    file: FileId,
    place: Option<&Place>,
    notes: &'a [Note],
) -> Snippet<'a, Annotation<'a>> {
    let source = sources.get(file);
    let notes: Vec<&Note> = notes.iter().filter(|it| it.place.file == file).collect();
    let places = place.into_iter().chain(notes.iter().map(|it| &it.place));
    let whole = places
        .map(|place| shown(source, &place.range))
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0);
    // Drawing takes time in proportion to the text, so pass only the lines that are shown.
    let text = &source.text;
    let start = text[..whole.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[whole.end..].find('\n').map_or(text.len(), |at| whole.end + at);
    let (line, _) = source.line_and_column(start);
    let within = |place: &Place| {
        let range = shown(source, &place.range);
        range.start - start..range.end - start
    };
    let primary = place.map(|place| AnnotationKind::Primary.span(within(place)));
    let context = notes.iter().map(|note| {
        let annotation = AnnotationKind::Context.span(within(&note.place));
        annotation.label(label(note))
    });
    Snippet::source(&text[start..end])
        .path(source.path.display().to_string())
        .line_start(line)
        .annotations(primary.into_iter().chain(context))
}

/// Part of a range that is underlined, clamped to the text.
fn shown(source: &SourceFile, range: &Range<usize>) -> Range<usize> {
    let text = &source.text;
    let start = text.floor_char_boundary(range.start);
    let end = text.floor_char_boundary(range.end).max(start);
    let lines = text[start..end].split('\n');
    match lines.clone().count() > LINES {
        true => start..start + lines.clone().next().map_or(0, str::len),
        false => start..end,
    }
}

/// Text next to the line of a note, unless it is too long.
fn label(note: &Note) -> Option<&str> {
    let text = note.text.as_str();
    (text.chars().count() <= LABEL && !text.contains('\n')).then_some(text)
}

/// Wraps text below the lines, after `   = help: `.
fn below(text: &str, width: usize) -> String {
    const INDENT: usize = 14;
    let lines: Vec<String> =
        paragraphs(text, width - INDENT).split('\n').map(normalize_untrusted_str).collect();
    lines.join("\n")
}

/// Wraps sentences. Indented lines are code and stay unchanged.
fn paragraphs(text: &str, width: usize) -> String {
    let lines = text.lines().flat_map(|line| {
        match line.trim().is_empty() || line.starts_with(char::is_whitespace) {
            true => vec![line.to_owned()],
            false => wrapped(line, width),
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Renderer in the colours of the other output.
fn renderer(width: usize) -> Renderer {
    Renderer::styled()
        .term_width(width)
        .error(Role::Error.style())
        .warning(Role::Warning.style())
        .info(Role::Strong.style())
        .note(Role::Help.style())
        .help(Role::Help.style())
        .context(Role::Help.style())
        .line_num(Role::Quiet.style())
        .emphasis(Role::Strong.style())
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_check::Rule;

    fn sources(text: &str) -> SourceFiles {
        SourceFiles(vec![SourceFile { path: "train.py".into(), text: text.into() }])
    }

    fn at(range: Range<usize>) -> Place {
        Place { file: FileId(0), range }
    }

    fn drawn(text: &str, range: Range<usize>, notes: Vec<Note>) -> String {
        let it = Finding {
            rule: Rule::Clock,
            place: at(range),
            message: "Something is wrong.".into(),
            help: "Write\n    seed = 1\ninstead.".into(),
            notes,
        };
        let text = finding(&it, &sources(text), 80);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn any_range_of_any_text_is_drawn() {
        let text = "é\t日\r\n\n🙂x\u{7}\u{202e}\n";
        for start in 0..text.len() + 2 {
            for end in 0..text.len() + 2 {
                assert!(drawn(text, start..end, Vec::new()).contains("--> train.py:"));
            }
        }
        assert!(drawn("", 0..0, Vec::new()).contains("--> train.py:1:1"));
    }

    #[test]
    fn a_long_range_shows_its_first_line() {
        let text = format!("for x in y:\n{}", "    step(x)\n".repeat(20));
        let drawn = drawn(&text, 0..text.len(), Vec::new());
        assert!(drawn.contains("1 | for x in y:\n  | ^^^^^^^^^^^\n"));
        assert!(!drawn.contains("step(x)"));
    }

    #[test]
    fn long_notes_are_below_the_lines() {
        let note = |text: &str| Note { place: at(6..11), text: text.into() };
        let short = drawn("seed\n\nmodel\n", 0..4, vec![note("Used here.")]);
        assert!(short.contains("3 | model\n  | ----- Used here.\n"));
        let long = "Used here, ".repeat(8);
        let long = drawn("seed\n\nmodel\n", 0..4, vec![note(&long)]);
        assert!(long.contains("3 | model\n  | -----\n"));
        assert!(long.contains("= note: line 3: Used here, Used here,"));
    }

    #[test]
    fn code_in_help_keeps_its_lines() {
        let drawn = drawn("seed\n", 0..4, Vec::new());
        let help = "= help: Write\n              seed = 1\n          instead.";
        assert!(drawn.contains(help), "{drawn}");
    }

    #[test]
    fn control_characters_are_removed() {
        let drawn = drawn("x = '\u{1b}[2J'\n", 0..1, Vec::new());
        assert!(!drawn.contains('\u{1b}'));
    }
}
