//! Reader of settings: text from flags, the environment, the file and the defaults.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::declared::{default_of, settings, variable};
use super::file;
use super::listeners::Compat;
use super::parse::did_you_mean;
use super::values::{DEFAULT, Value, Values};
use crate::api::Api;
use crate::error::Error;

impl Values {
    /// The defaults of a program that serves these APIs.
    pub fn defaults(apis: &[Api]) -> Self {
        Self::merge(apis, None, None).expect("there is no file")
    }

    /// Merges values from the command line and the environment with the file at a path.
    pub(crate) fn merge(
        apis: &[Api],
        matches: Option<&ArgMatches>,
        path: Option<&Path>,
    ) -> Result<Self, Error> {
        let settings = settings();
        let file = path.map(|path| file::read(path, settings)).transpose()?;
        let mut file = file.unwrap_or_default();
        let mut values = BTreeMap::new();
        for arg in settings.get_arguments() {
            let name = arg.get_id().as_str();
            let typed = matches.and_then(|matches| {
                Some((
                    matches.value_source(name)?,
                    matches.get_one::<String>(name)?.clone(),
                ))
            });
            let (text, origin) = match (typed, file.values.remove(name), path) {
                (Some((ValueSource::CommandLine, text)), ..) => (
                    text,
                    format!("flag --{}", arg.get_long().unwrap_or_default()),
                ),
                // `VESTA_X=` means "not set" in compose files.
                (Some((ValueSource::EnvVariable, text)), ..) if !text.is_empty() => {
                    (text, format!("env {}", variable(arg)))
                }
                (_, Some((text, line)), Some(path)) => {
                    (text, format!("file {} line {line}", path.display()))
                }
                _ => match default_of(arg) {
                    Some(default) => (default, DEFAULT.to_owned()),
                    None => continue,
                },
            };
            values.insert(name.to_owned(), Value { text, origin });
        }
        let merged = Self {
            apis: apis.to_vec(),
            values,
            custom: file.custom,
            tokens: file.tokens,
        };
        Ok(merged.with_other_defaults())
    }

    /// Sets the defaults that depend on what is served or on other settings: genMethod tells the IDs of a gRPC
    /// server apart, and a compatibility mode uses the legacy system's defaults.
    fn with_other_defaults(mut self) -> Self {
        let compat: &[_] = match self.text("compat") == Compat::Tinyid.name() {
            true => &[
                ("http.listen", "127.0.0.1:9999"),
                ("segment.table", "tinyid"),
            ],
            false => &[],
        };
        let gen_method = match self.apis[..] {
            [Api::Grpc] => "1",
            _ => "2",
        };
        for &(name, text) in compat.iter().chain(&[("gen_method", gen_method)]) {
            if !self.is_explicit(name) {
                let value = Value {
                    text: text.to_owned(),
                    origin: DEFAULT.to_owned(),
                };
                self.values.insert(name.to_owned(), value);
            }
        }
        self
    }
}

/// The `VESTA_` variables among `names` that are not settings, each with a hint. Variables that
/// Kubernetes sets for a service called `vesta` are left out.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let settings = settings();
    let known: Vec<_> = settings
        .get_arguments()
        .map(variable)
        .chain(["VESTA_CONFIG".into()])
        .collect();
    let of_kubernetes = |name: &str| name.contains("_SERVICE_") || name.contains("_PORT");
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with("VESTA_") && !of_kubernetes(name) && !known.contains(name))
        .collect();
    unknown.sort();
    for name in &mut unknown {
        *name += &did_you_mean(name, known.iter().map(String::as_str));
    }
    unknown
}
