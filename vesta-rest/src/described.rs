//! Parts of an endpoint as its document shows them: parameters, contents of answers, failures.

pub(crate) mod content;
pub(crate) mod failures;
pub(crate) mod params;
