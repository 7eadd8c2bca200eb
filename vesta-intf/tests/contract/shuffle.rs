//! Shuffled numbers: a bijection, in another order for another key.

use vesta_intf::{Shuffle, ShuffleKey};

/// 00, 01, …, 1f.
fn counting() -> ShuffleKey {
    let mut key = [0; 32];
    key.iter_mut()
        .zip(0..)
        .for_each(|(byte, value)| *byte = value);
    ShuffleKey::new(&key)
}

fn shuffle(key: ShuffleKey, size: u64) -> Shuffle {
    Shuffle::new(key, size).expect("a size in range")
}

/// Computed independently, in Python with its `hmac`.
#[test]
fn known_numbers() {
    let coupons = shuffle(counting(), 100_000_000);
    for (number, shuffled) in [(1, 48_066_486), (2, 32_683_105), (3, 29_330_371)] {
        assert_eq!(coupons.shuffle(number), shuffled);
        assert_eq!(coupons.restore(shuffled), number);
    }
    let key = "000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    assert_eq!(ShuffleKey::from_hex(key).expect("a key"), counting());
}

fn assert_bijective(size: u64) {
    assert_all_have_their_own(&shuffle(counting(), size), size);
}

fn assert_all_have_their_own(shuffle: &Shuffle, size: u64) {
    let mut seen = vec![false; usize::try_from(size).expect("it is small")];
    for number in 0..size {
        let shuffled = shuffle.shuffle(number);
        assert_eq!(shuffle.restore(shuffled), number, "of {size}");
        let place = &mut seen[usize::try_from(shuffled).expect("it is small")];
        assert!(
            !std::mem::replace(place, true),
            "{shuffled} occurs twice, of {size}"
        );
    }
}

#[test]
fn every_number_has_its_own_shuffled_number() {
    for size in [1, 2, 3]
        .into_iter()
        .chain((1..9).flat_map(|k| [4u64.pow(k) - 1, 4u64.pow(k), 4u64.pow(k) + 1]))
    {
        assert_bijective(size);
    }
    assert_bijective(100_000);
}

#[test]
fn the_largest_sizes_are_invertible() {
    let of_digits = [
        10_u64.pow(18),
        36_u64.pow(12),
        62_u64.pow(10),
        32_u64.pow(12),
    ];
    for size in of_digits
        .into_iter()
        .chain([1 << 40, i64::MAX.unsigned_abs(), 1 << 63])
    {
        let shuffle = shuffle(counting(), size);
        for number in (0..100).chain(size - 100..size) {
            let shuffled = shuffle.shuffle(number);
            assert!(shuffled < size && shuffle.restore(shuffled) == number);
        }
    }
}

#[test]
fn all_numbers_of_64_bits_are_permuted() {
    let all = Shuffle::of_all(counting());
    // Computed independently, in Python with its `hmac`.
    for (number, shuffled) in [
        (0, 12_018_661_950_551_259_117),
        (1, 1_800_085_089_910_354_784),
        (u64::MAX, 2_574_599_937_867_755_921),
    ] {
        assert_eq!(all.shuffle(number), shuffled);
        assert_eq!(all.restore(shuffled), number);
    }
    // As many of the 64 bits change as between two random numbers: 32 on average.
    let changed: u32 = (0..200)
        .map(|n| (all.shuffle(n) ^ all.shuffle(n + 1)).count_ones())
        .sum();
    assert!((30 * 200..34 * 200).contains(&changed), "{changed}");
}

/// Chi-square of ten digits with nine degrees of freedom: above 33.7 one time in 10,000.
const LEAST_LIKELY: f64 = 33.72;

fn chi_square(counts: [u32; 10]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / 10.0;
    counts
        .iter()
        .map(|count| (f64::from(*count) - expected).powi(2) / expected)
        .sum()
}

/// Counts of each digit at each place, of consecutive numbers.
fn digits(of: impl Fn(u64) -> u64, numbers: u64) -> [[u32; 10]; 8] {
    let mut counts = [[0; 10]; 8];
    for number in 1..=numbers {
        let mut rest = of(number);
        for place in &mut counts {
            place[(rest % 10) as usize] += 1;
            rest /= 10;
        }
    }
    counts
}

#[test]
fn every_digit_is_as_frequent_in_every_place() {
    let coupons = shuffle(counting(), 100_000_000);
    for (place, counts) in digits(|number| coupons.shuffle(number), 50_000)
        .into_iter()
        .enumerate()
    {
        let unlikely = chi_square(counts);
        assert!(
            unlikely < LEAST_LIKELY,
            "10^{place}: {unlikely} of {counts:?}"
        );
    }
    // The planted fault: a permutation that is no secret, n * 7 + 3.
    let known = digits(|number| (number * 7 + 3) % 100_000_000, 50_000);
    assert!(
        known
            .into_iter()
            .any(|counts| chi_square(counts) > LEAST_LIKELY)
    );
}

/// The rank correlation of two orders of the same numbers, 0 ± 1/√n if they are unrelated.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (a, b) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let both = sum(&|pair| (pair.0 - a) * (pair.1 - b));
    both / (sum(&|pair| (pair.0 - a).powi(2)) * sum(&|pair| (pair.1 - b).powi(2))).sqrt()
}

#[test]
fn another_key_is_another_order() {
    const SIZE: u64 = 20_000;
    let mut other = [0; 32];
    other[31] = 1; // one bit differs
    let keys = [
        ShuffleKey::new(&[0; 32]),
        ShuffleKey::new(&other),
        counting(),
    ];
    let all = keys.map(|key| shuffle(key, SIZE));
    let limit = 4.0 / (SIZE as f64).sqrt();
    for (one, two) in [(0, 1), (0, 2), (1, 2)] {
        let pairs: Vec<_> = (0..SIZE)
            .map(|n| (all[one].shuffle(n) as f64, all[two].shuffle(n) as f64))
            .collect();
        let related = correlation(&pairs);
        assert!(related.abs() < limit, "{related}");
        // As many numbers keep their place as between two random orders: one, or a few more.
        assert!(pairs.iter().filter(|pair| pair.0 == pair.1).count() < 8);
    }
    // The planted fault: one order is the reverse of the other.
    let mirrored: Vec<_> = (0..SIZE)
        .map(|n| {
            (
                all[0].shuffle(n) as f64,
                (SIZE - 1 - all[0].shuffle(n)) as f64,
            )
        })
        .collect();
    assert!(correlation(&mirrored).abs() > limit);
    // A number does not reveal the next one either.
    let next: Vec<_> = (1..SIZE)
        .map(|n| (all[2].shuffle(n - 1) as f64, all[2].shuffle(n) as f64))
        .collect();
    assert!(correlation(&next).abs() < limit);
}

#[test]
fn a_key_has_a_fingerprint_and_reveals_nothing() {
    let (one, other) = (counting(), ShuffleKey::new(&[7; 32]));
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(
        format!("{one:?}"),
        format!("ShuffleKey({})", one.fingerprint())
    );
    for wrong in [
        "",
        "00",
        "g0".repeat(32).as_str(),
        "00".repeat(33).as_str(),
        "０".repeat(64).as_str(),
    ] {
        let error = ShuffleKey::from_hex(wrong).expect_err(wrong).to_string();
        assert_eq!(error, "key: it must be 64 hexadecimal digits");
    }
}

#[test]
fn a_size_without_numbers_or_beyond_63_bits_is_refused() {
    for size in [0, (1 << 63) + 1] {
        assert!(Shuffle::new(counting(), size).is_err(), "{size}");
    }
}
