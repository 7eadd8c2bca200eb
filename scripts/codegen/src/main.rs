//! Writes the generated protocol code from the `.proto` files, without protoc:
//!
//! | from | to | |
//! |---|---|---|
//! | `vesta-intf/proto` | `vesta-intf/src/generated` | messages, client, server, descriptors |
//! | `vesta-store/proto/etcd` | `vesta-store/src/backends/etcd/generated` | messages, client |
//!
//! Run it with `scripts/codegen.sh` after a protocol change and commit the result; CI runs it with
//! `--check`. The argument is the folder to write below, by default the project itself.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message as _;
use protox::prost_reflect::prost_types::FileDescriptorSet;
use tonic_prost_build::Builder;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // Read at run time: a program built for another checkout would read that one's protocols.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("start it with scripts/codegen.sh")?;
    let project = Path::new(&here).join("../..");
    let below = std::env::args_os()
        .nth(1)
        .map_or_else(|| project.clone(), PathBuf::from);

    let descriptors =
        protox::compile(["vesta/v1/vesta.proto"], [project.join("vesta-intf/proto")])?;
    let out = folder(below.join("vesta-intf/src/generated"))?;
    fs::write(out.join("vesta.v1.bin"), descriptors.encode_to_vec())?;
    // Hand-written in vesta-intf: it shows no secret.
    let stubs_of_ids = stubs().skip_debug([".vesta.v1.PutEntry"]);
    write(stubs_of_ids, descriptors, &out)?;

    let descriptors = protox::compile(["rpc.proto"], [project.join("vesta-store/proto/etcd")])?;
    let out = folder(below.join("vesta-store/src/backends/etcd/generated"))?;
    write(stubs().build_server(false), descriptors, &out)
}

fn folder(path: PathBuf) -> Outcome<PathBuf> {
    fs::create_dir_all(&path)?;
    Ok(path)
}

fn stubs() -> Builder {
    tonic_prost_build::configure().build_transport(false)
}

fn write(builder: Builder, descriptors: FileDescriptorSet, out: &Path) -> Outcome<()> {
    Ok(builder.out_dir(out).compile_fds(descriptors)?)
}
