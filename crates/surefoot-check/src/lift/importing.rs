//! Imports.

use super::{Lift, Shape, Slot, Value, library};
use ruff_python_ast::{StmtImport, StmtImportFrom};

impl<'a> Lift<'a> {
    pub(super) fn import(&mut self, import: &'a StmtImport) {
        let file = self.scope.frame(self.scope.current).file;
        for alias in &import.names {
            let name = alias.name.as_str();
            match &alias.asname {
                Some(short) => {
                    let value = self.module_value(file, name);
                    self.declare(short.as_str(), value);
                }
                None => {
                    let top = name.split('.').next().unwrap_or(name);
                    self.module_value(file, name);
                    let value = self.module_value(file, top);
                    self.declare(top, value);
                }
            }
        }
    }

    pub(super) fn import_from(&mut self, import: &'a StmtImportFrom) {
        let file = self.scope.frame(self.scope.current).file;
        let dots = ".".repeat(import.level as usize);
        let module = import.module.as_ref().map_or("", |name| name.as_str());
        let base = format!("{dots}{module}");
        let found = self.project.modules.resolve(file, &base);
        for alias in &import.names {
            let name = alias.name.as_str();
            if name == "*" {
                match found {
                    Some(found) => self.import_all(found),
                    None => {
                        self.scope.stars.entry(file).or_insert_with(|| base.as_str().into());
                    }
                }
                continue;
            }
            let bound = alias.asname.as_ref().map_or(name, |it| it.as_str());
            let separator = if module.is_empty() { "" } else { "." };
            let full = format!("{base}{separator}{name}");
            let value = match (self.project.modules.resolve(file, &full), found) {
                (None, Some(found)) => {
                    self.run_eagerly(found);
                    Value::of(Shape::Import(found, name))
                }
                _ => self.module_value(file, &full),
            };
            self.declare(bound, value);
        }
    }

    fn import_all(&mut self, file: crate::FileId) {
        let frame = self.run_module(file, false);
        if frame == self.scope.current {
            return;
        }
        for (name, slot) in self.scope.frame(frame).slots.clone() {
            if !name.starts_with('_') {
                let slot = Slot { variable: slot.variable, ..Slot::of(self.heap.read(&slot)) };
                self.scope.frames[self.scope.current.0 as usize].slots.insert(name, slot);
            }
        }
    }

    /// A module of the project or of a library.
    fn module_value(&mut self, importer: crate::FileId, name: &str) -> Value<'a> {
        match self.project.modules.resolve(importer, name) {
            Some(file) => {
                self.run_eagerly(file);
                Value::of(Shape::Module(file))
            }
            None => Value::library(library::canonical(name)),
        }
    }

    /// Runs a module when it is imported if it seeds generators.
    fn run_eagerly(&mut self, file: crate::FileId) {
        if self.project.script(file).seeds_when_imported {
            self.run_module(file, false);
        }
    }
}
