//! Known commands that build, lint and test the project.

/// Commands that build and test (spec.md 1.8), each as a prefix of words.
const DEVELOPMENT_COMMANDS: &[&str] = &[
    "black --check",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo fmt",
    "cargo test",
    "coverage",
    "eslint",
    "go build",
    "go fmt",
    "go test",
    "go vet",
    "golangci-lint",
    "gradle build",
    "gradle test",
    "make",
    "mvn compile",
    "mvn package",
    "mvn test",
    "mypy",
    "npm audit",
    "npm ci",
    "npm install",
    "npm run",
    "npm test",
    "pip install",
    "prettier --check",
    "pytest",
    "python -m black",
    "python -m coverage",
    "python -m mypy",
    "python -m pytest",
    "python -m ruff",
    "python -m unittest",
    "python3 -m black",
    "python3 -m coverage",
    "python3 -m mypy",
    "python3 -m pytest",
    "python3 -m ruff",
    "python3 -m unittest",
    "ruff",
    "tsc",
    "yarn install",
    "yarn run",
    "yarn test",
];

/// Checks whether `words` start with one of [`DEVELOPMENT_COMMANDS`].
pub(super) fn is_development(words: &[String]) -> bool {
    DEVELOPMENT_COMMANDS.iter().any(|prefix| {
        let mut words = words.iter();
        prefix.split(' ').all(|wanted| words.next().is_some_and(|word| word == wanted))
    })
}
