//! Batches and prefetch: many IDs from a server, even while it is briefly down.
//!
//! Start a server (`scripts/run.sh server`), then `cargo run -p vesta-sample --bin batch`.
#![forbid(unsafe_code)]

use std::error::Error;

use vesta_client::{Client, IdService, Prefetch};

fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "http://127.0.0.1:50051".into());

    // The blocking client is an `IdService` like the embedded one: code written against the trait
    // works with both.
    let ids = Client::builder()
        .endpoint(endpoint)
        .prefetch(Prefetch {
            capacity: 100_000,
            low_water: 50_000,
            ..Prefetch::default()
        })
        .build_blocking()?;
    print_some(&ids)?;

    let mut batch = vec![0; 10_000];
    ids.gen_ids(&mut batch)?;
    println!(
        "{} at once, from {} to {}",
        batch.len(),
        batch[0],
        batch[9_999]
    );

    let stats = ids.stats();
    println!(
        "{} IDs came from memory with {} calls to the server; {} are still there",
        stats.prefetched_ids, stats.calls, stats.prefetched_left
    );
    Ok(())
}

fn print_some(ids: &dyn IdService) -> Result<(), Box<dyn Error>> {
    for _ in 0..3 {
        let id = ids.gen_id()?;
        println!("{id}  {:?}", ids.exp_id(id)?);
    }
    Ok(())
}
