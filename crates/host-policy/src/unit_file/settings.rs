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
    /// Paths whose mounts it waits for, and that systemd mounts for it.
    Mounts,
    /// Where its programs begin: the same, of one folder.
    Entered,
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
    /// A file that systemd removes as root.
    PidFile,
    /// A path that systemd looks at as root.
    Looked,
    /// A span of at least so many milliseconds.
    AtLeast(u64),
    /// A number from the first to the second.
    Within(u32, u32),
}

const NO: Rule = Rule::One(&["no", "n", "false", "f", "0", "off"]);
const YES: Rule = Rule::One(&["yes", "y", "true", "t", "1", "on"]);
const EMPTY: Rule = Rule::One(&[""]);
const NO_ACTION: Rule = Rule::One(&["none"]);
/// Starts are systemd's work and not the slice's: a unit that fails at once is started at most 10 times a second.
const START_INTERVAL: Rule = Rule::AtLeast(10_000);
const START_BURST: Rule = Rule::Within(1, 100);
/// The same for what wakes systemd up; 200 is its own limit.
const WAKE_INTERVAL: Rule = Rule::AtLeast(1000);
const WAKE_BURST: Rule = Rule::Within(1, 200);

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
        "StartLimitIntervalSec" | "StartLimitInterval" => START_INTERVAL,
        "StartLimitBurst" => START_BURST,
        // Else nobody could take the workload away.
        "RefuseManualStop" => NO,
        "Description"
        | "Documentation"
        | "Requisite"
        | "PartOf"
        | "StopPropagatedFrom"
        | "ReloadPropagatedFrom"
        | "StopWhenUnneeded"
        | "RefuseManualStart"
        | "DefaultDependencies"
        | "CollectMode" => Rule::Free,
        _ if is_about_path(key) => Rule::Looked,
        _ if key.starts_with("Condition") || key.starts_with("Assert") => Rule::Free,
        _ => Rule::Unknown,
    }
}

/// `ConditionPathExists`, `AssertFileNotEmpty`, …: systemd asks the disk, as root.
fn is_about_path(key: &str) -> bool {
    let asked = key.strip_prefix("Condition").or_else(|| key.strip_prefix("Assert"));
    asked.is_some_and(|asked| ["Path", "File", "Directory"].iter().any(|kind| asked.starts_with(kind)))
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
        // A process that outlives its unit is nobody's any more.
        "KillMode" => Rule::One(&["control-group", "mixed"]),
        "SendSIGKILL" => YES,
        // Without one of its own a unit would have the keys of root's session.
        "KeyringMode" => Rule::One(&["private", "shared"]),
        // The journal is everybody's.
        "LogRateLimitIntervalSec" => WAKE_INTERVAL,
        "LogRateLimitBurst" => Rule::Within(1, 10_000),
        "WorkingDirectory" => Rule::Entered,
        "Environment"
        | "UnsetEnvironment"
        | "UMask"
        | "SetCredential"
        | "KillSignal"
        | "RestartKillSignal"
        | "SendSIGHUP"
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
        "LogLevelMax" | "LogExtraFields" => Rule::Free,
        _ => return None,
    })
}

fn service(key: &str) -> Rule {
    match key {
        "ExecStart" | "ExecStartPre" | "ExecStartPost" | "ExecCondition" | "ExecReload" | "ExecStop"
        | "ExecStopPost" => Rule::Program,
        "Sockets" => Rule::Own,
        // Where they stood before systemd 230.
        "StartLimitInterval" => START_INTERVAL,
        "StartLimitBurst" => START_BURST,
        "StartLimitAction" | "FailureAction" => NO_ACTION,
        // Not `dbus`: a name on the bus is one unit's alone, so whoever has it first keeps the other from starting.
        "Type" => Rule::One(&["simple", "exec", "forking", "oneshot", "notify", "notify-reload", "idle"]),
        "PIDFile" => Rule::PidFile,
        // systemd itself keeps them.
        "FileDescriptorStoreMax" => Rule::Within(0, 512),
        // Which exit is a failure, and what follows it: before the setting names that begin like hardening.
        "ExitType"
        | "RemainAfterExit"
        | "GuessMainPID"
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
        | "ReloadSignal" => Rule::Free,
        _ => program(key).unwrap_or(Rule::Unknown),
    }
}

fn socket(key: &str) -> Rule {
    match key {
        "ListenStream" | "ListenDatagram" | "ListenSequentialPacket" => Rule::Listen,
        // systemd gives the socket's path away as root and follows a symlink that the tenant put there meanwhile.
        "SocketUser" | "SocketGroup" => EMPTY,
        "Service" => Rule::Own,
        // Every socket is made by root, so the port could be shared with another's.
        "ReusePort" => NO,
        "TriggerLimitIntervalSec" | "PollLimitIntervalSec" => WAKE_INTERVAL,
        "TriggerLimitBurst" | "PollLimitBurst" => WAKE_BURST,
        // It would let the host's boot wait for a mount.
        "WorkingDirectory" => Rule::Unknown,
        "Accept"
        | "Backlog"
        | "MaxConnections"
        | "MaxConnectionsPerSource"
        | "KeepAlive"
        | "KeepAliveTimeSec"
        | "KeepAliveIntervalSec"
        | "KeepAliveProbes"
        | "NoDelay"
        | "BindIPv6Only"
        | "SocketMode"
        | "DirectoryMode"
        | "FileDescriptorName"
        | "FreeBind"
        | "DeferAcceptSec"
        | "RemoveOnStop"
        | "Timestamping" => Rule::Free,
        _ => program(key).unwrap_or(Rule::Unknown),
    }
}

fn timer(key: &str) -> Rule {
    match key {
        "Unit" => Rule::Own,
        // How often it can elapse at most.
        "AccuracySec" => Rule::AtLeast(100),
        "OnActiveSec" | "OnBootSec" | "OnStartupSec" | "OnUnitActiveSec" | "OnUnitInactiveSec" | "OnCalendar"
        | "RandomizedDelaySec" | "FixedRandomDelay" | "OnClockChange" | "OnTimezoneChange" | "Persistent"
        | "RemainAfterElapse" | "DeferReactivation" => Rule::Free,
        _ => Rule::Unknown,
    }
}

fn path(key: &str) -> Rule {
    match key {
        "Unit" => Rule::Own,
        "PathExists" | "PathExistsGlob" | "PathChanged" | "PathModified" | "DirectoryNotEmpty" => Rule::Looked,
        "TriggerLimitIntervalSec" => WAKE_INTERVAL,
        "TriggerLimitBurst" => WAKE_BURST,
        "MakeDirectory" => NO,
        _ => Rule::Unknown,
    }
}
