//! Statements of Python.

use std::rc::Rc;

use ruff_python_ast::{
    ElifElseClause, ExceptHandler, Expr, Operator, Stmt, StmtClassDef, StmtFunctionDef, StmtIf,
    StmtImport, StmtImportFrom, StmtMatch, StmtTry, StmtWith,
};
use ruff_text_size::{Ranged, TextRange};

use super::Lift;
use super::object::Kind;
use super::scope::{Owner, RESULT};
use super::value::{Class, Code, Function, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site, Statement, Variable};
use crate::library::{self, Effect};

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
                self.statement = Some(site);
            }
            if !self.run(statement) {
                return;
            }
        }
    }

    /// Whether the innermost call that matters to people is the constructor of a model.
    fn is_in_constructor_of_model(&self) -> bool {
        self.calls.iter().any(|call| {
            call.code.name() == "__init__" && call.receiver.is_some_and(|id| self.is_module(id))
        })
    }

    /// Executes a statement. Whether the next one is reached.
    fn run(&mut self, statement: &'a Stmt) -> bool {
        match statement {
            Stmt::Expr(it) => {
                self.eval(&it.value);
            }
            Stmt::Assign(it) => {
                let value = self.eval(&it.value);
                for target in &it.targets {
                    self.assign(target, value.clone(), it.range());
                }
            }
            Stmt::AnnAssign(it) => {
                if let Some(value) = &it.value {
                    let value = self.eval(value);
                    self.assign(&it.target, value, it.range());
                }
            }
            Stmt::AugAssign(it) => self.augment(&it.target, it.op, &it.value, it.range()),
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
                let value = it
                    .value
                    .as_ref()
                    .map_or_else(|| Value::of(Shape::None), |value| self.eval(value));
                self.give_back(value, it.range());
                self.leave_loops_of_call();
                return false;
            }
            Stmt::Break(_) => {
                if let Some(Some(stop)) = self.stops.last().copied() {
                    let site = self.site(statement.range());
                    self.compute(stop, "left", Vec::new(), site);
                }
                return false;
            }
            Stmt::Continue(_) | Stmt::Raise(_) => return false,
            Stmt::Global(it) => self.declare_outer(&it.names, true),
            Stmt::Nonlocal(it) => self.declare_outer(&it.names, false),
            Stmt::Delete(_)
            | Stmt::TypeAlias(_)
            | Stmt::Assert(_)
            | Stmt::Pass(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
        true
    }

    fn declare_outer(&mut self, names: &'a [ruff_python_ast::Identifier], is_global: bool) {
        let frame = &mut self.frames[self.current.0 as usize];
        frame
            .outer
            .extend(names.iter().map(|name| (name.as_str(), is_global)));
    }

    /// Joins a value to what the call gives back.
    pub(super) fn give_back(&mut self, value: Value<'a>, range: TextRange) {
        let site = self.site(range);
        let owner = Owner::Frame(self.current);
        self.bind(owner, "return", RESULT, value, site);
    }

    /// A return inside loops leaves them.
    fn leave_loops_of_call(&mut self) {
        let outside = self.calls.last().map_or(0, |call| call.loops);
        let stops: Vec<Variable> = self.stops.iter().skip(outside).flatten().copied().collect();
        for stop in stops {
            let site = self.start;
            self.compute(stop, "left", Vec::new(), site);
        }
    }

    /// Executes a branch. If one side leaves the block, the rest of it belongs to the other; then it
    /// has been executed.
    fn run_if(&mut self, branch: &'a StmtIf, rest: &'a [Stmt]) -> bool {
        self.run_branch(
            Some(&branch.test),
            &branch.body,
            &branch.elif_else_clauses,
            rest,
        )
    }

    fn run_branch(
        &mut self,
        test: Option<&'a Expr>,
        body: &'a [Stmt],
        clauses: &'a [ElifElseClause],
        rest: &'a [Stmt],
    ) -> bool {
        let Some(test) = test else {
            self.run_block(body);
            return false;
        };
        let value = self.eval(test);
        if let Some(holds) = self.certainty(test, &value) {
            if holds {
                if leaves(body) {
                    self.run_block(body);
                    return true;
                }
                self.run_block(body);
                return false;
            }
            return match clauses.split_first() {
                Some((clause, others)) => {
                    self.run_branch(clause.test.as_ref(), &clause.body, others, rest)
                }
                None => false,
            };
        }
        let site = self.site(test.range());
        let operands = self.data(&value).operands;
        let body_leaves = leaves(body);
        let others_leave = clauses.last().is_some_and(|it| it.test.is_none())
            && clauses.iter().all(|it| leaves(&it.body));
        let rest_of_body: &'a [Stmt] = if others_leave && !body_leaves {
            rest
        } else {
            &[]
        };
        let rest_of_others: &'a [Stmt] = if body_leaves { rest } else { &[] };
        let mut blocks = self.branch(vec![
            &mut |lift| {
                lift.run_block(body);
                lift.run_block(rest_of_body);
            },
            &mut |lift| {
                let done = match clauses.split_first() {
                    Some((clause, others)) => {
                        lift.run_branch(clause.test.as_ref(), &clause.body, others, rest_of_others)
                    }
                    None => false,
                };
                if !done {
                    lift.run_block(rest_of_others);
                }
            },
        ]);
        let otherwise = blocks.pop().unwrap_or_default();
        let then = blocks.pop().unwrap_or_default();
        let condition = self.program.symbol("if");
        self.emit(Statement::If {
            condition,
            operands,
            then,
            otherwise,
            site,
        });
        body_leaves || others_leave
    }

    /// Whether a condition certainly holds or certainly does not, in every execution.
    fn certainty(&self, test: &Expr, value: &Value<'a>) -> Option<bool> {
        match test {
            Expr::Compare(compare) if matches!(&*compare.left, Expr::Name(name) if name.id == "__name__") =>
            {
                let is_main = matches!(self.look_up("__name__").map(|it| it.shape), Some(Shape::Text(text)) if text == "__main__");
                Some(is_main)
            }
            Expr::BooleanLiteral(it) => Some(it.value),
            Expr::NumberLiteral(_) => match value.shape {
                Shape::Int(number) => Some(number != 0),
                _ => None,
            },
            Expr::Name(name) if name.id == "TYPE_CHECKING" => Some(false),
            // Pipelines are made with switches, too.
            Expr::Name(name) if is_mode(name.id.as_str()) => match value.shape {
                Shape::Bool(holds) => Some(holds),
                _ => None,
            },
            // Data sets are made with switches, and keep them.
            Expr::Attribute(_) if self.sampling > 0 => match value.shape {
                Shape::Bool(holds) => Some(holds),
                Shape::None => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn run_with(&mut self, with: &'a StmtWith) {
        let mut quiet = 0;
        let mut forked = None;
        for item in &with.items {
            let value = self.eval(&item.context_expr);
            if self.is_no_grad(&item.context_expr) {
                quiet += 1;
            }
            if self.is_fork(&item.context_expr) {
                let generator = self.global(library::Global::Torch);
                let site = self.site(item.range());
                let kept = self.program.variable("kept");
                let cell = self.object(generator).cell;
                self.compute(kept, "copy", vec![Operand::Variable(cell)], site);
                forked = Some((cell, kept, site));
            }
            if let Some(target) = &item.optional_vars {
                self.assign(target, value, item.range());
            }
        }
        self.no_grad += quiet;
        if quiet > 0 {
            self.quiet_from.push(self.calls.len());
        }
        self.run_block(&with.body);
        self.no_grad -= quiet;
        if quiet > 0 {
            self.quiet_from.pop();
        }
        if let Some((cell, kept, site)) = forked {
            self.compute(cell, "copy", vec![Operand::Variable(kept)], site);
        }
    }

    fn callee_name(&mut self, expression: &'a Expr) -> Option<Rc<str>> {
        let Expr::Call(call) = expression else {
            return None;
        };
        match self.eval(&call.func).shape {
            Shape::Library(name) => Some(name),
            _ => None,
        }
    }

    fn is_no_grad(&mut self, expression: &'a Expr) -> bool {
        self.callee_name(expression)
            .is_some_and(|name| library::effect_of(&name) == Some(Effect::NoGrad))
    }

    fn is_fork(&mut self, expression: &'a Expr) -> bool {
        self.callee_name(expression)
            .is_some_and(|name| &*name == "torch.random.fork_rng")
    }

    fn run_try(&mut self, it: &'a StmtTry) {
        self.tries += 1;
        self.run_block(&it.body);
        self.tries -= 1;
        for handler in &it.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            let site = self.site(handler.range());
            let blocks = self.branch(vec![&mut |lift| lift.run_block(&handler.body), &mut |_| {}]);
            let mut blocks = blocks.into_iter();
            let condition = self.program.symbol("except");
            let then = blocks.next().unwrap_or_default();
            let otherwise = blocks.next().unwrap_or_default();
            self.emit(Statement::If {
                condition,
                operands: Vec::new(),
                then,
                otherwise,
                site,
            });
        }
        self.run_block(&it.orelse);
        self.run_block(&it.finalbody);
    }

    fn run_match(&mut self, it: &'a StmtMatch) {
        let subject = self.eval(&it.subject);
        let operands = self.data(&subject).operands;
        for case in &it.cases {
            let site = self.site(case.pattern.range());
            let blocks = self.branch(vec![&mut |lift| lift.run_block(&case.body), &mut |_| {}]);
            let mut blocks = blocks.into_iter();
            let condition = self.program.symbol("case");
            let then = blocks.next().unwrap_or_default();
            let otherwise = blocks.next().unwrap_or_default();
            self.emit(Statement::If {
                condition,
                operands: operands.clone(),
                then,
                otherwise,
                site,
            });
        }
    }

    fn define(&mut self, code: &'a StmtFunctionDef) {
        let file = self.frame(self.current).file;
        let function = Function {
            code: Code::Def(code),
            file,
            scope: self.current,
            receiver: None,
            class: None,
        };
        self.declare(
            code.name.as_str(),
            Value::of(Shape::Function(Rc::new(function))),
        );
    }

    fn define_class(&mut self, code: &'a StmtClassDef) {
        let arguments = code.arguments.as_deref();
        let bases: Vec<Value<'a>> = arguments.map_or_else(Vec::new, |it| {
            it.args.iter().map(|base| self.eval(base)).collect()
        });
        let (file, module) = (
            self.frame(self.current).file,
            self.frame(self.current).module,
        );
        let body = self.new_frame(Some(self.current), module, file);
        let before = std::mem::replace(&mut self.current, body);
        let statement = self.statement;
        self.run_block(&code.body);
        self.statement = statement;
        self.current = before;
        let class = Class { code, body, bases };
        self.declare(code.name.as_str(), Value::of(Shape::Class(Rc::new(class))));
    }

    fn import(&mut self, import: &'a StmtImport) {
        let file = self.frame(self.current).file;
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

    fn import_from(&mut self, import: &'a StmtImportFrom) {
        let file = self.frame(self.current).file;
        let dots = ".".repeat(import.level as usize);
        let module = import.module.as_ref().map_or("", |name| name.as_str());
        let base = format!("{dots}{module}");
        let found = self.project.modules.resolve(file, &base);
        for alias in &import.names {
            let name = alias.name.as_str();
            if name == "*" {
                if let Some(found) = found {
                    self.import_all(found);
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
        if frame == self.current {
            return;
        }
        let slots = self.frame(frame).slots.clone();
        for (name, slot) in slots {
            if !name.starts_with('_') {
                let value = self.read(&slot);
                self.frames[self.current.0 as usize].slots.insert(
                    name,
                    super::scope::Slot {
                        shape: value.shape,
                        variable: slot.variable,
                        models: value.models,
                    },
                );
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

    /// Runs a module at its import if it does something that others rely on.
    fn run_eagerly(&mut self, file: crate::FileId) {
        if self.project.script(file).seeds_when_imported {
            self.run_module(file, false);
        }
    }

    /// How the script writes an expression.
    pub(super) fn shown(&self, expression: &Expr) -> String {
        let file = self
            .calls
            .last()
            .map_or_else(|| self.frame(self.current).file, |call| call.file);
        let text = &self.project.script(file).source.text;
        let shown = text
            .get(expression.range().to_std_range())
            .unwrap_or_default();
        shown.chars().take(60).collect()
    }

    /// Assigns a value to whatever stands on the left.
    pub(super) fn assign(&mut self, target: &'a Expr, value: Value<'a>, range: TextRange) {
        match target {
            Expr::Name(name) => {
                let site = self.site(range);
                let name = name.id.as_str();
                let owner = self.owner_of(name);
                let value = without_empty_parameters(value);
                self.bind(owner, name, name, value, site);
            }
            Expr::Attribute(attribute) => {
                let site = self.site(range);
                let base = self.eval(&attribute.value);
                let name = attribute.attr.as_str();
                match base.shape {
                    Shape::Object(id) => {
                        let shown = self.shown(target);
                        self.set_field(id, name, &shown, value, site);
                    }
                    Shape::Library(module) => {
                        self.set_library(&format!("{module}.{name}"), &value, site)
                    }
                    Shape::Module(file) => {
                        let frame = self.run_module(file, false);
                        self.bind(Owner::Frame(frame), name, name, value, site);
                    }
                    Shape::Parameters(ids) => {
                        if name == "grad" {
                            self.clear_gradients(&ids, site);
                        } else if !matches!(name, "requires_grad" | "trainable") {
                            self.write_models(&ids, &value, site);
                        }
                    }
                    Shape::Settings | Shape::Class(_) | Shape::Function(_) => {}
                    _ => self.mutate(&attribute.value, &value, site),
                }
            }
            Expr::Subscript(subscript) => {
                let site = self.site(range);
                let base = self.eval(&subscript.value);
                let index = self.eval(&subscript.slice);
                self.set_item(&subscript.value, &base, &index, value, site);
            }
            Expr::Tuple(tuple) => self.assign_parts(&tuple.elts, value, range),
            Expr::List(list) => self.assign_parts(&list.elts, value, range),
            Expr::Starred(starred) => {
                let data = self.data(&value);
                self.assign(&starred.value, data, range);
            }
            _ => {}
        }
    }

    fn assign_parts(&mut self, targets: &'a [Expr], value: Value<'a>, range: TextRange) {
        let parts: Option<Vec<Value<'a>>> = match &value.shape {
            Shape::Tuple(parts) if parts.len() == targets.len() => Some(parts.to_vec()),
            Shape::Object(id) => match &self.object(*id).kind {
                Kind::Container(container)
                    if container.is_closed && container.elements.len() == targets.len() =>
                {
                    Some(container.elements.clone())
                }
                _ => None,
            },
            Shape::Loaded(..) | Shape::Parameters(_) | Shape::State(_) | Shape::Key => {
                Some(vec![value.clone(); targets.len()])
            }
            _ => None,
        };
        match parts {
            Some(parts) => {
                for (target, part) in targets.iter().zip(parts) {
                    self.assign(target, part, range);
                }
            }
            None => {
                let data = self.data(&value);
                for target in targets {
                    self.assign(target, data.clone(), range);
                }
            }
        }
    }

    /// Sets an attribute of an object.
    pub(super) fn set_field(
        &mut self,
        id: ObjectId,
        name: &'a str,
        shown: &str,
        value: Value<'a>,
        site: Site,
    ) {
        if matches!(name, "learning_rate" | "lr") && self.is_optimizer(id) {
            let operands = self.data(&value).operands;
            self.write_cell(id, operands, site);
            return;
        }
        if name == "stop_training" && self.is_module(id) {
            let operands = self.data(&value).operands;
            self.stop_library_loop(operands, site);
            return;
        }
        if self.is_module(id) {
            let registered = matches!(
                self.object(id).fields.get(name).map(|slot| &slot.shape),
                Some(Shape::Parameters(_))
            );
            match &value.shape {
                Shape::Object(part) if self.is_module(*part) => self.absorb(id, *part, site),
                Shape::Object(part) => {
                    // A list of layers.
                    if let Kind::Container(container) = &self.object(*part).kind {
                        let parts: Vec<ObjectId> = container
                            .elements
                            .iter()
                            .filter_map(Value::as_object)
                            .collect();
                        for part in parts {
                            self.absorb(id, part, site);
                        }
                    }
                }
                Shape::Parameters(ids) if ids.is_empty() => {
                    self.register(id, name, &value, site);
                    return;
                }
                Shape::Plain if registered => {
                    self.write_models(&[id], &value, site);
                    return;
                }
                _ => {}
            }
        }
        let value = without_empty_parameters(value);
        let id = self.actual(id);
        self.bind(Owner::Object(id), name, shown, value, site);
    }

    /// Makes a value a parameter or a buffer of a model.
    pub(super) fn register(&mut self, id: ObjectId, name: &'a str, value: &Value<'a>, site: Site) {
        let cell = self.cell(id);
        let mut operands = vec![Operand::Variable(cell)];
        operands.extend(self.data(value).operands);
        self.compute(cell, "parameter", operands, site);
        let root = self.root(id);
        for id in [id, root] {
            if let Kind::Module { layer, .. } = &mut self.object_mut(id).kind {
                layer.has_parameters = true;
            }
        }
        let id = self.actual(id);
        let slot = super::scope::Slot {
            shape: Shape::Parameters(Rc::new([id])),
            variable: None,
            models: self.models_of(id),
        };
        self.object_mut(id).fields.insert(name, slot);
    }

    /// Writes the parameters of models.
    pub(super) fn write_models(&mut self, ids: &[ObjectId], value: &Value<'a>, site: Site) {
        let operands = self.data(value).operands;
        for id in ids {
            let cell = self.cell(*id);
            let mut all = vec![Operand::Variable(cell)];
            all.extend(operands.iter().copied());
            self.compute(cell, "write", all, site);
            if self.loops.is_empty() {
                self.note_rewrite(cell, site);
            } else if self.holds_gradients(&operands) {
                self.note_trained(cell);
                self.note_step();
            } else if operands.iter().any(
                |it| matches!(it, Operand::Variable(it) if *it != cell && self.cells.contains(it)),
            ) {
                // An average of another model.
                self.note_trained(cell);
            }
        }
    }

    /// Whether gradients are among the operands.
    fn holds_gradients(&self, operands: &[Operand]) -> bool {
        self.models.iter().any(|id| match self.object(*id).kind {
            Kind::Module { gradients, .. } => operands.contains(&Operand::Variable(gradients)),
            _ => false,
        })
    }

    fn set_item(
        &mut self,
        of: &'a Expr,
        base: &Value<'a>,
        index: &Value<'a>,
        value: Value<'a>,
        site: Site,
    ) {
        if matches!(&base.shape, Shape::Library(name) if &**name == "os.environ") {
            self.set_environment(index, &value, site);
            return;
        }
        let Some(id) = base.as_object() else {
            let mut changed = self.data(&value);
            let index = self.data(index);
            changed.depend_on(&index);
            self.mutate(of, &changed, site);
            return;
        };
        let data = self.data(&value);
        let text = index.as_text().cloned();
        let in_loop = !self.loops.is_empty();
        if let Kind::Container(container) = &mut self.object_mut(id).kind {
            match text {
                Some(key) => {
                    container.entries.retain(|(it, _, _)| *it != key);
                    container.entries.push((key, value, site));
                }
                None => container.is_closed &= !in_loop,
            }
        }
        let mut operands = data.operands;
        operands.extend(self.data(index).operands);
        self.write_cell(id, operands, site);
    }

    /// `cell := f(cell, operands)` for the state of an object.
    pub(super) fn write_cell(&mut self, id: ObjectId, operands: Vec<Operand>, site: Site) {
        if matches!(
            self.object(id).kind,
            Kind::Plain | Kind::Loader(_) | Kind::Transform { .. } | Kind::Framework(_)
        ) {
            return;
        }
        let cell = self.cell(id);
        let mut all = vec![Operand::Variable(cell)];
        all.extend(
            operands
                .into_iter()
                .filter(|operand| *operand != Operand::Variable(cell)),
        );
        self.compute(cell, "write", all, site);
    }

    /// Changes whatever an expression stands for.
    pub(super) fn mutate(&mut self, expression: &'a Expr, by: &Value<'a>, site: Site) {
        let value = self.eval_quietly(expression);
        let operands = self.data(by).operands;
        match value.shape {
            Shape::Object(id) => self.write_cell(id, operands, site),
            Shape::Parameters(ids) => self.write_models(&ids, by, site),
            Shape::Plain | Shape::Unordered(..) | Shape::None | Shape::Int(_) => {
                match (expression, value.operands.as_slice()) {
                    (Expr::Name(_) | Expr::Attribute(_), [Operand::Variable(variable)])
                        if !self.is_cell(*variable) =>
                    {
                        let mut all = vec![Operand::Variable(*variable)];
                        all.extend(
                            operands
                                .into_iter()
                                .filter(|it| *it != Operand::Variable(*variable)),
                        );
                        self.compute(*variable, "changed", all, site);
                    }
                    (Expr::Subscript(it), _) => self.mutate(&it.value, by, site),
                    (Expr::Attribute(it), _) => self.mutate(&it.value, by, site),
                    (Expr::Call(it), _) => {
                        if let Expr::Attribute(it) = &*it.func {
                            self.mutate(&it.value, by, site);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Whether a variable is the state of an object.
    fn is_cell(&self, variable: Variable) -> bool {
        self.cells.contains(&variable)
    }

    fn augment(&mut self, target: &'a Expr, operator: Operator, value: &'a Expr, range: TextRange) {
        let site = self.site(range);
        let by = self.eval(value);
        let now = self.eval(target);
        match (&now.shape, target) {
            (Shape::Object(id), _) => {
                let data = self.data(&by);
                if let Kind::Container(container) = &mut self.object_mut(*id).kind {
                    container.is_closed = false;
                }
                self.write_cell(*id, data.operands, site);
            }
            (Shape::Parameters(ids), _) => self.write_models(ids, &by, site),
            (_, Expr::Attribute(attribute))
                if matches!(
                    self.eval_quietly(&attribute.value).shape,
                    Shape::Parameters(_)
                ) =>
            {
                self.mutate(&attribute.value, &by, site);
            }
            (_, Expr::Subscript(subscript)) => {
                let mut changed = self.data(&by);
                let index = self.eval(&subscript.slice);
                changed.depend_on(&self.data(&index));
                self.mutate(&subscript.value, &changed, site);
            }
            _ => {
                let is_count = matches!(operator, Operator::Add)
                    && matches!(by.shape, Shape::Int(_))
                    && by.operands.is_empty();
                let mut whole = self.data(&now);
                if is_count {
                    if let [Operand::Variable(variable)] = whole.operands[..] {
                        self.count(target, variable, site);
                        return;
                    }
                } else {
                    whole.depend_on(&self.data(&by));
                    let is_sum = operator == Operator::Add && by.models.is_empty();
                    if let ([Operand::Variable(variable), ..], true) = (&whole.operands[..], is_sum)
                    {
                        self.note_counted(*variable);
                    }
                }
                self.assign(target, whole, range);
            }
        }
    }

    /// Notes that a variable counts the rounds of the loops around it.
    pub(super) fn note_counted(&mut self, variable: Variable) {
        for id in self.loops.clone() {
            let positions = &mut self.facts.loops[id.0 as usize].positions;
            if !positions.contains(&variable) {
                positions.push(variable);
            }
        }
    }

    /// `x += 1`: tells how far the loops around it have come.
    fn count(&mut self, target: &'a Expr, variable: Variable, site: Site) {
        self.note_counted(variable);
        self.compute(variable, "succ", vec![Operand::Variable(variable)], site);
        let (owner, name) = match target {
            Expr::Name(name) => (self.owner_of(name.id.as_str()), name.id.as_str()),
            Expr::Attribute(it) => match self.eval_quietly(&it.value).shape {
                Shape::Object(id) => (Owner::Object(self.actual(id)), it.attr.as_str()),
                _ => return,
            },
            _ => return,
        };
        self.forget_literal(owner, name);
    }
}

/// A parameter that is no model's is a tensor like others.
fn without_empty_parameters(mut value: Value<'_>) -> Value<'_> {
    if matches!(&value.shape, Shape::Parameters(ids) if ids.is_empty()) {
        value.shape = Shape::Plain;
    }
    value
}

/// Whether a name tells what a pipeline or a model is made for.
fn is_mode(name: &str) -> bool {
    matches!(
        name,
        "training" | "train" | "is_training" | "is_train" | "shuffle" | "shuffled" | "augment"
    )
}

/// Whether a block surely ends by leaving the function or the round of the loop.
fn leaves(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Return(_) | Stmt::Break(_) | Stmt::Continue(_)) => true,
        Some(Stmt::If(it)) => {
            let clauses = &it.elif_else_clauses;
            clauses.last().is_some_and(|clause| clause.test.is_none())
                && leaves(&it.body)
                && clauses.iter().all(|clause| leaves(&clause.body))
        }
        Some(Stmt::With(it)) => leaves(&it.body),
        _ => false,
    }
}
