use std::time::Duration;

use super::*;
use crate::OpenError;
use crate::fuzz::{Around, check_url};

#[test]
fn a_setting_by_which_a_crash_undoes_commits_is_reported() {
    assert_eq!(
        undone_in_a_crash("on", "on").or(undone_in_a_crash("on", "remote_apply")),
        None
    );
    for (fsync, commit, advice) in [
        ("off", "on", "set fsync = on"),
        ("on", "local", "set synchronous_commit = on"),
    ] {
        let doubt = undone_in_a_crash(fsync, commit).expect("a doubt");
        assert!(doubt.contains(advice), "{doubt}");
    }
}

#[test]
fn the_display_form_hides_the_password() {
    for (url, shown) in [
        (
            "postgres://vesta:hunter2@db:5433/ids",
            "PostgreSQL vesta@db:5433/ids",
        ),
        (
            "postgresql://vesta:hunter2@[::1]/ids",
            "PostgreSQL vesta@[::1]:5432/ids",
        ),
        (
            "postgres://x:hunter2@db:5432/ids?user=v",
            "PostgreSQL v@db:5432/ids",
        ),
        (
            "postgres://v:hunter2@h:1/ids?options[search_path]=x",
            "PostgreSQL v@h:1/ids",
        ),
        (
            "postgres://v:hunter2@%2Frun%2Fpg/ids",
            "PostgreSQL v@/run/pg/ids",
        ),
    ] {
        let store = crate::open(&url.parse().unwrap()).unwrap();
        assert_eq!(store.describe(), shown);
        let debug = format!("{store:?}");
        assert!(
            debug.contains(shown) && !debug.contains("hunter2"),
            "{debug}"
        );
        assert_eq!(store.timing(), vesta_service::lease::Timing::NETWORK);
    }
}

#[test]
fn an_invalid_url_is_refused() {
    for url in [
        "postgres:vesta.db",
        "postgres://vesta:hunter2@db:port/ids",
        "postgres://vesta:hunter2@db/ids?sslmode=perhaps",
        "postgres://vesta@db/ids?passwd=hunter2",
    ] {
        let opened = url.parse().and_then(|url| crate::open(&url));
        let Err(error @ OpenError::Malformed { .. }) = opened else {
            panic!("{url}")
        };
        let said = error.to_string();
        assert!(
            said.contains("; write postgres://user:password@host:5432/database"),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn urls_of_any_text() {
    let parse =
        |url: &str| Config::try_from((&url.parse()?, Duration::ZERO)).map(|config| config.shown);
    bolero::check!()
        .with_iterations(20_000)
        .with_type()
        .for_each(|around: &Around| {
            check_url(parse, &["postgres", "postgresql"], around);
        });
}
