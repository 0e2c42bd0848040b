//! The keys of a plan: one list for reading, printing and Keras import.
//!
//! A type lists its keys once, in [`Record::fields`]. A [`Reader`] visits that list to fill the
//! value from a document, a [`Writer`](write::Writer) to print it, and the Keras import to fill it
//! from a Keras file. The defaults are those of the constructors: the reader starts from them and
//! the writer omits values that equal them.

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
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::tree::Node;
use std::any::Any;
use std::mem::discriminant;

/// A value that can be read from a node and printed as TOML.
pub(crate) trait Term: Sized + 'static {
    /// Noun for error messages, with its article.
    const NOUN: &'static str;

    /// Reads the value of `key`.
    fn read(node: &Node, key: &str) -> Result<Self, Fault>;

    /// The allowed names, for a value chosen by name.
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// The value as TOML.
    fn write(&self) -> String;

    /// Reads `key` of a Keras layer; `None` if the file does not have it. The default is for types
    /// that no Keras layer uses.
    #[cfg(feature = "keras")]
    fn from_keras(_: &LayerConfig<'_>, _key: &str) -> keras::Result<Option<Self>> {
        Ok(None)
    }
}

/// A value with keys: a TOML table.
pub(crate) trait Record {
    /// Visits every key and its value, in the order in which they are printed.
    fn fields<'a, F: Fields<'a>>(&'a mut self, _: &mut F) {}

    /// Checks relations between keys. An error names the key to report it at.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        Ok(())
    }
}

/// Visits the keys of a [`Record`].
pub(crate) trait Fields<'a> {
    /// A key that must be present.
    fn required<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>);

    /// A key that keeps its value if it is absent.
    fn optional<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>);

    /// A key without a default value.
    fn maybe<T: Term>(&mut self, key: &'static str, value: &'a mut Option<T>, rule: Rule<T>);
}

/// Visits keys that are named like the fields, or the variables, that hold their values:
/// `keys! { f, self; required: units; optional: use_bias, rate(share); }`. A key without a rule takes any
/// value of its type.
macro_rules! keys {
    (@rule) => { $crate::language::any };
    (@rule $rule:ident) => { $rule };
    ($f:ident, $record:ident; $($how:ident: $($key:ident $(($rule:ident))?),+;)+) => {{
        $($($f.$how(
            stringify!($key),
            &mut $record.$key,
            $crate::language::keys!(@rule $($rule)?),
        );)+)+
    }};
    ($f:ident; $($how:ident: $($key:ident $(($rule:ident))?),+;)+) => {{
        $($($f.$how(stringify!($key), $key, $crate::language::keys!(@rule $($rule)?));)+)+
    }};
}
pub(crate) use keys;

/// Implements [`Record`] for a struct: `record! { Dropout; maybe: name(name); required: rate(share); }`.
macro_rules! record {
    ($type:ident; $($keys:tt)+) => {
        impl $crate::language::Record for $type {
            fn fields<'a, F: $crate::language::Fields<'a>>(&'a mut self, f: &mut F) {
                $crate::language::keys! { f, self; $($keys)+ }
            }
        }
    };
}
pub(crate) use record;

/// Finds the value of one key of a record, if it has type `T`.
pub(crate) struct Find<'a, T> {
    key: &'static str,
    found: Option<&'a mut T>,
}

impl<'a, T: 'static> Find<'a, T> {
    /// The value of `key`, or `None` if the record does not have it.
    pub(crate) fn key<R: Record>(record: &'a mut R, key: &'static str) -> Option<&'a mut T> {
        let mut find = Self { key, found: None };
        record.fields(&mut find);
        find.found
    }

    fn visit(&mut self, key: &str, value: &'a mut dyn Any) {
        if key == self.key {
            self.found = value.downcast_mut();
        }
    }
}

impl<'a, T: 'static> Fields<'a> for Find<'a, T> {
    fn required<V: Term>(&mut self, key: &'static str, value: &'a mut V, _: Rule<V>) {
        self.visit(key, value);
    }

    fn optional<V: Term>(&mut self, key: &'static str, value: &'a mut V, _: Rule<V>) {
        self.visit(key, value);
    }

    fn maybe<V: Term>(&mut self, key: &'static str, value: &'a mut Option<V>, _: Rule<V>) {
        self.visit(key, value);
    }
}

/// One of several named kinds, each with its own keys.
///
/// In TOML a table whose `TAG` key has the name (`{ name = "elu", alpha = 0.5 }`), or the name
/// alone where the keys keep their defaults (`"elu"`).
pub(crate) trait Choice: Record + Clone + 'static {
    /// The key that holds the name.
    const TAG: &'static str;

    /// Noun for error messages, with its article.
    const NOUN: &'static str;

    /// The kinds.
    const VARIANTS: &'static [Variant<Self>];

    /// The kind of a table without a name, if there is a default.
    const FALLBACK: Option<&'static str> = None;

    /// True if a bare name is allowed in place of a table.
    const BARE: bool = true;

    /// The name of this value's kind.
    fn variant(&self) -> &'static str {
        let same =
            |variant: &&Variant<Self>| discriminant(&(variant.start)()) == discriminant(self);
        Self::VARIANTS.iter().find(same).map_or("", |variant| variant.name)
    }

    /// Reads `key` of a Keras layer; see [`Term::from_keras`].
    #[cfg(feature = "keras")]
    fn read_keras(_: &LayerConfig<'_>, _key: &str) -> keras::Result<Option<Self>> {
        Ok(None)
    }
}

/// A kind of a [`Choice`].
pub(crate) struct Variant<T: 'static> {
    /// The name it is printed with.
    pub(crate) name: &'static str,
    /// Other accepted names; case and underscores are ignored.
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
