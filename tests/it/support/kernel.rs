//! Kernels that refuse more than ours: filters of system calls around the agent, as containers and hardened systems have them.

use super::extent::some_of;
use super::run::{Finished, Lab, PROGRAM, Running, program};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells a copy of this test binary what to refuse, and what to run under that: the agent, or the program that is named.
const KERNEL: &str = "AGENT_TEST_KERNEL";
const ARGUMENTS: &str = "AGENT_TEST_ARGUMENTS";

/// Says to the whole suite in which kernel it runs, when `tests/kernels.sh` runs it in another than that of the machine.
const AROUND: &str = "AGENT_TEST_AROUND";

/// The calls of Landlock, which have the same numbers everywhere.
const LANDLOCK: [i64; 3] = [444, 445, 446];

/// All flags that ask for a new namespace.
const NEW_NAMESPACES: u64 = 0x7e02_0000;

/// What is around the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// The kernel as it is here.
    Native,
    /// Docker's default profile: no namespaces, no mounts.
    Docker,
    /// The same and a kernel without Landlock.
    DockerWithoutLandlock,
    /// Namespaces for another program only, as `AppArmor` on Ubuntu: `unshare` of processes, which we do and bubblewrap
    /// does in another way, is refused.
    WithoutUnshare,
}

impl Kernel {
    /// Runs the agent of `lab` in it.
    pub fn agent(self, lab: &Lab, args: &[&str]) -> Finished {
        let mut finished = self.start(lab, args).finish();
        if self != Self::Native {
            // What the harness of the stand-in says before it becomes the agent.
            if let Some((_, rest)) = finished.stdout.split_once("running 1 test\n") {
                let named = "test support::kernel::stand_in_kernel ... ";
                finished.stdout = rest.strip_prefix(named).unwrap_or(rest).to_owned();
            }
        }
        finished
    }

    /// Starts the agent of `lab` in it.
    pub fn start(self, lab: &Lab, args: &[&str]) -> Running {
        Running::new(self.command(lab, args).stdin(Stdio::null()).spawn().unwrap())
    }

    /// The agent of `lab` in it, ready to be started.
    pub fn command(self, lab: &Lab, args: &[&str]) -> Command {
        let mut command = lab.command(args);
        if self != Self::Native {
            let mut stand_in = Command::new(std::env::current_exe().unwrap());
            stand_in
                .args(["--exact", "support::kernel::stand_in_kernel", "--nocapture", "--test-threads", "1"])
                .current_dir(lab.ws())
                .env_clear()
                .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
                .env(KERNEL, format!("{self:?}"))
                .env(ARGUMENTS, serde_json::to_string(args).unwrap())
                .env(PROGRAM, lab.program())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            if let Some(uid) = lab.uid() {
                stand_in.uid(uid).gid(uid);
            }
            command = stand_in;
        }
        command
    }

    /// What the tests themselves run in.
    pub fn around() -> Self {
        std::env::var(AROUND).map_or(Self::Native, |name| Self::named(&name))
    }

    fn named(name: &str) -> Self {
        [Self::Native, Self::Docker, Self::DockerWithoutLandlock, Self::WithoutUnshare]
            .into_iter()
            .find(|kernel| format!("{kernel:?}") == name)
            .unwrap()
    }

    /// Restricts this thread.
    fn restrict(self) {
        if self == Self::Native {
            return;
        }
        let mut refused = BTreeMap::new();
        let mut absent = BTreeMap::new();
        if self == Self::WithoutUnshare {
            refused.insert(libc::SYS_unshare, vec![asking_for(libc::CLONE_NEWPID.unsigned_abs().into())]);
        } else {
            let calls = [
                libc::SYS_unshare,
                libc::SYS_setns,
                libc::SYS_mount,
                libc::SYS_umount2,
                libc::SYS_pivot_root,
                libc::SYS_open_tree,
                libc::SYS_move_mount,
                libc::SYS_fsopen,
                libc::SYS_mount_setattr,
            ];
            refused.extend(calls.map(|call| (call, Vec::new())));
            let namespaces =
                (0..64).map(|bit| 1 << bit).filter(|bit| NEW_NAMESPACES & bit != 0).map(asking_for);
            refused.insert(libc::SYS_clone, namespaces.collect());
            absent.insert(libc::SYS_clone3, Vec::new());
        }
        if self == Self::DockerWithoutLandlock {
            absent.extend(LANDLOCK.map(|call| (call, Vec::new())));
        }
        install(refused, libc::EPERM);
        if !absent.is_empty() {
            install(absent, libc::ENOSYS);
        }
    }
}

/// Takes these system calls away from this thread, as a kernel that does not know them.
pub fn without(calls: &[i64]) {
    install(calls.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS);
}

/// Each kind of kernel with the tier that must be found in it. Where bubblewrap is not installed, or the tests themselves run
/// in a kernel that refuses more, the next best one.
pub fn every_kernel() -> [(Kernel, &'static str); 4] {
    const TIERS: [&str; 4] = ["full", "bubblewrap", "rules", "none"];
    let best = match Kernel::around() {
        Kernel::Native => "full",
        Kernel::WithoutUnshare if Path::new("/usr/bin/bwrap").exists() => "bubblewrap",
        Kernel::WithoutUnshare | Kernel::Docker => "rules",
        Kernel::DockerWithoutLandlock => "none",
    };
    let rank = |tier: &str| TIERS.iter().position(|known| *known == tier).unwrap();
    let worse_of = |tier: &'static str| if rank(tier) < rank(best) { best } else { tier };
    let by_another_program = if Path::new("/usr/bin/bwrap").exists() { "bubblewrap" } else { "rules" };
    [
        (Kernel::Native, best),
        (Kernel::Docker, worse_of("rules")),
        (Kernel::WithoutUnshare, worse_of(by_another_program)),
        (Kernel::DockerWithoutLandlock, "none"),
    ]
}

/// Returns each kind of kernel; by default the kernel of the machine, and one in which nothing confines.
pub fn kernels() -> Vec<(Kernel, &'static str)> {
    some_of(every_kernel(), 3)
}

/// Whether commands are confined where the tests run; a test that needs that says so and ends.
pub fn confines() -> bool {
    let [(_, best), ..] = every_kernel();
    if best == "none" {
        eprintln!("commands are not confined here");
    }
    best != "none"
}

/// `log` without the warning of runs whose commands are not confined where the tests run.
pub fn without_warning(log: &str) -> String {
    log.split_inclusive('\n').filter(|line| !line.contains("commands are NOT confined")).collect()
}

/// Whether commands have a network of their own where the tests run; a test that needs one says so and ends.
pub fn has_own_network() -> bool {
    let [(_, best), ..] = every_kernel();
    let has = matches!(best, "full" | "bubblewrap");
    if !has {
        eprintln!("commands have no network of their own here");
    }
    has
}

/// Helps where the tests are themselves confined and nothing better than some tier is to be had.
pub fn here(lab: &Lab, kernel: Kernel, tier: &str) -> bool {
    let found = doctor(lab, kernel);
    let as_expected = found.contains(&format!("sandbox        {tier}:"));
    assert!(as_expected || std::env::var_os("CI").is_some(), "{kernel:?} is not {tier}:\n{found}");
    as_expected
}

/// What `agent doctor` says in it.
pub fn doctor(lab: &Lab, kernel: Kernel) -> String {
    kernel.agent(lab, &["doctor"]).stdout
}

/// A first argument with this flag.
fn asking_for(flag: u64) -> SeccompRule {
    let asks = SeccompCmpOp::MaskedEq(flag);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, asks, flag).unwrap();
    SeccompRule::new(vec![condition]).unwrap()
}

fn install(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// Not a test: becomes the agent, or what is named, in such a kernel.
#[test]
fn stand_in_kernel() {
    let Ok(name) = std::env::var(KERNEL) else { return };
    let arguments: Vec<String> = serde_json::from_str(&std::env::var(ARGUMENTS).unwrap()).unwrap();
    Kernel::named(&name).restrict();
    let error = Command::new(program())
        .args(arguments)
        .env_remove(KERNEL)
        .env_remove(ARGUMENTS)
        .env_remove(PROGRAM)
        .exec();
    panic!("{error}");
}
