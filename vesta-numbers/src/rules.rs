//! Rules of a pool server for changes of segment and serial tags. The range of a tag only rises, except that its last
//! taker may give numbers back.

use vesta_service::inside::Entry as _;
use vesta_service::lease::{Place, Put, Refusal, Seen};

use crate::segment::kv::{Written, entry_key};
use crate::serial::Definition;

/// Checks a change that a member of a pool server asks for: of tags here, of machine IDs by [`Place::check`].
///
/// # Errors
/// The reason why no owner would make the change, or not yet.
pub fn check(place: &Place<'_>, put: &Put, seen: &Seen<'_>) -> Result<(), Refusal> {
    put.check_lengths()?;
    match place {
        Place::Ranges => check_range(put),
        Place::Definitions => check_definition(put),
        _ => place.check(put, seen),
    }
}

fn check_range(put: &Put) -> Result<(), Refusal> {
    let read = |text: &str| Written::decode(text).map_err(Refusal::undecoded);
    let (old, new) = (put.old.as_deref().map(read).transpose()?, read(&put.new)?);
    if entry_key(&new.tag.key) != put.key {
        return Err(Refusal::of(ANOTHER_TAG));
    }
    let Some(old) = old else {
        return Ok(());
    };
    if new.tag.max_id >= old.tag.max_id {
        return Ok(());
    }
    let is_takers = put.secret.bytes().is_some() && put.secret.attempt() == old.attempt;
    if is_takers
        && old
            .from
            .is_some_and(|from| u64::try_from(new.tag.max_id).is_ok_and(|end| end >= from))
    {
        return Ok(());
    }
    Err(Refusal::of("the range of a tag falls"))
}

/// A serial's definition never changes.
fn check_definition(put: &Put) -> Result<(), Refusal> {
    let new = Definition::decode(&put.new).map_err(Refusal::undecoded)?;
    if entry_key(new.tag()) != put.key {
        return Err(Refusal::of(ANOTHER_TAG));
    }
    let changes = put.old.as_ref().is_some_and(|old| *old != put.new);
    if changes {
        Err(Refusal::of(
            "the definition of a serial tag does not change",
        ))
    } else {
        Ok(())
    }
}

const ANOTHER_TAG: &str = "it is the entry of another tag";

#[cfg(test)]
mod tests {
    use vesta_intf::UnixMillis;
    use vesta_service::lease::Secret;

    use super::*;

    #[test]
    fn the_range_of_a_tag_falls_only_for_what_its_taker_gives_back() {
        use crate::segment::{KvSegments, NewSegmentTag, SegmentStore as _};
        use std::sync::{Arc, Mutex};
        use vesta_service::testing::{Intercept, MemoryStore, Request};

        let sent = Arc::new(Mutex::new(Vec::<Put>::new()));
        let seen = Arc::clone(&sent);
        let store = Intercept::new(Arc::new(MemoryStore::new()), move |request, store| {
            if let Request::Put { puts, .. } = &request {
                seen.lock().unwrap().extend_from_slice(puts);
            }
            request.send(store)
        });
        let tags = KvSegments::new(Arc::new(store));
        assert!(tags.create(&NewSegmentTag::new("a", 10).unwrap()).unwrap());
        tags.next_range("a", 100).unwrap();
        tags.next_range("a", 100).unwrap();
        assert!(tags.give_back("a", 150..201).unwrap());
        let puts = sent.lock().unwrap().clone();
        let seen = Seen {
            namespace: None,
            now: UnixMillis(0),
        };
        let outcome = |put: &Put| {
            let place = Place::of("segment/tags").expect("an area");
            check(&place, put, &seen).map_err(|it| it.to_string())
        };
        for put in &puts {
            assert_eq!(outcome(put), Ok(()));
        }
        let back = &puts[3];
        let stranger = Put {
            secret: Secret::new(8),
            ..back.clone()
        };
        let too_much = Put {
            new: back.new.replace(r#""max_id":"150""#, r#""max_id":"100""#),
            ..back.clone()
        };
        assert_ne!(too_much.new, back.new);
        let other = Put {
            key: "b".into(),
            ..puts[0].clone()
        };
        let junk = Put {
            new: "x".repeat(1 << 20),
            ..puts[0].clone()
        };
        let short_junk = Put {
            new: "x".into(),
            ..puts[0].clone()
        };
        for (put, why) in [
            (stranger, "the range of a tag falls"),
            (too_much, "the range of a tag falls"),
            (other, "the entry of another tag"),
            (junk, "the entry is too long"),
            (
                short_junk,
                "it is not an entry of Vesta: it is not a JSON object",
            ),
        ] {
            let refusal = outcome(&put).expect_err(why);
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
