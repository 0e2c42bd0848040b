//! Subscripts.

use super::{Args, DYNAMIC_NAME, Kind, Lift, ObjectId, Shape, Site, Value, push_new};

impl<'a> Lift<'a> {
    /// An item of a value.
    pub(super) fn item(&mut self, base: &Value<'a>, index: &Value<'a>, site: Site) -> Value<'a> {
        match &base.shape {
            Shape::Tuple(parts) => {
                if let Shape::Int(at) = index.shape {
                    let length = i64::try_from(parts.len()).unwrap_or(i64::MAX);
                    let at = if at < 0 { at + length } else { at };
                    if let Some(part) = usize::try_from(at).ok().and_then(|at| parts.get(at)) {
                        return part.clone();
                    }
                }
            }
            Shape::Object(id) => return self.item_of_object(*id, index, site),
            Shape::Settings | Shape::State(_) | Shape::Parameters(_) | Shape::Key => {
                return base.clone();
            }
            Shape::Loaded(load, keys) => {
                let Some(key) = index.as_text().copied() else {
                    return base.clone();
                };
                self.program.note_key(*load, key);
                let keys: Vec<&'a str> = keys.iter().copied().chain([key]).collect();
                return Value::of(Shape::Loaded(*load, keys.into()));
            }
            Shape::Library(name) if name.ends_with(".__dict__") => {
                let module = name.trim_end_matches(".__dict__");
                return Value::library(format!("{module}.{DYNAMIC_NAME}"));
            }
            Shape::Library(name) if name.starts_with('.') => return base.clone(),
            Shape::Library(name) if &**name == "os.environ" => {
                return self.environment_variable(index);
            }
            _ => {}
        }
        self.heap.combine([base, index])
    }

    fn item_of_object(&mut self, id: ObjectId, index: &Value<'a>, site: Site) -> Value<'a> {
        let cell = self.heap.state(id);
        let found = match &self.heap.object(id).kind {
            Kind::Module { .. } => return Value::object(id),
            Kind::Optimizer { .. } if !matches!(index.shape, Shape::Text(_)) => {
                return Value::object(id);
            }
            Kind::Container(container) => match &index.shape {
                Shape::Text(key) => container.entry(key).cloned(),
                Shape::Int(at) if container.is_closed => {
                    usize::try_from(*at).ok().and_then(|at| container.elements.get(at)).cloned()
                }
                _ => container.elements.iter().find(|it| !it.is_data()).cloned(),
            },
            Kind::Dataset { .. } => return self.element_of_object(id, cell, site),
            Kind::Plain => {
                return match self.hook(id, "__getitem__") {
                    Some(function) => self.enter(&function, Args::of(vec![index.clone()], site)),
                    None => self.heap.data(index),
                };
            }
            _ => None,
        };
        match found {
            Some(value) if !value.is_data() => value,
            found => {
                let mut whole = self.heap.data(index);
                if let Some(found) = found {
                    whole.depend_on(&found);
                }
                push_new(&mut whole.operands, cell);
                whole
            }
        }
    }
}
