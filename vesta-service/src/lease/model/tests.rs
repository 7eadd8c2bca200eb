//! Searches of the model.

use std::collections::{BTreeSet, HashMap};

use stateright::{Checker, HasDiscoveries, Model as _, Path};

use super::fault::Fault;
use super::state::{
    ABOVE_FLOOR, GOES_ON, MACHINES, OWN, PROCESSES, PROTECTED, State, UNIQUE, examples, rules,
};
use super::symmetry::{self, Numbering};
use super::{COPY_REPEATS, Copies, Protocol, Step};
use crate::sequence::Rules;

/// Two processes that share one machine ID. Time has four ticks of two positions; a clock shows the
/// first three. A window is one tick.
const PAIR: Protocol = Protocol {
    rules: Rules::new(2, 1, 0),
    window_ticks: 1,
    last_tick: 2,
    processes: 2,
    machines: 1,
    requests: 6,
    remembering: false,
    floor: 0,
    deletions: 0,
    goes_back: false,
    copies: Copies::Never,
    fault: None,
    symmetric: true,
    examples: false,
};

/// Position inside the second tick, not at its start.
const FLOOR: u8 = 3;

/// Picks the size for a full run or for a normal one: requests of a model, and states that it has
/// at least.
fn size<T>(full: T, otherwise: T) -> T {
    if std::env::var_os("VESTA_TEST_FULL").is_some() {
        full
    } else {
        otherwise
    }
}

/// Outcome of a search.
struct Found {
    unique: usize,
    paths: HashMap<&'static str, Path<State, Step>>,
}

impl Found {
    /// Number of steps to the state that shows an example or breaks a rule.
    fn steps(&self, name: &str) -> Option<usize> {
        self.paths
            .get(name)
            .map(|path| path.clone().into_actions().len())
    }

    fn must_hold(&self) {
        for (name, _) in rules() {
            if let Some(path) = self.paths.get(name) {
                panic!("broken: {name}, after\n{path:?}");
            }
        }
    }
}

/// Explores a model, nearest states first, until `most` steps were tried.
fn explore(what: &str, model: Protocol, until: HasDiscoveries, most: usize) -> Found {
    let threads = if model.fault.is_some() { 1 } else { 2 }; // a single thread finds the shortest path
    let search = model
        .checker()
        .threads(threads)
        .finish_when(until)
        .target_state_count(most);
    found(what, &search.spawn_bfs().join())
}

fn found<C: Checker<Protocol>>(what: &str, search: &C) -> Found {
    let (unique, tried) = (search.unique_state_count(), search.state_count());
    println!(
        "{what}: {unique} states, {tried} steps tried, depth {}",
        search.max_depth()
    );
    Found {
        unique,
        paths: search.discoveries(),
    }
}

/// Explores every state: all rules then hold in all of them. Depth first, which needs less memory.
fn explore_all(what: &str, model: Protocol) -> Found {
    let search = model
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures);
    let found = found(what, &search.spawn_dfs().join());
    found.must_hold();
    found
}

#[test]
fn a_state_is_small() {
    assert!(size_of::<State>() <= 240, "{} bytes", size_of::<State>());
}

#[test]
fn two_processes_on_one_machine_id_completely() {
    let (requests, least) = size((7, 60_000_000), (5, 2_500_000));
    let model = Protocol {
        requests,
        remembering: true,
        examples: true,
        ..PAIR
    };
    let found = explore_all("two processes, one machine ID", model);
    for (name, _) in examples() {
        assert!(found.steps(name).is_some(), "never came across: {name}");
    }
    assert!(found.unique > least, "the model has shrunk");
}

#[test]
fn three_processes_on_one_machine_id_completely() {
    let (requests, least) = size((6, 40_000_000), (4, 600_000));
    let model = Protocol {
        processes: 3,
        requests,
        ..PAIR
    };
    let found = explore_all("three processes, one machine ID", model);
    assert!(found.unique > least, "the model has shrunk");
}

#[test]
fn three_processes_on_two_machine_ids_completely() {
    let (requests, least) = size((4, 10_000_000), (3, 250_000));
    let model = Protocol {
        processes: 3,
        machines: 2,
        requests,
        ..PAIR
    };
    let found = explore_all("three processes, two machine IDs", model);
    assert!(found.unique > least, "the model has shrunk");
}

#[test]
fn a_floor_that_is_raised_between_any_two_steps_is_not_missed() {
    for (what, (requests, least), model) in [
        (
            "two processes and a floor",
            size((5, 4_000_000), (4, 800_000)),
            PAIR,
        ),
        (
            "two that remember and a floor",
            size((4, 1_000_000), (3, 150_000)),
            Protocol {
                remembering: true,
                ..PAIR
            },
        ),
        (
            "three processes and a floor",
            size((4, 2_000_000), (3, 250_000)),
            Protocol {
                processes: 3,
                ..PAIR
            },
        ),
        (
            "three processes, two machine IDs and a floor",
            size((3, 800_000), (2, 20_000)),
            Protocol {
                processes: 3,
                machines: 2,
                ..PAIR
            },
        ),
    ] {
        let found = explore_all(
            what,
            Protocol {
                floor: FLOOR,
                requests,
                ..model
            },
        );
        assert!(
            found.unique > least,
            "{what}: the model has shrunk to {}",
            found.unique
        );
    }
}

#[test]
fn a_deleted_record_repeats_nothing() {
    for (what, (requests, least), model) in [
        (
            "two processes that remember, one deletion",
            size((4, 1_000_000), (3, 100_000)),
            Protocol {
                remembering: true,
                deletions: 1,
                ..PAIR
            },
        ),
        (
            "three processes, two deletions",
            size((4, 1_000_000), (3, 150_000)),
            Protocol {
                processes: 3,
                deletions: 2,
                ..PAIR
            },
        ),
        (
            "two processes, two machine IDs, two deletions",
            (3, 100_000),
            Protocol {
                machines: 2,
                deletions: 2,
                ..PAIR
            },
        ),
    ] {
        let found = explore_all(what, Protocol { requests, ..model });
        assert!(
            found.unique > least,
            "{what}: the model has shrunk to {}",
            found.unique
        );
    }
}

#[test]
fn store_that_goes_back_causes_no_repeats_and_gets_a_floor() {
    for (what, (requests, least), model) in [
        (
            "two processes, a store that goes back",
            size((4, 15_000_000), (3, 500_000)),
            PAIR,
        ),
        (
            "two that remember, a store that goes back",
            size((3, 1_500_000), (2, 20_000)),
            Protocol {
                remembering: true,
                ..PAIR
            },
        ),
        (
            "three processes, a store that goes back",
            size((3, 1_500_000), (2, 20_000)),
            Protocol {
                processes: 3,
                ..PAIR
            },
        ),
    ] {
        let found = explore_all(
            what,
            Protocol {
                goes_back: true,
                requests,
                ..model
            },
        );
        assert!(
            found.unique > least,
            "{what}: the model has shrunk to {}",
            found.unique
        );
    }
}

#[test]
fn the_child_of_a_fork_repeats_nothing() {
    for (what, (requests, least), model) in [
        (
            "two processes and a fork",
            size((5, 2_500_000), (4, 400_000)),
            PAIR,
        ),
        (
            "three processes and a fork",
            size((4, 2_500_000), (3, 150_000)),
            Protocol {
                processes: 3,
                ..PAIR
            },
        ),
    ] {
        let found = explore_all(
            what,
            Protocol {
                copies: Copies::Forked,
                requests,
                ..model
            },
        );
        assert!(
            found.unique > least,
            "{what}: the model has shrunk to {}",
            found.unique
        );
    }
}

/// Too many states to explore them all, so the nearest ones. Memory limits the search.
#[test]
fn three_processes_on_two_machine_ids_that_remember() {
    let model = Protocol {
        processes: 3,
        machines: 2,
        remembering: true,
        ..PAIR
    };
    let what = "three processes that remember, two machine IDs";
    let (most, least) = size((12_000_000, 2_500_000), (3_000_000, 700_000));
    let found = explore(what, model, HasDiscoveries::AnyFailures, most);
    found.must_hold();
    assert!(found.unique > least, "the model has shrunk");
}

#[test]
fn each_broken_rule_is_noticed() {
    let noticed: BTreeSet<_> = Fault::ALL.into_iter().flat_map(broken_by).collect();
    for (name, _) in rules() {
        assert!(noticed.contains(name), "no fault breaks: {name}");
    }
}

/// Rules that a fault breaks. The search ends once the rule that the fault is planted for is
/// broken, with as few requests as possible.
fn broken_by(fault: Fault) -> Vec<&'static str> {
    let (model, broken) = match fault {
        Fault::MarkAfterClaim
        | Fault::MarkWithoutBirth
        | Fault::AbsentTakenAlthoughMarked
        | Fault::CreationSentAgain => (
            Protocol {
                deletions: 1,
                ..PAIR
            },
            UNIQUE,
        ),
        Fault::FloorReadOnce => (
            Protocol {
                floor: FLOOR,
                ..PAIR
            },
            ABOVE_FLOOR,
        ),
        Fault::SealedByRefusal => (PAIR, GOES_ON),
        Fault::OwnForgotten => (
            Protocol {
                goes_back: true,
                ..PAIR
            },
            OWN,
        ),
        Fault::FloorNotRaised | Fault::FloorRaisedAfterwards => (
            Protocol {
                goes_back: true,
                ..PAIR
            },
            PROTECTED,
        ),
        Fault::ChildIssues => (
            Protocol {
                copies: Copies::Forked,
                ..PAIR
            },
            UNIQUE,
        ),
        _ => (PAIR, UNIQUE),
    };
    for requests in 2..=PAIR.requests {
        let until = HasDiscoveries::AllOf(BTreeSet::from([broken]));
        let model = Protocol {
            fault: Some(fault),
            requests,
            ..model.clone()
        };
        let found = explore(
            &format!("{fault:?}, {requests} requests"),
            model,
            until,
            20_000_000,
        );
        if let Some(steps) = found.steps(broken) {
            println!("{fault:?}: broken after {steps} steps: {broken}");
            return found.paths.keys().copied().collect();
        }
    }
    panic!("{fault:?} breaks nothing");
}

#[test]
fn a_copy_repeats_only_what_was_granted_or_asked_for_when_it_was_made() {
    let (requests, least) = size((4, 1_500_000), (3, 100_000));
    let model = Protocol {
        copies: Copies::Differing,
        requests,
        ..PAIR
    };
    let found = explore_all("a copied process", model);
    assert!(found.steps(COPY_REPEATS).is_some());
    assert!(found.unique > least, "the model has shrunk");
}

/// A limit of the protocol, and the reason why the promise names it: each takes the other's success
/// for its own.
#[test]
fn a_copy_that_draws_the_same_random_numbers_goes_on_repeating() {
    let model = Protocol {
        requests: 3,
        copies: Copies::Alike,
        symmetric: false,
        ..PAIR
    };
    let until = HasDiscoveries::AllOf(BTreeSet::from([UNIQUE]));
    let found = explore("a copied process and generator", model, until, 20_000_000);
    assert!(found.steps(UNIQUE).is_some());
}

/// Every numbering of processes and machine IDs.
fn numberings() -> Vec<Numbering> {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let both = |processes| {
        [[0, 1], [1, 0]].map(|machines| Numbering {
            processes,
            machines,
        })
    };
    orders.into_iter().flat_map(both).collect()
}

/// Successor states, each under the smallest of its numberings.
fn followers(model: &Protocol, state: &State) -> BTreeSet<State> {
    let least = |state: State| numberings().iter().map(|n| n.apply(&state)).min();
    model
        .next_states(state)
        .into_iter()
        .filter_map(least)
        .collect()
}

#[test]
fn states_that_differ_only_by_numbers_behave_alike() {
    const { assert!(PROCESSES == 3 && MACHINES == 2) };
    let model = Protocol {
        processes: 3,
        machines: 2,
        requests: 4,
        remembering: true,
        symmetric: false,
        ..PAIR
    };
    let (mut state, mut renamed) = (State::default(), 0);
    // A fixed walk through the model, which restarts where it ends.
    for step in 0..3_000_usize {
        let mut sorted = state.clone();
        symmetry::sort(&mut sorted);
        renamed += usize::from(sorted != state);
        assert_eq!(followers(&model, &state), followers(&model, &sorted));
        let mut next = model.next_states(&state);
        state = if next.is_empty() || step % 40 == 39 {
            State::default()
        } else {
            next.swap_remove(step * 7919 % 1009 % next.len())
        };
    }
    assert!(renamed > 1_000, "only {renamed} states were renamed");
}
