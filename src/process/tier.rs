//! The tiers: how firmly a kernel lets us hold a command.

use serde::{Deserialize, Serialize};

/// How a command is confined, and how its tree is held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Namespaces, Landlock, a filter of system calls: a view of the file system and a network of its own.
    Full,
    /// The same by way of `/usr/bin/bwrap`, where the system allows namespaces to that program only.
    Bubblewrap,
    /// Landlock and a filter of system calls; the tree is held by a subreaper.
    Rules,
    /// Not confined: a pid namespace with an init of ours, with which the kernel ends everything in it.
    Namespace,
    /// Not confined: a subreaper that finds and ends every descendant.
    Subreaper,
    /// Not confined: a process group; whoever leaves it escapes.
    Group,
}

impl Tier {
    /// Whether it keeps commands from anything, beyond keeping them together.
    pub fn confines(self) -> bool {
        matches!(self, Self::Full | Self::Bubblewrap | Self::Rules)
    }

    /// Whether commands have a view of the file system of their own.
    pub fn has_own_view(self) -> bool {
        matches!(self, Self::Full | Self::Bubblewrap)
    }

    /// Whether the launcher process itself holds the tree together, and no namespace does.
    pub fn has_subreaper(self) -> bool {
        matches!(self, Self::Rules | Self::Subreaper)
    }

    /// Its name in results and logs; what does not confine has none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Bubblewrap => "bubblewrap",
            Self::Rules => "rules",
            Self::Namespace | Self::Subreaper | Self::Group => "none",
        }
    }

    /// What it does, in words for people; of one that does not confine, what it lets commands do.
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
