//! Command line of `segment …`.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use vesta_numbers::segment::NewSegmentTag;
use vesta_store::StoreUrl;

use super::NewSegment;

/// Commands for the segment tags in the database of `segment.store`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SegmentCommand {
    /// Show every tag and its next number; changes nothing
    List,
    /// Add a tag, unless it exists
    ///
    /// Running servers see it within a minute. With auto_init, a missing table is created.
    Create(NewSegment),
    /// Continue the segments of another system: one tag of the same name per segment, above its last
    /// number
    ///
    /// Tags that are already as far are left alone, so repeating the import changes nothing. First stop
    /// the other system for these segments.
    Import(Box<SegmentImport>),
}

/// Options of `segment import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SegmentImport {
    /// The legacy system
    pub system: LegacySegments,
    /// URL of its store: redis://:password@host:6379/0, mysql://user:password@host:3306/database or
    /// zookeeper://host:2181
    #[arg(
        long,
        value_name = "URL",
        env = "VESTA_IMPORT_FROM",
        hide_env_values = true
    )]
    pub from: StoreUrl,
    /// Namespace of CosId, `cosid.namespace` of its applications
    #[arg(long, value_name = "NAME")]
    pub cosid_namespace: String,
    /// Minimum numbers per fetch, for each tag
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=NewSegmentTag::MAX_STEP))]
    pub step: u64,
}

/// Legacy system whose segments can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LegacySegments {
    /// CosId, in Redis, MySQL or ZooKeeper
    #[value(name = "cosid")]
    CosId,
}
