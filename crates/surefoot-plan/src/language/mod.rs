//! The plan's language: what can be written, in one place for reading and for printing.
//!
//! Everything with keys lists them once, in [`Record::fields`]. A [`Reader`] walks that list to
//! fill the value from a document, a [`Writer`] to print it; so what is printed can be read, and
//! the keys an error offers are the keys there are. Defaults are those of the constructors: the
//! reader starts from them and the writer leaves out what equals them.

mod read;
mod rule;
mod spelling;
mod term;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use read::{Reader, read_record};
pub(crate) use rule::{
    Rule, any, at_least_one, at_least_two, name, non_negative, positive, share, unit_interval,
};

pub use spelling::nearest;
#[cfg(test)]
use write::Writer;
pub(crate) use write::{changed, quoted, tagged, write_record};

use crate::error::Fault;
use crate::tree::Node;

/// A value that can be read from a node and written as TOML.
pub(crate) trait Term: Sized {
    /// What a person calls such a value, with its article.
    const NOUN: &'static str;

    /// Reads the value of `key`.
    fn read(node: &Node, key: &str) -> Result<Self, Fault>;

    /// The names to choose from, where the value is chosen by name.
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// The value as TOML.
    fn write(&self) -> String;
}

/// Something with keys.
pub(crate) trait Record {
    /// Presents every key with its value, in the order they are printed.
    fn fields<F: Fields>(&mut self, f: &mut F);
}

/// Walks the keys of a [`Record`].
pub(crate) trait Fields {
    /// A key that has to be there.
    fn required<T: Term>(&mut self, key: &'static str, value: &mut T, rule: Rule<T>);

    /// A key that keeps its value if it is not there.
    fn optional<T: Term>(&mut self, key: &'static str, value: &mut T, rule: Rule<T>);

    /// A key that may have no value.
    fn maybe<T: Term>(&mut self, key: &'static str, value: &mut Option<T>, rule: Rule<T>);

    /// A relation between keys, reported at one of them.
    fn ensure(&mut self, key: &'static str, holds: bool, message: &str);
}

/// One of several named kinds, each with its own keys.
///
/// In TOML a table whose `TAG` key has the name (`{ name = "elu", alpha = 0.5 }`), or the name
/// alone where the keys keep their defaults (`"elu"`).
pub(crate) trait Choice: Record + Clone + 'static {
    /// The key that has the name.
    const TAG: &'static str;

    /// What one of the kinds is called, with its article.
    const NOUN: &'static str;

    /// The kinds.
    const VARIANTS: &'static [Variant<Self>];

    /// The kind meant by a table without a name, if there is one.
    const FALLBACK: Option<&'static str> = None;

    /// Whether the name alone will do.
    const BARE: bool = true;

    /// The name of this value's kind.
    fn variant(&self) -> &'static str;
}

/// A kind of a [`Choice`].
pub(crate) struct Variant<T: 'static> {
    /// The name it is printed with.
    pub(crate) name: &'static str,
    /// Other names it is known by; case and underscores do not matter.
    pub(crate) aliases: &'static [&'static str],
    /// The value with every key at its default.
    pub(crate) start: fn() -> T,
}

/// A kind without other names.
pub(crate) const fn variant<T>(name: &'static str, start: fn() -> T) -> Variant<T> {
    alias(name, &[], start)
}

/// A kind with other names.
pub(crate) const fn alias<T>(
    name: &'static str,
    aliases: &'static [&'static str],
    start: fn() -> T,
) -> Variant<T> {
    Variant { name, aliases, start }
}
