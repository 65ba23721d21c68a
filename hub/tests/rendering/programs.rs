//! What a program sees, and its limits.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use kedge_hub::pack::request::RenderError;

use crate::stand::{Served, each, request, runs, script};

#[tokio::test]
async fn a_program_sees_its_copy_and_nothing_of_our_environment() {
    for (way, seen) in
        each("[ \"$1\" = build ] && cat \"$2/kustomization.yaml\" && env | cut -d= -f1 | sort | tr '\\n' ' '").await
    {
        let seen = seen.unwrap();
        assert!(seen.starts_with("namePrefix: x-\n") && seen.contains("HOME"), "{way}: {seen}");
        assert!(!seen.contains("CARGO") && !seen.contains("USER") && !seen.contains("SECRET"), "{way}: {seen}");
    }
}

#[tokio::test]
async fn a_program_reaches_neither_the_network_nor_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, path) = (tcp.local_addr().unwrap().port(), folder.path().join("socket"));
    let unix = UnixListener::bind(&path).unwrap();
    tcp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    let reach = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo tcp\n\
         perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"{}\")) && print \"unix\"' 2>/dev/null\n\
         echo tried",
        path.display()
    );
    for (way, seen) in each(&reach).await {
        assert_eq!(seen.unwrap(), "tried\n", "{way}");
        assert!(tcp.accept().is_err() && unix.accept().is_err(), "{way}");
    }
}

#[tokio::test]
async fn a_program_sees_its_source_alone() {
    let secret = tempfile::tempdir().unwrap();
    let mirror = secret.path().join("mirror");
    fs::write(&mirror, "of another tenant").unwrap();
    let own = std::process::id();
    let look = format!(
        "cat {mirror} /etc/passwd /proc/{own}/environ /proc/1/environ /var/lib/kedge-hub/hub.db 2>/dev/null\n\
         kill -0 {own} 2>/dev/null && echo killed\n\
         ls {folder} 2>/dev/null\n\
         for to in \"$2\"/x /x /dev/x /var/tmp/kedge-x {folder}/x {mirror}; do (echo wrote >> $to) 2>/dev/null && echo wrote $to; done\n\
         chmod 777 {mirror} \"$2\" 2>/dev/null && echo changed\n\
         : > $HOME/own && echo own; ls \"$2/..\"",
        mirror = mirror.display(),
        folder = secret.path().display(),
    );
    for (way, seen) in each(&look).await {
        assert_eq!(seen.unwrap(), "own\napp\n", "{way}");
        assert_eq!(fs::read_to_string(&mirror).unwrap(), "of another tenant", "{way}");
    }
}

#[tokio::test]
async fn what_a_program_complains_of_is_said() {
    for (way, outcome) in each("echo \"no such base below $2\" >&2; exit 3").await {
        let Err(RenderError::Failed(why)) = outcome else { panic!("{way}: {outcome:?}") };
        assert!(why.contains("no such base below /source/app"), "{way}: {why}");
    }
}

#[tokio::test]
async fn endless_output_is_cut() {
    let started = Instant::now();
    for (way, outcome) in each("yes x").await {
        let Err(RenderError::Failed(why)) = outcome else { panic!("{way}: {outcome:?}") };
        assert!(why.contains("more than 16 MiB"), "{way}: {why}");
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn memory_is_bounded() {
    for (way, outcome) in each("head -c 6000000000 /dev/zero | tail").await {
        assert!(outcome.is_err(), "{way}");
    }
}

#[tokio::test]
async fn scratch_space_is_bounded() {
    let fill = "for file in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 10000000 /dev/zero > $HOME/$file || exit 1; done\n\
                sleep 5; echo filled";
    for (way, outcome) in each(fill).await {
        assert!(matches!(outcome, Err(RenderError::Failed(_))), "{way}: {outcome:?}");
    }
    for (way, outcome) in each("head -c 100000000 /dev/zero > $HOME/big && echo filled").await {
        assert!(matches!(outcome, Err(RenderError::Failed(_))), "{way}: {outcome:?}");
    }
}

#[tokio::test]
async fn nothing_that_a_program_started_stays() {
    let leave = "setsid sleep 3132.5 >/dev/null 2>&1 &\nsleep 3132.5 >/dev/null 2>&1 &\n(sleep 3132.5 >/dev/null 2>&1 &)\nsleep 1; echo done";
    for (way, outcome) in each(leave).await {
        assert_eq!(outcome.unwrap(), "done\n", "{way}");
        assert!(!runs("3132.5"), "{way}");
    }
}

#[tokio::test]
async fn a_program_gets_no_rights_back() {
    let Some(served) = Served::start(|folder| {
        script(
            folder,
            "perl -e '\
                my %calls = (mount => 165, unshare => 272, ptrace => 101, setns => 308, bpf => 321, keyctl => 250, io_uring_setup => 425, \
                    userfaultfd => 323, process_vm_readv => 310, pidfd_open => 434, socket => 41, socketpair => 53, chroot => 161, \
                    x32_socket => 0x40000029, clone3 => 435, kill => 62, prctl => 157, landlock_create_ruleset => 444, unheard_of => 1000); \
                for (sort keys %calls) { syscall($calls{$_}, 0, 0, 0, 0, 0, 0); print \"$_ $!\\n\" unless $!{ENOSYS} } \
                syscall(72, 1, 8, getppid()); print \"owner $!\\n\" unless $!{ENOSYS}; \
                print \"tried\\n\"'",
        )
    }) else {
        return;
    };
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let output = served.client.render(&request(&[("app/x", "")], "app")).await.unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "tried\n");
}
