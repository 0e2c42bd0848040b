//! What a study searches by: its sampler and its stoppers.

use crate::failure::Failure;
use surefoot_diagnose::{Diagnosis, Facts, Finding};
use surefoot_tune::sampler::Question;
use surefoot_tune::{Course, Point, Reason, Sampler, Study};

struct Tmp;
impl Sampler for Tmp {
    fn name(&self) -> &'static str {
        "random"
    }
    fn ask(&self, q: &Question<'_>) -> Point {
        let key = q.key();
        let mut i = 0;
        q.space.point(|p| {
            i += 1;
            p.domain.at(key.uniform(i))
        })
    }
}

pub(super) struct Rules {
    sampler: Tmp,
}

impl Rules {
    pub(super) fn of(_study: &Study) -> Result<Rules, Failure> {
        Ok(Rules { sampler: Tmp })
    }
    pub(super) fn sampler(&self) -> &dyn Sampler {
        &self.sampler
    }
    pub(super) fn diagnosis(&self, _facts: Facts) -> Option<Diagnosis> {
        None
    }
    pub(super) fn judge(
        &self,
        _finding: Option<&Finding>,
        _course: &Course,
        _others: &[Course],
    ) -> Option<Reason> {
        None
    }
}
