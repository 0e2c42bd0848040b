//! Calls: of functions and classes of the project, and of everything else.

use std::collections::BTreeSet;
use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall, Parameters, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::object::{Kind, Loader};
use super::scope::Owner;
use super::value::{Arguments, Class, Code, Function, ObjectId, SPREAD, Shape, Value};
use super::{Call, DEEPEST, Lift};
use crate::calculus::{Operand, Site};
use crate::library::{self, Effect, KERAS_LAYER, Keras, Layer};

impl<'a> Lift<'a> {
    /// The value of a call.
    pub(super) fn call(&mut self, call: &'a ExprCall) -> Value<'a> {
        let range = call.range();
        if let Expr::Attribute(it) = &*call.func {
            let base = self.eval(&it.value);
            let arguments = self.arguments(call);
            return self.call_method(&it.value, base, it.attr.as_str(), arguments, range);
        }
        if let Expr::Name(name) = &*call.func
            && name.id == "super"
            && let Some(value) = self.superior()
        {
            return value;
        }
        let callee = self.eval(&call.func);
        let arguments = self.arguments(call);
        // Functions that change what they are given have to know where it is kept.
        if let (Shape::Library(name), Some(first)) = (&callee.shape, call.arguments.args.first())
            && matches!(library::effect_of(name), Some(Effect::DrawInto(_)))
        {
            let drawn = self.call_value(callee.clone(), arguments, range);
            let site = self.site(range);
            self.mutate(first, &drawn, site);
            return drawn;
        }
        self.call_value(callee, arguments, range)
    }

    fn superior(&mut self) -> Option<Value<'a>> {
        let call = self.calls.last()?;
        Some(Value::of(Shape::Super(call.class.clone()?, call.receiver?)))
    }

    fn arguments(&mut self, call: &'a ExprCall) -> Arguments<'a> {
        let mut arguments = Arguments::default();
        for argument in &call.arguments.args {
            let value = self.eval(argument);
            if !argument.is_starred_expr() {
                arguments.positional.push(value);
                continue;
            }
            match &value.shape {
                Shape::Tuple(parts) => arguments.positional.extend(parts.iter().cloned()),
                Shape::Object(id) => match &self.object(*id).kind {
                    Kind::Container(container) => arguments
                        .positional
                        .extend(container.elements.iter().cloned()),
                    _ => arguments.positional.push(value),
                },
                Shape::Unordered(..) | Shape::Plain => {
                    let data = self.data(&value);
                    arguments.positional.push(data);
                }
                _ => arguments.positional.push(value),
            }
        }
        for keyword in &call.arguments.keywords {
            let value = self.eval(&keyword.value);
            match &keyword.arg {
                Some(name) => arguments.named.push((name.as_str(), value)),
                None => {
                    let kind = value.as_object().map(|id| &self.object(id).kind);
                    if let Some(Kind::Container(container)) = kind {
                        let entries = container.entries.iter();
                        let named = entries.map(|(name, value, _)| (*name, value.clone()));
                        arguments.named.extend(named);
                    } else if value.is_data() && !value.operands.is_empty() {
                        arguments.named.push((SPREAD, value));
                    }
                }
            }
        }
        self.frameworks.call = Some(call);
        arguments
    }

    /// Calls a value.
    pub(super) fn call_value(
        &mut self,
        callee: Value<'a>,
        mut arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        match &callee.shape {
            Shape::Function(function) => {
                let function = function.clone();
                if self.is_generator(&function) {
                    // Its body runs as somebody goes through it.
                    return Value::of(Shape::Partial(Rc::new((
                        Value::of(Shape::Function(function)),
                        arguments,
                    ))));
                }
                self.enter(&function, arguments, range)
            }
            Shape::Class(class) => {
                let class = class.clone();
                self.instantiate(&class, arguments, range)
            }
            Shape::Library(name) => {
                let name = name.clone();
                self.call_library(&name, arguments, range)
            }
            Shape::Object(id) => self.call_object(*id, arguments, range),
            Shape::Method(id, name) => {
                let (id, name) = (*id, *name);
                self.call_object_method(id, name, arguments, range)
            }
            Shape::Partial(partial) => {
                let (callee, first) = (**partial).clone();
                let mut positional = first.positional;
                positional.append(&mut arguments.positional);
                let mut named = first.named;
                named.append(&mut arguments.named);
                self.call_value(callee, Arguments { positional, named }, range)
            }
            Shape::Loaded(..) => callee,
            _ => {
                let mut whole = self.combine(arguments.all());
                whole.depend_on(&self.data(&callee));
                whole
            }
        }
    }

    /// Calls a method of a value. `receiver` is how the script writes the value.
    fn call_method(
        &mut self,
        receiver: &'a Expr,
        base: Value<'a>,
        name: &'a str,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        match &base.shape {
            Shape::Object(id) => {
                let id = *id;
                if self.field(id, name).is_some() || self.object(id).class.is_some() {
                    let member = self.member(id, name);
                    if let Some(member) = member {
                        return self.call_value(member, arguments, range);
                    }
                }
                self.call_object_method(id, name, arguments, range)
            }
            Shape::Library(module)
                if &**module == "os.environ" && matches!(name, "get" | "setdefault") =>
            {
                let key = arguments
                    .positional
                    .first()
                    .cloned()
                    .unwrap_or_else(Value::constant);
                self.environment_variable(&key)
            }
            Shape::Library(_) => {
                let callee = self.attribute(&base, name, range);
                if let Shape::Library(full) = &callee.shape
                    && matches!(library::effect_of(full), Some(Effect::DrawInto(_)))
                {
                    let first = arguments.positional.first().cloned();
                    let drawn = self.call_value(callee, arguments, range);
                    if let Some(first) = first {
                        let site = self.site(range);
                        self.write_argument(&first, &drawn, site);
                    }
                    return drawn;
                }
                self.call_value(callee, arguments, range)
            }
            Shape::Module(_) | Shape::Class(_) => {
                let callee = self.attribute(&base, name, range);
                self.call_value(callee, arguments, range)
            }
            Shape::Super(class, id) => {
                let (class, id) = (class.clone(), *id);
                match self.super_attribute(&class, id, name) {
                    Some(callee) => self.call_value(callee, arguments, range),
                    None if name == "__init__" => {
                        self.initialize_base(id, &arguments, range);
                        Value::of(Shape::None)
                    }
                    None => self.call_object_method(id, name, arguments, range),
                }
            }
            Shape::Loaded(load, keys) => {
                if matches!(name, "get" | "pop")
                    && let Some(key) = arguments
                        .positional
                        .first()
                        .and_then(Value::as_text)
                        .copied()
                {
                    self.note_key(*load, key);
                    let keys: Vec<&'a str> = keys.iter().copied().chain([key]).collect();
                    return Value::of(Shape::Loaded(*load, keys.into()));
                }
                if matches!(name, "items" | "values" | "keys") {
                    self.note_escape(*load);
                }
                base
            }
            Shape::Settings => base,
            _ => self.call_data_method(receiver, base, name, arguments, range),
        }
    }

    /// Writes what an argument refers to: `random.shuffle(samples)`.
    pub(super) fn write_argument(&mut self, argument: &Value<'a>, by: &Value<'a>, site: Site) {
        match &argument.shape {
            Shape::Object(id) => self.write_cell(*id, by.operands.clone(), site),
            Shape::Parameters(ids) => self.write_models(ids, by, site),
            _ => {
                if let [crate::calculus::Operand::Variable(variable)] = argument.operands[..] {
                    let mut operands = argument.operands.clone();
                    operands.extend(&by.operands);
                    self.compute(variable, "changed", operands, site);
                }
            }
        }
    }

    /// An attribute of an object that can be called: a field or a method of its class.
    fn member(&mut self, id: ObjectId, name: &'a str) -> Option<Value<'a>> {
        if let Some(value) = self.field(id, name)
            && !matches!(
                value.shape,
                Shape::Plain | Shape::None | Shape::Parameters(_)
            )
        {
            return Some(value);
        }
        let class = self.object(id).class.clone()?;
        match self.class_attribute(&class, name)?.shape {
            Shape::Function(function) => {
                Some(Value::of(Shape::Function(self.bind_method(&function, id))))
            }
            _ => None,
        }
    }

    /// A method with its object, unless it wants none.
    pub(super) fn bind_method(
        &self,
        function: &Rc<Function<'a>>,
        id: ObjectId,
    ) -> Rc<Function<'a>> {
        let is_static = match function.code {
            Code::Def(code) => code
                .decorator_list
                .iter()
                .any(|it| matches!(&it.expression, Expr::Name(name) if name.id == "staticmethod")),
            Code::Lambda(_) => false,
        };
        if is_static {
            function.clone()
        } else {
            self.bound_method(function, id)
        }
    }

    /// A name in the body of a class or of those it inherits from.
    pub(super) fn class_attribute(&self, class: &Rc<Class<'a>>, name: &str) -> Option<Value<'a>> {
        self.class_attribute_within(class, name, 16)
    }

    fn class_attribute_within(
        &self,
        class: &Rc<Class<'a>>,
        name: &str,
        depth: usize,
    ) -> Option<Value<'a>> {
        if let Some(slot) = self.frame(class.body).slots.get(name) {
            let mut value = self.read(slot);
            if let Shape::Function(function) = &value.shape {
                value.shape = Shape::Function(Rc::new(Function {
                    class: Some(class.clone()),
                    ..(**function).clone()
                }));
            }
            return Some(value);
        }
        if depth == 0 {
            return None;
        }
        class.bases.iter().find_map(|base| match &base.shape {
            Shape::Class(base) => self.class_attribute_within(base, name, depth - 1),
            _ => None,
        })
    }

    /// A name in the classes that a class inherits from, for an object.
    pub(super) fn super_attribute(
        &mut self,
        class: &Rc<Class<'a>>,
        id: ObjectId,
        name: &str,
    ) -> Option<Value<'a>> {
        let found = class.bases.iter().find_map(|base| match &base.shape {
            Shape::Class(base) => self.class_attribute(base, name),
            _ => None,
        })?;
        match found.shape {
            Shape::Function(function) => {
                Some(Value::of(Shape::Function(self.bind_method(&function, id))))
            }
            _ => Some(found),
        }
    }

    /// The library classes that a class inherits from.
    pub(super) fn known_bases(&self, class: &Rc<Class<'a>>) -> Vec<Rc<str>> {
        let mut found = Vec::new();
        let mut open = vec![class.clone()];
        while let Some(class) = open.pop() {
            for base in &class.bases {
                match &base.shape {
                    Shape::Class(base) if found.len() + open.len() < 32 => open.push(base.clone()),
                    Shape::Library(name) => found.push(name.clone()),
                    _ => {}
                }
            }
        }
        found
    }

    /// A new object of a class of the project.
    fn instantiate(
        &mut self,
        class: &Rc<Class<'a>>,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let site = self.site(range);
        let bases = self.known_bases(class);
        let effects: Vec<Effect> = bases
            .iter()
            .filter_map(|name| library::effect_of(name))
            .collect();
        let id = if effects.iter().any(|it| {
            matches!(
                it,
                Effect::Module(_)
                    | Effect::Container
                    | Effect::Keras(Keras::Model | Keras::Sequential | Keras::Layer(_))
            )
        }) {
            let is_keras = effects.iter().any(|it| matches!(it, Effect::Keras(_)));
            let layer = if is_keras {
                KERAS_LAYER
            } else {
                Layer::default()
            };
            let id = self.make_module(layer, site);
            if effects.contains(&Effect::Container) {
                for part in arguments
                    .positional
                    .iter()
                    .filter_map(Value::as_object)
                    .collect::<Vec<_>>()
                {
                    self.absorb(id, part, site);
                }
            }
            id
        } else if effects.contains(&Effect::Optimizer) {
            self.make_optimizer(&arguments, site)
        } else if effects.contains(&Effect::Scheduler) {
            self.make_scheduler(&arguments, site)
        } else if bases
            .iter()
            .any(|name| &**name == "builtins.dict" || &**name == "builtins.list")
        {
            self.make(
                Kind::Container(super::object::Container::default()),
                "container",
                site,
            )
        } else {
            self.make(Kind::Plain, "object", site)
        };
        self.object_mut(id).class = Some(class.clone());
        self.entered.insert(std::ptr::from_ref(class.code) as usize);
        match self.class_attribute(class, "__init__").map(|it| it.shape) {
            Some(Shape::Function(function)) => {
                let bound = self.bound_method(&function, id);
                self.enter(&bound, arguments, range);
            }
            _ => self.fill_fields(class, id, arguments, site),
        }
        Value::object(id)
    }

    /// What the constructor of a library's class does with its arguments.
    fn initialize_base(&mut self, id: ObjectId, arguments: &Arguments<'a>, range: TextRange) {
        let site = self.site(range);
        if self.is_keras(id) {
            self.adopt(id, arguments, site);
            return;
        }
        for (name, value) in &arguments.named {
            if matches!(value.shape, Shape::Bool(_)) {
                self.set_field(id, name, name, value.clone(), site);
            }
        }
    }

    /// What a data class does with its arguments.
    fn fill_fields(
        &mut self,
        class: &Rc<Class<'a>>,
        id: ObjectId,
        arguments: Arguments<'a>,
        site: Site,
    ) {
        let mut positional = arguments.positional.into_iter();
        for statement in &class.code.body {
            let Stmt::AnnAssign(it) = statement else {
                continue;
            };
            let Expr::Name(name) = &*it.target else {
                continue;
            };
            let name = name.id.as_str();
            let given = positional.next().or_else(|| {
                arguments
                    .named
                    .iter()
                    .find(|(it, _)| *it == name)
                    .map(|(_, value)| value.clone())
            });
            if let Some(value) = given {
                self.set_field(id, name, name, value, site);
            }
        }
    }

    /// Executes a function of the project.
    pub(super) fn enter(
        &mut self,
        function: &Rc<Function<'a>>,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let address = function.code.address();
        let is_open = self
            .calls
            .iter()
            .any(|call| call.code.address() == address && call.receiver == function.receiver);
        let is_beyond = self.calls.len() >= DEEPEST || self.is_exhausted();
        if is_beyond && !is_open && !self.is_cut {
            self.is_cut = true;
            let site = self.site(range);
            let why = "the script is too large, and this call and others are not followed";
            let name = match function.code {
                Code::Def(code) => code.name.as_str(),
                Code::Lambda(_) => "lambda",
            };
            self.tell_unknown(name, site, why, true);
        }
        if !is_beyond {
            self.entered.insert(address);
        }
        if is_open || is_beyond {
            let mut whole = self.combine(arguments.all());
            if let Some(receiver) = function.receiver {
                whole.depend_on(&self.data(&Value::object(receiver)));
            }
            return whole;
        }
        let site = self.site(range);
        let module = self.frame(function.scope).module;
        let frame = self.new_frame(Some(function.scope), module, function.file);
        let parameters = match function.code {
            Code::Def(code) => Some(&*code.parameters),
            Code::Lambda(code) => code.parameters.as_deref(),
        };
        let caller = self.current;
        let statement = self.statement;
        self.bind_parameters(parameters, function, arguments, frame, site);
        self.calls.push(Call {
            code: function.code,
            file: function.file,
            class: function.class.clone(),
            receiver: function.receiver,
            loops: self.loops.len(),
            site,
            is_quiet: is_quiet(function),
            draws: self.facts.draws.len(),
            frame,
        });
        self.current = frame;
        let quiet = usize::from(is_quiet(function));
        self.no_grad += quiet;
        let result = match function.code {
            Code::Def(code) => {
                self.run_block(&code.body);
                match self.frame(frame).slots.get("return") {
                    Some(slot) => self.read(slot),
                    None => Value::of(Shape::None),
                }
            }
            Code::Lambda(code) => self.eval(&code.body),
        };
        self.no_grad -= quiet;
        self.calls.pop();
        self.current = caller;
        self.statement = statement;
        result
    }

    fn bind_parameters(
        &mut self,
        parameters: Option<&'a Parameters>,
        function: &Rc<Function<'a>>,
        arguments: Arguments<'a>,
        frame: super::value::FrameId,
        site: Site,
    ) {
        let Some(parameters) = parameters else { return };
        let mut positional = function
            .receiver
            .map(Value::object)
            .into_iter()
            .chain(arguments.positional)
            .collect::<Vec<_>>()
            .into_iter();
        let mut named = arguments.named;
        let defaults = |lift: &mut Lift<'a>, default: &'a Expr| {
            let before = std::mem::replace(&mut lift.current, function.scope);
            let value = lift.eval(default);
            lift.current = before;
            value
        };
        let owner = Owner::Frame(frame);
        for parameter in parameters.posonlyargs.iter().chain(&parameters.args) {
            let name = parameter.name().as_str();
            let given = match named.iter().position(|(it, _)| *it == name) {
                Some(at) => Some(named.swap_remove(at).1),
                None => positional.next(),
            };
            let value =
                given.or_else(|| parameter.default().map(|default| defaults(self, default)));
            self.bind_parameter(owner, name, value, site);
        }
        if let Some(rest) = &parameters.vararg {
            let rest_values: Vec<Value<'a>> = positional.collect();
            self.bind(
                owner,
                rest.name.as_str(),
                rest.name.as_str(),
                Value::of(Shape::Tuple(rest_values.into())),
                site,
            );
        }
        for parameter in &parameters.kwonlyargs {
            let name = parameter.name().as_str();
            let given = named
                .iter()
                .position(|(it, _)| *it == name)
                .map(|at| named.swap_remove(at).1);
            let value =
                given.or_else(|| parameter.default().map(|default| defaults(self, default)));
            self.bind_parameter(owner, name, value, site);
        }
        if let Some(rest) = &parameters.kwarg {
            let entries = named
                .into_iter()
                .map(|(name, value)| (name, value, site))
                .collect();
            let container = super::object::Container {
                entries,
                is_closed: true,
                ..Default::default()
            };
            let id = self.make(Kind::Container(container), "arguments", site);
            let cell = self.object(id).cell;
            self.compute(cell, "arguments", Vec::new(), site);
            self.bind(
                owner,
                rest.name.as_str(),
                rest.name.as_str(),
                Value::object(id),
                site,
            );
        }
    }

    fn bind_parameter(
        &mut self,
        owner: Owner,
        name: &'a str,
        value: Option<Value<'a>>,
        site: Site,
    ) {
        let value = value.unwrap_or_else(Value::constant);
        // What a checkpoint holds is passed on, not restored, by a call.
        // An object keeps the name of whoever made it.
        if let Shape::Loaded(..) | Shape::Parameters(_) | Shape::Object(_) = value.shape {
            if let Owner::Frame(frame) = owner {
                let slot = super::scope::Slot {
                    shape: value.shape,
                    variable: None,
                    models: value.models,
                };
                self.frames[frame.0 as usize].slots.insert(name, slot);
            }
            return;
        }
        // A parameter is its argument, under another name.
        let original = match (value.is_data(), &value.operands[..]) {
            (true, [Operand::Variable(original)]) => Some(*original),
            _ => None,
        };
        self.bind(owner, name, name, value, site);
        if let Some(original) = original {
            let parameter = self.variable_of(owner, name, name);
            self.same_value.insert(parameter, original);
        }
    }

    /// Whether a function yields; looked up once.
    fn is_generator(&mut self, function: &Function<'a>) -> bool {
        let address = function.code.address();
        *self
            .generators
            .entry(address)
            .or_insert_with(|| yields(function))
    }

    /// Enters a function that nobody calls.
    pub(super) fn enter_unasked(&mut self, function: &Rc<Function<'a>>) {
        let Code::Def(code) = function.code else {
            return;
        };
        if self
            .calls
            .iter()
            .any(|call| call.code.address() == function.code.address())
        {
            return;
        }
        let site = self.site(code.name.range);
        let arguments = self.guessed(
            &code.parameters,
            usize::from(function.receiver.is_some()),
            site,
        );
        self.enter(function, arguments, code.name.range);
    }

    /// Enters what nobody calls of a class.
    pub(super) fn enter_class(
        &mut self,
        class: &Rc<Class<'a>>,
        entered: &BTreeSet<usize>,
        site: Site,
    ) {
        let methods: Vec<&'a ruff_python_ast::StmtFunctionDef> = class
            .code
            .body
            .iter()
            .filter_map(Stmt::as_function_def_stmt)
            .collect();
        let is_new = |method: &&&'a ruff_python_ast::StmtFunctionDef| {
            !entered.contains(
                &(std::ptr::from_ref::<ruff_python_ast::StmtFunctionDef>(method) as usize),
            )
        };
        if !methods.iter().any(|method| is_new(&method)) {
            return;
        }
        let arguments = match self.class_attribute(class, "__init__").map(|it| it.shape) {
            Some(Shape::Function(function)) => match function.code {
                Code::Def(code) => self.guessed(&code.parameters, 1, site),
                Code::Lambda(_) => Arguments::default(),
            },
            _ => Arguments::default(),
        };
        let range = class.code.name.range;
        let Some(id) = self.instantiate(class, arguments, range).as_object() else {
            return;
        };
        for method in methods {
            let address = std::ptr::from_ref(method) as usize;
            if entered.contains(&address) || self.entered.contains(&address) {
                continue;
            }
            if let Some(Value {
                shape: Shape::Function(function),
                ..
            }) = self.class_attribute(class, method.name.as_str())
            {
                let bound = self.bind_method(&function, id);
                self.enter_unasked(&bound);
            }
        }
    }

    /// Arguments for a function that nobody calls: what their names promise.
    fn guessed(&mut self, parameters: &'a Parameters, skip: usize, site: Site) -> Arguments<'a> {
        let mut arguments = Arguments::default();
        for parameter in parameters
            .posonlyargs
            .iter()
            .chain(&parameters.args)
            .skip(skip)
            .chain(&parameters.kwonlyargs)
        {
            let name = parameter.name().as_str();
            let value = self.promised(name, site);
            arguments.named.push((name, value));
        }
        arguments
    }

    fn promised(&mut self, name: &str, site: Site) -> Value<'a> {
        let is = |words: &[&str]| {
            words
                .iter()
                .any(|word| name == *word || name.ends_with(&format!("_{word}")))
        };
        let id = if is(&[
            "model",
            "net",
            "network",
            "policy",
            "actor",
            "critic",
            "discriminator",
            "encoder",
            "decoder",
        ]) {
            let layer = Layer {
                has_parameters: true,
                ..Layer::default()
            };
            self.make_module(layer, site)
        } else if is(&["optimizer", "optim", "optimiser"]) {
            self.make(
                Kind::Optimizer {
                    models: Vec::new(),
                    tensors: Vec::new(),
                },
                name,
                site,
            )
        } else if is(&["scheduler", "lr_scheduler"]) {
            self.make(
                Kind::Scheduler {
                    optimizers: Vec::new(),
                },
                name,
                site,
            )
        } else if is(&["scaler", "grad_scaler"]) {
            self.make(Kind::Scaler, name, site)
        } else if name.ends_with("loader") {
            let loader = Loader {
                dataset: Value::constant(),
                shuffles: false,
                sampler: None,
                generator: None,
                has_workers: false,
                init: None,
                collate: None,
                is_opaque: true,
            };
            self.make(Kind::Loader(Rc::new(loader)), name, site)
        } else {
            return Value::constant();
        };
        self.object_mut(id).name = Some(name.to_owned());
        if !self.is_module(id) {
            let cell = self.object(id).cell;
            self.compute(cell, "given", Vec::new(), site);
        }
        Value::object(id)
    }
}

/// Whether a function is decorated to compute no gradients.
fn is_quiet(function: &Function<'_>) -> bool {
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

/// Whether the body of a function yields.
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
