//! seccomp: system calls that a confined command may not make.

use super::Rules;
use rustix::process::{Pid, getpid, getppid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// System calls that are about other processes, the kernel or the whole machine, and some that have been used to attack
/// the kernel.
const DENIED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    // Memory and queues that processes share by numbers, of which any process of the user can have those of another.
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// System calls that change permissions, owners, times and attributes of files.
const METADATA: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    libc::SYS_utimensat,
    // fchmodat2, setxattrat, removexattrat and file_setattr, which have the same number on all architectures.
    452,
    463,
    466,
    469,
];

/// System calls that programs do without if the kernel lacks them: their arguments cannot be checked, or they would
/// bypass the other rules.
const UNAVAILABLE: &[libc::c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// The older calls, which only some architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_DENIED: &[libc::c_long] =
    &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_lookup_dcookie, libc::SYS_modify_ldt, libc::SYS_nfsservctl];
#[cfg(target_arch = "x86_64")]
const OLD_METADATA: &[libc::c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_futimesat, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes];
#[cfg(not(target_arch = "x86_64"))]
const OLD_DENIED: &[libc::c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: &[libc::c_long] = &[];

/// Set in the numbers of system calls of the x32 interface, which some kernels offer beside the usual one.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;
/// The calls that have other numbers in the x32 interface.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [(libc::c_long, libc::c_long); 7] = [
    (libc::SYS_ioctl, 514),
    (libc::SYS_ptrace, 521),
    (libc::SYS_rt_sigqueueinfo, 524),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_rt_tgsigqueueinfo, 536),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
];

/// The flags of `clone` that create namespaces.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
    // CLONE_NEWTIME
    0x80,
];

/// Requests to devices: typing into a terminal, and setting attributes of files.
const REQUESTS: [u64; 2] = [0x5412, 0x541c];
const ATTRIBUTE_REQUESTS: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

type Calls = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts this thread.
pub(super) fn restrict(rules: &Rules) -> Result<(), String> {
    install(unavailable(), libc::ENOSYS)?;
    install(denied(rules)?, libc::EPERM)
}

/// Returns whether filters can be installed. Call it in a thread that does nothing else: it gives up rights.
pub(super) fn is_available() -> bool {
    install(unavailable(), libc::ENOSYS).is_ok()
}

fn install(calls: Calls, errno: libc::c_int) -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let errno = SeccompAction::Errno(u32::try_from(errno).unwrap_or(1));
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, errno, architecture);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| error.to_string())?;
    apply_filter(&program).map_err(|error| error.to_string())
}

fn unavailable() -> Calls {
    with_x32(UNAVAILABLE.iter().map(|call| (*call, Vec::new())).collect())
}

fn denied(rules: &Rules) -> Result<Calls, String> {
    let mut calls: Calls = [DENIED, OLD_DENIED].concat().into_iter().map(|call| (call, Vec::new())).collect();
    if !rules.metadata {
        calls.extend([METADATA, OLD_METADATA].concat().into_iter().map(|call| (call, Vec::new())));
    }
    let mut requests: Vec<_> = REQUESTS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)])).collect();
    if !rules.metadata {
        requests.extend(ATTRIBUTE_REQUESTS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)])));
    }
    calls.insert(libc::SYS_ioctl, collect(requests)?);
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    calls.insert(libc::SYS_clone, collect(namespaces)?);
    calls.insert(libc::SYS_socket, if rules.network { network()? } else { Vec::new() });
    for call in [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_open,
    ] {
        calls.insert(call, protected_processes()?);
    }
    // A limit on the time of another process ends that process.
    calls.insert(libc::SYS_prlimit64, collect([rule(&[(0, SeccompCmpOp::Ne, 0)])])?);
    // The priority of the process itself may change.
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        let others = [rule(&[(0, SeccompCmpOp::Ne, process)]), rule(&[(1, SeccompCmpOp::Ne, 0)])];
        calls.insert(call, collect(others)?);
    }
    Ok(with_x32(calls))
}

/// Matches sockets other than those of IP, and of netlink as far as it only describes interfaces. A socket of the machine,
/// such as those of D-Bus and Docker, would be a way out.
fn network() -> Result<Vec<SeccompRule>, String> {
    let inet = family(libc::AF_INET);
    let inet6 = family(libc::AF_INET6);
    let netlink = family(libc::AF_NETLINK);
    let different = |family| (0, SeccompCmpOp::Ne, family);
    let route = u64::try_from(libc::NETLINK_ROUTE).unwrap_or_default();
    collect([
        rule(&[different(inet), different(inet6), different(netlink)]),
        rule(&[(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, route)]),
    ])
}

fn family(family: libc::c_int) -> u64 {
    u64::from(family.cast_unsigned())
}

/// Matches calls whose first argument is this process or its parent, their groups, or all processes.
fn protected_processes() -> Result<Vec<SeccompRule>, String> {
    let ids = [Some(getpid()), getppid()].into_iter().flatten().map(|id| Pid::as_raw(Some(id)));
    let all = ids.flat_map(|id| [id, -id]).chain([-1]);
    collect(all.map(|id| rule(&[(0, SeccompCmpOp::Eq, u64::from(id.cast_unsigned()))])))
}

/// Creates a rule that matches if all 32-bit arguments do.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |(argument, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}

fn collect(
    rules: impl IntoIterator<Item = Result<SeccompRule, seccompiler::BackendError>>,
) -> Result<Vec<SeccompRule>, String> {
    rules.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Adds the same rules for the x32 interface.
#[cfg(target_arch = "x86_64")]
fn with_x32(mut calls: Calls) -> Calls {
    let mut others: Vec<_> = calls.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    for (call, number) in X32_NUMBERS {
        others.extend(calls.get(&call).map(|rules| (number | X32, rules.clone())));
    }
    calls.extend(others);
    calls
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(calls: Calls) -> Calls {
    calls
}
