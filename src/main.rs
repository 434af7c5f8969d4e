//! The binary: parse, call, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(copysim::cli::main())
}
