//! Comprehensions.

use ruff_python_ast::{Comprehension, Expr};
use ruff_text_size::Ranged;

use super::{Container, Kind, Lift, Operand, Shape, Site, Statement, Value};

impl<'a> Lift<'a> {
    /// Evaluates a comprehension. The insertion order of a dictionary hardly ever matters; that
    /// of a list does.
    pub(super) fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        elements: &[&'a Expr],
        is_dictionary: bool,
        site: Site,
    ) -> Value<'a> {
        // A comprehension has its own scope.
        let module = self.scope.frame(self.scope.current).module;
        let file = self.scope.frame(self.scope.current).file;
        let frame = self.scope.new_frame(Some(self.scope.current), module, file);
        let before = std::mem::replace(&mut self.scope.current, frame);
        let gathered = self.program.variable("gathered");
        self.program.compute(gathered, "empty", [], site);
        let mut order = None;
        let mut counters = Vec::new();
        let mut conditions = Vec::new();
        for generator in generators {
            let iterated = self.eval(&generator.iter);
            let head = self.site(generator.iter.range());
            let iterated = self.iteration_value(iterated, head);
            if !matches!(iterated.shape, Shape::Unordered(..)) {
                self.note_order_use(&iterated, site);
            }
            self.begin_pass(&iterated, site);
            let counter = self.program.variable("round");
            self.program.blocks.push(Vec::new());
            counters.push(counter);
            let known = self.heap.unrolled(&iterated).and_then(|all| all.into_iter().next());
            let element = known.unwrap_or_else(|| self.element(&iterated, counter, head));
            if let Shape::Unordered(what, variable) = iterated.shape {
                order = Some((what, variable));
            }
            let bound = self.site(generator.range());
            self.assign(&generator.target, element, bound);
            for condition in &generator.ifs {
                let condition = self.eval(condition);
                conditions.push(self.heap.data(&condition));
            }
        }
        let values: Vec<Value<'a>> = elements.iter().map(|element| self.eval(element)).collect();
        let mut whole = self.heap.combine(&values);
        for condition in &conditions {
            whole.depend_on(condition);
        }
        self.scope.current = before;
        let operands = whole.operands.iter().copied().chain([Operand::Variable(gathered)]);
        self.program.compute(gathered, "gather", operands, site);
        for counter in counters.into_iter().rev() {
            let body = self.program.blocks.pop().unwrap_or_default();
            let bound = Operand::Constant(self.program.function("count"));
            self.program.emit(Statement::For { counter, bound, body, site });
        }
        whole.operands = vec![Operand::Variable(gathered)];
        if is_dictionary {
            return whole;
        }
        if let Some((what, variable)) = order {
            return Value { shape: Shape::Unordered(what, variable), ..whole };
        }
        match values.last().filter(|value| !value.is_data()) {
            Some(thing) => {
                let container = Container { elements: vec![thing.clone()], ..Container::default() };
                let id = self.make(Kind::Container(container), "list", site);
                self.write_state(id, "list", whole.operands, site);
                Value::object(id).with_models(whole.models)
            }
            None => whole,
        }
    }
}
