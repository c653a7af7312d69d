//! The languages that are measured, with the node kinds of their grammars that count.

use std::path::Path;
use tree_sitter_language::LanguageFn;

/// A language and the node kinds of its tree-sitter grammar that matter for measuring.
///
/// The cyclomatic complexity of a function is 1 plus the number of its decision points (T. J. `McCabe`, "A Complexity Measure", IEEE
/// Transactions on Software Engineering SE-2(4), 1976): conditions, loops, case arms except the default one, exception
/// handlers, and operators that evaluate their second operand conditionally.
pub struct SourceLanguage {
    /// Name for users.
    pub name: &'static str,
    /// File name extensions, lower case.
    pub extensions: &'static [&'static str],
    /// The grammar.
    pub grammar: LanguageFn,
    /// Functions and methods with a name.
    pub functions: &'static [&'static str],
    /// Functions without a name. They belong to the function around them, if there is one and no binding names them.
    pub anonymous: &'static [&'static str],
    /// Bindings that name the anonymous function in them.
    pub bindings: &'static [&'static str],
    /// Decision points: nodes, and tokens of operators and keywords.
    pub decisions: &'static [&'static str],
    /// Case arms, which are decision points unless they are the default arm.
    pub arms: &'static [&'static str],
}

/// Returns the language of a file by the extension of its name.
pub fn language_of(path: &str) -> Option<&'static SourceLanguage> {
    let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()))
}

/// JavaScript, with whose node kinds the grammar of TypeScript agrees.
const JAVASCRIPT: SourceLanguage = SourceLanguage {
    name: "JavaScript",
    extensions: &["js", "jsx", "mjs", "cjs"],
    grammar: tree_sitter_javascript::LANGUAGE,
    functions: &["function_declaration", "generator_function_declaration", "method_definition"],
    anonymous: &["arrow_function", "function_expression", "generator_function"],
    bindings: &[
        "assignment_expression",
        "field_definition",
        "pair",
        "public_field_definition",
        "variable_declarator",
    ],
    decisions: &[
        "if_statement",
        "for_statement",
        "for_in_statement",
        "while_statement",
        "do_statement",
        "catch_clause",
        "ternary_expression",
        "&&",
        "||",
        "??",
    ],
    arms: &["switch_case"],
};

/// The languages.
pub static LANGUAGES: [SourceLanguage; 7] = [
    SourceLanguage {
        name: "Python",
        extensions: &["py", "pyi"],
        grammar: tree_sitter_python::LANGUAGE,
        functions: &["function_definition"],
        anonymous: &["lambda"],
        bindings: &[],
        decisions: &[
            "if_statement",
            "elif_clause",
            "for_statement",
            "while_statement",
            "except_clause",
            "conditional_expression",
            // Loops and conditions of comprehensions, and guards of case arms.
            "for_in_clause",
            "if_clause",
            "and",
            "or",
        ],
        arms: &["case_clause"],
    },
    JAVASCRIPT,
    SourceLanguage {
        name: "TypeScript",
        extensions: &["ts", "tsx", "mts", "cts"],
        // One grammar for both kinds of files, because each has 1.4 MB of tables; it knows all but casts in the form `<T>x`.
        grammar: tree_sitter_typescript::LANGUAGE_TSX,
        ..JAVASCRIPT
    },
    SourceLanguage {
        name: "Go",
        extensions: &["go"],
        grammar: tree_sitter_go::LANGUAGE,
        functions: &["function_declaration", "method_declaration"],
        anonymous: &["func_literal"],
        bindings: &[],
        decisions: &["if_statement", "for_statement", "&&", "||"],
        arms: &["expression_case", "type_case", "communication_case"],
    },
    SourceLanguage {
        name: "Rust",
        extensions: &["rs"],
        grammar: tree_sitter_rust::LANGUAGE,
        functions: &["function_item"],
        anonymous: &["closure_expression"],
        bindings: &[],
        // The keyword `if` is that of expressions and of guards of case arms.
        decisions: &["if", "for_expression", "while_expression", "loop_expression", "&&", "||"],
        arms: &["match_arm"],
    },
    SourceLanguage {
        name: "Java",
        extensions: &["java"],
        grammar: tree_sitter_java::LANGUAGE,
        functions: &["method_declaration", "constructor_declaration", "compact_constructor_declaration"],
        anonymous: &["lambda_expression"],
        bindings: &[],
        decisions: &[
            "if_statement",
            "for_statement",
            "enhanced_for_statement",
            "while_statement",
            "do_statement",
            "catch_clause",
            "ternary_expression",
            "guard",
            "&&",
            "||",
        ],
        arms: &["switch_label"],
    },
    SourceLanguage {
        name: "C",
        extensions: &["c", "h"],
        grammar: tree_sitter_c::LANGUAGE,
        functions: &["function_definition"],
        anonymous: &[],
        bindings: &[],
        decisions: &[
            "if_statement",
            "for_statement",
            "while_statement",
            "do_statement",
            "conditional_expression",
            "&&",
            "||",
        ],
        arms: &["case_statement"],
    },
];
