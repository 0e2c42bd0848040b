//! Interned types and sets of origins.
//!
//! A program has thousands of values and few distinct types. Sets are bit sets while types are joined,
//! and become lists of origins when a type is created.

use std::collections::HashMap;
use std::sync::Arc;

use super::types::{Origin, Quality, Type, WorkerDependence};

/// Interned set of origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SetId(u32);

/// Interner of sets. [`SetId::default`] is the empty set.
pub(super) struct Sets {
    origins: Vec<Origin>,
    numbers: HashMap<Origin, usize>,
    /// Bits of each set, without trailing zero words.
    sets: Vec<Arc<[u64]>>,
    known: HashMap<Arc<[u64]>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

impl Default for Sets {
    fn default() -> Self {
        let empty: Arc<[u64]> = Arc::new([]);
        Sets {
            origins: Vec::new(),
            numbers: HashMap::new(),
            sets: vec![Arc::clone(&empty)],
            known: HashMap::from([(empty, SetId::default())]),
            unions: HashMap::new(),
        }
    }
}

impl Sets {
    fn keep(&mut self, bits: Vec<u64>) -> SetId {
        let sets = &mut self.sets;
        *self.known.entry(bits.into()).or_insert_with_key(|bits| {
            sets.push(Arc::clone(bits));
            SetId(sets.len() as u32 - 1)
        })
    }

    /// Returns the set of one origin.
    pub(super) fn single(&mut self, origin: Origin) -> SetId {
        let origins = &mut self.origins;
        let number = *self.numbers.entry(origin).or_insert_with(|| {
            origins.push(origin);
            origins.len() - 1
        });
        let mut bits = vec![0; number / 64 + 1];
        bits[number / 64] = 1 << (number % 64);
        self.keep(bits)
    }

    pub(super) fn union(&mut self, one: SetId, other: SetId) -> SetId {
        let (one, other) = (one.min(other), one.max(other));
        if one == other || one == SetId::default() {
            return other;
        }
        if let Some(known) = self.unions.get(&(one, other)) {
            return *known;
        }
        let (a, b) = (&self.sets[one.0 as usize], &self.sets[other.0 as usize]);
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        let mut bits = long.to_vec();
        for (into, from) in bits.iter_mut().zip(short.iter()) {
            *into |= from;
        }
        let union = self.keep(bits);
        self.unions.insert((one, other), union);
        union
    }

    fn list(&self, set: SetId) -> Arc<[Origin]> {
        let bits = &self.sets[set.0 as usize];
        let holds = |number: &usize| {
            bits.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
        };
        let numbers = (0..self.origins.len()).filter(holds);
        let mut origins: Vec<Origin> = numbers.map(|number| self.origins[number]).collect();
        origins.sort_unstable();
        origins.into()
    }
}

/// Interned type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeId(u32);

/// Identity of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) quality: Quality,
    pub(super) sources: SetId,
    pub(super) workers: Option<WorkerDependence>,
}

/// Interner of the types of a program.
pub(super) struct Types {
    sets: Sets,
    lists: HashMap<SetId, Arc<[Origin]>>,
    keys: Vec<Key>,
    types: Vec<Type>,
    known: HashMap<Key, TypeId>,
}

impl Types {
    pub(super) fn new(sets: Sets) -> Self {
        Types {
            sets,
            lists: HashMap::new(),
            keys: Vec::new(),
            types: Vec::new(),
            known: HashMap::new(),
        }
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    pub(super) fn keep(&mut self, key: Key) -> TypeId {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let sets = &self.sets;
        let list = self.lists.entry(key.sources);
        let sources = list.or_insert_with_key(|set| sets.list(*set));
        self.types.push(Type {
            quality: key.quality,
            sources: Arc::clone(sources),
            workers: key.workers,
        });
        self.keys.push(key);
        let id = TypeId(self.types.len() as u32 - 1);
        self.known.insert(key, id);
        id
    }

    /// Returns the type of a value that depends on both.
    pub(super) fn join(&mut self, one: TypeId, other: TypeId) -> TypeId {
        if one == other {
            return one;
        }
        let (a, b) = (self.keys[one.0 as usize], self.keys[other.0 as usize]);
        let sources = self.sets.union(a.sources, b.sources);
        self.keep(Key {
            quality: a.quality.max(b.quality),
            sources,
            workers: a.workers.or(b.workers),
        })
    }
}
