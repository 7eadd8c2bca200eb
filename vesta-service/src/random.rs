//! Random numbers from the operating system.

/// Names an incarnation or a namespace. Never 0, which means "nobody".
pub(crate) fn u128() -> u128 {
    let mut bytes = [0; 16];
    // Without it no two incarnations could be told apart. The kernel's generator does not fail once
    // it is seeded.
    getrandom::fill(&mut bytes).expect("the operating system's random generator works");
    u128::from_le_bytes(bytes).max(1)
}

/// Names a request, or spreads a time. At most 63 bits, which every store can keep as a number.
pub(crate) fn u63() -> u64 {
    u64::try_from(u128() >> 65).unwrap_or(0) // it always fits
}
