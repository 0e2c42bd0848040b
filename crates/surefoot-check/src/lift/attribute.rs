//! Attributes.

use super::{
    Args, Code, DYNAMIC_NAME, FileId, Function, Kind, Lift, ObjectId, Operand, Shape, Site, Value,
    is_one_of, library,
};
use ruff_python_ast::Expr;
use std::path::Path;
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// An attribute of a value.
    pub(super) fn attribute(&mut self, base: &Value<'a>, name: &'a str, site: Site) -> Value<'a> {
        match &base.shape {
            Shape::Object(id) => self.attribute_of_object(*id, name, site),
            Shape::Library(module) => {
                let full = format!("{module}.{name}");
                if library::effect_of(module).is_none() {
                    let file = self.scope.frame(self.scope.current).file;
                    if let Some(file) = self.project.modules.resolve(file, &full) {
                        return Value::of(Shape::Module(file));
                    }
                }
                Value::library(library::canonical(&full))
            }
            Shape::Module(file) if name == "__dict__" => self.any_of_module(*file),
            Shape::Module(file) => {
                let frame = self.run_module(*file, false);
                match self.scope.frame(frame).slots.get(name) {
                    Some(slot) => {
                        let value = self.heap.read(slot);
                        self.imported(value)
                    }
                    None => Value::constant(),
                }
            }
            Shape::Class(class) => self.class_attribute(class, name).unwrap_or_default(),
            Shape::Super(class, id) => self.super_attribute(class, *id, name).unwrap_or_default(),
            Shape::Settings
                if matches!(name, "rank" | "local_rank" | "global_rank" | "process_index") =>
            {
                Value::plain(vec![Operand::Rank])
            }
            Shape::Settings if matches!(name, "world_size" | "ngpus" | "num_gpus") => {
                Value::plain(vec![Operand::Workers])
            }
            Shape::Settings => {
                let mut setting = base.clone();
                let variable = self.program.drawn_settings.get(name).copied();
                setting.operands.extend(variable.map(Operand::Variable));
                setting
            }
            Shape::Loaded(..) => base.clone(),
            Shape::Parameters(ids) => match name {
                "data" => base.clone(),
                "grad" => {
                    let roots = ids.iter().map(|id| self.heap.root(*id));
                    let gradients = roots.filter_map(|root| self.heap.gradients(root));
                    Value::plain(gradients.map(Operand::Variable).collect())
                }
                _ => self.heap.data(base),
            },
            Shape::State(_) => base.clone(),
            // The shape of drawn data is the same in every run.
            Shape::Plain if matches!(name, "shape" | "ndim" | "dtype" | "device") => {
                Value::constant()
            }
            // A part of an object that a library made stands for the object.
            Shape::Unknown(id) if self.heap.unknown_objects[id.0].received.is_empty() => {
                base.clone()
            }
            _ => self.heap.data(base),
        }
    }

    /// An attribute of a project module whose name is computed at run time.
    pub(super) fn any_of_module(&self, file: FileId) -> Value<'a> {
        let path = &self.project.script(file).source.path;
        let name = match path.file_stem() {
            Some(stem) if stem == "__init__" => path.parent().and_then(Path::file_name),
            stem => stem,
        };
        let name = name.map_or("module".into(), |name| name.to_string_lossy());
        Value::library(format!(".{name}.{DYNAMIC_NAME}"))
    }

    fn attribute_of_object(&mut self, id: ObjectId, name: &'a str, site: Site) -> Value<'a> {
        if let Some(value) = self.heap.field(id, name) {
            return value;
        }
        if let Some(class) = self.heap.object(id).class.clone()
            && let Some(value) = self.class_attribute(&class, name)
        {
            return match value.shape {
                Shape::Function(function) => {
                    let bound = self.bind_method(&function, id);
                    if is_property(&function) {
                        self.enter(&bound, Args::of(Vec::new(), site))
                    } else {
                        Value::of(Shape::Function(bound))
                    }
                }
                _ => value,
            };
        }
        let cell = self.heap.cell(id);
        let models = self.heap.models_of(id);
        match &self.heap.object(id).kind {
            Kind::Module { .. } => match name {
                "module" | "_orig_mod" | "ema" => Value::object(id),
                "hparams" | "trainer" | "logger" => Value::of(Shape::Settings),
                "training" | "device" | "dtype" | "current_epoch" | "global_step"
                | "input_shape" | "output_shape" | "inputs" | "input" => Value::constant(),
                _ if is_method_name(name) => Value::of(Shape::Method(id, name)),
                _ => {
                    Value::of(Shape::Parameters(Rc::new([self.heap.root(id)]))).with_models(models)
                }
            },
            Kind::Loader(loader) => match name {
                "dataset" => loader.dataset.clone(),
                "sampler" | "batch_sampler" => loader.sampler.clone().unwrap_or_default(),
                _ => Value::constant(),
            },
            Kind::Dataset { from, .. } => self.heap.data(from),
            Kind::Framework(_) => self.heap.framework_attribute(id, name),
            Kind::State if self.heap.environments.contains_key(&self.heap.actual(id)) => match name
            {
                "action_space" | "single_action_space" | "unwrapped" | "env" | "envs" => {
                    Value::object(id)
                }
                _ => Value::constant(),
            },
            // Parameter groups are state of the optimizer.
            Kind::Optimizer { .. } if name == "param_groups" => Value::object(id),
            Kind::Plain | Kind::Transform { .. } => Value::constant(),
            _ if is_method_name(name) => Value::of(Shape::Method(id, name)),
            _ => Value::variable(cell).with_models(models),
        }
    }

    /// An environment variable: a setting, or the rank of a process.
    pub(super) fn environment_variable(&self, name: &Value<'a>) -> Value<'a> {
        match name.as_text().copied() {
            // The cluster description in `TF_CONFIG` includes the rank of this worker.
            Some(name) if is_one_of(name, RANKS) => Value::plain(vec![Operand::Rank]),
            Some("WORLD_SIZE" | "SLURM_NTASKS") => Value::plain(vec![Operand::Workers]),
            _ => Value::constant(),
        }
    }
}

/// Returns true if a method is read like an attribute.
fn is_property(function: &Function<'_>) -> bool {
    let Code::Def(code) = function.code else {
        return false;
    };
    code.decorator_list.iter().any(|it| match &it.expression {
        Expr::Name(name) => name.id == "property" || name.id == "cached_property",
        Expr::Attribute(it) => it.attr.as_str() == "cached_property",
        _ => false,
    })
}

/// Methods that scripts pass as values.
fn is_method_name(name: &str) -> bool {
    is_one_of(
        name,
        "parameters state_dict load_state_dict train eval step zero_grad forward append extend update \
         sample",
    )
}

/// Environment variables that hold the rank of a process.
const RANKS: &str = "RANK LOCAL_RANK SLURM_PROCID SLURM_LOCALID OMPI_COMM_WORLD_RANK TF_CONFIG";
