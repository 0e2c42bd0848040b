//! NumPy.

use super::{Effect, Family, Global, Library};

pub(super) const LIBRARIES: &[Library] = &[Library::new(
    "numpy",
    &[
        ("random.seed", Effect::Seed(&[Global::NumPy])),
        (
            "random.default_rng random.RandomState random.mtrand.RandomState random.Generator \
             random.PCG64 random.MT19937 random.Philox random.SeedSequence random.SFC64",
            Effect::Generator(Family::NumPy),
        ),
        ("random.get_state", Effect::GetState(Global::NumPy)),
        ("random.set_state", Effect::SetState(Global::NumPy)),
        ("random.shuffle", Effect::DrawInto(Global::NumPy)),
        ("random.*", Effect::Draw(Global::NumPy)),
        ("save savez savez_compressed savetxt", Effect::Save { what: 1 }),
        ("set_printoptions seterr", Effect::Silent),
    ],
)];
