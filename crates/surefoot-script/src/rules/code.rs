//! The code that saves what must be saved, and restores it.

use super::checkpoints::Part;
use crate::MemberKind;
use crate::library::{Family, Global};
use crate::lift::facts::Role;

/// How one part is written down.
struct Written {
    key: String,
    value: String,
    restore: String,
}

/// The entries of a dictionary that hold these parts.
pub(super) fn entries(parts: &[&Part]) -> String {
    let entries: Vec<String> = parts
        .iter()
        .flat_map(|part| written(part))
        .map(|it| format!("\"{}\": {}", it.key, it.value))
        .collect();
    format!("`{}`.", entries.join(", "))
}

/// The code that saves, and the code that restores.
pub(super) fn both(parts: &[Part]) -> (String, String) {
    let written: Vec<Written> = parts.iter().flat_map(written).collect();
    let entries: String = written
        .iter()
        .map(|it| format!("    \"{}\": {},\n", it.key, it.value))
        .collect();
    let save = format!("torch.save({{\n{entries}}}, path)");
    let restores: Vec<&str> = written.iter().map(|it| it.restore.as_str()).collect();
    let restore = format!(
        "checkpoint = torch.load(path, weights_only=False)\n{}",
        restores.join("\n")
    );
    (save, restore)
}

fn written(part: &Part) -> Vec<Written> {
    let key = key_of(&part.name);
    let load = format!("checkpoint[\"{key}\"]");
    let name = &part.name;
    let simple = |value: String, restore: String| {
        vec![Written {
            key: key.clone(),
            value,
            restore,
        }]
    };
    if part.kind == MemberKind::Position {
        return simple(
            name.clone(),
            format!("first_{key} = {load} + 1  # where its loop begins"),
        );
    }
    match part.thing.as_ref().map(|thing| thing.role) {
        Some(
            Role::Model
            | Role::Optimizer
            | Role::Scheduler
            | Role::Scaler
            | Role::Average
            | Role::State,
        ) => simple(
            format!("{name}.state_dict()"),
            format!("{name}.load_state_dict({load})"),
        ),
        Some(Role::Global(Global::Torch)) => {
            let cpu = Written {
                key: "torch_rng".to_owned(),
                value: "torch.get_rng_state()".to_owned(),
                restore: "torch.set_rng_state(checkpoint[\"torch_rng\"])".to_owned(),
            };
            let gpu = Written {
                key: "cuda_rng".to_owned(),
                value: "torch.cuda.get_rng_state_all()".to_owned(),
                restore: "torch.cuda.set_rng_state_all(checkpoint[\"cuda_rng\"])".to_owned(),
            };
            vec![cpu, gpu]
        }
        Some(Role::Global(Global::NumPy)) => vec![Written {
            key: "numpy_rng".to_owned(),
            value: "np.random.get_state()".to_owned(),
            restore: "np.random.set_state(checkpoint[\"numpy_rng\"])".to_owned(),
        }],
        Some(Role::Global(Global::Python)) => vec![Written {
            key: "python_rng".to_owned(),
            value: "random.getstate()".to_owned(),
            restore: "random.setstate(checkpoint[\"python_rng\"])".to_owned(),
        }],
        Some(Role::Generator(Family::Torch)) => simple(
            format!("{name}.get_state()"),
            format!("{name}.set_state({load})"),
        ),
        Some(Role::Generator(Family::NumPy)) => simple(
            format!("{name}.bit_generator.state"),
            format!("{name}.bit_generator.state = {load}"),
        ),
        Some(Role::Generator(Family::Python)) => simple(
            format!("{name}.getstate()"),
            format!("{name}.setstate({load})"),
        ),
        Some(Role::Container) => simple(format!("list({name})"), format!("{name}.extend({load})")),
        _ if name.starts_with("the gradients of ") => {
            let model = name.trim_start_matches("the gradients of ");
            let key = format!("{}_gradients", key_of(model));
            vec![Written {
                value: format!("[p.grad for p in {model}.parameters()]"),
                restore: format!(
                    "for p, g in zip({model}.parameters(), checkpoint[\"{key}\"]):\n    p.grad = g"
                ),
                key,
            }]
        }
        _ => simple(name.clone(), format!("{name} = {load}")),
    }
}

/// The key under which something is saved: its name without `self.`.
fn key_of(name: &str) -> String {
    let name = name.strip_prefix("self.").unwrap_or(name);
    let letters = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' });
    letters.collect::<String>().trim_matches('_').to_owned()
}
