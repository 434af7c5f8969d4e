//! Tells the program which commit and target it was built from: a result names both.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=.git/HEAD");
    println!("cargo:rerun-if-changed=.git/refs/heads");
    println!("cargo:rustc-env=COPYSIM_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    // A build from a package has no repository, and so no commit.
    let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Some(head) = head.ok().filter(|head| head.status.success()) {
        println!("cargo:rustc-env=COPYSIM_COMMIT={}", String::from_utf8_lossy(&head.stdout).trim());
    }
}
