//! Under a doubt: what is looked at, what is bought, and when a lease is given up.

use super::*;

fn doubted() -> Holding {
    let [since, reach] = [UnixMillis(0); 2];
    let doubt = Doubt {
        since,
        reach,
        window: Duration::ZERO,
        took_over: false,
        why: String::new(),
    };
    Holding {
        doubt: Some(doubt),
        alone_below: RULES.position(130),
        ..lease()
    }
}

/// The largest time of the store at which a lease whose bound lies at tick 103 is extended.
const LAST: u64 = 100;

#[test]
fn under_a_doubt_a_lease_is_given_up_two_seconds_before_its_bound() {
    for (doubt, theirs, extends) in [
        (true, moment(LAST), true),
        (true, moment(LAST + 1), false),
        (true, moment(200), false),
        // Without a clock of the store this host's counts.
        (true, None, false),
        (false, moment(200), true),
    ] {
        let mut lease = doubted();
        lease.alone_below = lease.record.bound;
        if !doubt {
            lease.doubt = None;
            lease.compared = true; // nothing is compared before each renewal
        }
        let now = now(10, 10);
        let next = match doubt {
            true => next_after_clock(&mut lease, theirs, &now),
            false => lease.next(&plan(), &now),
        };
        assert_eq!(lease.is_overdue(), !extends, "{theirs:?}");
        if extends {
            written(next);
            continue;
        }
        waits(next);
        lease.release(RULES.position(102));
        let (_, new) = written(lease.next(&plan(), &now));
        assert_eq!((new.bound, new.released), (RULES.position(102), true));
        assert!(!lease.is_overdue());
    }
}

/// A process that stands by takes the record over before its bound.
#[test]
fn under_a_doubt_a_lease_in_order_is_given_up_after_a_window() {
    for (after, extends) in [(2, true), (3, false)] {
        let plan = Plan {
            standby: Some(Standby {
                window: 3 * SECOND,
                base: 0,
            }),
            ..plan()
        };
        let mut lease = doubted();
        let now = now(after, 10);
        assert!(matches!(lease.next(&plan, &now), Action::Ask(Ask::Clock)));
        let pair = ClockPair {
            before: now.wall,
            theirs: moment(100).expect("a moment"),
            after: now.wall,
            asked: now.monotonic,
        };
        lease.on_answer(&plan, Answer::Clock(Some(pair)), &now);
        assert_eq!(lease.is_overdue(), !extends, "{after}");
    }
}

/// Another process may have had the record until the change took effect, and the store may have forgotten that.
#[test]
fn an_answer_that_came_late_does_not_exclude_a_forgotten_successor() {
    for (after, extends) in [(5, true), (6, false)] {
        let mut lease = doubted();
        lease.record.bound = RULES.position(108);
        written(next_after_clock(&mut lease, moment(100), &now(10, 10)));
        let answered = now(10 + after, 10);
        let bound = raised(lease.on_answer(&plan(), done(), &answered));
        assert_eq!(bound, RULES.position(110), "its own window is its own");
        lease.due = Duration::ZERO;
        next_after_clock(&mut lease, moment(106), &answered);
        assert_eq!(lease.is_overdue(), !extends, "{after}");
    }
}

/// The doubt was written after the holder's last look, and a change of before took long.
#[test]
fn an_answer_without_a_doubt_counts_for_as_long_as_a_look() {
    for (after, extends) in [(40, true), (41, false)] {
        let mut lease = lease();
        let (_, new) = written(lease.next(&plan(), &now(3, 10)));
        assert_eq!(new.bound, RULES.position(106));
        lease.on_answer(&plan(), done(), &now(3 + after, 10));
        lease.doubt = doubted().doubt;
        // The store's clock, below the new bound but not below the one before.
        next_after_clock(&mut lease, moment(103), &now(60, 10));
        assert_eq!(lease.is_overdue(), !extends, "{after}");
    }
}

/// Moment at which a tick begins.
fn moment(tick: u64) -> Option<UnixMillis> {
    Some(IdMeta::MAX_PEAK.moment_of(tick).unwrap())
}

#[test]
fn under_a_doubt_a_window_counts_from_the_earlier_clock() {
    for (ours, theirs, from) in [
        (110, None, 110),
        (110, moment(110), 110),
        (110, moment(111), 110),
        (110, moment(109), 109),
        (170, moment(110), 110),
    ] {
        let mut lease = doubted();
        let now = Now {
            tick: ours,
            ..now(10, 10)
        };
        let (_, new) = written(next_after_clock(&mut lease, theirs, &now));
        assert_eq!(new.bound, RULES.position(from + 10), "{ours}, {theirs:?}");
        assert_eq!(raised(lease.on_answer(&plan(), done(), &now)), new.bound);
    }
}

#[test]
fn under_a_doubt_an_unanswered_extend_is_sent_again_unchanged() {
    let mut lease = doubted();
    lease.record.bound = RULES.position(119);
    let (_, first) = written(next_after_clock(&mut lease, moment(110), &now(10, 10)));
    assert!(matches!(
        lease.on_answer(&plan(), unknown(), &now(10, 10)),
        Event::Unsure(_)
    ));
    let stepped = Now {
        tick: 500,
        ..now(20, 10)
    };
    assert_eq!(written(lease.next(&plan(), &stepped)).1, first);
    assert_eq!(
        raised(lease.on_answer(&plan(), done(), &stepped)),
        first.bound
    );
    let (_, next) = written(next_after_clock(&mut lease, moment(116), &stepped));
    assert_eq!(
        next.bound,
        RULES.position(126),
        "each window uses its own answer"
    );
}

/// Otherwise the holder would ask continuously: its bound lies in the past of its own clock.
#[test]
fn a_holder_ahead_of_the_store_extends_at_its_usual_pace() {
    let mut lease = doubted();
    let ahead = |seconds| Now {
        tick: 160 + seconds,
        ..now(seconds, 10)
    };
    for seconds in [0, 3, 6] {
        written(next_after_clock(
            &mut lease,
            moment(100 + seconds),
            &ahead(seconds),
        ));
        lease.on_answer(&plan(), done(), &ahead(seconds));
        let next = now(seconds + 1, 10).monotonic;
        assert_eq!(waits(lease.next(&plan(), &ahead(seconds))), next);
    }
    // A further step is noticed at once.
    let stepped = Now {
        tick: 300,
        ..ahead(6)
    };
    written(next_after_clock(&mut lease, moment(107), &stepped));
}

#[test]
fn a_holder_asks_the_stores_clock_while_its_own_is_suspect() {
    let mut lease = lease();
    let suspect = Now {
        suspect: true,
        ..now(2, 10)
    };
    let (_, new) = written(next_after_clock(&mut lease, moment(0), &suspect));
    assert_eq!(
        new.bound,
        RULES.position(105),
        "without a doubt its own clock counts"
    );
}

#[test]
fn the_reach_of_a_doubt_counts_from_the_later_clock() {
    for (theirs, from) in [(None, 0), (Some(UnixMillis(9_000)), 9_000)] {
        let mut lease = lease();
        asks_after_clock(&mut lease, theirs, &now(41, 10));
        let seen = Some(Doubt::of("a replica lags", false));
        lease.on_answer(
            &plan(),
            looked(41, Some(namespace(None)), seen),
            &now(41, 10),
        );
        let Action::Ask(Ask::Amend(facts)) = lease.next(&plan(), &now(41, 10)) else {
            panic!("it is written down")
        };
        assert_eq!(
            facts.doubt.expect("it is new").reach,
            UnixMillis(from + 50_000)
        );
    }
}

#[test]
fn cleared_doubt_no_longer_applies() {
    let mut lease = doubted();
    nothing_is_seen_at_60(&mut lease);
    assert_eq!(
        written(lease.next(&plan(), &now(60, 10))).1.bound,
        RULES.position(163)
    );
}

#[test]
fn doubt_is_noticed_in_a_minute_and_written_before_the_next_window() {
    let mut lease = lease();
    lease.checked = SECOND;
    waits(lease.next(&plan(), &now(0, 10)));
    written(lease.next(&plan(), &now(40, 10)));
    lease.on_answer(&plan(), done(), &now(40, 10));
    asks_after_clock(&mut lease, None, &now(41, 10));
    // Asked at 41 s and answered late: the facts are as old as the request.
    let seen = Some(Doubt::of("a replica lags", false));
    let event = lease.on_answer(
        &plan(),
        looked(41, Some(namespace(None)), seen),
        &now(50, 10),
    );
    assert!(matches!(event, Event::None));
    assert_eq!(lease.checked, 41 * SECOND);
    let Action::Ask(Ask::Amend(facts)) = lease.next(&plan(), &now(50, 10)) else {
        panic!("it is to be written down")
    };
    let doubt = facts.doubt.clone().unwrap();
    assert_eq!(doubt.why, "a replica lags");
    // 40 s between two checks, the window of 3 s, a lead of 5 s, clocks 2 s apart.
    assert_eq!(doubt.reach, UnixMillis(50_000));
    lease.on_answer(&plan(), unknown(), &now(50, 10));
    let again = lease.next(&plan(), &now(60, 10));
    assert!(matches!(again, Action::Ask(Ask::Amend(again)) if again == facts));
    let known = Answer::Namespace(namespace(Some(doubt.clone())));
    lease.on_answer(&plan(), known, &now(60, 10));
    assert_eq!(lease.doubt, Some(doubt));
    lease.alone_below = RULES.position(163);
    let (_, new) = written(next_after_clock(&mut lease, None, &now(60, 10)));
    assert_eq!(
        new.bound,
        RULES.position(170),
        "10 s, whatever the window was"
    );
}

#[test]
fn unanswered_check_of_the_store_is_not_repeated_at_once() {
    let mut lease = lease();
    let ahead = Now {
        tick: 200,
        ..now(60, 10)
    };
    asks_after_clock(&mut lease, None, &ahead);
    assert!(matches!(
        lease.on_answer(&plan(), unknown(), &ahead),
        Event::Unsure(_)
    ));
    waits(lease.next(&plan(), &ahead));
}
