//! Names of templates, `orders-{tenant}`, and the tags that they match. Pure.

use std::cmp::Reverse;

use vesta_intf::IdError;

/// Maximum length of a placeholder's value.
const MAX_VALUE: usize = 64;

/// The fixed text of a template's name, before and after its placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape<'a> {
    before: &'a str,
    after: &'a str,
}

impl<'a> Shape<'a> {
    /// The shape of a name; `None` if it has no braces.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if the braces are not one placeholder beside fixed text.
    pub(super) fn of(name: &'a str) -> Result<Option<Self>, IdError> {
        const BRACES: [char; 2] = ['{', '}'];
        if !name.contains(BRACES) {
            return Ok(None);
        }
        let shape = name.split_once('{').and_then(|(before, rest)| {
            let (placeholder, after) = rest.split_once('}')?;
            let fixed = [before, after];
            let fits = is_value(placeholder)
                && fixed != ["", ""]
                && !fixed.iter().any(|text| text.contains(BRACES));
            fits.then_some(Self { before, after })
        });
        let reason =
            "braces make a template: one placeholder beside other text, as in orders-{tenant}";
        let wrong = || IdError::invalid("tag", reason);
        shape.map(Some).ok_or_else(wrong)
    }

    fn matches(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.before);
        let value = rest.and_then(|rest| rest.strip_suffix(self.after));
        value.is_some_and(is_value)
    }
}

fn is_value(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_VALUE).contains(&text.len()) && text.bytes().all(allowed)
}

/// The template that a name is made of: of those that match, the one with the longest fixed text; among
/// equals the first.
pub(super) fn best<'a>(templates: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    let matching = templates.filter_map(|template| {
        let shape = Shape::of(template).ok()??;
        let fixed = shape.before.len() + shape.after.len();
        shape.matches(name).then_some((template, fixed))
    });
    let best = matching.min_by_key(|(_, fixed)| Reverse(*fixed));
    best.map(|(template, _)| template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_one_placeholder_beside_fixed_text() {
        assert!(Shape::of("orders").is_ok_and(|shape| shape.is_none()));
        for name in ["orders-{tenant}", "{a}!", "é{b-2}/x"] {
            assert!(Shape::of(name).is_ok_and(|shape| shape.is_some()), "{name}");
        }
        for name in [
            "{all}", "a{}", "a{b", "a}b", "a{b}{c}", "a}{b}", "a{b}}", "a{{b}}", "a{b c}",
        ] {
            let refused = Shape::of(name).expect_err(name).to_string();
            assert!(refused.contains("one placeholder"), "{refused}");
        }
    }

    #[test]
    fn the_longest_fixed_text_decides_between_templates() {
        let templates = ["orders-{t}", "orders-eu-{t}", "x{a}", "{a}x", "{t}-bills"];
        let most = "v".repeat(MAX_VALUE);
        for (name, template) in [
            ("orders-acme", Some("orders-{t}")),
            ("orders-eu-acme", Some("orders-eu-{t}")),
            ("orders-A.b_c-1", Some("orders-{t}")),
            ("acme-bills", Some("{t}-bills")),
            ("xyx", Some("x{a}")),
            ("orders-", None),
            ("-bills", None),
            ("orders-a b", None),
            ("orders-é", None),
            ("orders-{t}", None),
            ("Orders-acme", None),
            (&format!("orders-{most}"), Some("orders-{t}")),
            (&format!("orders-{most}v"), None),
        ] {
            assert_eq!(best(templates.into_iter(), name), template, "{name}");
        }
    }

    #[test]
    fn text_before_and_after_the_placeholder_does_not_overlap() {
        assert_eq!(best(["aba{t}ba"].into_iter(), "aba"), None);
        assert_eq!(best(["ab{t}ba"].into_iter(), "aba"), None);
    }
}
