//! Writes IDs with machine ID 1 to a file, for `scripts/check/peers.sh`: `write_ids vesta|ferroid FILE SECONDS`.
//! With `count FILE…`: the number of IDs in all files, and the number of those equal to an earlier one.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use vesta_service::{IdMeta, LocalIdService, MachineSource};

type Generator = Box<dyn FnMut() -> Result<u64, Box<dyn Error>>>;

fn generator(name: &str) -> Result<Generator, Box<dyn Error>> {
    if name == "ferroid" {
        let clock = MonotonicClock::<1>::with_epoch(TWITTER_EPOCH);
        let ids = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(1, clock);
        return Ok(Box::new(move || {
            Ok(ids.next_id(|_| std::hint::spin_loop()).to_raw())
        }));
    }
    let ids = LocalIdService::builder()
        .layout(IdMeta::SNOWFLAKE)
        .machine(MachineSource::Fixed(1))
        .build()?;
    Ok(Box::new(move || Ok(ids.gen_id()?)))
}

/// Prints the number of errors and the longest time without an ID, in milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "it measures, and the wall clock is wrong on purpose"
)]
fn write(name: &str, file: &str, seconds: f64) -> Result<(), Box<dyn Error>> {
    let mut next = generator(name)?;
    let mut file = BufWriter::with_capacity(1 << 16, File::create(file)?);
    let (mut errors, mut longest) = (0_u64, Duration::ZERO);
    let start = Instant::now();
    let mut last = start;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        let result = next();
        let now = Instant::now();
        match result {
            Ok(id) => {
                file.write_all(&id.to_be_bytes())?;
                longest = longest.max(now - last);
                last = now;
            }
            Err(_) => errors += 1,
        }
    }
    file.flush()?;
    println!("{errors} {}", longest.as_millis());
    Ok(())
}

fn count(files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut ids = Vec::new();
    for file in files {
        let bytes = std::fs::read(file)?;
        let (chunks, _) = bytes.as_chunks::<8>();
        ids.extend(chunks.iter().map(|id| u64::from_be_bytes(*id)));
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    println!("{all} {}", all - ids.len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [mode, files @ ..] if mode == "count" => count(files),
        [name, file, seconds] => write(name, file, seconds.parse()?),
        _ => Err("usage: write_ids vesta|ferroid FILE SECONDS, or write_ids count FILE…".into()),
    }
}
