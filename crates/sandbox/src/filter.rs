//! The filter of system calls: what a command can ask of the kernel at all. It names what is
//! denied. The walls before it decide about files; this one closes ways around them.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::spec::{Room, Sockets};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Calls = BTreeMap<i64, Vec<SeccompRule>>;

/// Denied whatever their arguments are.
const DENIED: &[i64] = &[
    // Other processes: their memory, their files, their place in the machine.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Mounts and namespaces, by which the walls were made.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Files by number instead of by name, and ways to wait for files of others.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Requests that this filter would not see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the session, and code in the kernel.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // The machine as a whole.
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] =
    &[libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// Modes, owners, dates and other marks of files, which Landlock does not know about.
const MARKS: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
#[cfg(target_arch = "x86_64")]
const MARKS_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const MARKS_HERE: &[i64] = &[];
/// Flags and projects of files, the same by another way.
const MARK_REQUESTS: &[u64] = &[0x4008_6602, 0x4004_6602, 0x401c_5820];

/// Too new for the list of names; the numbers are the same on every machine.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Calls about a process, and which argument says whose. Nought is oneself.
const OF_OTHERS: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];

/// Memory and queues that programs find by number. A namespace makes them the command's own.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Their arguments are behind a pointer, where a filter cannot look. They are said not to exist,
/// and every library then uses the older call that can be looked at.
const ABSENT: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Flags of `clone` that make namespaces, in which one is root again.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Typing for somebody else at a terminal, and its cousins on the console.
const REQUESTS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCCONS];

/// Numbers from here on are the same calls in another clothing (x32), which no rule would match.
#[cfg(target_arch = "x86_64")]
const DISGUISED: u32 = 0x4000_0000;

/// Cannot be undone, and holds for everything started from here.
pub(crate) fn apply(sockets: Sockets, room: Room) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    apply_filter(&undisguised())?;
    apply_filter(&program(absent(), libc::ENOSYS)?)?;
    apply_filter(&program(denied(sockets, room)?, libc::EPERM)?)?;
    Ok(())
}

fn program(calls: Calls, errno: i32) -> Result<BpfProgram> {
    let deny = SeccompAction::Errno(errno.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(calls, SeccompAction::Allow, deny, arch)?.try_into()?)
}

fn absent() -> Calls {
    ABSENT.iter().map(|call| (*call, Vec::new())).collect()
}

fn denied(sockets: Sockets, room: Room) -> Result<Calls> {
    let always = DENIED.iter().chain(DENIED_HERE);
    let mut calls: Calls = always.map(|call| (*call, Vec::new())).collect();
    for flag in NAMESPACES {
        when(&mut calls, libc::SYS_clone, &[has(0, flag.unsigned_abs())?])?;
    }
    for request in REQUESTS {
        when(&mut calls, libc::SYS_ioctl, &[is(1, *request)?])?;
    }
    if room == Room::Bare {
        alone(&mut calls)?;
    }
    files(&mut calls)?;
    network(&mut calls, sockets)?;
    if room == Room::Bare {
        // Last, because without conditions it is stricter than what was said with them.
        calls.extend(MARKS.iter().chain(MARKS_HERE).map(|call| (*call, Vec::new())));
    }
    Ok(calls)
}

/// Where no namespace keeps others and no mount keeps files, the filter has to, and knows no
/// better than to deny it all.
fn alone(calls: &mut Calls) -> Result<()> {
    calls.extend(SHARED.iter().map(|call| (*call, Vec::new())));
    for (call, at) in OF_OTHERS {
        when(calls, *call, &[not(*at, 0)?])?;
    }
    for request in MARK_REQUESTS {
        when(calls, libc::SYS_ioctl, &[is(1, *request)?])?;
    }
    Ok(())
}

/// Devices, and programs that run as their owner: outside of the walls somebody may start them.
fn files(calls: &mut Calls) -> Result<()> {
    for (call, at) in modes() {
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            when(calls, call, &[has(at, bit)?])?;
        }
    }
    for (call, flags, at) in opens() {
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            let create = has(flags, libc::O_CREAT.unsigned_abs())?;
            when(calls, call, &[create, has(at, bit)?])?;
            let nameless = u64::from(libc::O_TMPFILE.unsigned_abs());
            let nameless = condition(flags, Op::MaskedEq(nameless), nameless)?;
            when(calls, call, &[nameless, has(at, bit)?])?;
        }
    }
    for (call, at) in nodes() {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            let kind = condition(at, Op::MaskedEq(u64::from(libc::S_IFMT)), u64::from(kind))?;
            when(calls, call, &[kind])?;
        }
    }
    Ok(())
}

/// Calls that take a mode, and which argument it is.
fn modes() -> Vec<(i64, u8)> {
    let mut calls = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
    #[cfg(target_arch = "x86_64")]
    calls.extend([(libc::SYS_chmod, 1), (libc::SYS_creat, 1)]);
    calls.extend(nodes());
    calls
}

/// Calls that may make a file: which arguments are the flags and the mode.
fn opens() -> Vec<(i64, u8, u8)> {
    let mut calls = vec![(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    calls.push((libc::SYS_open, 1, 2));
    calls
}

fn nodes() -> Vec<(i64, u8)> {
    let mut calls = vec![(libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    calls.push((libc::SYS_mknod, 1));
    calls
}

fn network(calls: &mut Calls, sockets: Sockets) -> Result<()> {
    let families: &[i32] = match sockets {
        Sockets::None => &[],
        Sockets::Internet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::All => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let others: Result<Vec<_>> = families.iter().map(|family| not(0, *family)).collect();
    let others = others?;
    if others.is_empty() {
        calls.insert(libc::SYS_socket, Vec::new());
    } else {
        when(calls, libc::SYS_socket, &others)?;
        // Of the kernel's own protocols only the one that lists addresses.
        let routes = [is(0, netlink())?, not(2, libc::NETLINK_ROUTE)?];
        when(calls, libc::SYS_socket, &routes)?;
    }
    when(calls, libc::SYS_socketpair, &[not(0, libc::AF_UNIX)?])?;
    if sockets != Sockets::All {
        // A pair of this kind can send to any name; the others are bound to each other.
        let kind = 0xf;
        let datagram = libc::SOCK_DGRAM.unsigned_abs();
        let datagram = condition(1, Op::MaskedEq(kind), u64::from(datagram))?;
        when(calls, libc::SYS_socketpair, &[datagram])?;
    }
    Ok(())
}

fn netlink() -> u64 {
    u64::from(libc::AF_NETLINK.unsigned_abs())
}

fn when(calls: &mut Calls, call: i64, all: &[SeccompCondition]) -> Result<()> {
    calls.entry(call).or_default().push(SeccompRule::new(all.to_vec())?);
    Ok(())
}

fn has(at: u8, bit: u32) -> Result<SeccompCondition> {
    condition(at, Op::MaskedEq(u64::from(bit)), u64::from(bit))
}

fn is(at: u8, value: u64) -> Result<SeccompCondition> {
    condition(at, Op::Eq, value)
}

fn not(at: u8, value: i32) -> Result<SeccompCondition> {
    condition(at, Op::Ne, u64::from(value.unsigned_abs()))
}

/// The lower half only: the kernel reads these arguments so, whatever is in the upper.
fn condition(at: u8, op: Op, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(at, Width::Dword, op, value)?)
}

/// By hand, because the rules have no word for a range: load the number, compare, answer.
#[cfg(target_arch = "x86_64")]
fn undisguised() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let line = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        line(LOAD, 0, 0),
        line(JUMP_IF_AT_LEAST, 1, DISGUISED),
        line(RETURN, 0, ALLOW),
        line(RETURN, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}
