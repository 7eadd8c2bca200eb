//! The page: one file with an ID taken apart, the design of a layout, and the console of a process.
//! `scripts/page.sh` builds it from `scripts/page` and vesta-intf.

/// The page as HTML, as a public listener serves it: without the console, which is on the admin listener.
pub const PAGE: &str = include_str!("../../page/index.html");

/// A page with one table, in the style of the page: `{title}` and `{rows}` stand for what it shows.
pub const TABLE: &str = include_str!("../../page/table.html");

/// Content-Security-Policy of both: only their own script and style, requests only to their own origin.
pub const PAGE_POLICY: &str = include_str!("../../page/policy.txt");

/// The page with the console.
pub(super) fn of_admin() -> String {
    PAGE.replacen(r#"data-at="rest""#, r#"data-at="admin""#, 1)
}
