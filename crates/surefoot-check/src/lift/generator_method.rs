//! Methods of generators.

use super::{Arguments, Lift, ObjectId, Value, purpose_of};

impl<'a> Lift<'a> {
    pub(super) fn call_generator_method(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        match name {
            "manual_seed" | "seed" | "reset_from_seed" => {
                self.seed(id, &arguments);
                Value::object(id)
            }
            "get_state" | "getstate" => self.state_of(id, site),
            "set_state" | "setstate" | "reset" => {
                if let Some(state) = arguments.first() {
                    self.restore(id, state, site);
                }
                Value::object(id)
            }
            "initial_seed" | "device" => Value::constant(),
            _ => {
                let whole = self.heap.combine(arguments.all());
                let drawn = self.draw(id, purpose_of(name), whole.operands, site);
                if name == "shuffle"
                    && let Some(first) = arguments.first()
                {
                    self.write_argument(first, &drawn, site);
                }
                drawn
            }
        }
    }
}
