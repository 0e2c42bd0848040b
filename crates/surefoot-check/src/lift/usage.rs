//! Facts about a module that its syntax tree shows before it is executed.

use std::collections::{BTreeSet, HashMap};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, ModModule, Stmt};

use super::{canonical, is_one_of};
use crate::walk::{each_expr, each_stmt, has_expr};

/// Methods that train or save a model.
const TRAINING_METHODS: &str = "apply_gradients apply_updates backward fit minimize parameters step \
    train_on_batch train_step value_and_grad";

/// Library functions and devices that a module refers to, by resolved name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Imports JAX or a library on top of it.
    pub jax: bool,
    /// Writes values with `json.dump`.
    pub json_dump: bool,
    /// Writes arrays with `numpy.savez`.
    pub array_save: bool,
    /// Refers to a GPU: `torch.cuda`, `.cuda()`, or the name of such a device.
    pub gpu: bool,
    /// Switches deterministic algorithms on.
    pub deterministic: bool,
}

impl Usage {
    /// Reads a module.
    pub(super) fn of(module: &ModModule) -> Usage {
        let mut names = Names::default();
        names.visit_body(&module.body);
        names.is_resolving = true;
        names.visit_body(&module.body);
        names.usage
    }
}

/// Collects the names that imports bind, then resolves what expressions refer to.
#[derive(Default)]
struct Names<'a> {
    bound: HashMap<&'a str, String>,
    is_resolving: bool,
    usage: Usage,
}

impl<'a> Names<'a> {
    fn import(&mut self, bound: &'a str, name: &str) {
        let root = name.split('.').next().unwrap_or(name);
        self.usage.jax |= matches!(root, "jax" | "flax" | "haiku" | "optax" | "orbax");
        self.bound.insert(bound, canonical(name).into_owned());
    }

    /// The qualified name of an expression such as `torch.cuda.is_available`.
    fn resolve(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Name(name) => self.bound.get(name.id.as_str()).cloned(),
            Expr::Attribute(it) => {
                Some(canonical(&format!("{}.{}", self.resolve(&it.value)?, it.attr)).into_owned())
            }
            _ => None,
        }
    }

    fn refer(&mut self, name: &str) {
        match name {
            "json.dump" => self.usage.json_dump = true,
            "numpy.savez" | "numpy.savez_compressed" => self.usage.array_save = true,
            "tensorflow.config.experimental.enable_op_determinism" => {
                self.usage.deterministic = true;
            }
            _ => self.usage.gpu |= name == "torch.cuda" || name.starts_with("torch.cuda."),
        }
    }

    fn call(&mut self, call: &ExprCall) {
        if let Expr::Attribute(it) = &*call.func {
            self.usage.gpu |= it.attr.as_str() == "cuda";
        }
        let is_on = call
            .arguments
            .find_argument_value("mode", 0)
            .is_some_and(|it| matches!(it, Expr::BooleanLiteral(it) if it.value));
        if is_on
            && self.resolve(&call.func).as_deref() == Some("torch.use_deterministic_algorithms")
        {
            self.usage.deterministic = true;
        }
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) if !self.is_resolving => {
                for alias in &import.names {
                    let name = alias.name.as_str();
                    let top = name.split('.').next().unwrap_or(name);
                    match &alias.asname {
                        Some(short) => self.import(short.as_str(), name),
                        None => self.import(top, top),
                    }
                }
            }
            Stmt::ImportFrom(import) if !self.is_resolving && import.level == 0 => {
                let module = import.module.as_ref().map_or("", |it| it.as_str());
                for alias in &import.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.import(bound.as_str(), &format!("{module}.{}", alias.name));
                }
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if !self.is_resolving {
            return;
        }
        match expression {
            Expr::Attribute(_) | Expr::Name(_) => {
                if let Some(name) = self.resolve(expression) {
                    self.refer(&name);
                }
            }
            Expr::StringLiteral(text) => {
                let text = text.value.to_str();
                self.usage.gpu |= is_gpu(text);
                self.usage.deterministic |= text == "TF_DETERMINISTIC_OPS";
            }
            Expr::Call(call) => self.call(call),
            _ => {}
        }
        walk_expr(self, expression);
    }
}

/// Returns true for the name of a GPU: `cuda:0`, `GPU`, `/device:gpu:1`.
fn is_gpu(device: &str) -> bool {
    let device = device.trim_start_matches('/').to_ascii_lowercase();
    let device = device.strip_prefix("device:").unwrap_or(&device);
    let kind = device.split(':').next().unwrap_or(device);
    matches!(kind, "cuda" | "gpu")
}

/// Returns true if statements call a method that trains or saves a model.
pub(super) fn trains(body: &[Stmt]) -> bool {
    has_expr(body, |it| method(it).is_some_and(|(_, name)| is_one_of(name, TRAINING_METHODS)))
}

/// Returns true if statements contain a loop.
pub(super) fn loops(body: &[Stmt]) -> bool {
    let mut found = false;
    each_stmt(body, |it| found |= matches!(it, Stmt::For(_) | Stmt::While(_)));
    found
}

/// Returns true if statements call `self.name(..)`.
pub(super) fn calls_member(body: &[Stmt], name: &str) -> bool {
    has_expr(body, |it| match method(it) {
        Some((Expr::Name(receiver), it)) => receiver.id == "self" && it == name,
        _ => false,
    })
}

/// The names that statements call.
pub(super) fn called_names(body: &[Stmt]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    each_expr(body, |it| {
        let callee = it.as_call_expr().and_then(|call| call.func.as_name_expr());
        names.extend(callee.map(|name| name.id.as_str()));
        true
    });
    names
}

/// The receiver and the name of a method that an expression calls.
fn method(expression: &Expr) -> Option<(&Expr, &str)> {
    let callee = expression.as_call_expr()?.func.as_attribute_expr()?;
    Some((&callee.value, callee.attr.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ModModule {
        ruff_python_parser::parse_module(text).unwrap().into_syntax()
    }

    #[test]
    fn code_that_steps_an_optimizer_trains() {
        assert!(trains(&parse("def f(o):\n    for x in y:\n        o.step()\n").body));
        assert!(!trains(&parse("def f(x):\n    return x.sum()\n").body));
    }

    #[test]
    fn functions_are_found_through_their_imports() {
        let usage = Usage::of(&parse("import numpy as np\nnp.savez('f', a=1)\n"));
        assert_eq!(usage, Usage { array_save: true, ..Usage::default() });
        let usage = Usage::of(&parse("from json import dump as put\nput(1, f)\n"));
        assert_eq!(usage, Usage { json_dump: true, ..Usage::default() });
        assert_eq!(Usage::of(&parse("# cuda jax json.dump(\nsavez = 1\n")), Usage::default());
    }

    #[test]
    fn a_gpu_is_a_module_a_method_or_the_name_of_a_device() {
        for text in ["import torch\ntorch.cuda.empty_cache()", "m.cuda()", "d = 'cuda:0'"] {
            assert!(Usage::of(&parse(text)).gpu, "{text}");
        }
        assert!(!Usage::of(&parse("print('needs cuda')")).gpu);
    }

    #[test]
    fn deterministic_algorithms_are_on_only_if_switched_on() {
        let of = |flag: &str| {
            let text = format!("import torch\ntorch.use_deterministic_algorithms({flag})\n");
            Usage::of(&parse(&text)).deterministic
        };
        assert!(of("True") && !of("False"));
    }
}
