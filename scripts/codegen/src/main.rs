//! Writes `vesta-intf/src/generated` from `vesta-intf/proto`, without protoc.
//!
//! Run it with `scripts/codegen.sh` after a change of the protocol and commit what it writes; CI
//! runs it again and fails on a difference.
#![forbid(unsafe_code)]

use std::path::Path;

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vesta-intf");
    let out = root.join("src/generated");
    std::fs::create_dir_all(&out)?;

    let descriptors = protox::compile(["vesta/v1/vesta.proto"], [root.join("proto")])?;
    std::fs::write(out.join("vesta.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(false).out_dir(&out).compile_fds(descriptors)?;
    Ok(())
}
