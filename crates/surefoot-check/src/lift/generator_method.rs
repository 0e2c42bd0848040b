//! Methods of generators.

use super::{Args, Lift, ObjectId, Value, purpose_of};

impl<'a> Lift<'a> {
    pub(super) fn call_generator_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match name {
            "manual_seed" | "seed" | "reset_from_seed" => {
                self.seed(id, &args);
                Value::object(id)
            }
            "get_state" | "getstate" => self.state_of(id, site),
            "set_state" | "setstate" | "reset" => {
                if let Some(state) = args.first() {
                    self.restore(id, state, site);
                }
                Value::object(id)
            }
            "initial_seed" | "device" => Value::constant(),
            _ => {
                let whole = self.heap.combine(args.all());
                let drawn = self.draw(id, purpose_of(name), whole.operands, site);
                if name == "shuffle"
                    && let Some(first) = args.first()
                {
                    self.write_argument(first, &drawn, site);
                }
                drawn
            }
        }
    }
}
