//! `copysim man`: the manual page, from the same definitions as the help.

use super::{Outcome, output};
use crate::error::{Context, Error, Side};

pub fn run(command: &clap::Command) -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).during("make", Side::Host, "the manual page")?;
    output::print(&String::from_utf8(page).map_err(|error| Error::Internal(error.to_string()))?)?;
    Ok(0)
}
