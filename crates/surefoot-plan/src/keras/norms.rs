//! Keras's normalisation layers.

use super::Fault;
use super::settings::Settings;
use crate::{BatchNorm, GroupNorm, Initializer, LayerNorm};

impl Settings<'_> {
    pub(super) fn batch_norm(
        &self,
        rank: Option<usize>,
        warnings: &mut Vec<String>,
    ) -> Result<BatchNorm, Fault> {
        self.last_axis(rank)?;
        if self.flag("renorm", false)? {
            return Err(self.refuse("its `renorm` is true, and it can only be false"));
        }
        self.expect_norm_initializers(warnings);
        Ok(BatchNorm {
            name: self.name(),
            momentum: self.number_or("momentum", 0.99)?,
            epsilon: self.number_or("epsilon", 1e-3)?,
            center: self.flag("center", true)?,
            scale: self.flag("scale", true)?,
        })
    }

    pub(super) fn layer_norm(
        &self,
        rank: Option<usize>,
        warnings: &mut Vec<String>,
    ) -> Result<LayerNorm, Fault> {
        self.last_axis(rank)?;
        if self.flag("rms_scaling", false)? {
            return Err(self.refuse("its `rms_scaling` is true, and it can only be false"));
        }
        self.expect_norm_initializers(warnings);
        Ok(LayerNorm {
            name: self.name(),
            epsilon: self.number_or("epsilon", 1e-3)?,
            center: self.flag("center", true)?,
            scale: self.flag("scale", true)?,
        })
    }

    pub(super) fn group_norm(
        &self,
        rank: Option<usize>,
        warnings: &mut Vec<String>,
    ) -> Result<GroupNorm, Fault> {
        self.last_axis(rank)?;
        let groups = self.number_or("groups", 32.0)?;
        if groups < 1.0 {
            return Err(
                self.refuse(format!("its `groups` is {groups}, and it can be a number above zero"))
            );
        }
        self.expect_norm_initializers(warnings);
        Ok(GroupNorm {
            name: self.name(),
            groups: self.sizes("groups")?.map_or(32, |[groups]| groups),
            epsilon: self.number_or("epsilon", 1e-3)?,
            center: self.flag("center", true)?,
            scale: self.flag("scale", true)?,
        })
    }

    /// Normalisation layers here always start as the identity.
    fn expect_norm_initializers(&self, warnings: &mut Vec<String>) {
        for (key, usual) in [
            ("beta_initializer", Initializer::Zeros),
            ("gamma_initializer", Initializer::Ones),
            ("moving_mean_initializer", Initializer::Zeros),
            ("moving_variance_initializer", Initializer::Ones),
        ] {
            if self.initializer(key, usual, &mut Vec::new()) != usual {
                self.leave_out(&[key], warnings);
            }
        }
    }
}
