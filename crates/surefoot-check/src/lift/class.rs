//! Classes of the project: their attributes, their bases, their objects.

use super::{
    Args, Class, Code, Effect, Execution, Function, Hub, KERAS_LAYER, Keras, Kind, Layer, Lift,
    ObjectId, Shape, Value, library,
};
use ruff_python_ast::Expr;
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Binds a method to its object, unless it is static.
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
        if is_static { function.clone() } else { self.bound_method(function, id) }
    }

    /// Looks up a name in a class and its bases.
    pub(super) fn class_attribute(&self, class: &Rc<Class<'a>>, name: &str) -> Option<Value<'a>> {
        self.class_attribute_within(class, name, 16)
    }

    fn class_attribute_within(
        &self,
        class: &Rc<Class<'a>>,
        name: &str,
        depth: usize,
    ) -> Option<Value<'a>> {
        if let Some(slot) = self.scope.frame(class.body).slots.get(name) {
            let mut value = self.heap.read(slot);
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

    /// Looks up a name in the bases of a class: `super().name`.
    pub(super) fn super_attribute(
        &self,
        class: &Rc<Class<'a>>,
        id: ObjectId,
        name: &str,
    ) -> Option<Value<'a>> {
        let found = class.bases.iter().find_map(|base| match &base.shape {
            Shape::Class(base) => self.class_attribute(base, name),
            _ => None,
        })?;
        Some(match found.shape {
            Shape::Function(function) => {
                Value::of(Shape::Function(self.bind_method(&function, id)))
            }
            _ => found,
        })
    }

    /// Instantiates a class of the project.
    pub(super) fn instantiate(&mut self, class: &Rc<Class<'a>>, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        let bases = class.library_bases();
        let effects: Vec<Effect> =
            bases.iter().filter_map(|name| library::effect_of(name)).collect();
        let id = if effects.iter().any(|it| {
            matches!(
                it,
                Effect::Module(_)
                    | Effect::Container
                    | Effect::Keras(Keras::Model | Keras::Sequential | Keras::Layer(_))
            )
        }) {
            let is_keras = effects.iter().any(|it| matches!(it, Effect::Keras(_)));
            let layer = if is_keras { KERAS_LAYER } else { Layer::default() };
            let id = self.make_module(layer, site);
            if effects.contains(&Effect::Container) {
                for part in args.positional.iter().filter_map(Value::as_object) {
                    self.absorb(id, part, site);
                }
            }
            id
        } else if effects.contains(&Effect::Optimizer) {
            self.make_optimizer(&args)
        } else if effects.contains(&Effect::Scheduler) {
            self.make_scheduler(&args)
        } else if effects.contains(&Effect::Hub(Hub::Trainer))
            && let Shape::Object(trainer) = self.call_hub(Hub::Trainer, &args).shape
        {
            trainer
        } else if bases.iter().any(|name| &**name == "builtins.dict" || &**name == "builtins.list")
        {
            self.make(Kind::Container(super::object::Container::default()), "container", site)
        } else {
            self.make(Kind::Plain, "object", site)
        };
        self.heap.object_mut(id).class = Some(class.clone());
        self.execution.entered.insert(std::ptr::from_ref(class.code) as usize);
        match self.class_attribute(class, "__init__").map(|it| it.shape) {
            Some(Shape::Function(function)) => {
                let bound = self.bound_method(&function, id);
                self.enter(&bound, args);
            }
            _ => self.fill_fields(class, id, args),
        }
        Value::object(id)
    }

    /// Runs the constructor of a library base class.
    pub(super) fn initialize_base(&mut self, id: ObjectId, args: &Args<'a>) {
        let site = args.site;
        if self.heap.is_keras(id) {
            self.adopt(id, args);
            return;
        }
        for (name, value) in &args.named {
            if matches!(value.shape, Shape::Bool(_)) {
                self.set_field(id, name, name, value.clone(), site);
            }
        }
    }

    /// Runs the generated constructor of a data class.
    fn fill_fields(&mut self, class: &Rc<Class<'a>>, id: ObjectId, args: Args<'a>) {
        let site = args.site;
        let mut positional = args.positional.into_iter();
        for statement in &class.code.body {
            let Some(Expr::Name(name)) = statement.as_ann_assign_stmt().map(|it| &*it.target)
            else {
                continue;
            };
            let name = name.id.as_str();
            let named = args.named.iter().find(|(it, _)| *it == name);
            let passed = positional.next().or_else(|| named.map(|(_, value)| value.clone()));
            if let Some(value) = passed {
                self.set_field(id, name, name, value, site);
            }
        }
    }
}

impl<'a> Execution<'a> {
    pub(super) fn super_value(&mut self) -> Option<Value<'a>> {
        let call = self.calls.last()?;
        Some(Value::of(Shape::Super(call.class.clone()?, call.receiver?)))
    }
}
