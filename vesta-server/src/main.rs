//! The program `vesta-server`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use vesta_boot::Role;

/// Small requests make and drop small allocations, for which this allocator is built.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    vesta_boot::main(
        Role::Server,
        &[vesta_server::FRONT],
        std::env::args_os().skip(1),
    )
}
