use vesta_intf::IdMeta;

use super::*;
use crate::clock::ClockPair;
use crate::lease::{Doubt, Look, Namespace, Standby, StoreError};
use crate::sequence::Rules;

const RULES: Rules = Rules::new(30, 4, 0);
const SECOND: Duration = Duration::from_secs(1);

fn now(seconds: u64, number: u64) -> Now {
    Now {
        monotonic: SECOND * u32::try_from(seconds).unwrap(),
        wall: UnixMillis(0),
        wall_tick: 100 + seconds,
        tick: 100 + seconds,
        suspect: false,
        random: number.into(),
        jitter: number,
    }
}

fn plan() -> Plan {
    Plan::sample(RULES, 3 * SECOND, 16)
}

fn lease() -> Holding {
    let claimed = Record {
        namespace: 1,
        epoch: 5,
        owner: 77,
        bound: RULES.position(103),
        attempt: 1,
        ..Record::default()
    };
    Holding::new(&plan(), 9, None, claimed, &now(0, 10))
}

fn namespace(doubt: Option<Doubt>) -> Namespace {
    Namespace {
        uuid: 1,
        doubt,
        ..Namespace::default()
    }
}

fn looked(asked: u32, namespace: Option<Namespace>, seen: Option<Doubt>) -> Answer {
    Answer::Doubt(Look {
        server: None,
        asked: asked * SECOND,
        namespace,
        seen,
    })
}

/// Reads the store's clock, which comes before anything else, and returns the next action.
fn next_after_clock(lease: &mut Holding, theirs: Option<UnixMillis>, now: &Now) -> Action {
    assert!(matches!(lease.next(&plan(), now), Action::Ask(Ask::Clock)));
    let pair = theirs.map(|theirs| ClockPair {
        before: now.wall,
        theirs,
        after: now.wall,
        asked: now.monotonic,
    });
    assert!(matches!(
        lease.on_answer(&plan(), Answer::Clock(pair), now),
        Event::None
    ));
    lease.next(&plan(), now)
}

/// The store's clock is read, then its doubt is asked for.
fn asks_after_clock(lease: &mut Holding, theirs: Option<UnixMillis>, now: &Now) {
    let next = next_after_clock(lease, theirs, now);
    assert!(matches!(next, Action::Ask(Ask::Doubt)));
}

/// The store is looked at after 60 s, and there is no doubt.
fn nothing_is_seen_at_60(lease: &mut Holding) {
    asks_after_clock(lease, None, &now(60, 10));
    lease.on_answer(
        &plan(),
        looked(60, Some(namespace(None)), None),
        &now(60, 10),
    );
}

fn unknown() -> Answer {
    Answer::Failed(StoreError::unavailable(
        "no reply",
        std::io::Error::other("lost"),
    ))
}

fn done() -> Answer {
    Answer::Record(Cas::Done)
}

fn written(action: Action) -> (Record, Record) {
    match action {
        Action::Ask(Ask::Write(9, write)) => match *write {
            Write::Record {
                old: Some(old),
                new,
            } => (old, new),
            other => panic!("expected a change of the record, got {other:?}"),
        },
        other => panic!("expected a write, got {other:?}"),
    }
}

fn waits(action: Action) -> Duration {
    let Action::Wait(until) = &action else {
        panic!("expected a wait, got {action:?}")
    };
    *until
}

fn raised(event: Event) -> u64 {
    let Event::Raised(record) = &event else {
        panic!("expected a raise, got {event:?}")
    };
    record.bound
}

#[test]
fn clock_beyond_the_bound_extends_before_a_renewal_is_due() {
    let mut lease = lease();
    waits(lease.next(
        &plan(),
        &Now {
            tick: 102,
            ..now(0, 10)
        },
    ));
    let ahead = Now {
        tick: 103,
        ..now(0, 10)
    };
    assert_eq!(
        written(lease.next(&plan(), &ahead)).1.bound,
        RULES.position(106)
    );
    // An unanswered request is repeated no more often than any other.
    assert!(matches!(
        lease.on_answer(&plan(), unknown(), &ahead),
        Event::Unsure(_)
    ));
    waits(lease.next(&plan(), &ahead));
}

#[test]
fn each_change_has_its_own_attempt_and_time() {
    let later = Now {
        wall: UnixMillis(7),
        ..now(2, 42)
    };
    let (_, new) = written(lease().next(&plan(), &later));
    assert_eq!((new.attempt, new.info_time), (42, UnixMillis(7)));
}

#[test]
fn extend_delayed_by_an_outage_is_followed_by_the_next_at_once() {
    let mut lease = lease();
    let (_, held_up) = written(lease.next(&plan(), &now(2, 10)));
    assert!(matches!(
        lease.on_answer(&plan(), unknown(), &now(2, 10)),
        Event::Unsure(_)
    ));
    assert_eq!(
        written(lease.next(&plan(), &now(60, 10))).1,
        held_up,
        "sent again unchanged"
    );
    assert_eq!(
        raised(lease.on_answer(&plan(), done(), &now(60, 10))),
        held_up.bound
    );
    assert!(
        held_up.bound < RULES.position(160),
        "its bound is past by now"
    );
    nothing_is_seen_at_60(&mut lease);
    let (_, next) = written(lease.next(&plan(), &now(60, 10)));
    assert_eq!(next.bound, RULES.position(163));
}

#[test]
fn it_extends_from_the_clock_and_raises_only_after_the_reply() {
    let mut lease = lease();
    assert_eq!(waits(lease.next(&plan(), &now(0, 3))), SECOND);
    let (old, new) = written(lease.next(&plan(), &now(1, 2)));
    assert_eq!(
        (old.epoch, old.owner, old.bound),
        (5, 77, RULES.position(103))
    );
    assert_eq!(new.bound, RULES.position(104));
    assert_eq!(
        lease.record.bound,
        RULES.position(103),
        "not before the reply"
    );
    assert_eq!(
        raised(lease.on_answer(&plan(), done(), &now(1, 10))),
        RULES.position(104)
    );
    assert_eq!(waits(lease.next(&plan(), &now(1, 4))), 2 * SECOND);
}

#[test]
fn a_clock_that_stands_still_writes_nothing() {
    let mut lease = lease();
    let still = Now {
        tick: 100,
        ..now(1, 10)
    };
    assert_eq!(waits(lease.next(&plan(), &still)), 2 * SECOND);
}

#[test]
fn unanswered_extend_is_sent_again_unchanged() {
    let mut lease = lease();
    let first = written(lease.next(&plan(), &now(1, 2)));
    assert!(matches!(
        lease.on_answer(&plan(), unknown(), &now(1, 10)),
        Event::Unsure(_)
    ));
    let again = written(lease.next(&plan(), &now(9, 3)));
    assert_eq!(again, first, "unchanged, although the clock went on");
    assert_eq!(
        raised(lease.on_answer(&plan(), done(), &now(9, 10))),
        first.1.bound
    );
}

/// Event of an extend, or of a release after sealing, that meets this record.
fn met(lease: &mut Holding, current: Option<Record>) -> Event {
    written(lease.next(&plan(), &now(1, 2)));
    lease.on_answer(&plan(), Answer::Record(Cas::Conflict(current)), &now(1, 3))
}

#[test]
fn a_successor_fences_the_lease_and_so_does_an_operator() {
    let mine = lease().record;
    let successor = Record {
        epoch: 6,
        owner: 78,
        from: mine.bound,
        ..mine.clone()
    };
    let later = Record {
        epoch: 9,
        from: mine.bound + 70,
        bound: mine.bound + 70,
        ..successor.clone()
    };
    let freed = Record {
        owner: 0,
        released: true,
        ..mine
    };
    for current in [successor, later, freed] {
        let event = met(&mut lease(), Some(current.clone()));
        assert!(matches!(event, Event::Fenced(found) if found == current));
    }
}

#[test]
fn a_successor_of_a_release_whose_reply_was_lost_fences_the_lease() {
    let mut lease = lease();
    let sealed_at = RULES.position(101);
    lease.release(sealed_at);
    let bound = RULES.position(105);
    let successor = Record {
        epoch: 6,
        owner: 78,
        from: sealed_at,
        bound,
        ..lease.record.clone()
    };
    assert!(matches!(met(&mut lease, Some(successor)), Event::Fenced(_)));
}

#[test]
fn store_that_went_back_gets_a_floor_before_the_lease_is_given_up() {
    let mine = lease().record;
    let successor = Record {
        epoch: 6,
        owner: 78,
        from: mine.bound,
        ..mine.clone()
    };
    let earlier = [
        None,
        Some(Record {
            birth: 8,
            ..mine.clone()
        }),
        Some(Record {
            epoch: 4,
            ..mine.clone()
        }),
        Some(Record {
            bound: mine.bound - 1,
            ..mine.clone()
        }),
        // Claimed by another process after the store went back.
        Some(Record {
            owner: 78,
            ..mine.clone()
        }),
        Some(Record {
            from: mine.bound - 1,
            ..successor.clone()
        }),
        Some(Record {
            birth: 8,
            ..successor
        }),
    ];
    for current in earlier {
        let mut lease = lease();
        let event = met(&mut lease, current.clone());
        assert!(
            matches!(&event, Event::WentBack(found) if *found == current),
            "{event:?}"
        );
        let sealed_at = RULES.position(101) + 3;
        lease.release(sealed_at);
        let floor = Amendment {
            namespace: 1,
            floor: sealed_at,
            ..Amendment::default()
        };
        for second in 2..5 {
            let action = lease.next(&plan(), &now(second, 2));
            assert!(matches!(action, Action::Ask(Ask::Amend(asked)) if asked == floor));
            let event = lease.on_answer(&plan(), unknown(), &now(second, 3));
            assert!(
                matches!(event, Event::Unsure(_)),
                "it is asked until it answers"
            );
        }
        lease.next(&plan(), &now(5, 2));
        let raised = Answer::Namespace(Namespace {
            floor: sealed_at,
            ..namespace(None)
        });
        let event = lease.on_answer(&plan(), raised, &now(5, 3));
        assert!(matches!(event, Event::GivenUp(true)));
    }
}

#[test]
fn lost_or_replaced_namespace_ends_the_lease_without_a_floor() {
    let other = Namespace {
        uuid: 2,
        ..Namespace::default()
    };
    for (seen, answer) in [
        (None, Answer::NoNamespace),
        (Some(other.clone()), Answer::Namespace(other)),
    ] {
        let mut lease = lease();
        asks_after_clock(&mut lease, None, &now(40, 10));
        let event = lease.on_answer(&plan(), looked(40, seen, None), &now(40, 10));
        assert!(matches!(event, Event::WentBack(None)));
        assert!(matches!(
            lease.next(&plan(), &now(40, 10)),
            Action::Ask(Ask::Amend(_))
        ));
        let event = lease.on_answer(&plan(), answer, &now(40, 10));
        assert!(matches!(event, Event::GivenUp(false)));
    }
}

#[test]
fn a_refusal_ends_no_lease() {
    let mut lease = lease();
    let sent = written(lease.next(&plan(), &now(1, 2)));
    let refused = || Answer::Failed(StoreError::permanent("UPDATE command denied"));
    for second in 1..60 {
        assert!(matches!(
            lease.on_answer(&plan(), refused(), &now(second, 3)),
            Event::Unsure(_)
        ));
        assert_eq!(written(lease.next(&plan(), &now(second + 1, 2))), sent);
    }
    assert_eq!(
        raised(lease.on_answer(&plan(), done(), &now(60, 3))),
        sent.1.bound
    );
}

#[test]
fn refused_check_of_the_namespace_ends_no_lease_and_buys_nothing() {
    let mut lease = lease();
    asks_after_clock(&mut lease, None, &now(40, 10));
    let refused = Answer::Failed(StoreError::permanent("it replicates from another server"));
    assert!(matches!(
        lease.on_answer(&plan(), refused, &now(40, 10)),
        Event::Unsure(_)
    ));
    asks_after_clock(&mut lease, None, &now(41, 10));
}

#[test]
fn a_replaced_file_ends_the_lease() {
    let mut lease = lease();
    written(lease.next(&plan(), &now(1, 2)));
    let replaced = Answer::Failed(StoreError::replaced("the file was replaced"));
    assert!(matches!(
        lease.on_answer(&plan(), replaced, &now(1, 3)),
        Event::Broken(_)
    ));
}

/// Plan with a window of a minute where 3 s are usual.
fn wide() -> Plan {
    Plan {
        usual_window: 3 * SECOND,
        ..Plan::sample(RULES, 60 * SECOND, 16)
    }
}

/// Window of the next extend, in ticks, after a check that shows this namespace.
fn extended(lease: &mut Holding, seconds: u64, seen: &Namespace) -> u64 {
    lease.checked = Duration::ZERO;
    asks_after_clock(lease, None, &now(seconds, 10));
    let asked = u32::try_from(seconds).unwrap();
    lease.on_answer(
        &wide(),
        looked(asked, Some(seen.clone()), None),
        &now(seconds, 10),
    );
    if let Action::Ask(Ask::Amend(facts)) = lease.next(&wide(), &now(seconds, 10)) {
        assert_eq!(facts.window, 60 * SECOND);
        lease.on_answer(
            &wide(),
            Answer::Namespace(facts.of(seen)),
            &now(seconds, 10),
        );
    }
    let (_, new) = written(lease.next(&wide(), &now(seconds, 10)));
    lease.on_answer(&wide(), done(), &now(seconds, 10));
    RULES.tick(new.bound) - (100 + seconds)
}

#[test]
fn an_unusual_window_is_used_ten_minutes_after_the_namespace_shows_it() {
    let announced = Namespace {
        window: 60 * SECOND,
        ..namespace(None)
    };
    let mut lease = lease();
    assert_eq!(extended(&mut lease, 100, &announced), 3);
    assert_eq!(extended(&mut lease, 599, &announced), 3);
    assert_eq!(extended(&mut lease, 600, &announced), 60);
    // A fail-over forgot the announcement.
    assert_eq!(extended(&mut lease, 700, &namespace(None)), 3);
    assert_eq!(extended(&mut lease, 1_299, &announced), 3);
    assert_eq!(extended(&mut lease, 1_300, &announced), 60);
}

#[test]
fn the_reach_of_a_doubt_covers_the_longest_window_that_the_namespace_shows() {
    let seen = Some(Doubt::of("a replica lags", false));
    let minutes = Namespace {
        window: 600 * SECOND,
        ..namespace(None)
    };
    let facts = plan()
        .missing_from(&minutes, seen.as_ref(), None, UnixMillis(0))
        .unwrap();
    // 40 s between two checks, 10 min, a lead of 5 s, clocks 2 s apart.
    assert_eq!(facts.doubt.unwrap().reach, UnixMillis(647_000));
}

#[test]
fn a_release_lowers_the_bound_to_where_it_was_sealed() {
    let mut lease = lease();
    let sealed_at = RULES.position(101) + 3;
    lease.release(sealed_at);
    let (old, new) = written(lease.next(&plan(), &now(0, 2)));
    assert_eq!(old.bound, RULES.position(103));
    assert_eq!((new.bound, new.owner, new.released), (sealed_at, 0, true));
    assert_eq!(new.epoch, 5);
    let event = lease.on_answer(&plan(), done(), &now(0, 3));
    assert!(matches!(event, Event::Released(record) if record == new));
}

#[test]
fn a_release_waits_for_the_outcome_of_a_pending_extend() {
    let mut lease = lease();
    let extend = written(lease.next(&plan(), &now(1, 2)));
    lease.on_answer(&plan(), unknown(), &now(1, 3));
    lease.release(RULES.position(101));
    assert_eq!(
        written(lease.next(&plan(), &now(1, 4))),
        extend,
        "first the one that is open"
    );
    lease.on_answer(&plan(), done(), &now(1, 5));
    let (old, new) = written(lease.next(&plan(), &now(1, 6)));
    assert_eq!(old.bound, extend.1.bound);
    assert!(new.released);
}

#[test]
fn answer_without_a_request_changes_nothing() {
    let (mut lease, before) = (lease(), lease().record);
    assert!(matches!(
        lease.on_answer(&plan(), done(), &now(1, 2)),
        Event::None
    ));
    assert_eq!(lease.record, before);
}

mod doubts;
