//! Model files of Keras: their contents, and resumption from them.

use super::{
    Args, Holdings, LeftOut, Libraries, Lift, ObjectId, ProgramBuilder, Restore, Site, Variable,
    WeightsRead,
};

impl<'a> Lift<'a> {
    /// Contents of a model file.
    pub(super) fn model_holdings(
        &self,
        id: ObjectId,
        file: Option<&str>,
        is_weights: bool,
    ) -> Holdings {
        let mut holdings = Holdings { objects: vec![self.heap.root(id)], ..Holdings::default() };
        // Only the legacy weights format excludes the optimizer.
        let is_bare = is_weights
            && file.is_some_and(|file| {
                (file.ends_with(".h5") || file.ends_with(".hdf5")) && !file.ends_with(".weights.h5")
            });
        if !is_bare && let Some(optimizer) = self.optimizer_of(id) {
            holdings.objects.push(optimizer);
        }
        holdings
    }

    /// `model.save(..)`: a checkpoint if it is made in a loop and read again, the result otherwise.
    pub(super) fn save_model(&mut self, id: ObjectId, name: &str, args: &Args<'a>) {
        let site = args.site;
        let file = self.program.file_name(args.get(0, "filepath"));
        let holdings = self.model_holdings(id, file.as_deref(), name == "save_weights");
        if !self.program.loops.is_empty() && self.libraries.is_read_again(file.as_deref()) {
            self.restore_weights(file.as_deref(), &holdings);
            let mut holdings = holdings;
            self.program.hold_positions(&mut holdings);
            self.note_save(holdings, file, site);
            return;
        }
        self.output_models_in(&holdings, site);
    }

    /// Returns true if weights are loaded into a model whose optimizer has no variables yet. Keras then skips
    /// those in the file, with a warning; the TensorFlow format, without a file extension, defers them.
    pub(super) fn leaves_optimizer_out(&self, id: ObjectId, file: Option<&str>) -> bool {
        let is_skipped =
            file.is_some_and(|file| file.ends_with(".weights.h5") || file.ends_with(".keras"));
        let optimizer = self.optimizer_of(id);
        is_skipped && optimizer.is_some_and(|it| !self.libraries.built.contains(&it))
    }

    /// Records that a model is loaded from a file.
    pub(super) fn note_weights(
        &mut self,
        id: ObjectId,
        file: Option<String>,
        leaves_out: bool,
        site: Site,
    ) {
        let optimizer = self.optimizer_for(id, site);
        let moment = self.program.moment();
        self.libraries.weights.push(WeightsRead {
            model: self.heap.root(id),
            optimizer,
            leaves_out,
            file,
            site,
            moment,
        });
    }

    /// Records earlier loads from a file as restores, once the file is known to be a checkpoint.
    pub(super) fn restore_weights(&mut self, file: Option<&str>, holdings: &Holdings) {
        let reads = self.libraries.weights.iter();
        let reads: Vec<WeightsRead> =
            reads.filter(|it| it.file.is_some() && it.file.as_deref() == file).cloned().collect();
        for read in reads {
            let file = read.file.clone();
            let load = self.program.note_load(Vec::new(), file, read.site, read.moment);
            for object in [read.model, read.optimizer] {
                let is_optimizer = object == read.optimizer;
                let object = self.heap.actual(object);
                if !holdings.objects.contains(&object) {
                    continue;
                }
                if is_optimizer && read.leaves_out {
                    let site = read.site;
                    self.program.facts.left_out.push(LeftOut { object, site });
                } else {
                    let (variable, site, moment) = (self.heap.cell(object), read.site, read.moment);
                    let object = Some(object);
                    let restore = Restore { variable, object, load, site, moment };
                    self.program.facts.restores.push(restore);
                }
            }
        }
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Model files hold no positions; scripts may keep them elsewhere.
    pub(super) fn hold_positions(&self, holdings: &mut Holdings) {
        for id in &self.loops {
            let positions: &Vec<Variable> = &self.facts.loops[id.0 as usize].positions;
            holdings.variables.extend(positions);
        }
    }
}

impl Libraries {
    /// Returns true if a model was loaded from this file before.
    pub(super) fn is_read_again(&self, file: Option<&str>) -> bool {
        file.is_some()
            && self.weights.iter().any(|read| read.file.as_deref() == file && !read.moment.in_loop)
    }
}
