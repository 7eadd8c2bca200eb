//! Databases of segment tags pass the conformance suite.

mod memory {
    use std::sync::Arc;

    use vesta_numbers::segment::SegmentStore;
    use vesta_numbers::testing::MemorySegmentStore;
    use vesta_store::segment_conformance::{Database, Databases};

    struct Memory;
    struct One(Arc<MemorySegmentStore>);

    impl Databases for Memory {
        fn fresh(&self) -> Box<dyn Database> {
            Box::new(One(Arc::new(MemorySegmentStore::new())))
        }
    }

    impl Database for One {
        fn connect(&self) -> Arc<dyn SegmentStore> {
            self.0.clone()
        }
    }

    vesta_store::segment_conformance!(Memory);
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::sync::Arc;

    use tempfile::TempDir;
    use vesta_numbers::segment::SegmentStore;
    use vesta_store::segment_conformance::{Database, Databases};
    use vesta_store::{Options, open_segments};

    struct Sqlite;
    struct Folder(TempDir);

    impl Databases for Sqlite {
        fn fresh(&self) -> Box<dyn Database> {
            Box::new(Folder(
                tempfile::tempdir().expect("a folder for temporary files"),
            ))
        }
    }

    impl Database for Folder {
        fn connect(&self) -> Arc<dyn SegmentStore> {
            let url = format!("sqlite:{}/vesta.db", self.0.path().display());
            open_segments(&url.parse().unwrap(), &Options::default()).expect("it opens")
        }
    }

    vesta_store::segment_conformance!(Sqlite);
}
