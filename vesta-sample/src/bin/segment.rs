//! Segment numbers: increasing numbers with few gaps for the rows of a table.
//!
//! Start a server in segment mode with a key `orders`:
//! `vesta segment create orders --step 1000 --segment-store sqlite:tags.db`, then
//! `vesta serve --segment-store sqlite:tags.db`; then
//! `cargo run -p vesta-sample --bin segment`.
#![forbid(unsafe_code)]

use std::error::Error;

use vesta_client::Client;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let endpoint = args
        .next()
        .unwrap_or_else(|| "http://127.0.0.1:50051".into());
    let key = args.next().unwrap_or_else(|| "orders".into());

    // Keeps numbers in memory, so it continues for a while when the server is down. The
    // asynchronous client does the same.
    let client = Client::builder().endpoint(endpoint).build_blocking()?;
    let orders = client.segment(&key)?;
    for _ in 0..3 {
        println!("order {}", orders.next_id()?);
    }

    let runs = orders.next_ids(100)?;
    let count: u32 = runs.iter().map(|run| run.count).sum();
    let last = runs
        .iter()
        .flat_map(|run| run.iter())
        .last()
        .unwrap_or_default();
    println!("{count} at once, from {} to {last}", runs[0].first);

    println!("{} numbers came from memory", orders.stats().handed_out);
    Ok(())
}
