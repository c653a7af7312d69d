//! Commits all changes of a working tree: files of repositories below it as plain files, and no file unfiltered that has a filter.

use crate::git::worktree::{Repository, remove};
use crate::git::{FIND_FILTERS, filtered_paths, whole_output_of};
use agent_core::run_result::ModifiedFile;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum number of paths in a list of what a commit lacks.
const MAX_LEFT_OUT: usize = 50;

/// Mode of a submodule in an index.
const SUBMODULE: &str = "160000";

/// Result of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The commit, if it is not the one that the work began with.
    pub commit: Option<String>,
    /// Changes that it lacks, as paths from the top of the working tree; those of directories end with `/`.
    pub left_out: Vec<String>,
}

/// The changes of a working tree, in its index.
#[derive(Default)]
struct Staged {
    /// The commit that is checked out.
    head: String,
    /// Whether the index may differ from it.
    is_changed: bool,
    /// Submodules that the repository had, or that `.gitmodules` names.
    submodules: Vec<String>,
    /// Files that have a filter.
    filtered: Vec<String>,
}

impl Repository<'_> {
    /// Commits as [`commit_all`](Self::commit_all), and moves `branch` to the commit: the run may have left the branch.
    ///
    /// # Errors
    /// When the branch has commits that this one lacks; the message of git.
    pub async fn commit_to_branch(
        &self,
        branch: &str,
        path: &Path,
        base: &str,
        message: &str,
        changed: &[ModifiedFile],
    ) -> Result<Committed, String> {
        let committed = self.commit_all(path, base, message, changed).await?;
        if let Some(commit) = &committed.commit {
            self.forward_branch(branch, commit).await?;
        }
        Ok(committed)
    }

    /// Commits all changes in the working tree `path`, which began with the commit `base`. Files among `changed` that git ignores are not committed
    /// either, and left out.
    ///
    /// # Errors
    /// The message of git.
    pub async fn commit_all(
        &self,
        path: &Path,
        base: &str,
        message: &str,
        changed: &[ModifiedFile],
    ) -> Result<Committed, String> {
        let directory = self.line(path, &["rev-parse", "--absolute-git-dir"]).await?;
        let index = Path::new(&directory).join("index");
        let tree = WorkingTree { repository: self, top: path, directory: &directory, index };
        let staged = tree.stage(base).await?;
        let commit =
            if staged.is_changed { tree.commit(&staged.head, message).await? } else { Some(staged.head) };
        let mut left_out = staged.filtered;
        for submodule in &staged.submodules {
            left_out.extend(tree.files_of_submodule(submodule).await?);
        }
        left_out.extend(tree.ignored(changed, &staged.submodules).await?);
        Ok(Committed { commit: commit.filter(|commit| commit != base), left_out: listed(left_out) })
    }

    /// Creates a commit on top of `base` with the files of the user's working tree, untracked ones included, through an index of its
    /// own at `index`.
    ///
    /// # Errors
    /// The message of git.
    pub async fn commit_working_tree(
        &self,
        base: &str,
        index: &Path,
        message: &str,
    ) -> Result<Committed, String> {
        let top = PathBuf::from(self.line(&self.workspace, &["rev-parse", "--show-toplevel"]).await?);
        let words = ["rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-path", "index"];
        let paths = self.line(&top, &words).await?;
        let (directory, own) = paths.split_once('\n').ok_or("git does not know its index")?;
        copy_index(Path::new(own), index)?;
        let tree = WorkingTree { repository: self, top: &top, directory, index: index.to_owned() };
        // The copy knows which files are as they were, also those with a filter.
        tree.call(&["read-tree", "--reset", base], Vec::new()).await?;
        let staged = tree.stage(base).await?;
        let id = tree.call(&["write-tree"], Vec::new()).await?;
        let commit = self.commit_tree(&top, &["-p", base, "-m", message, id.trim()]).await?;
        Ok(Committed { commit: Some(commit), left_out: listed(staged.filtered) })
    }
}

/// A working tree whose changes are committed.
struct WorkingTree<'a> {
    repository: &'a Repository<'a>,
    /// Its top directory.
    top: &'a Path,
    /// Its git directory.
    directory: &'a str,
    /// Its index.
    index: PathBuf,
}

impl WorkingTree<'_> {
    /// Runs git at the top with these arguments and standard input, and returns its output.
    async fn call(&self, words: &[&str], stdin: Vec<u8>) -> Result<String, String> {
        self.run(self.top, &self.index, words, stdin).await
    }

    /// Runs git as [`call`](Self::call), with `top` as the working tree and the index at `index`. No repository is looked for: what `top/.git`
    /// configures has no effect.
    async fn run(&self, top: &Path, index: &Path, words: &[&str], stdin: Vec<u8>) -> Result<String, String> {
        let (place, index) = (top.to_str(), index.to_str());
        let (Some(place), Some(index)) = (place, index) else {
            return Err(format!("{} is no text", top.display()));
        };
        let env = [("GIT_DIR", self.directory), ("GIT_WORK_TREE", place), ("GIT_INDEX_FILE", index)];
        let spec = self.repository.command(top, words, &env, stdin);
        // `git check-ignore` ends with 1 when it ignores nothing.
        let codes: &[i32] = if words.first() == Some(&"check-ignore") { &[0, 1] } else { &[0] };
        let output = whole_output_of(self.repository.launcher, spec, codes).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Creates a commit of the index on top of `head` and checks it out; returns `head` if they do not differ.
    async fn commit(&self, head: &str, message: &str) -> Result<Option<String>, String> {
        let (repository, top) = (self.repository, self.top);
        let tree = repository.line(top, &["write-tree"]).await?;
        if tree == repository.line(top, &["rev-parse", "HEAD^{tree}"]).await? {
            return Ok(Some(head.to_owned()));
        }
        // `git commit` locks `packed-refs`, which belongs to the user, and leaves the lock when it is killed.
        let commit = repository.commit_tree(top, &["-p", head, "-m", message, &tree]).await?;
        repository.line(top, &["update-ref", "HEAD", &commit, head]).await?;
        Ok(Some(commit))
    }

    /// Adds all changes to the index, but for those of submodules and of files with a filter.
    async fn stage(&self, base: &str) -> Result<Staged, String> {
        let submodules = self.submodules(base).await?;
        let words = [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            // Anything else asks the submodules, whose configuration could name programs.
            "--ignore-submodules=dirty",
        ];
        let status = self.call(&words, Vec::new()).await?;
        let mut staged = Staged { submodules, ..Staged::default() };
        let (mut files, mut repositories) = (Vec::new(), Vec::new());
        for entry in status.split('\0').filter(|entry| !entry.is_empty()) {
            if let Some(header) = entry.strip_prefix("# ") {
                staged.head.push_str(header.strip_prefix("branch.oid ").unwrap_or_default());
                continue;
            }
            staged.is_changed = true;
            match entry.strip_prefix("? ") {
                Some(path) => match path.strip_suffix('/') {
                    Some(repository) => repositories.push(repository.to_owned()),
                    None => files.push(path.to_owned()),
                },
                None => match changed_path(entry) {
                    Some((path, _)) if is_repository(&self.top.join(path)) => {
                        repositories.push(path.to_owned());
                    }
                    Some((path, true)) => files.push(path.to_owned()),
                    Some((_, false)) | None => {}
                },
            }
        }
        if !staged.is_changed {
            return Ok(staged);
        }
        staged.filtered = self.filtered(files).await?;
        let without = repositories.iter().chain(&staged.filtered);
        let paths: Vec<String> = std::iter::once(":/".to_owned())
            .chain(without.map(|path| format!(":(top,exclude,literal){path}")))
            .collect();
        let words = ["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        self.call(&words, lines(&checked(paths)?)).await?;
        while let Some(repository) = repositories.pop() {
            let nested = self.stage_repository(&repository).await?;
            repositories.extend(nested.repositories);
            staged.filtered.extend(nested.filtered);
        }
        Ok(staged)
    }

    /// Returns the submodules in the index that `base` has or that `.gitmodules` names. Other repositories in the index, which were added to it
    /// as `git add` does, are removed from it.
    async fn submodules(&self, base: &str) -> Result<Vec<String>, String> {
        let entries = self.call(&["ls-files", "--stage", "-z"], Vec::new()).await?;
        let mut submodules: Vec<String> = entries.split('\0').filter_map(path_of_submodule).collect();
        if submodules.is_empty() {
            return Ok(submodules);
        }
        let words = ["diff-index", "--cached", "-z", "--raw", "--no-renames", "--ignore-submodules=none"];
        let new = self.call(&[&words[..], &["--diff-filter=AT", base, "--"]].concat(), Vec::new()).await?;
        let mut fields = new.split('\0');
        let mut unknown = BTreeSet::new();
        while let (Some(entry), Some(path)) = (fields.next(), fields.next()) {
            if entry.split(' ').nth(1) == Some(SUBMODULE) {
                unknown.insert(path.to_owned());
            }
        }
        if unknown.is_empty() {
            return Ok(submodules);
        }
        let words = ["config", "--null", "--blob=:.gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
        // Without the file git fails.
        let named = self.call(&words, Vec::new()).await.unwrap_or_default();
        for (_, path) in named.split('\0').filter_map(|entry| entry.split_once('\n')) {
            unknown.remove(path);
        }
        submodules.retain(|path| !unknown.contains(path));
        let unknown = checked(unknown.into_iter().collect())?;
        self.call(&["update-index", "--force-remove", "-z", "--stdin"], lines(&unknown)).await?;
        Ok(submodules)
    }

    /// Adds the files of the repository in the directory `path` to the index, as plain files.
    async fn stage_repository(&self, path: &str) -> Result<Nested, String> {
        let (root, index) = (self.top.join(path), Path::new(self.directory).join("agent-index"));
        remove(&index)?;
        // A file may have been there.
        self.call(&["update-index", "--force-remove", "--", path], Vec::new()).await?;
        let listed = self.untracked(path, &index).await?;
        let ignored = self.ignored_by_patterns(&listed).await?;
        let (repositories, files): (Vec<_>, Vec<_>) =
            listed.into_iter().filter(|path| !ignored.contains(path)).partition(|path| path.ends_with('/'));
        let filtered = self.filtered(files.clone()).await?;
        let left_out: BTreeSet<&String> = filtered.iter().collect();
        let start = path.len() + 1;
        let own = files.iter().filter(|file| !left_out.contains(file)).filter_map(|file| file.get(start..));
        let own: Vec<String> = own.map(str::to_owned).collect();
        if !own.is_empty() {
            self.run(&root, &index, &["update-index", "--add", "-z", "--stdin"], lines(&checked(own)?))
                .await?;
            let tree = self.run(&root, &index, &["write-tree"], Vec::new()).await?;
            let prefix = format!("--prefix={path}/");
            self.call(&["read-tree", &prefix, tree.trim()], Vec::new()).await?;
        }
        remove(&index)?;
        let repositories = repositories.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
        Ok(Nested { repositories: checked(repositories)?, filtered })
    }

    /// Returns the files below the directory `path` that the index at `index`, of this directory alone, lacks, and that no pattern below it
    /// ignores; of a repository its directory alone, with a `/` at its end.
    async fn untracked(&self, path: &str, index: &Path) -> Result<Vec<String>, String> {
        let words = ["ls-files", "--others", "--exclude-standard", "-z"];
        let names = self.run(&self.top.join(path), index, &words, Vec::new()).await?;
        let names = names.split('\0').filter(|name| !name.is_empty());
        Ok(names.map(|name| format!("{path}/{name}")).collect())
    }

    /// Returns those of `paths` that match a pattern of an ignore file.
    async fn ignored_by_patterns(&self, paths: &[String]) -> Result<BTreeSet<String>, String> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let words = ["check-ignore", "-z", "--stdin", "--no-index"];
        let ignored = self.call(&words, lines(paths)).await?;
        Ok(ignored.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// Returns those of `files` that have a filter. Its program is not run, so what it would store is not known.
    async fn filtered(&self, files: Vec<String>) -> Result<Vec<String>, String> {
        if files.is_empty() {
            return Ok(files);
        }
        Ok(filtered_paths(&self.call(&FIND_FILTERS, lines(&files)).await?))
    }

    /// Returns what is in the directory of a submodule, which was empty: the directory, if a repository is in it.
    async fn files_of_submodule(&self, path: &str) -> Result<Vec<String>, String> {
        let root = self.top.join(path);
        if root.read_dir().map_or(true, |mut entries| entries.next().is_none()) {
            return Ok(Vec::new());
        }
        if is_repository(&root) {
            return Ok(vec![format!("{path}/")]);
        }
        let index = Path::new(self.directory).join("agent-index");
        remove(&index)?;
        self.untracked(path, &index).await
    }

    /// Returns those of `changed`, from the directory of the workspace, that exist and that git ignores.
    async fn ignored(&self, changed: &[ModifiedFile], submodules: &[String]) -> Result<Vec<String>, String> {
        let Ok(top) = self.top.canonicalize() else { return Ok(Vec::new()) };
        // git refuses paths beyond links and in submodules.
        let workspace = self.top.join(&self.repository.prefix);
        let real = changed.iter().filter_map(|changed| {
            let file = workspace.join(&changed.path);
            file.symlink_metadata().ok()?;
            let real = file.parent()?.canonicalize().ok()?.join(file.file_name()?);
            let path = real.strip_prefix(&top).ok()?.to_str()?.to_owned();
            let is_below = |submodule: &String| Path::new(&path).starts_with(submodule);
            (!submodules.iter().any(is_below)).then_some(path)
        });
        let real: Vec<String> = real.collect();
        if real.is_empty() {
            return Ok(real);
        }
        let ignored = self.call(&["check-ignore", "-z", "--stdin"], lines(&real)).await?;
        Ok(ignored.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }
}

/// A repository below the working tree whose files are in the index.
struct Nested {
    /// The repositories below it.
    repositories: Vec<String>,
    /// Its files that have a filter.
    filtered: Vec<String>,
}

/// Returns the path in an entry of `git status` that differs from the index, and whether it is there; `None` if it is that of a submodule.
fn changed_path(entry: &str) -> Option<(&str, bool)> {
    // `1 XY sub mH mI mW hH hI path`, in conflict `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
    let is_conflict = entry.starts_with('u');
    let fields: Vec<&str> = entry.splitn(if is_conflict { 11 } else { 9 }, ' ').collect();
    let [_, state, _, _, index_mode, .., path] = fields.as_slice() else { return None };
    let differs = is_conflict || !state.ends_with('.');
    (differs && *index_mode != SUBMODULE).then_some((path, !state.ends_with('D')))
}

/// Checks whether a directory has a repository of its own.
fn is_repository(path: &Path) -> bool {
    path.is_dir() && !path.is_symlink() && path.join(".git").symlink_metadata().is_ok()
}

/// Returns the path in an entry of `git ls-files --stage`, if it is that of a submodule.
fn path_of_submodule(entry: &str) -> Option<String> {
    entry.strip_prefix(SUBMODULE)?.split_once('\t').map(|(_, path)| path.to_owned())
}

/// Returns paths as git reads them with `-z`.
fn lines(paths: &[String]) -> Vec<u8> {
    paths.iter().flat_map(|path| [path.as_str(), "\0"]).collect::<String>().into_bytes()
}

/// Checks that git can be given these paths as they are.
fn checked(paths: Vec<String>) -> Result<Vec<String>, String> {
    match paths.iter().find(|path| path.contains(char::REPLACEMENT_CHARACTER)) {
        Some(path) => Err(format!("the name {path} is not valid UTF-8")),
        None => Ok(paths),
    }
}

/// Returns the first of these paths, sorted, and the number of the others.
fn listed(mut paths: Vec<String>) -> Vec<String> {
    paths.sort_unstable();
    paths.dedup();
    let more = paths.len().saturating_sub(MAX_LEFT_OUT);
    paths.truncate(MAX_LEFT_OUT);
    if more > 0 {
        paths.push(format!("({more} more)"));
    }
    paths
}

/// Copies an index, if there is one, with its modification time, by which git finds entries that may be out of date.
fn copy_index(from: &Path, to: &Path) -> Result<(), String> {
    let copied = std::fs::File::open(from).and_then(|mut index| {
        let mut copy = std::fs::File::create(to)?;
        std::io::copy(&mut index, &mut copy)?;
        copy.set_modified(index.metadata()?.modified()?)
    });
    match copied {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", from.display())),
        _ => Ok(()),
    }
}
