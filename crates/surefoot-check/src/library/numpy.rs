//! NumPy.

use super::{Effect, Family, Global};

/// What a call of `numpy.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    Some(match name {
        "random.seed" => Effect::Seed(&[Global::NumPy]),
        "random.default_rng" | "random.RandomState" | "random.mtrand.RandomState" => {
            Effect::Generator(Family::NumPy)
        }
        "random.get_state" => Effect::GetState(Global::NumPy),
        "random.set_state" => Effect::SetState(Global::NumPy),
        "random.shuffle" => Effect::DrawInto(Global::NumPy),
        "random.Generator"
        | "random.PCG64"
        | "random.MT19937"
        | "random.Philox"
        | "random.SeedSequence"
        | "random.SFC64" => Effect::Generator(Family::NumPy),
        _ if name.starts_with("random.") => Effect::Draw(Global::NumPy),
        "load" => Effect::Pure,
        "save" | "savez" | "savez_compressed" | "savetxt" => Effect::Save { what: 1 },
        "set_printoptions" | "seterr" => Effect::Silent,
        _ => Effect::Pure,
    })
}
