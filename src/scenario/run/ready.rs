//! Corpora made ready for a run, each once for each drive.

use std::sync::Arc;

use super::{Around, Bench};
use crate::corpus::Corpus;
use crate::corpus::identity::make_manifest;
use crate::corpus::manifest::Manifest;
use crate::drive::Workspace;
use crate::error::{Error, Result};
use crate::progress::Counter;
use crate::result::Document;
use crate::scenario::account;
use crate::scenario::events::Event;
use crate::scenario::spec::Role;
use crate::scenario::stage::{Note, Staged, makers, remove_unfinished, stage};
use crate::units::{Bytes, files};

/// A corpus ready to be copied.
pub(super) enum Ready {
    OnTarget(Box<Staged>),
    OnSource(Box<Staged>),
    InMemory(Box<Staged>),
    Generated(Box<Manifest>),
}

impl Ready {
    pub fn staged(&self) -> Option<&Staged> {
        match self {
            Self::OnTarget(staged) | Self::OnSource(staged) | Self::InMemory(staged) => Some(staged),
            Self::Generated(_) => None,
        }
    }

    fn manifest(&self) -> &Manifest {
        match self {
            Self::OnTarget(staged) | Self::OnSource(staged) | Self::InMemory(staged) => &staged.manifest,
            Self::Generated(manifest) => manifest,
        }
    }
}

/// A corpus, and for which role it is ready; none for one that is made while it is written.
pub(super) struct Prepared {
    pub role: Option<Role>,
    pub corpus: Corpus,
    pub ready: Ready,
}

impl Bench<'_> {
    /// Makes all that is needed ready, each corpus once for each drive, and puts it into the record.
    pub(super) fn prepare_all(&self, document: &mut Document) -> Result<Vec<Prepared>> {
        let mut prepared: Vec<Prepared> = Vec::new();
        for phase in &self.plan.phases {
            let staged = phase.staged().into_iter().map(|(role, corpus)| (Some(role), corpus));
            let made = phase.role().is_none().then_some((None, &phase.corpus));
            for (role, corpus) in staged.chain(made) {
                if prepared.iter().any(|one| one.role == role && one.corpus == *corpus) {
                    continue;
                }
                let ready = self.prepare(role, corpus)?;
                document.corpora.push(account::corpus(ready.manifest(), ready.staged(), self.around.system.clock.wall().as_second()));
                prepared.push(Prepared { role, corpus: corpus.clone(), ready });
            }
        }
        Ok(prepared)
    }

    fn prepare(&self, role: Option<Role>, corpus: &Corpus) -> Result<Ready> {
        let Around { system, observer, cancel, .. } = self.around;
        let on = |workspace: &Workspace<'_>, asks: bool| {
            let mut first = |note: Note| if asks { self.consent(note, corpus.byte_count().saturating_sub(note.bytes)) } else { Ok(()) };
            let staged = stage(system, workspace, corpus, observer, cancel, &mut first);
            if staged.is_err()
                && let Err(left) = remove_unfinished(system, workspace, observer)
            {
                observer.on(Event::Notice(format!("what was begun could not be removed: {left}")));
            }
            staged.map(Box::new)
        };
        match (role, &self.source, &self.memory) {
            (Some(Role::Target), ..) => on(&self.target, true).map(Ready::OnTarget),
            (Some(Role::Source), Some((workspace, ..)), _) => on(workspace, false).map(Ready::OnSource),
            (Some(Role::Source), None, Some((workspace, _))) => on(workspace, false).map(Ready::InMemory),
            (Some(Role::Source), None, None) | (None, ..) => {
                let counter = Arc::new(Counter::default());
                let what = format!("computing the digests of {}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
                observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: counter.clone(), timed: false });
                let made = make_manifest(system, corpus, makers(), &counter, cancel);
                observer.on(Event::Ends);
                made.map(|manifest| Ready::Generated(Box::new(manifest)))
            }
        }
    }
}

/// Which of the corpora that were made ready is this one.
pub(super) fn position(prepared: &[Prepared], role: Option<Role>, corpus: &Corpus) -> Result<usize> {
    let found = prepared.iter().position(|one| one.role == role && one.corpus == *corpus);
    found.ok_or_else(|| Error::Internal(format!("{} was not made ready", corpus.id())))
}
