//! Each type reads what it writes, with every field and with the required ones alone.

use kedge_api::access_tokens::{AccessTokenCreated, AccessTokenRequest, AccessTokenSummary};
use kedge_api::assignments::{
    AssignmentDetail, AssignmentSummary, ConfigurationValue, DesiredAssignment, Provenance, PublishedFile,
    RunningAssignment, RunningConfiguration, SchedulingPolicySummary, ValueCandidate, ValueSummary,
};
use kedge_api::audit::AuditEntry;
use kedge_api::cluster_types::ClusterTypeSummary;
use kedge_api::clusters::{
    Carrier, ChangeClusterRequest, ClusterDetail, ClusterFacts, ClusterSummary, IssueCounts, WarningSummary,
};
use kedge_api::comparisons::{
    ComparedSide, Comparison, ComparisonTotals, KeyComparison, PlacedValue, RunningVersion, SideSummary,
    WorkloadComparison,
};
use kedge_api::conditions::{AssignmentCondition, ConditionSummary, Reality};
use kedge_api::counts::{ConditionCounts, CountSummary, Counts};
use kedge_api::deployment_targets::DeploymentTargetSummary;
use kedge_api::desired_states::{DesiredEntry, DesiredStateSummary, PackageSummary, StateSource};
use kedge_api::drift::{DriftGroup, DriftSummary, RealityCounts, RunningPackages, WantedPackages};
use kedge_api::environments::{EnvironmentSummary, EnvironmentTotals, PublishSummary, WaitingRemovals};
use kedge_api::error::ErrorDetail;
use kedge_api::evidence::{EvidenceDetail, EvidenceSummary};
use kedge_api::findings::{Finding, FindingSummary};
use kedge_api::fleet::{
    FailingRepository, FleetEnvironment, FleetRing, FleetSummary, FleetType, NextCommit, PresenceCounts, ProblemCounts,
    RepositoryCounts, RolloutCounts, RunningCommit, StandingNotice,
};
use kedge_api::history::{HistoryEntry, Timeline, TimelineStep};
use kedge_api::holds::{HoldRequest, HoldSummary, ReleaseRequest};
use kedge_api::imports::{ImportSummary, ImportedItem};
use kedge_api::imports::{SignRequest, SignedCluster};
use kedge_api::join_tokens::{JoinTokenCreated, JoinTokenRequest, JoinTokenSummary, ReplaceRequest};
use kedge_api::operations::{
    ChosenStream, HeldAssignment, NotApplicable, OperationKind, OperationRequest, OperationResult, OperationSelector,
    StartRolloutRequest, WrittenFile,
};
use kedge_api::page::{Page, Removed, Stored};
use kedge_api::people::{LoginLink, NewPersonRequest, PersonSummary, SetPersonRequest, WhoAmI};
use kedge_api::plans::{
    KeptInput, PastedFile, PlanDetail, PlanProblem, PlanRequest, PlanSide, PlannedAssignment, PlannedClusters,
    PlannedFile, PlannedRemovals, PlannedType, PlannedValue,
};
use kedge_api::problems::{ProblemExample, ProblemKind, ProblemList, ProblemSeverity, ProblemSummary};
use kedge_api::promotions::{
    ApproveRequest, EnvironmentPromotion, PromoteRequest, PromotionList, PromotionPolicySummary, PromotionSummary,
    RefusedCommit,
};
use kedge_api::repositories::{EnvironmentRepository, FetchRequest, RepositoryFailure, RepositorySummary};
use kedge_api::rollout_status::{ReasonCount, RolloutOverview, RolloutStatus, StatusLine, StatusUnit};
use kedge_api::rollouts::{
    ItemPart, MemberCounts, PinnedAssignment, RingProgress, RolloutAction, RolloutActionEntry, RolloutActionRequest,
    RolloutCause, RolloutDetail, RolloutItem, RolloutReference, RolloutSummary, SuggestedAction, VersionOrder,
};
use kedge_api::search::SearchResult;
use kedge_api::source::{InputCommit, RepositoryFolder, SourceLocation};
use kedge_api::workloads::{
    VersionCount, WorkloadAssignment, WorkloadDescription, WorkloadDetail, WorkloadEnvironment, WorkloadOverview,
    WorkloadPlace, WorkloadSummary,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::document::{self, Fields};

#[track_caller]
fn reads_what_it_writes<T: Serialize + DeserializeOwned>(document: &Value) {
    let name = std::any::type_name::<T>();
    let read: T =
        serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{name}: {error}: {document}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), document, "{name}");
}

fn reads_as_described<T: Serialize + DeserializeOwned + ToSchema>(named: &Map<String, Value>) {
    for fields in [Fields::All, Fields::Required] {
        reads_what_it_writes::<T>(&document::of::<T>(named, fields));
    }
}

macro_rules! each {
    ($($name:ty,)+) => {
        let mut named = Map::new();
        $(document::describe::<$name>(&mut named);)+
        $(reads_as_described::<$name>(&named);)+
    };
}

#[test]
fn each_type_reads_what_it_writes() {
    each!(
        AccessTokenRequest,
        AccessTokenCreated,
        AccessTokenSummary,
        AssignmentDetail,
        DesiredAssignment,
        RunningAssignment,
        RunningConfiguration,
        ConfigurationValue,
        AssignmentSummary,
        Provenance,
        SchedulingPolicySummary,
        PublishedFile,
        ValueSummary,
        ValueCandidate,
        AuditEntry,
        ClusterTypeSummary,
        ClusterSummary,
        Carrier,
        IssueCounts,
        ClusterFacts,
        ClusterDetail,
        ChangeClusterRequest,
        WarningSummary,
        Comparison,
        ComparedSide,
        ComparisonTotals,
        WorkloadComparison,
        SideSummary,
        RunningVersion,
        KeyComparison,
        PlacedValue,
        ConditionSummary,
        Reality,
        AssignmentCondition,
        Counts,
        ConditionCounts,
        CountSummary,
        DeploymentTargetSummary,
        DesiredStateSummary,
        StateSource,
        DesiredEntry,
        PackageSummary,
        DriftSummary,
        RealityCounts,
        DriftGroup,
        WantedPackages,
        RunningPackages,
        EnvironmentSummary,
        EnvironmentTotals,
        PublishSummary,
        WaitingRemovals,
        ErrorDetail,
        EvidenceSummary,
        EvidenceDetail,
        Finding,
        FindingSummary,
        FleetSummary,
        FleetEnvironment,
        NextCommit,
        FleetType,
        FleetRing,
        PresenceCounts,
        RolloutCounts,
        ProblemCounts,
        RepositoryCounts,
        FailingRepository,
        RunningCommit,
        StandingNotice,
        HistoryEntry,
        Timeline,
        TimelineStep,
        HoldRequest,
        ReleaseRequest,
        HoldSummary,
        ImportSummary,
        ImportedItem,
        JoinTokenRequest,
        ReplaceRequest,
        JoinTokenCreated,
        JoinTokenSummary,
        OperationSelector,
        NotApplicable,
        HeldAssignment,
        ChosenStream,
        StartRolloutRequest,
        OperationKind,
        OperationRequest,
        OperationResult,
        WrittenFile,
        Removed,
        WhoAmI,
        LoginLink,
        NewPersonRequest,
        SetPersonRequest,
        PersonSummary,
        PlanRequest,
        PlanDetail,
        PlanSide,
        PastedFile,
        PlannedClusters,
        PlannedType,
        PlannedRemovals,
        PlannedAssignment,
        PlannedValue,
        PlannedFile,
        KeptInput,
        PlanProblem,
        ProblemList,
        ProblemSummary,
        ProblemExample,
        ProblemKind,
        ProblemSeverity,
        PromotionList,
        PromotionPolicySummary,
        EnvironmentPromotion,
        RefusedCommit,
        PromotionSummary,
        PromoteRequest,
        ApproveRequest,
        EnvironmentRepository,
        FetchRequest,
        RepositorySummary,
        RepositoryFailure,
        RolloutStatus,
        ReasonCount,
        StatusLine,
        RolloutOverview,
        StatusUnit,
        RolloutReference,
        PinnedAssignment,
        RolloutActionRequest,
        RolloutSummary,
        RolloutCause,
        RingProgress,
        MemberCounts,
        RolloutDetail,
        RolloutItem,
        RolloutActionEntry,
        SuggestedAction,
        ItemPart,
        VersionOrder,
        RolloutAction,
        SearchResult,
        SourceLocation,
        RepositoryFolder,
        InputCommit,
        WorkloadDetail,
        WorkloadEnvironment,
        WorkloadDescription,
        WorkloadAssignment,
        WorkloadOverview,
        WorkloadPlace,
        VersionCount,
        WorkloadSummary,
        Page<ClusterSummary>,
        Stored<AssignmentSummary>,
    );
}

#[test]
fn signed_files_pass_through() {
    let envelope = json!({"payloadType": "x", "payload": "e30=", "signatures": []});
    let request = json!({"request": envelope, "environment": "prod", "clusterType": "press"});
    reads_what_it_writes::<SignRequest>(&request);
    reads_what_it_writes::<SignedCluster>(
        &json!({"cluster": "c", "name": "press-7", "again": false, "answer": envelope}),
    );
}

#[test]
fn a_value_that_is_null_is_no_absent_one() {
    let set = json!({"key": "REGION", "before": null, "redacted": false});
    reads_what_it_writes::<PlannedValue>(&set);
}
