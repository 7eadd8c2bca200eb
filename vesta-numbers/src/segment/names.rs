//! Lock-free lookup of values by name.

use std::sync::OnceLock;

use vesta_service::inside::number;

/// Enough lists for those of ten thousand names to be a few entries long; 64 KiB.
const LISTS: usize = 4096;

/// Values by name. Entries are never removed, so a reference to one stays valid.
#[derive(Debug)]
pub(super) struct Names<T>(Box<[Next<T>]>);

type Next<T> = OnceLock<Box<Entry<T>>>;

#[derive(Debug)]
struct Entry<T> {
    name: Box<str>,
    value: T,
    next: Next<T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self((0..LISTS).map(|_| Next::new()).collect())
    }
}

impl<T> Names<T> {
    /// The value with this name.
    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        let mut next = self.list(name);
        while let Some(entry) = next.get() {
            if *entry.name == *name {
                return Some(&entry.value);
            }
            next = &entry.next;
        }
        None
    }

    /// The value with this name; adds `value` if there was none.
    pub(super) fn get_or_add(&self, name: &str, value: T) -> &T {
        let (mut next, mut entry) = (
            self.list(name),
            Box::new(Entry {
                name: name.into(),
                value,
                next: Next::new(),
            }),
        );
        loop {
            // Another caller may be faster; its entry is then examined.
            let mut added = Some(entry);
            let found = next.get_or_init(|| added.take().expect("it is called once"));
            match added {
                None => return &found.value,
                Some(_) if *found.name == *name => return &found.value,
                Some(left) => (entry, next) = (left, &found.next),
            }
        }
    }

    #[inline]
    fn list(&self, name: &str) -> &Next<T> {
        &self.0[list_of(name.as_bytes())]
    }
}

/// Distributes names over lists. Only names from the store's table are added, so requests cannot make a list long.
#[inline]
fn list_of(name: &[u8]) -> usize {
    // The golden ratio, used as the multiplier in Fibonacci hashing (Knuth, volume 3, section 6.4). The highest bits
    // of a product depend on all others; the rotation moves them down for the next one.
    const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(RATIO).rotate_left(32);
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let (words, rest) = name.as_chunks();
    let hash = words.iter().map(word).fold(number(name.len()), mix);
    // The last eight bytes, possibly overlapping the earlier ones: only the shortest names need a loop over
    // single bytes.
    let last = name.last_chunk().map_or_else(
        || {
            rest.iter()
                .fold(1, |word, byte| word << 8 | u64::from(*byte))
        },
        word,
    );
    let highest = mix(hash, last).wrapping_mul(RATIO) >> (u64::BITS - LISTS.ilog2());
    usize::try_from(highest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_is_found_and_keeps_its_first_value() {
        let names = Names::default();
        let all: Vec<String> = (0..20_000)
            .map(|number| format!("{}{number}", "shop/".repeat(number % 5)))
            .collect();
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), None);
            assert_eq!(*names.get_or_add(name, number), number);
        }
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), Some(&number));
            assert_eq!(*names.get_or_add(name, 0), number);
        }
        assert_eq!(names.get(""), None);
    }

    #[test]
    fn names_of_every_kind_are_distributed_over_the_lists() {
        let kinds: [fn(usize) -> String; 4] = [
            |number| format!("{number}"),
            |number| format!("order-{number:06}"),
            |number| format!("{number:06}-of-a-long-name-that-ends-alike"),
            |number| format!("{}{}", "x".repeat(number % 60), number / 60),
        ];
        for kind in kinds {
            let lists: HashSet<_> = (0..LISTS)
                .map(|number| list_of(kind(number).as_bytes()))
                .collect();
            // With as many names as lists, 63 % of the lists get at least one by chance.
            assert!(lists.len() > LISTS / 2, "{}: {}", kind(7), lists.len());
        }
    }

    #[test]
    fn concurrent_adds_of_a_name_return_the_same_value() {
        let names = Names::default();
        let (names, all) = (&names, 0..2_000);
        let found = std::thread::scope(|scope| {
            let callers = [0, 1].map(|caller| {
                let all = all.clone();
                scope.spawn(move || {
                    all.map(|number| *names.get_or_add(&number.to_string(), caller))
                        .collect::<Vec<_>>()
                })
            });
            callers.map(|caller| caller.join().expect("no panic"))
        });
        assert_eq!(found[0], found[1]);
    }
}
