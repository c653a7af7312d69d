//! Confinement tiers of commands, strongest first.

use serde::{Deserialize, Serialize};

/// Confinement of a command and mechanism that holds its process tree together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Namespaces, Landlock and a seccomp filter: a separate file system view and network.
    Full,
    /// The same through `/usr/bin/bwrap`, for systems that allow namespaces only to that program.
    Bubblewrap,
    /// Landlock and a seccomp filter. A subreaper holds the tree.
    Rules,
    /// Not confined. A pid namespace with our own init: the kernel ends everything in it.
    Namespace,
    /// Not confined. A subreaper finds and ends every descendant.
    Subreaper,
    /// Not confined. A process group: a process that leaves it escapes.
    #[default]
    Group,
}

impl Tier {
    /// Checks whether the tier confines commands, besides holding their tree together.
    pub fn confines(self) -> bool {
        matches!(self, Self::Full | Self::Bubblewrap | Self::Rules)
    }

    /// Checks whether commands have a separate view of the file system.
    pub fn has_own_view(self) -> bool {
        matches!(self, Self::Full | Self::Bubblewrap)
    }

    /// Returns the name for results and logs. Empty for a tier without confinement.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Bubblewrap => "bubblewrap",
            Self::Rules => "rules",
            Self::Namespace | Self::Subreaper | Self::Group => "none",
        }
    }

    /// Returns what the tier does, as text for the user. For a tier without confinement, what it allows.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Full => {
                "a file system, processes and a network of the command's own; Landlock and a filter of system calls \
                 below"
            }
            Self::Bubblewrap => {
                "a file system, processes and a network of the command's own, made by bubblewrap; Landlock and a filter \
                 of system calls below"
            }
            Self::Rules => {
                "Landlock and a filter of system calls; what is protected inside the workspace is compared and restored \
                 after each command; rights, owners, times and attributes of files outside are not held"
            }
            Self::Namespace => {
                "they can do what you can; everything they start ends with them (process namespace)"
            }
            Self::Subreaper => {
                "they can do what you can; everything they start is found and ended with them (subreaper)"
            }
            Self::Group => {
                "they can do what you can; what they detach from their process group can outlive them"
            }
        }
    }
}
