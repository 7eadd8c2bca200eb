//! Judgement of the answers of all servers of a URL. Pure.

use std::io;

use vesta_service::lease::{StoreError, StoreIdentity, TWO_STORES};

/// Store that a member means, before it has an answer from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any, if all servers agree.
    Any,
    /// The one with this number, from the URL.
    Id(u64),
    /// The one with this number, which answered at an earlier start. The text names the file that says so.
    Pinned(u64, String),
    /// The one that answered this process first.
    Known(StoreIdentity),
}

/// Answer of a server.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) server: String,
    /// Identity of its store, and the reason why it refuses its members; or why it is not known.
    pub(super) said: Result<(StoreIdentity, Option<String>), StoreError>,
}

/// The store whose servers may be asked.
///
/// # Errors
/// [`StoreError`] if there is none, or it is not known. One of [`StoreError::two_stores`] if it is a second one.
pub(super) fn judge(wanted: &Wanted, answers: &[Answer]) -> Result<StoreIdentity, StoreError> {
    let mut seen = Vec::new();
    let mut missing = None;
    for Answer { server, said } in answers {
        match said {
            Ok((identity, refused)) => seen.push((server, *identity, refused)),
            Err(error) => missing = missing.or(Some((server, error))),
        }
    }
    let oldest = seen.iter().min_by_key(|(_, identity, _)| *identity);
    let number = match (wanted, oldest) {
        (Wanted::Id(number) | Wanted::Pinned(number, _), _) => *number,
        (Wanted::Known(identity), _) => identity.number,
        (Wanted::Any, None) => return Err(unanswered(missing, "none of its servers is reached")),
        (Wanted::Any, Some((server, oldest, _))) => {
            if let Some((other, younger, _)) =
                seen.iter().find(|(_, it, _)| it.number != oldest.number)
            {
                return Err(StoreError::permanent(format!(
                    "{server} and {other} have different stores ({oldest} and {younger}), which would hand out the same \
                     machine IDs; name servers that share one store, or the right store with ?id={oldest}"
                )));
            }
            if missing.is_some() {
                let need = format!(
                    "a start that does not know its store needs an answer from every server; name the store with \
                     ?id={oldest} if {server} has the right one"
                );
                return Err(unanswered(missing, &need));
            }
            oldest.number
        }
    };
    let Some((server, own, refused)) = seen
        .iter()
        .find(|(_, identity, _)| identity.number == number)
    else {
        return Err(match missing {
            Some(_) => unanswered(missing, "the others have other stores"),
            None => StoreError::permanent(nowhere(
                wanted,
                &seen.iter().map(|it| (&**it.0, it.1)).collect::<Vec<_>>(),
            )),
        });
    };
    if let Some(why) = refused {
        return Err(StoreError::two_stores(format!(
            "{server} refuses its members: {why}"
        )));
    }
    match oldest {
        Some((other, oldest, _)) if oldest < own => Err(StoreError::two_stores(format!(
            "{other} has an older store ({oldest}) than {server} ({own}), and both hand out the same machine IDs; name \
             servers that share one store"
        ))),
        _ => Ok(*own),
    }
}

/// The error if the store that is meant is behind none of the servers.
fn nowhere(wanted: &Wanted, seen: &[(&str, StoreIdentity)]) -> String {
    let have: Vec<_> = seen
        .iter()
        .map(|(server, identity)| format!("{server} has {identity}"))
        .collect();
    let have = have.join(", ");
    match wanted {
        Wanted::Id(id) => format!(
            "no server of the URL has the store with ?id={id:016x}: {have}; check the URL, and copy the id from the \
             start-up lines of the pool_server"
        ),
        Wanted::Pinned(_, file) => format!(
            "another store answers than before at this URL, which does not know which machine IDs are in use: {have}; \
             check the URL. If the store was replaced on purpose, delete {file}"
        ),
        Wanted::Any | Wanted::Known(_) => format!(
            "{have}, which is another store than the one that answered first, and does not know which machine IDs are in \
             use; name servers that share one store"
        ),
    }
}

fn unanswered(missing: Option<(&String, &StoreError)>, need: &str) -> StoreError {
    let (server, why) = match missing {
        Some((server, error)) => (&**server, error.to_string()),
        None => ("a server", "it is not there".into()),
    };
    let text = format!("{server} has not said which store it has; {need}");
    StoreError::unavailable(text, io::Error::other(why))
}

/// The error for two servers that answer with one identity, of which one does not show what was put by way of the other.
/// Which of them has the original is unknown. So nothing is claimed or extended, and owners go on to their bounds.
pub(super) fn copied(one: &str, other: &str, identity: StoreIdentity) -> StoreError {
    StoreError::permanent(format!(
        "{TWO_STORES}: what is put by way of {one} is not found by way of {other}, though both say that they have store \
         {identity}: one of them is a copy; stop it, and start this process again"
    ))
}

#[cfg(test)]
mod tests {
    use vesta_service::contract::UnixMillis;

    use super::*;

    /// Older stores have smaller numbers.
    fn of(number: u64) -> StoreIdentity {
        StoreIdentity {
            created: UnixMillis(number),
            number,
        }
    }

    /// 0 stands for no answer.
    fn judged(wanted: &Wanted, numbers: &[u64]) -> Result<u64, StoreError> {
        let answer = |(at, number): (usize, &u64)| Answer {
            server: format!("h{at}"),
            said: match number {
                0 => Err(StoreError::unavailable("refused", io::Error::other("down"))),
                number => Ok((of(*number), None)),
            },
        };
        let answers: Vec<_> = numbers.iter().enumerate().map(answer).collect();
        judge(wanted, &answers).map(|identity| identity.number)
    }

    #[test]
    fn a_store_is_taken_if_all_answer_or_it_is_known() {
        let pinned = Wanted::Pinned(7, "file".into());
        for (wanted, numbers, expected) in [
            (&Wanted::Any, &[7, 7][..], 7),
            (&Wanted::Any, &[7], 7),
            (&Wanted::Id(7), &[0, 7], 7),
            (&Wanted::Id(7), &[9, 7, 0], 7),
            (&pinned, &[0, 7], 7),
            (&pinned, &[7, 9], 7),
            (&Wanted::Known(of(7)), &[7, 0], 7),
        ] {
            assert_eq!(judged(wanted, numbers).expect("one store"), expected);
        }
    }

    #[test]
    fn a_store_that_is_not_known_is_refused_with_what_to_do() {
        let pinned = Wanted::Pinned(7, "a file".into());
        for (wanted, numbers, permanent, said) in [
            (
                &Wanted::Any,
                &[7, 0][..],
                false,
                "h1 has not said which store it has",
            ),
            (
                &Wanted::Any,
                &[0, 7],
                false,
                "name the store with ?id=0000000000000007 if h1",
            ),
            (&Wanted::Any, &[0, 0], false, "none of its servers"),
            (
                &Wanted::Any,
                &[9, 7],
                true,
                "h1 and h0 have different stores",
            ),
            (
                &Wanted::Any,
                &[9, 7, 0],
                true,
                "the right store with ?id=0000000000000007",
            ),
            (
                &Wanted::Id(7),
                &[9, 9],
                true,
                "no server of the URL has the store with ?id=0000000000000007",
            ),
            (&Wanted::Id(7), &[9, 0], false, "h1 has not said"),
            (&pinned, &[9], true, "delete a file"),
            (
                &Wanted::Known(of(7)),
                &[9],
                true,
                "which is another store than",
            ),
        ] {
            let error = judged(wanted, numbers).expect_err(said);
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.is_permanent(), permanent, "{error}");
            assert!(!error.is_replaced(), "{error}");
        }
    }

    #[test]
    fn members_of_the_younger_store_stop() {
        let pinned = Wanted::Pinned(9, "file".into());
        for wanted in [Wanted::Id(9), pinned, Wanted::Known(of(9))] {
            let error = judged(&wanted, &[9, 0, 7]).expect_err("the younger one");
            assert!(error.is_two_stores() && error.is_replaced(), "{error}");
            assert!(
                error
                    .to_string()
                    .starts_with("TWO_STORES: h2 has an older store"),
                "{error}"
            );
        }
        let answer = Answer {
            server: "h0".into(),
            said: Ok((of(9), Some("it was copied".into()))),
        };
        let error = judge(&Wanted::Any, &[answer]).expect_err("refused");
        assert!(error.is_two_stores() && error.to_string().contains("it was copied"));
    }
}
