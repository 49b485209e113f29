(comment) @above
(decorator) @above

(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @definition.function
(method_definition
  name: [(property_identifier) (private_property_identifier)] @name body: (_) @body) @definition.method
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @definition.function
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function
(pair
  key: (property_identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function

; What is declared at the top of a file. What is inside of functions is nobody else's business.
(program (lexical_declaration
  (variable_declarator name: (identifier) @name value: (_)? @body) @definition.value))
(program (variable_declaration
  (variable_declarator name: (identifier) @name value: (_)? @body) @definition.value))
(export_statement (lexical_declaration
  (variable_declarator name: (identifier) @name value: (_)? @body) @definition.value))

(call_expression function: (identifier) @reference)
(call_expression function: (member_expression property: (property_identifier) @reference))
(new_expression constructor: (identifier) @reference)
(new_expression constructor: (member_expression property: (property_identifier) @reference))
(import_specifier name: (identifier) @reference)
(identifier) @reference.capital
