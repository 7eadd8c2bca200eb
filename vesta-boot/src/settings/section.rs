//! Sections: structs whose fields declare one setting each, with its parser.

use std::fmt::Display;
use std::ops::RangeInclusive;

use clap::Arg;

/// Declares a struct of settings. A field has a name, the name of its value, and a default (or `given`, if a
/// value is always present). Optional are another flag (`as`), another heading (`under`), and whether commands
/// take it too; last comes the parser of its text. Help and example are its documentation.
macro_rules! section {
    ($(#[$attr:meta])* $heading:literal $vis:vis struct $Section:ident |$values:ident, $layout:ident| {
        $(
            $(#[doc = $doc:literal])*
            $of:vis $field:ident: $Type:ty = $name:tt $value:literal $(or $default:literal)? $(given $why:literal)?
                $(as $flag:literal)? $(under $under:literal)? $(for $users:ident)?,
                $parse:expr;
        )*
    }) => {
        $(#[$attr])*
        #[derive(Debug, Clone)]
        $vis struct $Section {
            $($(#[doc = $doc])* $of $field: $Type,)*
        }

        impl $Section {
            /// The section's settings as arguments.
            pub(super) fn args() -> Vec<clap::Arg> {
                vec![$(
                    $crate::settings::section::argument($name, $value, &[$($doc),*])
                        .help_heading($heading)
                        $(.default_value($default))?
                        $(.long($flag))?
                        $(.help_heading($under))?
                        $(.global(stringify!($users) == "commands"))?
                ),*]
            }

            /// Valid values of the section's settings, in the order of its arguments.
            pub(super) fn valid(
                $values: &$crate::settings::Values,
                $layout: &vesta_intf::IdMeta,
            ) -> Vec<$crate::settings::section::Valid> {
                use $crate::settings::section::Parser as _;
                let _ = $values;
                vec![$($parse.valid()),*]
            }

            /// Parses each setting of the section for this layout.
            pub(super) fn read(
                $values: &$crate::settings::Values,
                $layout: &vesta_intf::IdMeta,
            ) -> Result<Self, $crate::error::Error> {
                Ok(Self {
                    $($field: $values.read($name, $parse)?$(.expect($default))?$(.expect($why))?,)*
                })
            }
        }
    };
}

/// Parser of a setting: a function of its text, or one that also lists the valid values.
pub(super) trait Parser {
    type Value;
    fn parse(&self, text: &str) -> Result<Self::Value, String>;

    fn valid(&self) -> Valid {
        Valid::Unlisted
    }
}

/// Valid values of a setting, whatever the layout.
#[derive(Debug)]
pub(super) enum Valid {
    Unlisted,
    Names(Vec<&'static str>),
    Numbers(RangeInclusive<u64>),
}

impl<T, E: Display, F: Fn(&str) -> Result<T, E>> Parser for F {
    type Value = T;

    fn parse(&self, text: &str) -> Result<T, String> {
        self(text).map_err(|must| must.to_string())
    }
}

/// An argument whose help is its documentation: paragraphs, of which the first is the short help.
pub(super) fn argument(name: &'static str, value: &'static str, doc: &[&str]) -> Arg {
    let joined = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let paragraphs: Vec<_> = doc
        .split(|line| line.trim().is_empty())
        .map(joined)
        .collect();
    let long = paragraphs.join("\n\n");
    Arg::new(name)
        .value_name(value)
        .help(paragraphs[0].clone())
        .long_help(long)
}
