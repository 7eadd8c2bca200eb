//! The rules for positions: each by example, and all of a small layout.

use super::*;

const NO_BOUND: u64 = u64::MAX;

#[test]
fn a_new_tick_starts_at_sequence_zero() {
    let rules = Rules::new(4, 3, 0);
    assert_eq!(
        advance(0, 5, 1, &rules, NO_BOUND),
        Ok(Claim { start: 40, end: 41 })
    );
}

#[test]
fn a_used_up_tick_waits_for_the_next_one_without_repeating() {
    let rules = Rules::new(4, 3, 0);
    assert_eq!(
        advance(48, 5, 1, &rules, NO_BOUND),
        Err(Refusal::SequenceUsedUp { until: 6 })
    );
    assert_eq!(
        advance(48, 6, 1, &rules, NO_BOUND),
        Ok(Claim { start: 48, end: 49 })
    );
}

#[test]
fn future_ticks_may_be_borrowed_up_to_the_burst() {
    let rules = Rules::new(4, 3, 2);
    assert_eq!(
        advance(48, 5, 99, &rules, NO_BOUND),
        Ok(Claim { start: 48, end: 56 })
    );
    assert_eq!(
        advance(56, 5, 99, &rules, NO_BOUND),
        Ok(Claim { start: 56, end: 64 })
    );
    assert_eq!(
        advance(64, 5, 1, &rules, NO_BOUND),
        Err(Refusal::SequenceUsedUp { until: 6 })
    );
}

#[test]
fn a_position_continues_from_its_earliest_tick_and_not_before() {
    for (burst, tick_millis) in [(0, 1), (2, 1), (0, 16), (2, 16)] {
        let rules = Rules::new(4, 3, burst).paced(tick_millis);
        for next in 0..128 {
            let earliest = rules.earliest_tick(next);
            let goes_on = |before: u64| {
                let end_of_tick = (earliest + 1 - before) << rules.slice_bits();
                end_of_tick > 0 && advance(next, end_of_tick - 1, 1, &rules, NO_BOUND).is_ok()
            };
            assert!(goes_on(0) && !goes_on(1), "{rules:?} {next}");
        }
    }
}

#[test]
fn a_random_start_is_bounded_and_differs_between_ticks() {
    let rules = Rules::new(20, 10, 0).starting_below(100, 42);
    let mut seen = std::collections::HashSet::new();
    for tick in 1..10_000 {
        let claim = advance(0, tick, 1, &rules, NO_BOUND).unwrap();
        let seq = claim.start - rules.position(tick);
        assert!(seq < 100);
        seen.insert(seq);
        let within = advance(claim.end, tick, 1, &rules, NO_BOUND).unwrap();
        assert_eq!(within.start, claim.end, "it continues without another leap");
    }
    assert_eq!(seen.len(), 100);
    let other = Rules::new(20, 10, 0).starting_below(100, 43);
    assert!((1..100).any(|tick| other.start(tick) != rules.start(tick)));
}

#[test]
fn a_random_start_issues_each_position_once_and_none_beyond_the_end() {
    for below in 1..=4 {
        for salt in 0..16 {
            let rules = Rules::new(3, 2, 0).starting_below(below, salt);
            let mut next = 0;
            for tick in 0..=9 {
                loop {
                    match advance(next, tick, 2, &rules, NO_BOUND) {
                        Ok(claim) => {
                            assert!(claim.start >= next && claim.end > claim.start);
                            assert_eq!(claim.start >> 2, tick);
                            assert!(claim.end <= 32);
                            next = claim.end;
                        }
                        Err(Refusal::SequenceUsedUp { until }) => {
                            assert_eq!(until, tick + 1);
                            break;
                        }
                        Err(refusal) => {
                            assert_eq!(refusal, Refusal::TimeExhausted);
                            assert!(tick >= 7);
                            break;
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_paced_tick_is_released_in_slices_that_include_earlier_rests() {
    // Four slices; 4 of 32 for bursts, and 7 for each slice.
    let rules = Rules::new(4, 5, 0).paced(16);
    assert_eq!(rules.slice_bits(), 2);
    let claim = |next, slice, want| advance(next, slice, want, &rules, NO_BOUND);
    let taken = |start, end| Ok(Claim { start, end });
    assert_eq!(claim(0, 20, 99), taken(160, 171));
    assert_eq!(
        claim(171, 20, 1),
        Err(Refusal::SequenceUsedUp { until: 21 })
    );
    assert_eq!(claim(171, 21, 99), taken(171, 178));
    assert_eq!(claim(178, 23, 99), taken(178, 192));
    assert_eq!(
        claim(192, 23, 1),
        Err(Refusal::SequenceUsedUp { until: 24 })
    );
    assert_eq!(claim(161, 24, 99), taken(192, 203));
    for (millis, bits) in [(1, 0), (4, 0), (5, 1), (10, 2), (1000, 8), (60_000, 10)] {
        assert_eq!(
            Rules::new(20, 10, 0).paced(millis).slice_bits(),
            bits,
            "{millis} ms"
        );
    }
}

#[test]
fn the_first_slice_of_a_second_has_an_eighth_of_it_and_the_last_one_all() {
    for seq_bits in [8, 9, 13, 20, 41] {
        let rules = Rules::new(20, seq_bits, 0).paced(1000);
        let of_a_tick = 1_u64 << seq_bits;
        let cap = |slice: u64| rules.cap(256 + slice, 1) - rules.position(1);
        assert!(cap(0) >= of_a_tick / 8, "{seq_bits}");
        assert_eq!(cap(255), of_a_tick);
        assert!((1..256).all(|slice| cap(slice) >= cap(slice - 1)));
        // Seven eighths by 256, rounded down or up.
        let off = |slice: u64| ((cap(slice) - cap(slice - 1)) * 2048).abs_diff(of_a_tick * 7);
        assert!((1..256).all(|slice| off(slice) < 2048));
    }
}

#[test]
fn batch_leaves_the_last_sixteenth_of_a_slice_to_claims_of_one() {
    let whole = Rules::new(4, 5, 0);
    let paced = Rules::new(4, 6, 0).paced(8);
    let borrowing = Rules::new(4, 5, 1);
    for (rules, next, now, cap) in [(whole, 160, 5, 192), (paced, 320, 10, 356)] {
        assert_eq!(rules.cap(now, 1), cap);
        let claim = |next, want| advance(next, now, want, &rules, NO_BOUND);
        assert_eq!(
            claim(next, 2),
            Ok(Claim {
                start: next,
                end: next + 2
            })
        );
        assert_eq!(
            claim(next, 99),
            Ok(Claim {
                start: next,
                end: cap - 2
            })
        );
        let until = now + 1;
        assert_eq!(claim(cap - 2, 2), Err(Refusal::SequenceUsedUp { until }));
        assert_eq!(
            claim(cap - 2, 1),
            Ok(Claim {
                start: cap - 2,
                end: cap - 1
            })
        );
        assert_eq!(claim(cap, 1), Err(Refusal::SequenceUsedUp { until }));
    }
    // The rest of a slice is available in the next one; the rest of a tick is not.
    let claim = |next, now, rules| advance(next, now, 99, rules, NO_BOUND).unwrap();
    assert_eq!(
        claim(354, 11, &paced),
        Claim {
            start: 354,
            end: 382
        }
    );
    assert_eq!(
        claim(190, 6, &whole),
        Claim {
            start: 192,
            end: 222
        }
    );
    // Only the last of the ticks that may be borrowed keeps a reserve.
    assert_eq!(
        claim(160, 5, &borrowing),
        Claim {
            start: 160,
            end: 192
        }
    );
    assert_eq!(
        claim(192, 5, &borrowing),
        Claim {
            start: 192,
            end: 222
        }
    );
}

#[test]
fn a_waiting_caller_takes_a_position_ahead_and_knows_when_it_is_due() {
    for rules in [Rules::new(4, 3, 0), Rules::new(4, 3, 1).paced(16)] {
        let now = 5 << rules.slice_bits();
        let next = rules.cap(now, 1);
        let waiting = rules.reserving(3);
        let claim = advance(next, now, 1, &waiting, NO_BOUND).unwrap();
        assert_eq!(
            claim,
            Claim {
                start: next,
                end: next + 1
            }
        );
        let due = rules.due(claim.start);
        assert!(advance(claim.start, due, 1, &rules, NO_BOUND).is_ok());
        assert!(advance(claim.start, due - 1, 1, &rules, NO_BOUND).is_err());
        let furthest = waiting.cap(now, 1);
        let refusal = advance(furthest, now, 1, &waiting, NO_BOUND);
        assert_eq!(refusal, Err(Refusal::SequenceUsedUp { until: now + 1 }));
    }
}

#[test]
fn a_waiting_caller_sleeps_through_short_ticks_that_can_be_borrowed() {
    let wakes = |rules: Rules| {
        let wakes = (16..24).map(|tick| rules.wake(rules.position(tick)));
        wakes.collect::<Vec<_>>()
    };
    let rules = |burst| Rules::new(10, 3, burst);
    let own: Vec<_> = (16..24).collect();
    assert_eq!(wakes(rules(0).paced(1)), own);
    assert_eq!(
        wakes(rules(8)),
        (8..16).collect::<Vec<_>>(),
        "without pacing when it is due"
    );
    assert_eq!(wakes(rules(1).paced(1)), [16, 16, 18, 19, 20, 20, 22, 23]);
    assert_eq!(wakes(rules(3).paced(1)), [16, 16, 16, 16, 20, 20, 20, 20]);
    assert_eq!(wakes(rules(8).paced(1)), [8, 12, 12, 12, 12, 16, 16, 16]);
    assert_eq!(wakes(rules(8).paced(2)), [8, 10, 10, 12, 12, 14, 14, 16]);
    assert_eq!(wakes(rules(8).paced(4)), (8..16).collect::<Vec<_>>());
}

/// The whole state space of a tiny layout: every rule, at every point.
#[test]
fn exhaustively_at_small_widths() {
    let mut taken = 0u64;
    // Ticks of 1, 2 and 4 slices, with fewer than 16 positions and with more.
    let ticks = (0..=2).flat_map(|burst| (0..=2).map(move |bits| (burst, bits)));
    for (seq_bits, (burst, slice_bits)) in ticks.flat_map(|tick| [(2, tick), (5, tick)]) {
        let rules = Rules::new(3, seq_bits, burst).paced(4 << slice_bits);
        let (end, per_slice) = (8 << seq_bits, (1 << seq_bits) >> slice_bits);
        let some_bounds = if seq_bits == 2 { 1 } else { 13 };
        for next in 0..=end {
            for now in 0..=10 << slice_bits {
                for bound in (0..=end + 1).step_by(some_bounds) {
                    for want in 1..=6 {
                        let result = advance(next, now, want, &rules, bound);
                        let earliest = next.max(((now >> slice_bits) << seq_bits).min(end));
                        let ahead = 1 + (burst << slice_bits);
                        let left = if want == 1 { 0 } else { per_slice / 16 };
                        let (tick, begun) = (
                            (now + ahead) >> slice_bits,
                            (now + ahead) % (1 << slice_bits),
                        );
                        let eighth = if slice_bits > 0 {
                            (1 << seq_bits) / 8
                        } else {
                            0
                        };
                        let shared = (((1 << seq_bits) - eighth) * begun) >> slice_bits;
                        let cap = (tick << seq_bits) + if begun > 0 { eighth + shared } else { 0 };
                        let cap = if cap < end { cap - left } else { end };
                        let expected = (earliest..cap.min(bound))
                            .take_while(|position| position >> seq_bits == earliest >> seq_bits)
                            .take(want as usize);
                        match result {
                            Ok(Claim { start, end }) => {
                                taken += 1;
                                assert!((start..end).eq(expected));
                            }
                            Err(refusal) => {
                                assert_eq!(expected.count(), 0, "refused though there was one");
                                match refusal {
                                    Refusal::TimeExhausted => assert!(earliest >= end),
                                    Refusal::AwaitingLease => assert!(earliest >= bound),
                                    Refusal::SequenceUsedUp { until } => {
                                        assert!(until > now);
                                        // A retry is useful then, and not before.
                                        let then = |now| advance(next, now, want, &rules, NO_BOUND);
                                        assert!(then(until).is_ok());
                                        assert!(then(until - 1).is_err());
                                    }
                                    _ => unreachable!("advance knows no {refusal:?}"),
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(taken > 100_000, "only {taken} claims succeeded");
}
