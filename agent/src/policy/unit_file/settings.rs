//! Which settings a workload's own unit may have, and what their values may be. What isn't here is refused.

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Free,
    Unknown,
    /// A command line.
    Program,
    User,
    Group,
    Slice,
    /// Units that are started with it.
    Needs,
    /// Units that start it.
    WantedBy,
    /// Units that wait for it.
    Before,
    /// Units that it waits for.
    After,
    /// Paths whose mounts it waits for.
    Mounts,
    /// How long a start or a stop may take.
    Time,
    /// Units that it starts, stops or stands for.
    Own,
    /// One of these words.
    One(&'static [&'static str]),
    AtLeastZero,
    /// Where a stream goes.
    Output,
    /// A file that systemd reads as root.
    Settings,
    /// Folders that systemd makes and gives away.
    Folder,
    Listen,
}

const NO: Rule = Rule::One(&["no", "n", "false", "f", "0", "off"]);
const YES: Rule = Rule::One(&["yes", "y", "true", "t", "1", "on"]);
const EMPTY: Rule = Rule::One(&[""]);
const NO_ACTION: Rule = Rule::One(&["none"]);

pub fn rule(section: &str, key: &str) -> Rule {
    if key.starts_with("X-") || section.starts_with("X-") {
        return Rule::Free;
    }
    match section {
        "Unit" => unit(key),
        "Install" => install(key),
        "Service" => service(key),
        "Socket" => socket(key),
        "Timer" => timer(key),
        "Path" => path(key),
        _ => Rule::Unknown,
    }
}

fn unit(key: &str) -> Rule {
    match key {
        "Wants" | "Requires" | "BindsTo" | "Upholds" => Rule::Needs,
        "Before" => Rule::Before,
        "After" => Rule::After,
        "RequiresMountsFor" | "WantsMountsFor" => Rule::Mounts,
        "JobTimeoutSec" | "JobRunningTimeoutSec" => Rule::Time,
        "Conflicts" | "OnFailure" | "OnSuccess" | "PropagatesStopTo" | "PropagatesReloadTo" | "JoinsNamespaceOf" => {
            Rule::Own
        }
        "FailureAction" | "SuccessAction" | "StartLimitAction" | "JobTimeoutAction" => NO_ACTION,
        "Description"
        | "Documentation"
        | "Requisite"
        | "PartOf"
        | "StopPropagatedFrom"
        | "ReloadPropagatedFrom"
        | "StartLimitIntervalSec"
        | "StartLimitInterval"
        | "StartLimitBurst"
        | "StopWhenUnneeded"
        | "RefuseManualStart"
        | "RefuseManualStop"
        | "DefaultDependencies"
        | "CollectMode" => Rule::Free,
        _ if key.starts_with("Condition") || key.starts_with("Assert") => Rule::Free,
        _ => Rule::Unknown,
    }
}

fn install(key: &str) -> Rule {
    match key {
        "WantedBy" => Rule::WantedBy,
        // A target that required it would fail with it.
        "RequiredBy" | "UpheldBy" | "Alias" | "Also" => Rule::Own,
        "DefaultInstance" => Rule::Free,
        _ => Rule::Unknown,
    }
}

/// Programs, and with which rights they run.
fn program(key: &str) -> Option<Rule> {
    Some(match key {
        "User" => Rule::User,
        "Group" => Rule::Group,
        "Slice" => Rule::Slice,
        "SupplementaryGroups" | "AmbientCapabilities" | "SecureBits" => EMPTY,
        "NoNewPrivileges" => YES,
        "DynamicUser" | "PermissionsStartOnly" | "RootDirectoryStartOnly" => NO,
        "StandardInput" | "StandardOutput" | "StandardError" => Rule::Output,
        "EnvironmentFile" => Rule::Settings,
        "RuntimeDirectory" | "StateDirectory" | "CacheDirectory" | "LogsDirectory" | "ConfigurationDirectory" => {
            Rule::Folder
        }
        "TimeoutSec" | "TimeoutStartSec" | "TimeoutStopSec" | "TimeoutAbortSec" => Rule::Time,
        "Nice" | "OOMScoreAdjust" => Rule::AtLeastZero,
        "IOSchedulingClass" => Rule::One(&["best-effort", "idle", "2", "3"]),
        "CPUSchedulingPolicy" => Rule::One(&["other", "batch", "idle"]),
        "Environment"
        | "UnsetEnvironment"
        | "WorkingDirectory"
        | "UMask"
        | "SetCredential"
        | "KillMode"
        | "KillSignal"
        | "RestartKillSignal"
        | "FinalKillSignal"
        | "SendSIGHUP"
        | "SendSIGKILL"
        | "SyslogIdentifier"
        | "SyslogFacility"
        | "SyslogLevel"
        | "SyslogLevelPrefix"
        | "StandardInputText"
        | "StandardInputData"
        | "OOMPolicy"
        | "RuntimeDirectoryMode"
        | "StateDirectoryMode"
        | "CacheDirectoryMode"
        | "LogsDirectoryMode"
        | "ConfigurationDirectoryMode"
        | "RuntimeDirectoryPreserve"
        | "IOSchedulingPriority"
        | "CPUAffinity" => Rule::Free,
        // Less than what a user has anyway.
        "CapabilityBoundingSet"
        | "SystemCallFilter"
        | "SystemCallArchitectures"
        | "SystemCallErrorNumber"
        | "SystemCallLog"
        | "LockPersonality"
        | "MemoryDenyWriteExecute"
        | "RemoveIPC"
        | "KeyringMode"
        | "ProcSubset"
        | "ReadOnlyPaths"
        | "InaccessiblePaths"
        | "ReadWritePaths"
        | "ExecPaths"
        | "NoExecPaths"
        | "DevicePolicy"
        | "DeviceAllow"
        | "IPAddressAllow"
        | "IPAddressDeny" => Rule::Free,
        // Within the slice's limits.
        "MemoryMax" | "MemoryHigh" | "MemorySwapMax" | "TasksMax" | "CPUQuota" | "CPUWeight" | "IOWeight"
        | "AllowedCPUs" | "CPUAccounting" | "MemoryAccounting" | "TasksAccounting" | "IOAccounting"
        | "IPAccounting" => Rule::Free,
        "LimitNOFILE" | "LimitCORE" | "LimitNPROC" | "LimitSTACK" | "LimitAS" | "LimitDATA" | "LimitFSIZE"
        | "LimitCPU" | "LimitRSS" | "LimitMEMLOCK" | "LimitSIGPENDING" | "LimitMSGQUEUE" | "LimitLOCKS" => Rule::Free,
        _ if key.starts_with("Protect") || key.starts_with("Private") || key.starts_with("Restrict") => Rule::Free,
        "LogLevelMax" | "LogExtraFields" | "LogFilterPatterns" | "LogRateLimitIntervalSec" | "LogRateLimitBurst" => {
            Rule::Free
        }
        _ => return None,
    })
}

fn service(key: &str) -> Rule {
    match key {
        "ExecStart" | "ExecStartPre" | "ExecStartPost" | "ExecCondition" | "ExecReload" | "ExecStop"
        | "ExecStopPost" => Rule::Program,
        "Sockets" => Rule::Own,
        // Where they stood before systemd 230.
        "StartLimitInterval" | "StartLimitBurst" => Rule::Free,
        "StartLimitAction" | "FailureAction" => NO_ACTION,
        // Which exit is a failure, and what follows it: before the setting names that begin like hardening.
        "Type"
        | "ExitType"
        | "RemainAfterExit"
        | "GuessMainPID"
        | "PIDFile"
        | "BusName"
        | "NotifyAccess"
        | "NonBlocking"
        | "Restart"
        | "RestartSec"
        | "RestartSteps"
        | "RestartMaxDelaySec"
        | "RestartMode"
        | "RestartPreventExitStatus"
        | "RestartForceExitStatus"
        | "SuccessExitStatus"
        | "RuntimeMaxSec"
        | "RuntimeRandomizedExtraSec"
        | "WatchdogSec"
        | "WatchdogSignal"
        | "TimeoutStartFailureMode"
        | "TimeoutStopFailureMode"
        | "FileDescriptorStoreMax"
        | "ReloadSignal" => Rule::Free,
        _ => program(key).unwrap_or(Rule::Unknown),
    }
}

fn socket(key: &str) -> Rule {
    match key {
        "ListenStream" | "ListenDatagram" | "ListenSequentialPacket" => Rule::Listen,
        "SocketUser" => Rule::User,
        "SocketGroup" => Rule::Group,
        "Service" => Rule::Own,
        "Accept"
        | "Backlog"
        | "MaxConnections"
        | "MaxConnectionsPerSource"
        | "KeepAlive"
        | "KeepAliveTimeSec"
        | "KeepAliveIntervalSec"
        | "KeepAliveProbes"
        | "NoDelay"
        | "ReusePort"
        | "BindIPv6Only"
        | "SocketMode"
        | "DirectoryMode"
        | "FileDescriptorName"
        | "FreeBind"
        | "DeferAcceptSec"
        | "TriggerLimitIntervalSec"
        | "TriggerLimitBurst"
        | "PollLimitIntervalSec"
        | "PollLimitBurst"
        | "RemoveOnStop"
        | "ReceiveBuffer"
        | "SendBuffer"
        | "Timestamping" => Rule::Free,
        _ => program(key).unwrap_or(Rule::Unknown),
    }
}

fn timer(key: &str) -> Rule {
    match key {
        "Unit" => Rule::Own,
        "OnActiveSec" | "OnBootSec" | "OnStartupSec" | "OnUnitActiveSec" | "OnUnitInactiveSec" | "OnCalendar"
        | "AccuracySec" | "RandomizedDelaySec" | "FixedRandomDelay" | "OnClockChange" | "OnTimezoneChange"
        | "Persistent" | "RemainAfterElapse" | "DeferReactivation" => Rule::Free,
        _ => Rule::Unknown,
    }
}

fn path(key: &str) -> Rule {
    match key {
        "Unit" => Rule::Own,
        "PathExists"
        | "PathExistsGlob"
        | "PathChanged"
        | "PathModified"
        | "DirectoryNotEmpty"
        | "TriggerLimitIntervalSec"
        | "TriggerLimitBurst" => Rule::Free,
        "MakeDirectory" => NO,
        _ => Rule::Unknown,
    }
}
