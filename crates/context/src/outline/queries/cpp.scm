; Added to the queries for C.
(class_specifier name: (type_identifier) @name body: (_) @body) @definition.type
(class_specifier name: (template_type name: (type_identifier) @name) body: (_) @body) @definition.type
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_) @body) @definition.type
(namespace_definition name: (namespace_identifier) @name body: (_) @body) @definition.module
(namespace_definition
  name: (nested_namespace_specifier (namespace_identifier) @name .) body: (_) @body) @definition.module
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type

; Inside of a class.
(function_definition
  declarator: [
    (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  ]
  body: (_)? @body) @definition.method
(field_declaration
  declarator: [
    (function_declarator declarator: [(field_identifier) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  ]) @definition.method

; A function that returns a reference, and one that is defined outside of its class.
(function_definition
  declarator: (reference_declarator (function_declarator declarator: (identifier) @name))
  body: (_) @body) @definition.function
(function_definition
  declarator: [
    (function_declarator declarator: (qualified_identifier
      name: [(identifier) (destructor_name) (operator_name)] @name))
    (function_declarator declarator: (qualified_identifier
      name: (qualified_identifier name: [(identifier) (destructor_name) (operator_name)] @name)))
    (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier
      name: [(identifier) (operator_name)] @name)))
    (reference_declarator (function_declarator declarator: (qualified_identifier
      name: [(identifier) (operator_name)] @name)))
  ]
  body: (_) @body) @definition.method

; What has parameters for types begins with them.
(template_declaration
  [
    (class_specifier name: (type_identifier) @name body: (_) @body)
    (struct_specifier name: (type_identifier) @name body: (_) @body)
    (alias_declaration name: (type_identifier) @name)
    (concept_definition name: (identifier) @name)
  ]) @definition.type
(template_declaration
  (function_definition
    declarator: [
      (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name)
      (pointer_declarator declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))
      (reference_declarator (function_declarator
        declarator: [(identifier) (field_identifier) (operator_name)] @name))
    ]
    body: (_) @body)) @definition.function

(call_expression function: (qualified_identifier name: (identifier) @reference))
(qualified_identifier scope: (namespace_identifier) @reference)
(call_expression function: (template_function name: (identifier) @reference))
