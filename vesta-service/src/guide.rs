//! The guide: one short example per question, in the order in which they arise.
//!
//! * [A first ID](#a-first-id)
//! * [In structs, tables and JSON](#in-structs-tables-and-json)
//! * [The machine ID](#the-machine-id)
//! * [A store for the machine IDs of many processes](#a-store-for-the-machine-ids-of-many-processes)
//! * [Layouts](#layouts)
//! * [IDs as text](#ids-as-text)
//! * [Errors and waits](#errors-and-waits)
//! * [Numbers by tag](#numbers-by-tag)
//! * [Serials](#serials)
//! * [In tests](#in-tests)
//!
//! # A first ID
//! Build one service per process, when it starts, and share it behind an `Arc`, or use [`global`](crate::global).
//!
//! ```
//! use vesta_service::{LocalIdService, MachineSource, VestaId};
//! # let folder = std::env::temp_dir().join(format!("vesta-guide-{}", std::process::id()));
//!
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Fixed(7)) // no other process may use 7 in this namespace
//! #   .namespace("guide")
//!     .state_dir(&folder) // keeps the bound across restarts
//!     .build()?;
//!
//! let id: VestaId = ids.next()?;
//! println!("{id}, created {}", id.created_at(ids.meta())?);
//! assert_eq!(ids.exp_id(id)?.machine, 7);
//!
//! let mut batch = [0; 1000]; // costs little more than one
//! ids.gen_ids(&mut batch)?;
//! assert!(batch.is_sorted());
//! # drop(ids); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In async code, with the feature `async`: `ids.next_async().await?`. It needs no runtime.
//!
//! # In structs, tables and JSON
//! [`VestaId`](crate::VestaId) is a `u64` that keeps its value: a string in JSON (feature `serde`) and a `BIGINT`
//! in a database (features `sqlx`, `diesel`). A type of your own needs one `From`:
//!
//! ```
//! # use vesta_service::{LocalIdService, MachineSource};
//! use vesta_service::VestaId;
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
//! struct OrderId(VestaId);
//!
//! impl From<VestaId> for OrderId {
//!     fn from(id: VestaId) -> Self {
//!         Self(id)
//!     }
//! }
//!
//! # let ids = LocalIdService::builder().machine(MachineSource::Stateless(1)).build()?;
//! let order: OrderId = ids.next()?;
//! let same: VestaId = order.0.to_string().parse()?;
//! assert_eq!(order.0, same);
//!
//! let column = i64::try_from(order.0)?; // an error, not a wrap, if the sign bit is set
//! assert_eq!(VestaId::try_from(column)?, same);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! docs/use/embed.md has a handler that inserts a row with sqlx and responds in JSON.
//!
//! # The machine ID
//! Two processes with the same machine ID duplicate IDs, so [`MachineSource`](crate::MachineSource) has no default.
//! `Fixed`, `IpMap` and `HostOrdinal` keep a state file; `Pool` and `Reserved` need a store.
//!
//! ```
//! use vesta_service::MachineSource;
//! use vesta_service::options::IpMap;
//!
//! let by_address = MachineSource::IpMap(IpMap::parse("10.0.0.1=1,10.0.0.2=2")?);
//! let of_a_stateful_set = MachineSource::HostOrdinalOf("orders".into()); // orders-3 is 3
//! # Ok::<(), vesta_service::IdError>(())
//! ```
//!
//! # A store for the machine IDs of many processes
//! The crate `vesta-store` opens SQLite, MySQL, PostgreSQL, Redis, ZooKeeper and etcd. Any other
//! [`KvStore`](crate::lease::KvStore) works too:
//!
//! ```
//! use std::sync::Arc;
//! use vesta_service::testing::MemoryStore;
//! use vesta_service::{LocalIdService, MachineSource};
//! # let folder = std::env::temp_dir().join(format!("vesta-guide-pool-{}", std::process::id()));
//!
//! let store = Arc::new(MemoryStore::new()); // vesta_store::open("postgres://…")?
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Pool { store, range: Some(0..=923) })
//!     .namespace("orders") // IDs that may meet in one table share it
//!     .state_dir(&folder)
//!     .build()?;
//! assert!(ids.machine() <= 923); // may change while running: never cache it
//! assert!(ids.status().ready);
//! # drop(ids); std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layouts
//! ```
//! use vesta_service::contract::UnixMillis;
//! use vesta_service::{IdMeta, LayoutSpec, LocalIdService, MachineSource};
//!
//! // 40 years from 2026 on, 1,000 machines, a million IDs a second: the widths follow.
//! let spec: LayoutSpec = vesta_explain::design(40, 1000, 1_000_000, UnixMillis(1_767_225_600_000))?;
//! let ids = LocalIdService::builder()
//!     .layout(IdMeta::new(spec)?) // or IdMeta::SNOWFLAKE, or another named layout
//! #   .machine(MachineSource::Stateless(1))
//!     .build()?;
//! assert!(ids.meta().capacity_per_second() >= 1_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # IDs as text
//! ```
//! use vesta_service::{IdFormat, VestaId};
//!
//! let id = VestaId::from(1_285_482_222_412_933_127);
//! assert_eq!(id.to_string(), "1285482222412933127");
//! assert_eq!(IdFormat::Base62.encode(id.into()), "1WxWNOqQKdL"); // sorts like the IDs
//! assert_eq!(IdFormat::Base62.parse("1WxWNOqQKdL")?, u64::from(id));
//! # Ok::<(), vesta_service::IdError>(())
//! ```
//!
//! # Errors and waits
//! `next` and `gen_id` wait for the next tick, for up to [`max_wait`](crate::Builder::max_wait); calls with `try_`
//! never wait. "Not ready" errors carry the delay after which to retry.
//!
//! ```
//! use std::time::Duration;
//! use vesta_service::{IdError, LocalIdService};
//!
//! /// An ID at once, or the delay after which to retry.
//! fn take(ids: &LocalIdService) -> Result<Result<u64, Duration>, IdError> {
//!     match ids.try_gen_id() {
//!         Ok(id) => Ok(Ok(id)),
//!         Err(IdError::NotReady(not_ready)) => Ok(Err(not_ready.retry_after)),
//!         Err(error) => Err(error), // error.kind() tells them apart
//!     }
//! }
//! # let builder = LocalIdService::builder().machine(vesta_service::MachineSource::Stateless(1));
//! # assert!(take(&builder.build()?)?.is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Numbers by tag
//! Increasing numbers with few gaps, from a table that all processes share, with the crate `vesta-numbers`:
//!
//! ```
//! use std::sync::Arc;
//! use vesta_numbers::segment::{NewSegmentTag, SegmentService};
//! use vesta_numbers::testing::MemorySegmentStore;
//!
//! let segments = SegmentService::builder(Arc::new(MemorySegmentStore::new())).build()?;
//! segments.create(&NewSegmentTag::new("orders", 1000)?)?;
//! let orders = segments.segment("orders")?; // looked up once: keep it
//! assert_eq!([orders.next()?, orders.next()?], [1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Serials
//! Human-readable numbers, such as `INV-261122-0000427`, with its feature `serial`:
//!
//! ```
//! use std::sync::Arc;
//! use vesta_numbers::serial::{NewSerialTag, Pattern, Reset, SerialService};
//! use vesta_service::testing::MemoryStore;
//!
//! let serials = SerialService::builder(Arc::new(MemoryStore::new())).build()?;
//! let pattern = Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day)?;
//! serials.create(&NewSerialTag::new("invoices", pattern, Some("Asia/Shanghai"))?)?;
//! let serial = serials.tag("invoices")?.next()?;
//! assert!(serial.text.starts_with("INV-"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In tests
//! `MachineSource::Stateless(1)` is enough for most tests. With a [`ManualClock`](crate::testing::ManualClock) time
//! is part of the test: waits return at once and advance it.
//!
//! ```
//! use std::sync::Arc;
//! use vesta_service::contract::UnixMillis;
//! use vesta_service::options::Drive;
//! use vesta_service::testing::ManualClock;
//! use vesta_service::{ErrorKind, LocalIdService, MachineSource, VestaId};
//!
//! let start = UnixMillis(1_700_000_000_000);
//! let clock = ManualClock::at(start);
//! let ids = LocalIdService::builder()
//!     .machine(MachineSource::Stateless(1))
//!     .clock(Arc::new(clock.clone()))
//!     .drive(Drive::ByHand) // no thread: every run is the same
//!     .build()?;
//! assert_eq!(ids.next::<VestaId>()?.created_at(ids.meta())?, start);
//!
//! clock.set_wall(UnixMillis(start.0 - 3_600_000)); // an hour back
//! assert_eq!(ids.try_gen_id().unwrap_err().kind(), ErrorKind::ClockBehind);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`testing`](crate::testing) has stores that lose connections on command.
