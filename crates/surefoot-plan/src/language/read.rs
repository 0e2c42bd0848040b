//! Reading: records and choices from the tree of a document.

use super::spelling::{nearest, same};
use super::{Choice, Fields, Record, Rule, Term, Variant};
use crate::error::Fault;
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::tree::{Entry, Node, Tree};
use std::ops::Range;

/// Fills a record from a table. The first fault is kept until [`Reader::finish`].
pub(crate) struct Reader<'a> {
    /// Name of the table, for messages.
    what: String,
    /// Span at which a missing key is reported.
    anchor: Range<usize>,
    entries: &'a [Entry],
    keys: Vec<&'static str>,
    fault: Option<Fault>,
    missing: Option<Fault>,
}

impl<'a> Reader<'a> {
    /// A reader of `node`, the value of `key`, which must be a table.
    pub(crate) fn open(node: &'a Node, key: &str, what: String) -> Result<Self, Fault> {
        let Tree::Table(entries) = &node.value else {
            return Err(Fault::kind(node, key, "a table"));
        };
        Ok(Self {
            what,
            anchor: node.span.clone(),
            entries,
            keys: Vec::new(),
            fault: None,
            missing: None,
        })
    }

    /// The entry of a key whose meaning depends on other keys, so that [`Fields`] cannot read it.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.keys.push(key);
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Reads the keys of a record and checks the relations between them.
    pub(crate) fn fill<R: Record>(&mut self, record: &mut R) {
        record.fields(self);
        if let Err((key, message)) = record.check() {
            self.violation(key, message);
        }
    }

    /// Reports a relation between keys that does not hold, unless a key itself is wrong.
    fn violation(&mut self, key: &str, message: &str) {
        if self.fault.is_none() && self.missing.is_none() {
            let entry = self.entries.iter().find(|entry| entry.key == key);
            let span = entry.map_or(&self.anchor, |entry| &entry.node.span);
            self.fault = Some(Fault::new(span.clone(), message.to_owned()));
        }
    }

    /// Keeps the fault of `result` if it is the first.
    pub(crate) fn attempt<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault.get_or_insert(fault);
                None
            }
        }
    }

    /// Reports a missing key.
    pub(crate) fn miss(&mut self, key: &str, noun: &str) {
        let fault = Fault::new(self.anchor.clone(), format!("missing key `{key}`"))
            .label(format!("{} needs `{key}`, {noun}", self.what));
        self.missing.get_or_insert(fault);
    }

    /// Returns the first fault. An unknown key comes before all others, because a misspelt key is
    /// often the reason why another is missing.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        for entry in self.entries {
            if !self.keys.contains(&entry.key.as_str()) {
                return Err(unknown("key", &entry.key, entry.span.clone(), &self.keys));
            }
        }
        match self.fault.or(self.missing) {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    fn value<T: Term>(&mut self, key: &'static str, rule: Rule<T>) -> Option<T> {
        let entry = self.take(key)?;
        let checked = T::read(&entry.node, key).and_then(|value| match rule(&value) {
            Ok(()) => Ok(value),
            Err(what) => Err(Fault::new(entry.node.span.clone(), format!("`{key}` must {what}"))),
        });
        self.attempt(checked)
    }

    fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }
}

impl<'a> Fields<'a> for Reader<'_> {
    fn required<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>) {
        match self.value(key, rule) {
            Some(read) => *value = read,
            None if self.has(key) => {}
            None => self.miss(key, &one_of(T::NOUN, &T::names())),
        }
    }

    fn optional<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>) {
        if let Some(read) = self.value(key, rule) {
            *value = read;
        }
    }

    fn maybe<T: Term>(&mut self, key: &'static str, value: &'a mut Option<T>, rule: Rule<T>) {
        if let Some(read) = self.value(key, rule) {
            *value = Some(read);
        }
    }
}

/// Reads a record whose keys all have defaults.
pub(crate) fn read_record<R: Record + Default>(node: &Node, key: &str) -> Result<R, Fault> {
    let mut record = R::default();
    let mut reader = Reader::open(node, key, format!("`{key}`"))?;
    reader.fill(&mut record);
    reader.finish()?;
    Ok(record)
}

impl<C: Choice> Term for C {
    const NOUN: &'static str = <C as Choice>::NOUN;

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        let form = || match C::BARE {
            true => format!("a name or a table with `{}`", C::TAG),
            false => format!("a table with `{}`", C::TAG),
        };
        match &node.value {
            Tree::Text(name) if C::BARE => {
                let variant = find::<C>(name, node)?;
                let mut value = (variant.start)();
                let mut reader = Reader {
                    what: format!("`{}`", variant.name),
                    anchor: node.span.clone(),
                    entries: &[],
                    keys: Vec::new(),
                    fault: None,
                    missing: None,
                };
                reader.fill(&mut value);
                reader.finish()?;
                Ok(value)
            }
            Tree::Table(_) => {
                let mut reader = Reader::open(node, key, String::new())?;
                let variant = match (reader.take(C::TAG), C::FALLBACK) {
                    (Some(entry), _) => {
                        reader.anchor = entry.node.span.clone();
                        match &entry.node.value {
                            Tree::Text(name) => find::<C>(name, &entry.node)?,
                            _ => return Err(Fault::kind(&entry.node, C::TAG, "a string")),
                        }
                    }
                    (None, Some(name)) => find::<C>(name, node)?,
                    (None, None) => return Err(untagged::<C>(node, &reader)),
                };
                reader.what = format!("`{}`", variant.name);
                let mut value = (variant.start)();
                reader.fill(&mut value);
                reader.finish()?;
                Ok(value)
            }
            _ => Err(Fault::kind(node, key, &form())),
        }
    }

    fn names() -> Vec<&'static str> {
        C::VARIANTS.iter().map(|variant| variant.name).collect()
    }

    fn write(&self) -> String {
        super::write::choice(self)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        C::read_keras(config, key)
    }
}

fn find<C: Choice>(name: &str, node: &Node) -> Result<&'static Variant<C>, Fault> {
    let known = |variant: &&Variant<C>| {
        same(variant.name, name) || variant.aliases.iter().any(|alias| same(alias, name))
    };
    C::VARIANTS.iter().find(known).ok_or_else(|| {
        let what = C::NOUN.trim_start_matches("an ").trim_start_matches("a ");
        unknown(what, name, node.span.clone(), &C::names())
    })
}

/// The error for a table without a tag. A misspelt tag is the likely reason.
fn untagged<C: Choice>(node: &Node, reader: &Reader<'_>) -> Fault {
    let misspelt = reader.entries.iter().find(|entry| nearest(&entry.key, [C::TAG]).is_some());
    if let Some(entry) = misspelt {
        return unknown("key", &entry.key, entry.span.clone(), &[C::TAG]);
    }
    Fault::new(node.span.clone(), format!("missing key `{}`", C::TAG))
        .label(format!("expected {}", one_of("", &C::names())))
}

/// The allowed names, or `noun` if there are none.
fn one_of(noun: &str, names: &[&str]) -> String {
    match names {
        [] => noun.to_owned(),
        [name] => format!("`{name}`"),
        _ => format!("one of: {}", names.join(", ")),
    }
}

fn unknown(what: &str, written: &str, span: Range<usize>, known: &[&str]) -> Fault {
    let mut fault = Fault::new(span, format!("unknown {what} `{written}`"))
        .label(format!("expected {}", one_of("", known)));
    if let Some(name) = nearest(written, known.iter().copied()) {
        fault = fault.help(format!("did you mean `{name}`?"));
    }
    fault
}
