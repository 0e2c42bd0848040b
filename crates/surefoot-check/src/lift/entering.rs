//! Functions of the project, entered where they are called.

use super::{
    Args, Call, Code, Container, Execution, FrameId, Function, Kind, Lift, MAX_CALL_DEPTH, Operand,
    Owner, Shape, Site, Slot, Value,
};
use ruff_python_ast::{Expr, ParameterWithDefault, Parameters, Stmt};
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Executes a function of the project.
    pub(super) fn enter(&mut self, function: &Rc<Function<'a>>, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        let address = function.code.address();
        let mut calls = self.execution.calls.iter();
        let is_open =
            calls.any(|call| call.code.address() == address && call.receiver == function.receiver);
        let is_beyond = self.execution.calls.len() >= MAX_CALL_DEPTH || self.program.is_exhausted();
        if is_beyond && !is_open && !self.execution.is_truncated {
            self.execution.is_truncated = true;
            self.program.facts.is_truncated = true;
            let why = "the script is too large, and this call and others are not followed";
            self.program.report_unknown(function.code.name(), site, why, true);
        }
        if !is_beyond {
            self.execution.entered.insert(address);
        }
        if is_open || is_beyond {
            let mut whole = self.heap.combine(args.all());
            if let Some(receiver) = function.receiver {
                whole.depend_on(&self.heap.data(&Value::object(receiver)));
            }
            return whole;
        }
        let module = self.scope.frame(function.scope).module;
        let frame = self.scope.new_frame(Some(function.scope), module, function.file);
        let parameters = match function.code {
            Code::Def(code) => Some(&*code.parameters),
            Code::Lambda(code) => code.parameters.as_deref(),
        };
        let caller = self.scope.current;
        let statement = self.execution.statement;
        self.bind_parameters(parameters, function, args, frame);
        self.execution.calls.push(Call {
            code: function.code,
            file: function.file,
            class: function.class.clone(),
            receiver: function.receiver,
            loops: self.program.loops.len(),
            site,
            is_no_grad: is_no_grad(function),
            draws: self.program.facts.draws.len(),
            frame,
        });
        self.scope.current = frame;
        let steps = self.program.facts.steps.len();
        let quiet = usize::from(is_no_grad(function));
        self.execution.no_grad += quiet;
        let result = match function.code {
            Code::Def(code) => {
                self.run_block(&code.body);
                match self.scope.frame(frame).slots.get("return") {
                    Some(slot) => self.heap.read(slot),
                    None => Value::none(),
                }
            }
            Code::Lambda(code) => self.eval(&code.body),
        };
        self.execution.no_grad -= quiet;
        if self.program.facts.steps.len() > steps {
            self.program.facts.steps.push(site);
        }
        self.execution.calls.pop();
        self.scope.current = caller;
        self.execution.statement = statement;
        result
    }

    fn bind_parameters(
        &mut self,
        parameters: Option<&'a Parameters>,
        function: &Rc<Function<'a>>,
        args: Args<'a>,
        frame: FrameId,
    ) {
        let site = args.site;
        let Some(parameters) = parameters else { return };
        let receiver = function.receiver.map(Value::object).into_iter();
        let mut positional = receiver.chain(args.positional);
        let mut named = args.named;
        let owner = Owner::Frame(frame);
        for parameter in parameters.posonlyargs.iter().chain(&parameters.args) {
            let passed = take(&mut named, parameter).or_else(|| positional.next());
            self.bind_parameter(owner, parameter, passed, function.scope, site);
        }
        if let Some(rest) = &parameters.vararg {
            let (name, values) = (rest.name.as_str(), positional.collect::<Vec<_>>());
            self.bind(owner, name, name, Value::tuple(values), site);
        }
        for parameter in &parameters.kwonlyargs {
            let passed = take(&mut named, parameter);
            self.bind_parameter(owner, parameter, passed, function.scope, site);
        }
        if let Some(rest) = &parameters.kwarg {
            let entries = named.into_iter().map(|(name, value)| (name, value, site)).collect();
            let container = Container { entries, is_closed: true, ..Container::default() };
            let id = self.make(Kind::Container(container), "arguments", site);
            self.write_state(id, "arguments", [], site);
            self.bind(owner, rest.name.as_str(), rest.name.as_str(), Value::object(id), site);
        }
    }

    /// Binds a parameter to the argument passed for it, or to its default, evaluated in `scope`.
    fn bind_parameter(
        &mut self,
        owner: Owner,
        parameter: &'a ParameterWithDefault,
        passed: Option<Value<'a>>,
        scope: FrameId,
        site: Site,
    ) {
        let name = parameter.name().as_str();
        let value = match (passed, parameter.default()) {
            (Some(value), _) => value,
            (None, Some(default)) => {
                let before = std::mem::replace(&mut self.scope.current, scope);
                let value = self.eval(default);
                self.scope.current = before;
                value
            }
            (None, None) => Value::constant(),
        };
        // Passing an entry of a checkpoint to a call does not restore it.
        // An object keeps its first name.
        if let Shape::Loaded(..) | Shape::Parameters(_) | Shape::Object(_) = value.shape {
            self.replace(owner, name, Some(Slot::of(value)));
            return;
        }
        // A parameter is an alias of its argument.
        let original = match (value.is_data(), &value.operands[..]) {
            (true, [Operand::Variable(original)]) => Some(*original),
            _ => None,
        };
        self.bind(owner, name, name, value, site);
        if let Some(original) = original {
            let parameter = self.variable_of(owner, name, name);
            self.heap.same_value.insert(parameter, original);
        }
    }
}

impl<'a> Execution<'a> {
    /// Returns true if a function yields; looked up once.
    pub(super) fn is_generator(&mut self, function: &Function<'a>) -> bool {
        let address = function.code.address();
        *self.generators.entry(address).or_insert_with(|| yields(function))
    }
}

/// Removes the argument of a parameter from the keyword arguments.
fn take<'a>(
    named: &mut Vec<(&'a str, Value<'a>)>,
    parameter: &ParameterWithDefault,
) -> Option<Value<'a>> {
    let at = named.iter().position(|(it, _)| *it == parameter.name().as_str())?;
    Some(named.swap_remove(at).1)
}

/// Returns true if a decorator disables gradients in a function.
fn is_no_grad(function: &Function<'_>) -> bool {
    let Code::Def(code) = function.code else {
        return false;
    };
    code.decorator_list.iter().any(|it| {
        let expression = match &it.expression {
            Expr::Call(call) => &call.func,
            other => other,
        };
        matches!(expression, Expr::Attribute(it) if matches!(it.attr.as_str(), "no_grad" | "inference_mode"))
    })
}

/// Returns true if the body of a function yields.
fn yields(function: &Function<'_>) -> bool {
    use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};

    struct Yields(bool);
    impl<'v> Visitor<'v> for Yields {
        fn visit_stmt(&mut self, statement: &'v Stmt) {
            if !self.0 && !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
                walk_stmt(self, statement);
            }
        }

        fn visit_expr(&mut self, expression: &'v Expr) {
            match expression {
                Expr::Yield(_) | Expr::YieldFrom(_) => self.0 = true,
                Expr::Lambda(_) => {}
                _ if self.0 => {}
                _ => walk_expr(self, expression),
            }
        }
    }

    let Code::Def(code) = function.code else {
        return false;
    };
    let mut found = Yields(false);
    found.visit_body(&code.body);
    found.0
}
