//! Serials: invoice numbers that restart each day, and coupons that do not reveal how many there are.
//!
//! `cargo run -p vesta-sample --bin serial [-- FOLDER]`; run it twice: it never repeats a serial.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use vesta_numbers::serial::{NewSerialTag, Pattern, Reset, SerialService, ShuffleKey};
use vesta_service::options::default_state_dir;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(default_state_dir, PathBuf::from);
    fs::create_dir_all(&folder)?;

    // All processes that use the same store share the tags: on several hosts it is a database
    // server.
    let store = vesta_store::open(&format!("sqlite:{}/serials.db", folder.display()).parse()?)?;
    let key = key(&folder.join("coupons.key"))?;
    let serials = SerialService::builder(store)
        .key("coupons", key.clone())
        .build()?;

    // An existing tag stays as it is.
    let pattern = Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day)?;
    serials.create(&NewSerialTag::new(
        "invoices",
        pattern,
        Some("Asia/Shanghai"),
    )?)?;
    let pattern = Pattern::new("{shuffle:8}{check:damm}", Reset::Never)?;
    serials.create(&NewSerialTag::new("coupons", pattern, None)?.shuffled_with(&key)?)?;

    let (invoices, coupons) = (serials.tag("invoices")?, serials.tag("coupons")?); // keep them
    for _ in 0..3 {
        println!(
            "invoice {} with coupon {}",
            invoices.next()?.text,
            coupons.next()?.text
        );
    }

    let coupon = coupons.next()?.text;
    println!(
        "coupon {coupon} is number {}",
        coupons.parse(&coupon)?.counter
    );
    Ok(())
}

/// The key in a file, drawn at random the first time. Keep it secret and never lose it: the tag refuses any
/// other key, with which coupons would repeat.
fn key(path: &Path) -> Result<ShuffleKey, Box<dyn Error>> {
    if !path.exists() {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        random
            .iter()
            .try_for_each(|byte| write!(file, "{byte:02x}"))?;
        file.sync_all()?;
    }
    Ok(ShuffleKey::from_hex(&fs::read_to_string(path)?)?)
}
