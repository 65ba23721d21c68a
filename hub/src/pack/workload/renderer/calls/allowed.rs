//! The calls that a program needs, by number.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::CallsError;

/// Namespaces, which a user without rights can't have here anyway.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32 as u64;

/// Of an open file. An owner that isn't named gets no signal, so that nobody is killed by way of a file.
const FILE_CONTROLS: [libc::c_int; 13] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETPIPE_SZ,
];

pub fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, CallsError> {
    let mut rules: Vec<(libc::c_long, Vec<SeccompRule>)> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // A filter can't follow a pointer: `clone3` and `openat2`, whose arguments are behind one, are out.
    rules.push((libc::SYS_clone, vec![bits(0, NAMESPACES, 0)?]));
    rules.push((libc::SYS_openat, opening(2)?));
    #[cfg(target_arch = "x86_64")]
    rules.push((libc::SYS_open, opening(1)?));
    let controls = FILE_CONTROLS
        .iter()
        .map(|control| Ok(SeccompRule::new(vec![is(1, SeccompCmpArgLen::Dword, *control as u64)?])?));
    rules.push((libc::SYS_fcntl, controls.collect::<Result<_, CallsError>>()?));
    // To look, not to raise.
    rules.push((libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(2, SeccompCmpArgLen::Qword, 0)?])?]));
    // A runtime interrupts its own threads. The number stays when this process becomes the program.
    let own = u64::from(std::process::id());
    rules.push((libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, SeccompCmpArgLen::Dword, own)?])?]));
    Ok(rules.into_iter().collect())
}

/// An older Landlock doesn't see that a file is emptied by opening it to read.
fn opening(flags: u8) -> Result<Vec<SeccompRule>, CallsError> {
    Ok(vec![
        bits(flags, libc::O_TRUNC as u64, 0)?,
        bits(flags, libc::O_ACCMODE as u64, libc::O_WRONLY as u64)?,
        bits(flags, libc::O_ACCMODE as u64, libc::O_RDWR as u64)?,
    ])
}

fn bits(argument: u8, mask: u64, value: u64) -> Result<SeccompRule, CallsError> {
    let operator = SeccompCmpOp::MaskedEq(mask);
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

fn is(argument: u8, length: SeccompCmpArgLen, value: u64) -> Result<SeccompCondition, CallsError> {
    Ok(SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value)?)
}

/// Whatever their arguments are.
const ALLOWED: &[libc::c_long] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munmap,
    // Open files.
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getdents64,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_sendfile,
    libc::SYS_write,
    libc::SYS_writev,
    // Names of files. Neither modes nor owners nor times: Landlock doesn't guard those.
    libc::SYS_chdir,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fchdir,
    libc::SYS_getcwd,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_newfstatat,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    // Waiting.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_sched_yield,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_settime,
    // Threads and children, all of the same process group. `setsid` and `setpgid` are out: what is in the group ends with it.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_get_robust_list,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_wait4,
    libc::SYS_waitid,
    // Who and where it is.
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    // Older names of the same, which this machine alone has.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_create,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getdents,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getpgrp,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getrlimit,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pipe,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];
