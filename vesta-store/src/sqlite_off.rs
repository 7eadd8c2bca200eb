//! What stands in for the SQLite backend in a build without it.

use std::path::Path;
use std::sync::Arc;

use vesta_service::LeaseStore;

use crate::OpenError;

pub(crate) const BUILT_IN: &[&str] = &[];

pub(crate) fn open(_path: &Path) -> Result<Arc<dyn LeaseStore>, OpenError> {
    Err(OpenError::FeatureOff { feature: "sqlite" })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_feature_to_enable_is_named() {
        let said = crate::open("sqlite:vesta.db").expect_err("left out").to_string();
        assert!(said.ends_with("build it with the feature `sqlite` of vesta-store"), "{said}");
        let said = crate::open("mysql://h/d").expect_err("not there").to_string();
        assert!(said.ends_with("built-in ones: none"), "{said}");
    }
}
