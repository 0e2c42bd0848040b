//! Numbers, strings, pairs and lists as values of a plan.

use super::Term;
use super::write::quoted;
use crate::error::Fault;
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::tree::{Node, Tree};
use std::path::PathBuf;

impl Term for bool {
    const NOUN: &'static str = "true or false";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match node.value {
            Tree::Bool(value) => Ok(value),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        config.flag(key)
    }
}

/// A count, which may be zero.
impl Term for u64 {
    const NOUN: &'static str = "a whole number";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match node.value {
            Tree::Integer(value) => u64::try_from(value)
                .map_err(|_| Fault::new(node.span.clone(), format!("`{key}` must be at least 0"))),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A size; nothing in a plan has size zero.
impl Term for usize {
    const NOUN: &'static str = "a whole number";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match node.value {
            Tree::Integer(value) => {
                usize::try_from(value).ok().filter(|value| *value > 0).ok_or_else(|| {
                    Fault::new(node.span.clone(), format!("`{key}` must be at least 1"))
                })
            }
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        Ok(config.sizes(key)?.map(|[size]| size))
    }
}

impl Term for i64 {
    const NOUN: &'static str = "a whole number";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match node.value {
            Tree::Integer(value) => Ok(value),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A finite number; integers are accepted.
impl Term for f64 {
    const NOUN: &'static str = "a number";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match node.value {
            Tree::Integer(value) => Ok(value as f64),
            Tree::Float(value) if value.is_finite() => Ok(value),
            Tree::Float(_) => Err(Fault::new(node.span.clone(), format!("`{key}` must be finite"))),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        match self.is_nan() {
            true => "nan".to_owned(),
            false => format!("{self:?}"),
        }
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        config.number(key)
    }
}

impl Term for String {
    const NOUN: &'static str = "a string";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::Text(text) => Ok(text.clone()),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        quoted(self)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        Ok((key == "name").then(|| config.layer.to_owned()))
    }
}

impl Term for PathBuf {
    const NOUN: &'static str = "a path";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::Text(text) if !text.is_empty() => Ok(PathBuf::from(text)),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        quoted(&self.to_string_lossy())
    }
}

/// `[height, width]`, or one number for a square.
impl Term for [usize; 2] {
    const NOUN: &'static str = "a whole number or [height, width]";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::Integer(_) => usize::read(node, key).map(|side| [side, side]),
            Tree::List(nodes) => match nodes.as_slice() {
                [height, width] => Ok([usize::read(height, key)?, usize::read(width, key)?]),
                _ => Err(Fault::new(node.span.clone(), format!("`{key}` must be {}", Self::NOUN))
                    .label(format!("this list has {} entries", nodes.len()))),
            },
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        match self {
            [height, width] if height == width => height.to_string(),
            [height, width] => format!("[{height}, {width}]"),
        }
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        config.sizes(key)
    }
}

impl Term for Vec<i64> {
    const NOUN: &'static str = "a list of whole numbers";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::List(nodes) => nodes.iter().map(|node| i64::read(node, key)).collect(),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        let numbers: Vec<_> = self.iter().map(i64::to_string).collect();
        format!("[{}]", numbers.join(", "))
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        config.list(key)
    }
}

impl Term for Vec<String> {
    const NOUN: &'static str = "a list of strings";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::List(nodes) => nodes.iter().map(|node| String::read(node, key)).collect(),
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        let texts: Vec<_> = self.iter().map(|text| quoted(text)).collect();
        format!("[{}]", texts.join(", "))
    }
}
