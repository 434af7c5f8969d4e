//! The state that a drive is brought into before it is measured: filled to a share, dirty, or trimmed.

use std::time::Duration;

use super::Bench;
use crate::error::{Context, Result, Side};
use crate::result::Phase;
use crate::scenario::events::Event;
use crate::scenario::options::State;
use crate::scenario::{fill, prepare};

/// How long a drive must have been idle after what made it dirty was removed.
const AFTER_REMOVAL: Duration = Duration::from_secs(1);

impl Bench<'_> {
    /// Brings the target into the state that was asked for: before the first run, and before each what a run undoes.
    pub(super) fn bring_into_state(&self, index: u32, title: &str, began_ns: u64, keep: &mut dyn FnMut(Phase) -> Option<()>) -> Result<()> {
        let Self { plan, around, .. } = self;
        let watched = self.watched(title, None);
        let available = || -> Result<crate::platform::Space> {
            around.system.files.space(self.target.handle()).during("ask for the space of", Side::Target, self.target.path())
        };
        if plan.fill_percent.is_some() || plan.options.state != State::AsIs {
            self.target.still_here()?;
        }
        if index == 1 && plan.options.state == State::Dirty {
            let bytes = prepare::bytes_to_dirty(available()?.available_bytes.unwrap_or(0));
            let run = self.target.new_run()?;
            let (mut phase, done) = prepare::write(&watched, &run, "dirty", bytes, began_ns);
            let before = self.target_counted.read();
            let removed = self.remove(run);
            // What a file system tells of removals it tells later, when it has leisure.
            watched.settle(AFTER_REMOVAL)?;
            if done.is_ok() {
                prepare::stayed_dirty(&mut phase, before, self.target_counted.read());
            }
            keep(phase);
            done.and(removed)?;
        }
        if let Some(percent) = plan.fill_percent.filter(|_| index == 1) {
            match fill::missing_bytes(percent, available()?) {
                0 => around.observer.on(Event::Notice(format!("the target is {percent} % full already"))),
                bytes => {
                    let run = self.target.new_run()?;
                    let (phase, done) = prepare::write(&watched, &run, "fill", bytes, began_ns);
                    keep(phase);
                    *self.filling.borrow_mut() = Some(run);
                    done?;
                }
            }
        }
        if plan.options.state == State::Trimmed {
            let (phase, done) = prepare::trim(&watched, self.target.handle(), began_ns);
            keep(phase);
            done?;
        }
        Ok(())
    }
}
