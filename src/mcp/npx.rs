//! Finds packages without a version in calls of `npx -y`, which installs the newest one at each start.

/// Options that are followed by a value which is not a package.
const OPTIONS_WITH_VALUE: [&str; 5] = ["-c", "--call", "--registry", "-w", "--workspace"];

/// Returns the first package that the command `npx -y` with `args` installs in a version that is not fixed.
pub fn unpinned_package<'a>(command: &str, args: &'a [String]) -> Option<&'a str> {
    let installs = args.iter().any(|arg| arg == "-y" || arg == "--yes");
    if command.rsplit('/').next() != Some("npx") || !installs {
        return None;
    }
    packages(args).into_iter().find(|package| !is_pinned(package))
}

/// Returns the name of a package without its version.
pub fn without_version(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => package.get(..at).unwrap_or(package),
        _ => package,
    }
}

/// Returns the packages of `--package`, or else the first argument that is no option.
fn packages(args: &[String]) -> Vec<&str> {
    let mut packages = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        if arg == "-p" || arg == "--package" {
            packages.extend(args.next());
        } else if let Some(package) = arg.strip_prefix("--package=").or_else(|| arg.strip_prefix("-p=")) {
            packages.push(package);
        } else if OPTIONS_WITH_VALUE.contains(&arg) {
            args.next();
        } else if !arg.starts_with('-') {
            // What follows is for the program.
            return if packages.is_empty() { vec![arg] } else { packages };
        }
    }
    packages
}

/// Checks whether a package has a whole version, such as `1.2.3` or `1.2.3-rc.1`; tags and ranges are none.
fn is_pinned(package: &str) -> bool {
    let version = package.strip_prefix(without_version(package)).and_then(|rest| rest.strip_prefix('@'));
    let numbers = version.and_then(|version| version.split(['-', '+']).next()).unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_version_is_fixed() {
        for (args, wanted) in [
            ("-y thing", Some("thing")),
            ("-y @scope/thing", Some("@scope/thing")),
            ("-y thing@latest --port 1", Some("thing@latest")),
            ("-y @scope/thing@latest", Some("@scope/thing@latest")),
            ("-y thing@^1.2.3", Some("thing@^1.2.3")),
            ("-y thing@1", Some("thing@1")),
            ("--yes --package=thing run", Some("thing")),
            ("-p thing@1.2.3 -p other -y run@2", Some("other")),
            ("-y --registry https://example.org thing", Some("thing")),
            ("-y thing@1.2.3", None),
            ("-y @scope/thing@2026.8.31-rc.1", None),
            ("--package thing@1.2.3 -y run", None),
            ("thing", None),
            ("-y", None),
        ] {
            let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
            assert_eq!(unpinned_package("/usr/bin/npx", &words), wanted, "{args}");
            assert_eq!(unpinned_package("node", &words), None);
        }
        assert_eq!(
            (without_version("@scope/thing@latest"), without_version("@scope/thing")),
            ("@scope/thing", "@scope/thing")
        );
    }
}
