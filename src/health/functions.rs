//! Finds the functions of a source file with their length and cyclomatic complexity.

use super::language::SourceLanguage;
use agent_core::health::{MAX_COMPLEXITY, MAX_FUNCTION_LINES};
use agent_text::lines::one_line;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 80;
/// Name of a function without one.
const ANONYMOUS: &str = "(anonymous)";

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name in the source.
    pub name: String,
    /// First line, from 1.
    pub line: u32,
    /// Number of lines.
    pub lines: u32,
    /// Cyclomatic complexity.
    pub complexity: u32,
}

impl Function {
    /// Checks whether the function has too many lines.
    pub fn is_long(&self) -> bool {
        self.lines > MAX_FUNCTION_LINES
    }

    /// Checks whether the function is too complex.
    pub fn is_complex(&self) -> bool {
        self.complexity > MAX_COMPLEXITY
    }
}

/// The functions of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedFunctions {
    /// In the order of their first lines.
    pub functions: Vec<Function>,
    /// Whether the syntax has errors, so that functions may be missing.
    pub has_errors: bool,
}

/// Returns the functions of `source`; `None` if `stop` has returned true, which is called repeatedly.
pub fn functions(
    language: &SourceLanguage,
    source: &[u8],
    mut stop: impl FnMut() -> bool,
) -> Option<ParsedFunctions> {
    let mut parser = Parser::new();
    parser.set_language(&language.grammar.into()).ok()?;
    let mut progress = |_: &_| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut read = |at: usize, _| source.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    let roles = Roles::new(language, &tree);
    let functions = measure(&tree, source, &roles, stop)?;
    Some(ParsedFunctions { functions, has_errors: tree.root_node().has_error() })
}

/// What a node means for measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Role {
    #[default]
    None,
    Function,
    Anonymous,
    Binding,
    Decision,
    Arm,
}

/// The roles of all node kinds of a grammar, by their ids.
struct Roles(Vec<Role>);

impl Roles {
    fn new(language: &SourceLanguage, tree: &Tree) -> Self {
        let grammar = tree.language();
        let tables = [
            (language.functions, Role::Function),
            (language.anonymous, Role::Anonymous),
            (language.bindings, Role::Binding),
            (language.decisions, Role::Decision),
            (language.arms, Role::Arm),
        ];
        let role = |id: usize| {
            let kind = u16::try_from(id).ok().and_then(|id| grammar.node_kind_for_id(id))?;
            tables.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, role)| *role)
        };
        Self((0..grammar.node_kind_count()).map(|id| role(id).unwrap_or_default()).collect())
    }

    fn of(&self, node: Node<'_>) -> Role {
        self.0.get(usize::from(node.kind_id())).copied().unwrap_or_default()
    }
}

/// Visits all nodes without recursion, because a hostile file nests deeply. Returns `None` if `stop` has returned true.
fn measure(
    tree: &Tree,
    source: &[u8],
    roles: &Roles,
    mut stop: impl FnMut() -> bool,
) -> Option<Vec<Function>> {
    let mut functions: Vec<Function> = Vec::new();
    let mut cursor = tree.walk();
    // The ancestors of the node, each with the function to which its children belong.
    let mut ancestors: Vec<(Node<'_>, Option<usize>)> = Vec::new();
    loop {
        let node = cursor.node();
        let (parent, mut owner) =
            ancestors.last().map_or((None, None), |(node, owner)| (Some(*node), *owner));
        let role = roles.of(node);
        if role == Role::Decision || role == Role::Arm && !is_default(node, source) {
            if let Some(function) = owner.and_then(|at| functions.get_mut(at)) {
                function.complexity = function.complexity.saturating_add(1);
            }
        } else if let Some(name) = function_name(node, role, parent, owner, roles, source) {
            functions.push(new_function(node, name));
            owner = Some(functions.len() - 1);
            if stop() {
                return None;
            }
        }
        if cursor.goto_first_child() {
            ancestors.push((node, owner));
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(functions);
            }
            ancestors.pop();
        }
    }
}

/// Returns the name of a function that is measured separately; `None` for other nodes.
fn function_name(
    node: Node<'_>,
    role: Role,
    parent: Option<Node<'_>>,
    owner: Option<usize>,
    roles: &Roles,
    source: &[u8],
) -> Option<String> {
    if !matches!(role, Role::Function | Role::Anonymous) || node.child_by_field_name("body").is_none() {
        return None;
    }
    let own = node.child_by_field_name("name").or_else(|| declared_name(node));
    let binding = || parent.filter(|parent| roles.of(*parent) == Role::Binding).and_then(bound_name);
    match own.or_else(binding) {
        Some(name) => Some(text(name, source)),
        None if role == Role::Function || owner.is_none() => Some(ANONYMOUS.to_owned()),
        None => None,
    }
}

/// Returns the name in nested declarators, such as `*f(int x)` in C.
fn declared_name(node: Node<'_>) -> Option<Node<'_>> {
    std::iter::successors(Some(node), |node| node.child_by_field_name("declarator")).skip(1).last()
}

/// Returns the name that a binding gives to its value.
fn bound_name(binding: Node<'_>) -> Option<Node<'_>> {
    ["name", "property", "key", "left"].into_iter().find_map(|field| binding.child_by_field_name(field))
}

fn new_function(node: Node<'_>, name: String) -> Function {
    let (first, last) = (node.start_position().row, node.end_position().row);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (line, lines) = (number(first + 1), number(last.saturating_sub(first) + 1));
    Function { name, line, lines, complexity: 1 }
}

/// Checks whether a case arm is the default one: `default`, or the pattern `_`.
fn is_default(arm: Node<'_>, source: &[u8]) -> bool {
    let starts = |node: Node<'_>, word: &str| {
        let text = source.get(node.byte_range()).unwrap_or_default();
        text.strip_prefix(word.as_bytes()).is_some_and(|rest| {
            !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    };
    starts(arm, "default") || arm.named_child(0).is_some_and(|pattern| starts(pattern, "_"))
}

fn text(node: Node<'_>, source: &[u8]) -> String {
    let bytes = source.get(node.byte_range()).unwrap_or_default();
    let bytes = bytes.get(..4 * MAX_NAME_CHARS).unwrap_or(bytes);
    one_line(&String::from_utf8_lossy(bytes), MAX_NAME_CHARS)
}

#[cfg(test)]
#[path = "functions_tests.rs"]
mod tests;
