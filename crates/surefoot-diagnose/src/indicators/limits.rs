//! Limits of the indicators.

use crate::curve::KEPT;
use serde::{Deserialize, Serialize};

/// The limits of the indicators.
///
/// BTTackler gives one number (0.1% for `plc`) and calls the others empirical and conservative. These
/// are chosen so that none of them alerts on a run that learns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The share of the training at which the late stage begins. The paper has two stages and does
    /// not say where they meet (section 3.2.2); in the middle.
    pub late: f64,
    /// For how many blocks, two-hundredths of the training, a symptom has to last. One batch can
    /// have any gradient.
    pub lasting: usize,
    /// The share of the training before which no run is said not to learn: many wait before they do.
    pub patience: f64,
    /// The part of its first loss by which a run has to come down to be said to learn.
    pub gain: f64,
    /// `agv`: the size that no gradient has in a run that goes well. Losses of large targets have
    /// gradients of thousands; nothing has millions for long.
    pub agv: f64,
    /// `eag`: how many times the gradient grows from a layer to the one before, in the middle. A
    /// healthy network has between a half and two; at ten, four layers make three orders of magnitude.
    pub eag: f64,
    /// `erg`: to what part the gradient falls from a layer to the one before, in the middle: the
    /// inverse of `eag`. A network of sigmoids has a fifth, and can work itself out of it.
    pub erg: f64,
    /// `plc`: how much the loss moves in a fiftieth of the training, as a part of the first loss. Half of
    /// the paper's 0.1% of an epoch (section 3.2.1), which ended one in fifty of the best recorded trials.
    pub plc: f64,
    /// `lar`: the share of a layer's outputs that are zero. Half is usual behind a ReLU, nine tenths
    /// happens in networks that learn.
    pub lar: f64,
    /// `ulc`: by how much of all that it had gained the loss rises or swings within a window.
    pub ulc: f64,
    /// `ulc`: the window, as a share of the training: the paper's "adaptive window whose size varies with
    /// the maximum training epoch".
    pub ulc_window: f64,
    /// `nmg`: its window. With half of it, one in ten of the best recorded trials was called done too soon.
    pub nmg_window: f64,
    /// True for the indicators as published, without the conditions that Surefoot adds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
}

/// Limits that are shares of the training or of outputs.
const SHARES: [&str; 5] = ["late", "patience", "lar", "ulc_window", "nmg_window"];

impl Default for Limits {
    fn default() -> Self {
        Self {
            late: 0.5,
            lasting: 4,
            patience: 0.15,
            gain: 0.02,
            agv: 1e6,
            eag: 10.0,
            erg: 0.1,
            plc: 0.0005,
            lar: 0.97,
            ulc: 0.7,
            ulc_window: 0.2,
            nmg_window: 0.4,
            published: false,
        }
    }
}

impl Limits {
    /// Limits of the indicators as published: a symptom counts at once, also in a run that learns. The paper gives only
    /// the limit of `plc`.
    pub fn bttackler() -> Limits {
        Limits { lasting: 1, patience: 0.0, plc: 0.001, published: true, ..Limits::default() }
    }

    /// Sets the limit named `key`.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), String> {
        if key == "lasting" {
            if !(value >= 1.0 && value.fract() == 0.0) {
                return Err(format!("`{key}` is a count from 1, not {value}"));
            }
            if value > KEPT as f64 {
                return Err(format!(
                    "`{key}` is {value}; layers are looked back at for {KEPT} at most"
                ));
            }
            self.lasting = value as usize;
            return Ok(());
        }
        if SHARES.contains(&key) && !(0.0..=1.0).contains(&value) {
            return Err(format!("`{key}` is a share from 0 to 1, not {value}"));
        }
        if !(value >= 0.0 && value.is_finite()) {
            return Err(format!("`{key}` is a number from 0, not {value}"));
        }
        let mut numbers = self.numbers();
        match numbers.iter_mut().find(|(name, _)| *name == key) {
            Some((_, number)) => **number = value,
            None => {
                let names: Vec<&str> = numbers.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "there is no `{key}`; there are {}, lasting",
                    names.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Numeric limits by name. The pattern names every field, so that none is forgotten.
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
        let Limits {
            late,
            lasting: _,
            patience,
            gain,
            agv,
            eag,
            erg,
            plc,
            lar,
            ulc,
            ulc_window,
            nmg_window,
            published: _,
        } = self;
        vec![
            ("late", late),
            ("patience", patience),
            ("gain", gain),
            ("agv", agv),
            ("eag", eag),
            ("erg", erg),
            ("plc", plc),
            ("lar", lar),
            ("ulc", ulc),
            ("ulc_window", ulc_window),
            ("nmg_window", nmg_window),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_by_its_name_and_read_back() {
        let mut limits = Limits::default();
        let names: Vec<&str> = limits.numbers().iter().map(|(name, _)| *name).collect();
        for name in names {
            limits.set(name, 0.25).unwrap();
        }
        limits.set("lasting", 3.0).unwrap();
        assert!(limits.numbers().iter().all(|(_, number)| **number == 0.25));
        let json = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), limits);
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        let mut limits = Limits::default();
        assert!(limits.set("plk", 1.0).unwrap_err().contains("late, patience"));
        assert!(limits.set("lasting", 0.5).is_err());
        assert!(limits.set("lasting", 9.0).is_err());
        assert!(limits.set("plc", f64::NAN).is_err());
        assert!(serde_json::from_str::<Limits>(r#"{"plk": 1}"#).is_err());
        assert_eq!(limits, Limits::default());
    }
}
