//! Builds a BPF program that filters system calls.
//!
//! It is as short as possible: at each command start the kernel checks and compiles it and runs it for every call number, and
//! all of this takes time proportional to its length.

use seccompiler::{BpfProgram, sock_filter};
use std::io;

/// Offsets in `seccomp_data` (linux/seccomp.h) of the call number, the architecture, and the lower halves of the arguments,
/// which are all that the kernel reads of the arguments checked here.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

/// First number of the x32 form (`__X32_SYSCALL_BIT` of the kernel's headers). Larger numbers are x32 calls or none.
const X32: u32 = 0x4000_0000;

const ALLOW: sock_filter = instruction(libc::BPF_RET, libc::SECCOMP_RET_ALLOW);

/// Comparison of the value loaded last.
#[derive(Debug, Clone, Copy)]
pub(super) enum Comparison {
    /// Equals this value.
    Equal(u32),
    /// Has one of these bits.
    AnyOf(u32),
}

/// Program under construction. Calls without a rule are allowed.
pub(super) struct SeccompProgram(BpfProgram);

impl SeccompProgram {
    /// Creates a program that ends a process on a call of another architecture, where numbers have other meanings, and refuses
    /// calls of the x32 form with ENOSYS.
    ///
    /// # Errors
    /// Fails if the machine's architecture is unsupported.
    pub(super) fn new() -> io::Result<Self> {
        let own = own_architecture().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self(vec![
            load(ARCHITECTURE),
            jump(Comparison::Equal(own), 1, 0),
            instruction(libc::BPF_RET, libc::SECCOMP_RET_KILL_PROCESS),
            load(NUMBER),
            sock_filter { jf: 1, ..instruction(libc::BPF_JMP | libc::BPF_JGE, X32) },
            error(libc::ENOSYS),
        ]))
    }

    /// Refuses `calls` with `errno`.
    ///
    /// # Errors
    /// Fails if there are more calls than a jump can skip.
    pub(super) fn refuse(&mut self, calls: &[i64], errno: libc::c_int) -> io::Result<()> {
        let calls =
            calls.iter().map(|call| number(*call).map(Comparison::Equal)).collect::<io::Result<Vec<_>>>()?;
        let go_on = instruction(libc::BPF_JMP | libc::BPF_JA, 1);
        self.0.extend(first_of(&calls, error(errno), go_on)?);
        Ok(())
    }

    /// Refuses `call` if its argument `argument` matches one of `these`.
    ///
    /// # Errors
    /// Fails if there are more comparisons than a jump can skip.
    pub(super) fn refuse_where(&mut self, call: i64, argument: u32, these: &[Comparison]) -> io::Result<()> {
        self.decide(call, argument, first_of(these, error(libc::EPERM), ALLOW)?)
    }

    /// Refuses `call` unless its argument `argument` matches one of `these`.
    ///
    /// # Errors
    /// Fails if there are more comparisons than a jump can skip.
    pub(super) fn refuse_unless(&mut self, call: i64, argument: u32, these: &[Comparison]) -> io::Result<()> {
        self.decide(call, argument, first_of(these, ALLOW, error(libc::EPERM))?)
    }

    fn decide(&mut self, call: i64, argument: u32, decision: BpfProgram) -> io::Result<()> {
        let length = offset(decision.len() + 1)?;
        self.0.extend([
            jump(Comparison::Equal(number(call)?), 0, length),
            load(ARGUMENTS + argument * ARGUMENT_BYTES),
        ]);
        self.0.extend(decision);
        Ok(())
    }

    /// Installs the filter permanently for this process and everything that it starts.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(super) fn install(mut self) -> io::Result<()> {
        self.0.push(ALLOW);
        seccompiler::apply_filter(&self.0).map_err(io::Error::other)
    }
}

/// Returns instructions that run `then` if one of `these` matches, else `otherwise`, which may jump over `then`.
fn first_of(these: &[Comparison], then: sock_filter, otherwise: sock_filter) -> io::Result<BpfProgram> {
    let jumps = these.iter().enumerate().map(|(index, is)| Ok(jump(*is, offset(these.len() - index)?, 0)));
    let jumps = jumps.collect::<io::Result<BpfProgram>>()?;
    Ok([jumps, vec![otherwise, then]].concat())
}

fn offset(instructions: usize) -> io::Result<u8> {
    u8::try_from(instructions).map_err(io::Error::other)
}

fn number(call: i64) -> io::Result<u32> {
    u32::try_from(call).map_err(io::Error::other)
}

/// Returns the audit number of this machine's architecture: that of its ELF files, flagged as 64-bit and little-endian
/// (linux/audit.h).
fn own_architecture() -> Option<u32> {
    let elf = match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        _ => return None,
    };
    Some(0xC000_0000 | elf)
}

#[expect(clippy::cast_possible_truncation, reason = "the codes have a byte; `try_from` is not const")]
const fn instruction(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn jump(is: Comparison, jt: u8, jf: u8) -> sock_filter {
    let (comparison, value) = match is {
        Comparison::Equal(value) => (libc::BPF_JEQ, value),
        Comparison::AnyOf(bits) => (libc::BPF_JSET, bits),
    };
    sock_filter { jt, jf, ..instruction(libc::BPF_JMP | comparison, value) }
}

fn error(errno: libc::c_int) -> sock_filter {
    instruction(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs `program` as the kernel would and returns its result for a call.
    fn answer(program: &BpfProgram, architecture: u32, number: u32, arguments: [u32; 2]) -> u32 {
        let [first, second] = arguments;
        let fields = [(NUMBER, number), (ARCHITECTURE, architecture), (ARGUMENTS, first), (24, second)];
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let code = u32::from(code);
            let holds = match code & !libc::BPF_JMP {
                _ if code == libc::BPF_RET => return k,
                libc::BPF_JA => {
                    at += k as usize;
                    continue;
                }
                libc::BPF_JEQ => loaded == k,
                libc::BPF_JGE => loaded >= k,
                libc::BPF_JSET => loaded & k != 0,
                _ => {
                    loaded = fields.iter().find(|(offset, _)| *offset == k).unwrap().1;
                    continue;
                }
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    proptest! {
        #[test]
        fn the_program_decides_as_the_rules_say(number in 0..12_u32, first in 0..8_u32, second in 0..8_u32) {
            let mut filter = SeccompProgram::new().unwrap();
            filter.refuse(&[1, 2, 3], libc::ENOSYS).unwrap();
            filter.refuse(&[5], libc::EPERM).unwrap();
            filter.refuse_where(6, 0, &[Comparison::AnyOf(5)]).unwrap();
            filter.refuse_where(7, 1, &[Comparison::Equal(2), Comparison::Equal(4)]).unwrap();
            filter.refuse_unless(8, 0, &[Comparison::Equal(1), Comparison::Equal(2), Comparison::Equal(7)]).unwrap();
            filter.0.push(ALLOW);
            let refused = |errno: libc::c_int, is: bool| if is { error(errno).k } else { ALLOW.k };
            let expected = match number {
                1..=3 => refused(libc::ENOSYS, true),
                5 => refused(libc::EPERM, true),
                6 => refused(libc::EPERM, first & 5 != 0),
                7 => refused(libc::EPERM, second == 2 || second == 4),
                8 => refused(libc::EPERM, ![1, 2, 7].contains(&first)),
                _ => ALLOW.k,
            };
            let own = own_architecture().unwrap();
            prop_assert_eq!(answer(&filter.0, own, number, [first, second]), expected);
            prop_assert_eq!(answer(&filter.0, own, number | X32, [first, second]), error(libc::ENOSYS).k);
            let other = answer(&filter.0, own ^ 1, number, [first, second]);
            prop_assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS);
        }
    }
}
