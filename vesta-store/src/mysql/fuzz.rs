//! URLs of arbitrary text.

use std::fmt;

use super::MySql;
use crate::fuzz::{Around, check_url};
use crate::sql::Dialect as _;

/// What a person sees of a database.
#[derive(Debug)]
struct Shown(String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[test]
fn urls_of_any_text() {
    let parse = |url: &str| MySql::new(url).map(|mysql| Shown(mysql.shown().to_owned()));
    bolero::check!().with_iterations(20_000).with_type().for_each(|around: &Around| {
        check_url(parse, &["mysql", "mariadb"], around);
    });
}
