//! The server that wrote to a namespace last: another one took over from it, or may be a second one. Pure.

use super::{Doubt, StoreError};

/// Server of a store each of whose servers has its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Identity of the server, or of its cluster if that keeps what one of its servers acknowledged.
    pub server: String,
    /// Statement that lets the user see whether the server replicates from another one; `None` if the user may see
    /// that, or an operator vouches that only one server is written at a time.
    pub unseen: Option<String>,
}

/// Judges a server by the one that wrote to a namespace last. Returns the reason to doubt the store, given the one that
/// the server shows.
///
/// # Errors
/// [`StoreError`] if the two may both be written.
pub(super) fn judge(
    written: Option<&str>,
    Writer { server, unseen }: &Writer,
    shown: Option<Doubt>,
) -> Result<Option<Doubt>, StoreError> {
    let before = match written {
        Some(written) if written == server => return Ok(shown),
        // Nothing shows where the data of a new namespace would go.
        None if !shown.as_ref().is_some_and(|it| it.took_over) => return Ok(shown),
        Some(written) => format!("server `{written}` wrote to the namespace last"),
        None => "it is or was a replica".into(),
    };
    if let Some(grant) = unseen {
        return Err(StoreError::permanent(format!(
            "this is server `{server}`, and {before}; this user may not see whether one still replicates from the \
             other, and processes at both would then make the same IDs; run `{grant}`, or set \
             machine.store_trust = \"one_writer\" if only one of them is ever written at a time"
        )));
    }
    let Some(written) = written else {
        return Ok(shown);
    };
    let took_over = format!("server `{server}` took over from server `{written}`");
    let why = match shown {
        Some(shown) => format!("{}; {took_over}", shown.why),
        None => took_over,
    };
    Ok(Some(Doubt::of(why, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: &str, unseen: Option<&str>) -> Writer {
        Writer {
            server: server.into(),
            unseen: unseen.map(str::to_owned),
        }
    }

    fn doubt(took_over: bool) -> Option<Doubt> {
        Some(Doubt::of("it has replicas", took_over))
    }

    #[test]
    fn the_server_that_wrote_last_is_judged_by_what_it_shows() {
        for shown in [None, doubt(false), doubt(true)] {
            for unseen in [None, Some("GRANT")] {
                let same = judge(Some("a"), &at("a", unseen), shown.clone());
                assert_eq!(same.expect("the same server"), shown);
            }
        }
        for shown in [None, doubt(false)] {
            let new = judge(None, &at("a", Some("GRANT")), shown.clone());
            assert_eq!(new.expect("a new namespace"), shown);
        }
    }

    #[test]
    fn another_server_took_over_if_it_does_not_replicate() {
        let alone = judge(Some("a"), &at("b", None), None).expect("a fail-over");
        assert_eq!(
            alone,
            Some(Doubt::of("server `b` took over from server `a`", true))
        );
        let doubtful = judge(Some("a"), &at("b", None), doubt(false)).expect("a fail-over");
        let doubtful = doubtful.expect("a doubt");
        assert!(doubtful.took_over && doubtful.why.starts_with("it has replicas; server `b`"));
    }

    #[test]
    fn another_server_that_hides_whether_it_replicates_is_refused() {
        for (written, shown) in [(Some("a"), None), (None, doubt(true))] {
            let said = judge(written, &at("b", Some("GRANT X")), shown).expect_err("refused");
            assert!(said.is_permanent());
            let said = said.to_string();
            assert!(
                said.contains("`GRANT X`") && said.contains("store_trust = \"one_writer\""),
                "{said}"
            );
        }
    }
}
