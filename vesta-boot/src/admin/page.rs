//! The page: one file with the ID explainer, the layout designer and the console of a process.
//! `scripts/page.sh` builds it from `scripts/page` and vesta-intf.

/// HTML of the page on a public listener: without the console, which is on the admin listener.
pub const PAGE: &str = include_str!("../../page/index.html");

/// A page with one table, in the style of the main page, with the placeholders `{title}` and
/// `{rows}`.
pub const TABLE: &str = include_str!("../../page/table.html");

/// Content-Security-Policy of both: only their own script and style; requests only to their own origin.
pub const PAGE_POLICY: &str = include_str!("../../page/policy.txt");

/// The page with the console.
pub(super) fn of_admin() -> String {
    PAGE.replacen(r#"data-at="rest""#, r#"data-at="admin""#, 1)
}
