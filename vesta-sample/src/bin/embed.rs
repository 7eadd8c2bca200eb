//! Embedding: IDs made inside the process, without a server.
//!
//! `cargo run -p vesta-sample --bin embed [-- FOLDER]`; run it twice: it never repeats an ID.
#![forbid(unsafe_code)]

use std::error::Error;

use vesta_service::options::default_state_dir;
use vesta_service::{LocalIdService, MachineSource, VestaId};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(default_state_dir, Into::into);

    // No other process in this namespace may use machine ID 7; on this host the state file ensures that.
    let ids = LocalIdService::builder()
        .machine(MachineSource::Fixed(7))
        .state_dir(folder)
        .build()?;

    for _ in 0..3 {
        let id: VestaId = ids.next()?;
        let parts = ids.exp_id(id)?;
        let moment = id.created_at(ids.meta())?;
        println!(
            "{id}  machine {} seq {} made {moment}",
            parts.machine, parts.seq
        );
    }

    // A batch costs about as much as one ID.
    let mut batch = vec![0; 1000];
    ids.gen_ids(&mut batch)?;
    println!("{} more, from {} to {}", batch.len(), batch[0], batch[999]);
    Ok(()) // dropping the service saves its position
}
