//! A drive on NVMe: where its controller is, also when the kernel shows it through a subsystem of several.

use std::path::{Path, PathBuf};

use crate::platform::Host;

/// The controller of a namespace: the directory above it, or the only one of its subsystem. Which of several the data take is not known.
#[must_use]
pub fn controller(host: &Host, directory: &Path) -> Option<PathBuf> {
    let above = directory.parent()?;
    if is_controller(above) {
        return Some(above.to_owned());
    }
    let mut controllers = host.names(above).into_iter().map(|name| above.join(name)).filter(|path| is_controller(path));
    let only = controllers.next().filter(|_| controllers.next().is_none())?;
    host.resolve(only)
}

/// `nvme0`, and not `nvme0n1` or `nvme-subsys0`.
fn is_controller(path: &Path) -> bool {
    let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix("nvme"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
