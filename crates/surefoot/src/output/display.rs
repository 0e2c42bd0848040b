//! Lines at the end of the terminal that are drawn again in place.

use std::io::{Write, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines on stderr below everything that is printed. Clones draw in the same place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Display {
    drawn: Arc<Mutex<Vec<String>>>,
}

impl Display {
    /// Replaces the lines.
    pub(crate) fn draw(&self, lines: Vec<String>) {
        let mut drawn = self.lines();
        if *drawn != lines {
            write(&(erased(drawn.len()) + &written(&lines)));
            *drawn = lines;
        }
    }

    /// Removes the lines.
    pub(crate) fn clear(&self) {
        self.draw(Vec::new());
    }

    /// Calls `print` above the lines.
    pub(crate) fn above<R>(&self, print: impl FnOnce() -> R) -> R {
        let lines = std::mem::take(&mut *self.lines());
        write(&erased(lines.len()));
        let result = print();
        self.draw(lines);
        result
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(text: &str) {
    // There is no other stream to report a failure on.
    let _ = stderr().write_all(text.as_bytes());
}

/// Codes that remove `lines` lines, the cursor being at the end of the last.
fn erased(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "\r\x1b[J".to_owned(),
        _ => format!("\r\x1b[{}A\x1b[J", lines - 1),
    }
}

/// The lines, each cut off at the margin: a wrapped one would take more lines than are erased.
fn written(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let text = lines.join("\n");
    // Colours follow `NO_COLOR`; the codes that place the cursor do not.
    let text = match anstream::AutoStream::choice(&stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    };
    format!("\x1b[?7l{text}\x1b[?7h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_erased_as_were_written() {
        assert_eq!(erased(0), "");
        assert_eq!(erased(1), "\r\x1b[J");
        assert_eq!(erased(3), "\r\x1b[2A\x1b[J");
        assert_eq!(written(&[]), "");
        assert_eq!(written(&["a".into(), "b".into()]), "\x1b[?7la\nb\x1b[?7h");
    }
}
