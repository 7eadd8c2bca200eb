use std::time::Duration;

use super::*;
use crate::fuzz::{Around, check_url};

#[test]
fn the_display_form_hides_the_password() {
    for (url, shown) in [
        (
            "mysql://vesta:hunter2@db:3307/ids",
            "MySQL vesta@db:3307/ids",
        ),
        (
            "mariadb://vesta@db/ids?ssl-mode=DISABLED",
            "MySQL vesta@db:3306/ids",
        ),
        (
            "mysql://vesta:hunter2@[::1]/ids",
            "MySQL vesta@[::1]:3306/ids",
        ),
        (
            "mysql://v:a%40hunter2@h/i%64s?socket=/run/s",
            "MySQL v@/run/s/ids",
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
        "mysql:vesta.db",
        "mysql://vesta:hunter2@db",
        "mysql://vesta:hunter2@db:port/ids",
        "mysql://vesta:hunter2@db/ids?ssl-mode=perhaps",
        "mysql://vesta:hunter2@db/ids?sslmod=REQUIRED",
    ] {
        let opened = url.parse().and_then(|url| crate::open(&url));
        let Err(error @ OpenError::Malformed { .. }) = opened else {
            panic!("{url}")
        };
        let said = error.to_string();
        assert!(
            said.contains("; write mysql://user:password@host:3306/database"),
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
            check_url(parse, &["mysql", "mariadb"], around);
        });
}
