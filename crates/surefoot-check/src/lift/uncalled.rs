//! Code without a caller, entered with guessed arguments.

use super::{
    Args, Class, Code, Function, Kind, Layer, Lift, Loader, Runner, Shape, Site, Value, usage,
};
use ruff_python_ast::{Parameters, Stmt, StmtFunctionDef};
use std::collections::BTreeSet;
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Enters a function that no script calls.
    pub(super) fn enter_uncalled_function(&mut self, function: &Rc<Function<'a>>) {
        let Code::Def(code) = function.code else {
            return;
        };
        if self.execution.calls.iter().any(|call| call.code.address() == function.code.address()) {
            return;
        }
        let site = self.site(code.name.range);
        let args =
            self.guess_arguments(&code.parameters, usize::from(function.receiver.is_some()), site);
        self.enter(function, args);
    }

    /// Enters the methods of a class that no script calls.
    pub(super) fn enter_uncalled_class(
        &mut self,
        class: &Rc<Class<'a>>,
        entered: &BTreeSet<usize>,
        site: Site,
    ) {
        let methods: Vec<&'a StmtFunctionDef> =
            class.code.body.iter().filter_map(Stmt::as_function_def_stmt).collect();
        let address = |method: &StmtFunctionDef| std::ptr::from_ref(method) as usize;
        if methods.iter().all(|method| entered.contains(&address(method))) {
            return;
        }
        let args = match self.class_attribute(class, "__init__").map(|it| it.shape) {
            Some(Shape::Function(function)) if let Code::Def(code) = function.code => {
                self.guess_arguments(&code.parameters, 1, site)
            }
            _ => Args::none(site),
        };
        let Some(id) = self.instantiate(class, args).as_object() else {
            return;
        };
        for method in methods {
            let address = address(method);
            if entered.contains(&address) || self.execution.entered.contains(&address) {
                continue;
            }
            if let Some(bound) = self.hook(id, method.name.as_str()) {
                self.enter_uncalled_function(&bound);
            }
        }
    }

    /// Calls the functions and classes of the project that an unknown library receives, if they train. Returns
    /// true if there is one.
    pub(super) fn call_back_all(&mut self, args: &Args<'a>) -> bool {
        let passed: Vec<Value<'a>> = args.all().filter(|it| !it.is_data()).cloned().collect();
        let mut trains = false;
        for value in passed {
            let (callee, bound) = match value.shape {
                Shape::Partial(partial) => (partial.0.shape.clone(), Some(partial.1.clone())),
                shape => (shape, None),
            };
            match callee {
                Shape::Function(function) if self.leads_to_training(&function, 3) => {
                    self.call_back_function(&function, bound, args.site);
                    trains = true;
                }
                Shape::Class(class) if usage::trains(&class.code.body) => {
                    let entered = self.execution.entered.clone();
                    self.enter_uncalled_class(&class, &entered, args.site);
                    trains = true;
                }
                _ => {}
            }
        }
        trains
    }

    fn call_back_function(
        &mut self,
        function: &Rc<Function<'a>>,
        bound: Option<Args<'a>>,
        site: Site,
    ) {
        let Code::Def(code) = function.code else {
            return;
        };
        if self.execution.entered.contains(&function.code.address())
            || self.execution.is_generator(function)
        {
            return;
        }
        let bound = bound.unwrap_or_else(|| Args::none(site));
        let skip = usize::from(function.receiver.is_some()) + bound.positional.len();
        let mut args = self.guess_arguments(&code.parameters, skip, site);
        args.named.retain(|(name, _)| bound.name(name).is_none());
        args.named.extend(bound.named);
        args.positional = bound.positional;
        if usage::trains(&code.body) && !usage::loops(&code.body) {
            self.run_library_loop(site, Runner::Unknown, "iteration", true, |lift, _| {
                lift.enter(function, args);
            });
        } else {
            self.enter(function, args);
        }
    }

    /// Returns true if a function trains, or calls one of the project that does.
    fn leads_to_training(&mut self, function: &Rc<Function<'a>>, depth: usize) -> bool {
        let Code::Def(code) = function.code else {
            return false;
        };
        if usage::trains(&code.body) {
            return true;
        }
        let before = std::mem::replace(&mut self.scope.current, function.scope);
        let called = usage::called_names(&code.body);
        let called: Vec<_> = called.into_iter().filter_map(|name| self.look_up(name)).collect();
        self.scope.current = before;
        depth > 0
            && called.iter().any(|value| match &value.shape {
                Shape::Function(function) => self.leads_to_training(function, depth - 1),
                Shape::Class(class) => usage::trains(&class.code.body),
                _ => false,
            })
    }

    /// Arguments for a function without a caller, guessed from parameter names.
    fn guess_arguments(&mut self, parameters: &'a Parameters, skip: usize, site: Site) -> Args<'a> {
        let mut args = Args::none(site);
        let positional = parameters.posonlyargs.iter().chain(&parameters.args);
        for parameter in positional.skip(skip).chain(&parameters.kwonlyargs) {
            let name = parameter.name().as_str();
            args.named.push((name, self.guess_argument(name, site)));
        }
        args
    }

    fn guess_argument(&mut self, name: &str, site: Site) -> Value<'a> {
        let is = |words: &str| {
            let mut words = words.split(' ');
            words.any(|word| name == word || name.ends_with(&format!("_{word}")))
        };
        let id = if is("model net network policy actor critic discriminator encoder decoder") {
            let layer = Layer { has_parameters: true, ..Layer::default() };
            self.make_module(layer, site)
        } else if is("optimizer optim optimiser") {
            self.make(Kind::Optimizer { models: Vec::new(), tensors: Vec::new() }, name, site)
        } else if is("scheduler lr_scheduler") {
            self.make(Kind::Scheduler { optimizers: Vec::new() }, name, site)
        } else if is("scaler grad_scaler") {
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
        self.heap.object_mut(id).name = Some(name.to_owned());
        if !self.heap.is_module(id) {
            self.write_state(id, "argument", [], site);
        }
        Value::object(id)
    }
}
