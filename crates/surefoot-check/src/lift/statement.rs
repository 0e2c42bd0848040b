//! Statements of Python.

use std::rc::Rc;

use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::{Class, Code, Function, Lift, Owner, RESULT, Scope, Shape, Site, Value, Variable};

impl<'a> Lift<'a> {
    /// Executes statements one after the other.
    pub(super) fn run_block(&mut self, statements: &'a [Stmt]) {
        for (index, statement) in statements.iter().enumerate() {
            if let Stmt::If(branch) = statement {
                let rest = &statements[index + 1..];
                if self.run_if(branch, rest) {
                    return;
                }
                continue;
            }
            if !self.is_in_constructor_of_model() {
                let site = self.site(statement.range());
                self.execution.statement = Some(site);
            }
            if !self.run(statement) {
                return;
            }
        }
    }

    /// Returns true if the innermost relevant call is the constructor of a model.
    fn is_in_constructor_of_model(&self) -> bool {
        self.execution.calls.iter().any(|call| {
            call.code.name() == "__init__"
                && call.receiver.is_some_and(|id| self.heap.is_module(id))
        })
    }

    /// Executes a statement. Returns true if the next one is reached.
    pub(super) fn run(&mut self, statement: &'a Stmt) -> bool {
        match statement {
            Stmt::Expr(it) => {
                self.eval(&it.value);
            }
            Stmt::Assign(it) => {
                let value = self.eval(&it.value);
                for target in &it.targets {
                    let site = self.site(it.range());
                    self.assign(target, value.clone(), site);
                }
            }
            Stmt::AnnAssign(it) => {
                if let Some(value) = &it.value {
                    let value = self.eval(value);
                    let site = self.site(it.range());
                    self.assign(&it.target, value, site);
                }
            }
            Stmt::AugAssign(it) => {
                let site = self.site(it.range());
                self.augment(&it.target, it.op, &it.value, site)
            }
            Stmt::For(it) => self.run_for(it),
            Stmt::While(it) => self.run_while(it),
            Stmt::If(it) => return !self.run_if(it, &[]),
            Stmt::With(it) => self.run_with(it),
            Stmt::Try(it) => self.run_try(it),
            Stmt::Match(it) => self.run_match(it),
            Stmt::FunctionDef(it) => self.define(it),
            Stmt::ClassDef(it) => self.define_class(it),
            Stmt::Import(it) => self.import(it),
            Stmt::ImportFrom(it) => self.import_from(it),
            Stmt::Return(it) => {
                let value = it.value.as_ref().map_or_else(Value::none, |value| self.eval(value));
                let site = self.site(it.range());
                self.return_back(value, site);
                self.leave_loops_of_call();
                return false;
            }
            Stmt::Break(_) => {
                if let Some(Some(stop)) = self.program.stops.last().copied() {
                    let site = self.site(statement.range());
                    self.program.compute(stop, "left", [], site);
                }
                return false;
            }
            Stmt::Continue(_) | Stmt::Raise(_) => return false,
            Stmt::Global(it) => self.scope.declare_outer(&it.names, true),
            Stmt::Nonlocal(it) => self.scope.declare_outer(&it.names, false),
            Stmt::Delete(_)
            | Stmt::TypeAlias(_)
            | Stmt::Assert(_)
            | Stmt::Pass(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
        true
    }

    /// Joins a value to the result of the call.
    pub(super) fn return_back(&mut self, mut value: Value<'a>, site: Site) {
        if value.is_data() {
            value.operands.extend(self.program.open_orders());
        }
        let owner = Owner::Frame(self.scope.current);
        self.bind(owner, "return", RESULT, value, site);
    }

    /// Leaves the loops around a `return`.
    fn leave_loops_of_call(&mut self) {
        let outside = self.execution.calls.last().map_or(0, |call| call.loops);
        let stops: Vec<Variable> =
            self.program.stops.iter().skip(outside).flatten().copied().collect();
        for stop in stops {
            self.program.compute(stop, "left", [], super::facts::START);
        }
    }

    fn define(&mut self, code: &'a StmtFunctionDef) {
        let file = self.scope.frame(self.scope.current).file;
        let (code, name, scope) = (Code::Def(code), code.name.as_str(), self.scope.current);
        let function = Function { code, file, scope, receiver: None, class: None };
        self.declare(name, Value::of(Shape::Function(Rc::new(function))));
    }

    fn define_class(&mut self, code: &'a StmtClassDef) {
        let args = code.arguments.as_deref();
        let bases: Vec<Value<'a>> =
            args.map_or_else(Vec::new, |it| it.args.iter().map(|base| self.eval(base)).collect());
        let frame = self.scope.frame(self.scope.current);
        let (file, module) = (frame.file, frame.module);
        let body = self.scope.new_frame(Some(self.scope.current), module, file);
        let before = std::mem::replace(&mut self.scope.current, body);
        let statement = self.execution.statement;
        self.run_block(&code.body);
        self.execution.statement = statement;
        self.scope.current = before;
        let class = Class { code, body, bases };
        self.declare(code.name.as_str(), Value::of(Shape::Class(Rc::new(class))));
    }

    /// Source text of an expression.
    pub(super) fn shown(&self, expression: &Expr) -> String {
        let text = &self.project.script(self.file()).source.text;
        let shown = text.get(expression.range().to_std_range()).unwrap_or_default();
        shown.chars().take(60).collect()
    }
}

impl<'a> Scope<'a> {
    fn declare_outer(&mut self, names: &'a [ruff_python_ast::Identifier], is_global: bool) {
        let frame = &mut self.frames[self.current.0 as usize];
        frame.outer.extend(names.iter().map(|name| (name.as_str(), is_global)));
    }
}
