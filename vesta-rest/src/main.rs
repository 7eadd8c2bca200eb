//! The program `vesta-rest`: REST alone. Users get `vesta serve`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Small requests make and drop small allocations, for which this allocator is built.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = std::env::args_os().skip(1);
    vesta_boot::main("vesta-rest", &[vesta_rest::FRONT], args)
}
