//! Random numbers from the operating system.

/// Random identifier of an incarnation or a namespace. Never 0, which means "none".
pub fn u128() -> u128 {
    let mut bytes = [0; 16];
    // Without randomness incarnations could not be distinguished. The kernel's generator does not
    // fail once it is seeded.
    getrandom::fill(&mut bytes).expect("the operating system's random generator works");
    u128::from_le_bytes(bytes).max(1)
}

/// Random number for a request, or for spreading a time. At most 63 bits, which every store can
/// keep as a number.
pub fn u63() -> u64 {
    u64::try_from(u128() >> 65).unwrap_or(0) // it always fits
}
