//! Faults that the check of serials must detect.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vesta_intf::UnixMillis;
use vesta_numbers::serial::Serial;
use vesta_numbers::serial::{CivilHour, Pattern};

use crate::serials::{CASES, Case, Got, TOTAL, check};

/// 2024-02-28T00:00 in Shanghai.
const MIDNIGHT: u64 = 1_709_049_600;

#[test]
fn planted_faults_of_serials_are_found() {
    let case = Case {
        begins: MIDNIGHT,
        periods: &["2024-02-28"],
        ..CASES[0]
    };
    let pattern = Pattern::new(case.pattern, case.reset).expect("a pattern");
    let now = UnixMillis(MIDNIGHT * 1000);
    let got = |day, n, said| {
        let date = CivilHour {
            year: 2024,
            month: 2,
            day,
            hour: 0,
        };
        let text = pattern.format(&date, said).expect("a serial");
        Got {
            serial: Serial { text, counter: n },
            earliest: now,
            latest: now,
        }
    };
    let finds = |all: Vec<Vec<Got>>, fault: &str| {
        let servers: Vec<_> = all.into_iter().map(|thread| vec![thread]).collect();
        let found = catch_unwind(AssertUnwindSafe(|| check(&case, &pattern, &servers)));
        let said = found.expect_err("it is found");
        let said = said.downcast_ref::<String>().expect("a message");
        assert!(said.contains(fault), "{fault}: {said}");
    };
    let rest = || (4..TOTAL + 1).map(|n| got(28, n, n)).collect::<Vec<_>>();
    let others = |two: Vec<Got>| vec![rest(), two, vec![got(28, 3, 3)]];
    let right = others(vec![got(28, 1, 1), got(28, 2, 2)]);
    check(
        &case,
        &pattern,
        &right.into_iter().map(|it| vec![it]).collect::<Vec<_>>(),
    );
    finds(others(vec![got(28, 1, 1), got(28, 5, 5)]), "twice");
    finds(others(vec![got(28, 2, 2), got(28, 1, 1)]), "after");
    finds(
        others(vec![got(28, 1, 1), got(29, 1, 1)]),
        "of a past period",
    );
    let another = Got {
        earliest: UnixMillis(0),
        ..got(29, 1, 1)
    };
    finds(
        others(vec![got(28, 1, 1), another]),
        "left: [\"2024-02-28\", \"2024-02-29\"]",
    );
    finds(others(vec![got(28, 1, 1), got(28, 2, 9_000)]), "left: 9000");
    let end = TOTAL + 1;
    let other = vec![got(28, 1, 1), got(28, 2, 2), got(28, end, end)];
    finds(
        vec![rest(), other, vec![got(28, end + 1, end + 1)]],
        "without [3]",
    );
    let early = |got: Got| Got {
        latest: UnixMillis(now.0 - 60_000),
        ..got
    };
    finds(
        others(vec![got(28, 1, 1), early(got(28, 2, 2))]),
        "of a future period",
    );
}
