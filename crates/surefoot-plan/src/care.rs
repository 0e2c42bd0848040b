//! Care: how a run is diagnosed and repaired.

use crate::language::{Fields, Record, any, non_negative, positive, share};

/// Where symptoms become problems. What is absent is at the default of the detectors.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the thresholds are documented where they are used
pub struct Diagnose {
    /// Ids of problems that are not looked for.
    pub off: Vec<String>,
    /// The metric that is good enough: nothing is wrong with a model that has it.
    pub good_enough: Option<f64>,
    pub theta: Option<f64>,
    pub beta_1: Option<f64>,
    pub beta_2: Option<f64>,
    pub beta_3: Option<f64>,
    pub gamma: Option<f64>,
    pub zeta: Option<f64>,
    pub eta: Option<f64>,
    pub delta: Option<f64>,
    pub omega: Option<f64>,
    pub patience: Option<f64>,
    pub least_update: Option<f64>,
    pub largest_update: Option<f64>,
    pub spike: Option<f64>,
    pub saturated: Option<f64>,
    pub over_fitting: Option<f64>,
}

impl Diagnose {
    /// The thresholds that are stated, by their names.
    pub fn stated(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("good_enough", self.good_enough),
            ("theta", self.theta),
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("beta_3", self.beta_3),
            ("gamma", self.gamma),
            ("zeta", self.zeta),
            ("eta", self.eta),
            ("delta", self.delta),
            ("omega", self.omega),
            ("patience", self.patience),
            ("least_update", self.least_update),
            ("largest_update", self.largest_update),
            ("spike", self.spike),
            ("saturated", self.saturated),
            ("over_fitting", self.over_fitting),
        ];
        let stated = all.into_iter();
        stated.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Record for Diagnose {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        f.optional("off", &mut self.off, any);
        f.maybe("good_enough", &mut self.good_enough, any);
        f.maybe("theta", &mut self.theta, share);
        f.maybe("beta_1", &mut self.beta_1, non_negative);
        f.maybe("beta_2", &mut self.beta_2, non_negative);
        f.maybe("beta_3", &mut self.beta_3, positive);
        f.maybe("gamma", &mut self.gamma, non_negative);
        f.maybe("zeta", &mut self.zeta, non_negative);
        f.maybe("eta", &mut self.eta, non_negative);
        f.maybe("delta", &mut self.delta, non_negative);
        f.maybe("omega", &mut self.omega, positive);
        f.maybe("patience", &mut self.patience, share);
        f.maybe("least_update", &mut self.least_update, non_negative);
        f.maybe("largest_update", &mut self.largest_update, positive);
        f.maybe("spike", &mut self.spike, positive);
        f.maybe("saturated", &mut self.saturated, non_negative);
        f.maybe("over_fitting", &mut self.over_fitting, non_negative);
    }
}

/// How a run with a problem is repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// Ids of remedies that are not tried.
    pub forbid: Vec<String>,
    /// Ids of remedies that are tried first, in this order, where they answer the problem.
    pub order: Vec<String>,
    /// How many remedies are tried at the same time. The result depends on this number, never on
    /// the number of workers.
    pub abreast: usize,
    /// How many remedies are tried at most.
    pub attempts: usize,
}

impl Default for Repair {
    fn default() -> Self {
        Self { forbid: Vec::new(), order: Vec::new(), abreast: 2, attempts: 16 }
    }
}

impl Record for Repair {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        f.optional("forbid", &mut self.forbid, any);
        f.optional("order", &mut self.order, any);
        f.optional("abreast", &mut self.abreast, any);
        f.optional("attempts", &mut self.attempts, any);
    }
}
