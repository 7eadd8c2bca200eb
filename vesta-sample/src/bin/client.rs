//! Client: IDs from a server over gRPC.
//!
//! Start a server (`scripts/run.sh server`), then `cargo run -p vesta-sample --bin client`.
#![forbid(unsafe_code)]

use std::error::Error;

use vesta_client::{Client, MakeId, VestaId};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "http://127.0.0.1:50051".into());
    let client = Client::builder().endpoint(endpoint).build()?;

    let id: VestaId = client.next().await?;
    println!("{id}  {:?}", client.exp_id(id).await?);

    let ids = client.gen_ids(3).await?;
    println!("three at once: {ids:?}");

    let parts = MakeId {
        machine: Some(1021),
        gen_method: Some(2),
        ..MakeId::new(94_990_103, 0)
    };
    println!("put together by hand: {}", client.make_id(&parts).await?);
    Ok(())
}
