//! Unique tokens for calls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A text that is unique to one call on any machine: host, process, start time and counter. It
/// marks rows and decides nothing.
pub(super) struct Token(String);

impl Token {
    pub(super) fn new() -> Token {
        static START: OnceLock<String> = OnceLock::new();
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let start = START.get_or_init(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{}:{}", host(), since.as_nanos())
        });
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // A forked process shares the start with its parent.
        Token(format!("{start}:{}:{call}", std::process::id()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Host name of this machine.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .or_else(|_| std::env::var("COMPUTERNAME"));
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique() {
        assert_ne!(Token::new().as_str(), Token::new().as_str());
    }
}
