"""The languages that blocks are found in: file endings, grammar and definitions. Knows nothing of files or processes.

The definitions are written down here instead of being taken from the grammars' own `tags.scm`: those miss half of what
people delegate, and finding out which of JavaScript's patterns TypeScript accepts takes 250 ms at every start.

In a query `@name` is the block's name and the other capture's name is the block's kind; `@receiver`, where there is one, is
the type that a method written outside of it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Grammar:
    """`module` and `function` lead to the grammar, `definitions` is a tree-sitter query."""

    module: str
    function: str
    definitions: str


_PYTHON = """
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(assignment left: (identifier) @name right: (lambda)) @function
"""

_FUNCTION_VALUE = "[(arrow_function) (function_expression) (generator_function)]"

_ECMASCRIPT = f"""
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @method
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(variable_declarator name: (identifier) @name value: {_FUNCTION_VALUE}) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: {_FUNCTION_VALUE}) @function
(pair key: (property_identifier) @name value: {_FUNCTION_VALUE}) @function
"""

_JAVASCRIPT = f"""{_ECMASCRIPT}
(class_declaration name: (identifier) @name) @class
(field_definition
  property: [(property_identifier) (private_property_identifier)] @name value: {_FUNCTION_VALUE}) @method
"""

_TYPESCRIPT = f"""{_ECMASCRIPT}
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name value: {_FUNCTION_VALUE}) @method
(function_signature name: (identifier) @name) @function
(method_signature name: (property_identifier) @name) @method
(abstract_method_signature name: (property_identifier) @name) @method
(interface_declaration name: (type_identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name) @module
(module name: (identifier) @name) @module
"""

_GO = """
(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @receiver
    (generic_type type: (type_identifier) @receiver)
    (pointer_type (type_identifier) @receiver)
    (pointer_type (generic_type type: (type_identifier) @receiver))]))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(var_spec name: (identifier) @name value: (expression_list (func_literal))) @function
(short_var_declaration left: (expression_list . (identifier) @name .)
  right: (expression_list . (func_literal) .)) @function
"""

_RUST = """
(struct_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name) @enum
(union_item name: (type_identifier) @name) @class
(type_item name: (type_identifier) @name) @type
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(trait_item name: (type_identifier) @name) @interface
(mod_item name: (identifier) @name) @module
(macro_definition name: (identifier) @name) @macro
(impl_item type: [
  (type_identifier) @name
  (primitive_type) @name
  (reference_type type: (type_identifier) @name)
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))]) @impl
"""

_JAVA = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @constructor
(compact_constructor_declaration name: (identifier) @name) @constructor
"""

# The whole name, so that the table of `function M.f()` and `function M:f()` is part of it.
_LUA = """
(function_declaration name: (_) @name) @function
(assignment_statement
  (variable_list . name: (_) @name .)
  (expression_list . value: (function_definition) .)) @function
(field name: (identifier) @name value: (function_definition)) @function
"""

GRAMMARS: dict[str, Grammar] = {
    "python": Grammar("tree_sitter_python", "language", _PYTHON),
    "javascript": Grammar("tree_sitter_javascript", "language", _JAVASCRIPT),
    "typescript": Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT),
    "typescriptreact": Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT),
    "go": Grammar("tree_sitter_go", "language", _GO),
    "rust": Grammar("tree_sitter_rust", "language", _RUST),
    "java": Grammar("tree_sitter_java", "language", _JAVA),
    "lua": Grammar("tree_sitter_lua", "language", _LUA),
}

_ENDINGS: dict[str, str] = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".lua": "lua",
}


def grammar_name(path: str) -> str:
    """The key into `GRAMMARS` for a file, "" when its ending is not known."""
    return _ENDINGS.get(PurePath(path).suffix.lower(), "")


def language_name(path: str) -> str:
    """The language's name: that of the grammar, but TSX is TypeScript to recipes and people."""
    return grammar_name(path).removesuffix("react")
