//! Interface of services that generate IDs, blocking and asynchronous.

use std::time::SystemTime;

use crate::{Id, IdError, IdRun, MakeId};

/// Generates 64-bit IDs that never repeat, and explains them.
///
/// Implemented by the embedded service (`vesta_service::LocalIdService`) and by the blocking client
/// (`vesta_client::blocking::Client`), so that a program can switch between them without code
/// changes. The trait is dyn-compatible: `Arc<dyn IdService>` works.
///
/// On each machine ID that a service holds, its IDs strictly increase.
pub trait IdService: Send + Sync {
    /// A new ID. May wait for up to the service's `max_wait`.
    ///
    /// # Errors
    /// [`IdError::NotReady`] if no ID became available within `max_wait`; otherwise any [`IdError`].
    fn gen_id(&self) -> Result<u64, IdError>;

    /// A new ID without waiting.
    ///
    /// # Errors
    /// [`IdError::NotReady`], with the delay after which to retry, if none is available now.
    fn try_gen_id(&self) -> Result<u64, IdError>;

    /// Fills `out` with new IDs, ascending. May wait for up to the service's `max_wait`.
    ///
    /// # Errors
    /// As for [`gen_id`](Self::gen_id). The contents of `out` are then meaningless; IDs that had
    /// been claimed for it are never used.
    fn gen_ids(&self, out: &mut [u64]) -> Result<(), IdError>;

    /// Fills the beginning of `out` with as many new IDs as are available now, ascending, and
    /// returns their number.
    ///
    /// # Errors
    /// [`IdError::NotReady`], with the delay after which to retry, if none is available.
    fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, IdError>;

    /// Explains an ID: splits it into its fields. Of Vesta's two layouts, the ID's own type bit selects one.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the number has more bits than the layout.
    fn exp_id(&self, raw: u64) -> Result<Id, IdError>;

    /// Assembles an ID from its parts, for tests and repairs. The result is not a new ID.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] for a part that does not fit its field.
    fn make_id(&self, parts: &MakeId) -> Result<u64, IdError>;

    /// The moment at which the tick with this number begins.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] if the number does not fit the time field.
    fn trans_time(&self, time: u64) -> Result<SystemTime, IdError>;
}

/// Asynchronous twin of [`IdService`], awaited by the servers and implemented by the client.
///
/// Its futures need no particular runtime unless the implementation says so. Dropping a future
/// before it is ready never issues an ID and never pushes the service's position into the future.
pub trait AsyncIdService: Send + Sync {
    /// See [`IdService::gen_id`].
    fn gen_id(&self) -> impl Future<Output = Result<u64, IdError>> + Send;

    /// `count` new IDs, ascending. See [`IdService::gen_ids`].
    fn gen_ids(&self, count: u32) -> impl Future<Output = Result<Vec<u64>, IdError>> + Send;

    /// `count` new IDs as runs, in the order of their first IDs. The IDs of a run ascend; runs
    /// overlap only where the service holds several machine IDs.
    fn gen_runs(&self, count: u32) -> impl Future<Output = Result<Vec<IdRun>, IdError>> + Send;

    /// See [`IdService::exp_id`].
    fn exp_id(&self, raw: u64) -> impl Future<Output = Result<Id, IdError>> + Send;

    /// See [`IdService::make_id`].
    fn make_id(&self, parts: &MakeId) -> impl Future<Output = Result<u64, IdError>> + Send;

    /// See [`IdService::trans_time`].
    fn trans_time(&self, time: u64) -> impl Future<Output = Result<SystemTime, IdError>> + Send;
}

/// The calls of [`IdService`] as inherent methods of a type, so that programs need not import the trait.
#[doc(hidden)]
#[macro_export]
macro_rules! inherent_calls {
    ($service:ty) => {
        impl $service {
            /// A new ID, in the type that the program keeps it in: [`VestaId`]($crate::VestaId), `u64`,
            /// or its own type. May wait, as [`gen_id`](Self::gen_id) does.
            ///
            /// # Errors
            /// As for [`gen_id`](Self::gen_id).
            #[inline(always)]
            pub fn next<T: From<$crate::VestaId>>(&self) -> Result<T, $crate::IdError> {
                self.gen_id().map(|id| $crate::VestaId::from(id).into())
            }

            /// A new ID. May wait: see [`IdService::gen_id`]($crate::IdService::gen_id).
            #[inline(always)]
            pub fn gen_id(&self) -> Result<u64, $crate::IdError> {
                $crate::IdService::gen_id(self)
            }

            /// A new ID without waiting: see [`IdService::try_gen_id`]($crate::IdService::try_gen_id).
            #[inline(always)]
            pub fn try_gen_id(&self) -> Result<u64, $crate::IdError> {
                $crate::IdService::try_gen_id(self)
            }

            /// Fills `out` with new IDs. May wait: see [`IdService::gen_ids`]($crate::IdService::gen_ids).
            pub fn gen_ids(&self, out: &mut [u64]) -> Result<(), $crate::IdError> {
                $crate::IdService::gen_ids(self, out)
            }

            /// Fills the beginning of `out` without waiting: see
            /// [`IdService::try_gen_ids`]($crate::IdService::try_gen_ids).
            pub fn try_gen_ids(&self, out: &mut [u64]) -> Result<usize, $crate::IdError> {
                $crate::IdService::try_gen_ids(self, out)
            }

            /// Splits an ID into its fields: see [`IdService::exp_id`]($crate::IdService::exp_id).
            pub fn exp_id(&self, raw: impl Into<u64>) -> Result<$crate::Id, $crate::IdError> {
                $crate::IdService::exp_id(self, raw.into())
            }

            /// Assembles an ID from its parts: see [`IdService::make_id`]($crate::IdService::make_id).
            pub fn make_id(&self, parts: &$crate::MakeId) -> Result<u64, $crate::IdError> {
                $crate::IdService::make_id(self, parts)
            }

            /// The moment at which a tick begins: see
            /// [`IdService::trans_time`]($crate::IdService::trans_time).
            pub fn trans_time(&self, time: u64) -> Result<std::time::SystemTime, $crate::IdError> {
                $crate::IdService::trans_time(self, time)
            }
        }
    };
}
