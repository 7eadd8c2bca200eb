//! Faults: one broken rule at a time. The product does not contain them; the model deviates from it instead.

/// Broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A claim begins at the clock, whatever the bound.
    ClaimAtTheClock,
    /// The store accepts any extend, whatever the record.
    ExtendWithoutPrecondition,
    /// A window is used as soon as it was requested.
    UseBeforeReply,
    /// Record and mark vanish, as entries with a lease or a time to live do.
    RecordVanishes,
    /// A release does not seal the lease.
    ReleaseWithoutSeal,
    /// A claim begins one position below the bound.
    ClaimBelowTheBound,
    /// Positions are issued first and the bound is written later.
    BoundAfterUse,
    /// A clock that went back lowers the bound.
    ExtendMayLower,
    /// A timeout is taken for success.
    TimeOutIsSuccess,
    /// A release gives back the last issued position, too.
    ReleaseOneTooFar,
    /// A sealed lease continues when its machine ID is claimed again.
    SealedIsRevived,
    /// The store does not compare the bound of an extend.
    ExtendWithoutBound,
    /// A claimant that finds its requested epoch takes the record for its own, without comparing the attempt.
    EpochDecides,
    /// A new record is claimed first and marked afterwards.
    MarkAfterClaim,
    /// A mark shows that a record was created, but not its birth.
    MarkWithoutBirth,
    /// The floor is read only before the claim.
    FloorReadOnce,
    /// An absent record is created again although it is marked.
    AbsentTakenAlthoughMarked,
    /// A creation that was not answered is sent again.
    CreationSentAgain,
    /// A holder whose request is refused stops for good.
    SealedByRefusal,
    /// A process trusts only the store and its state file.
    OwnForgotten,
    /// A holder that sees the store go back leaves the floor as it is.
    FloorNotRaised,
    /// Such a holder gives its machine ID up first and raises the floor afterwards.
    FloorRaisedAfterwards,
    /// The child of a fork continues to issue.
    ChildIssues,
}

impl Fault {
    pub(super) const ALL: [Fault; 23] = [
        Self::ClaimAtTheClock,
        Self::ExtendWithoutPrecondition,
        Self::UseBeforeReply,
        Self::RecordVanishes,
        Self::ReleaseWithoutSeal,
        Self::ClaimBelowTheBound,
        Self::BoundAfterUse,
        Self::ExtendMayLower,
        Self::TimeOutIsSuccess,
        Self::ReleaseOneTooFar,
        Self::SealedIsRevived,
        Self::ExtendWithoutBound,
        Self::EpochDecides,
        Self::MarkAfterClaim,
        Self::MarkWithoutBirth,
        Self::FloorReadOnce,
        Self::AbsentTakenAlthoughMarked,
        Self::CreationSentAgain,
        Self::SealedByRefusal,
        Self::OwnForgotten,
        Self::FloorNotRaised,
        Self::FloorRaisedAfterwards,
        Self::ChildIssues,
    ];
}
