; What stands right above a definition and belongs to it.
(line_comment) @above
(block_comment) @above
(attribute_item) @above

(struct_item name: (type_identifier) @name body: (_)? @body) @definition.type
(enum_item name: (type_identifier) @name body: (_) @body) @definition.type
(union_item name: (type_identifier) @name body: (_) @body) @definition.type
(type_item name: (type_identifier) @name) @definition.type
(associated_type name: (type_identifier) @name) @definition.type
(trait_item name: (type_identifier) @name body: (_) @body) @definition.interface
(function_item name: (identifier) @name body: (_) @body) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(mod_item name: (identifier) @name body: (_) @body) @definition.module
(macro_definition name: (identifier) @name . (macro_rule) @body) @definition.macro
(const_item name: (identifier) @name value: (_)? @body) @definition.value
(static_item name: (identifier) @name value: (_)? @body) @definition.value
(field_declaration name: (field_identifier) @name) @definition.value
(enum_variant name: (identifier) @name body: (_)? @body) @definition.value

; An `impl` block goes by the name of its type.
(impl_item
  type: [
    (type_identifier) @name
    (scoped_type_identifier name: (type_identifier) @name)
    (generic_type type: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
    (reference_type type: (type_identifier) @name)
    (reference_type type: (generic_type type: (type_identifier) @name))
  ]
  body: (_) @body) @definition.implementation

(type_identifier) @reference
(call_expression function: (identifier) @reference)
(call_expression function: (field_expression field: (field_identifier) @reference))
(generic_function function: (identifier) @reference)
(generic_function function: (field_expression field: (field_identifier) @reference))
(scoped_identifier path: (identifier) @reference)
(scoped_identifier name: (identifier) @reference)
(macro_invocation macro: (identifier) @reference)
(use_list (identifier) @reference)
; Constants and variants go by capitals, and inside of macros so do types.
(identifier) @reference.capital
; Inside of a macro there is no syntax: a name before brackets is taken for a call.
(token_tree (identifier) @reference . (token_tree))
