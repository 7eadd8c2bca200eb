//! Member of a pool server: IDs made inside the process, with a machine ID from the store of a server.
//!
//! Start a pool server: `vesta serve --pool-server-namespaces orders`, then
//! `cargo run -p vesta-sample --bin member`. Stop the server: IDs go on for a minute.
#![forbid(unsafe_code)]

use std::error::Error;

use vesta_service::options::default_state_dir;
use vesta_service::{LocalIdService, MachineSource, VestaId};
use vesta_store::{Options, open_with};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let pool_server = args
        .next()
        .unwrap_or_else(|| "vesta://127.0.0.1:50051".into());
    let folder = args.next().map_or_else(default_state_dir, Into::into);

    // The state directory keeps the identity of the pool server's store: another one is refused.
    let options = Options {
        state_dir: Some(folder.clone()),
        ..Options::default()
    };
    let ids = LocalIdService::builder()
        .namespace("orders")
        .machine(MachineSource::Pool {
            store: open_with(&pool_server.parse()?, &options)?,
            range: None,
        })
        .state_dir(folder)
        .build()?;

    for _ in 0..3 {
        let id: VestaId = ids.next()?;
        println!("{id}  machine {}", ids.machine());
    }
    Ok(()) // dropping the service gives the machine ID back
}
